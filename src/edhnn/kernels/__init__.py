r"""Kernels: the only place that knows how loops over hyperedges run.

Kernels of the potentials take values on incidences sorted by hyperedge, ``values: [I, D]`` and ``edge_ptr: [E + 1]``
(hyperedge e owns rows ``edge_ptr[e]`` to ``edge_ptr[e + 1]``), and treat every hyperedge and column on its own. Kernels
of the networks sum over `Links` between rows and columns and never make a tensor of one row per link.

There are two implementations of each: ``native`` (C++, for CPU tensors of float32 or float64; the networks' kernels
have native gradients too) and ``torch`` (any device and dtype, differentiable, the judge of the other). `active` says
which one runs; the environment variable ``EDHNN_KERNELS``, or `choose`, forces one.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
