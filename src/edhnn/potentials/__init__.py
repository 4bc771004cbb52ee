"""Potentials of hyperedges and of nodes, each with its gradient and its proximal operator."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
