"""The doctor: describe a dataset, find problems in it, and forecast the cost of training on it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
