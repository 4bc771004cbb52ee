"""The paper's evidence: experiments as data, a runner whose records last, and a page made from records alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
