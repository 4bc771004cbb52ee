"""Runs: several splits of a dataset trained into a folder, and what is done with that folder."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
