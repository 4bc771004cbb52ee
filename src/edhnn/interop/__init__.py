"""Bridges to other libraries, both ways; each library is imported when its bridge is crossed.

What a library cannot hold is refused with a remedy, or kept in a place its module names. See ADR 0002.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
