r"""Kernels: the only place that knows how loops over hyperedges run.

Every function takes values on incidences sorted by hyperedge, ``values: [I, D]`` and ``edge_ptr: [E + 1]`` (hyperedge e
owns rows ``edge_ptr[e]`` to ``edge_ptr[e + 1]``), and treats every hyperedge and column on its own.

There are two implementations of each: ``native`` (C++, for CPU tensors of float32 or float64 without gradient) and
``torch`` (any device and dtype, differentiable, the judge of the other). `active` says which one runs; the environment
variable ``EDHNN_KERNELS`` forces one.
"""

from edhnn.kernels.dispatch import active as active
from edhnn.kernels.dispatch import native_available as native_available
from edhnn.kernels.ordered import segment_pav as segment_pav
from edhnn.kernels.ordered import segment_sort as segment_sort
from edhnn.kernels.proximal import prox_cardinality as prox_cardinality
from edhnn.kernels.proximal import prox_total_variation as prox_total_variation
