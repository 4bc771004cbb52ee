"""The doctor: what is in a dataset, what is wrong with it, what training on it costs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
