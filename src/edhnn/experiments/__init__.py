"""The paper's experiments: specifications in TOML, a runner that appends records, and a report made from records."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
