"""Runs: train several splits of a dataset into a folder, then predict and evaluate from that folder."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
