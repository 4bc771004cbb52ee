"""Conversions to and from other libraries; each library is imported on first use.

Data that a library cannot hold raises an error with a remedy, or is stored as the module's docstring describes. See
ADR 0002.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
