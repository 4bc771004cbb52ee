r"""Kernels: the only place that knows how loops over hyperedges run.

Kernels of the potentials take values on incidences sorted by hyperedge, ``values: [I, D]`` and ``edge_ptr: [E + 1]``
(hyperedge e owns rows ``edge_ptr[e]`` to ``edge_ptr[e + 1]``), and treat every hyperedge and column on its own. Kernels
of the networks sum over `Links` between rows and columns and never make a tensor of one row per link.

There are two implementations of each: ``native`` (C++, for CPU tensors of float32 or float64; the networks' kernels
have native gradients too) and ``torch`` (any device and dtype, differentiable, the judge of the other). `active` says
which one runs; the environment variable ``EDHNN_KERNELS`` forces one.
"""

from edhnn.kernels.attention import segment_max as segment_max
from edhnn.kernels.attention import segment_softmax as segment_softmax
from edhnn.kernels.dispatch import active as active
from edhnn.kernels.dispatch import native_available as native_available
from edhnn.kernels.gathering import gather_sum as gather_sum
from edhnn.kernels.links import Links as Links
from edhnn.kernels.links import edge_links as edge_links
from edhnn.kernels.links import node_links as node_links
from edhnn.kernels.links import row_links as row_links
from edhnn.kernels.links import sparse_links as sparse_links
from edhnn.kernels.options import Moments as Moments
from edhnn.kernels.ordered import segment_pav as segment_pav
from edhnn.kernels.ordered import segment_sort as segment_sort
from edhnn.kernels.pairing import pair_sum as pair_sum
from edhnn.kernels.proximal import prox_cardinality as prox_cardinality
from edhnn.kernels.proximal import prox_total_variation as prox_total_variation
from edhnn.kernels.rowwise import hash_dropout as hash_dropout
from edhnn.kernels.rowwise import row_activation as row_activation
from edhnn.kernels.rowwise import row_moments as row_moments
