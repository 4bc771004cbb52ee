r"""Fixed averages along memberships, the convolutions' propagation.

With $H$ the incidence matrix (entries $w_{ev}$), $W$ the hyperedges' weights, $d_v = \sum_e w_e w_{ev}$ and
$k_e = \sum_v w_{ev}$. A degree of 0 contributes a factor of 0.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.hypergraph import Hypergraph
from edhnn.nn.aggregate import Aggregate, node_total, to_edges, to_nodes


def power(count: Float[Tensor, "R 1"], exponent: float) -> Float[Tensor, "R 1"]:
    r"""$n^a$, and 0 where nothing is counted."""
    return torch.where(count > 0, torch.where(count > 0, count, 1) ** exponent, 0)


def symmetric_smoothing(x: Float[Tensor, "N D"], hypergraph: Hypergraph) -> Float[Tensor, "N D"]:
    r"""$D_v^{-1/2} H W D_e^{-1} H^\top D_v^{-1/2} x$. Source: HGNN (Feng et al., AAAI 2019), Eq. 10."""
    scale = power(node_total(hypergraph, x), -0.5)
    return scale * to_nodes(to_edges(scale * x, hypergraph, "mean"), hypergraph, "sum")


def row_smoothing(x: Float[Tensor, "N D"], hypergraph: Hypergraph) -> Float[Tensor, "N D"]:
    r"""$D_v^{-1} H W D_e^{-1} H^\top x$: a mean of means. Source: HCHA (Bai et al., 2021), Eq. 5."""
    return to_nodes(to_edges(x, hypergraph, "mean"), hypergraph, "mean")


def degree_smoothing(x: Float[Tensor, "N D"], hypergraph: Hypergraph, aggregate: Aggregate) -> Float[Tensor, "N D"]:
    r"""$d_v^{-1/2} \sum_{e \ni v} w_e w_{ev} \bar d_e^{-1/2} y_e$ with $y_e, \bar d_e$ means (sums) of $x, d$ in $e$.

    Source: UniGNN (Huang and Yang, IJCAI 2021), Eq. 5.
    """
    degree = node_total(hypergraph, x)
    y_e = to_edges(x, hypergraph, aggregate) * power(to_edges(degree, hypergraph, aggregate), -0.5)
    return to_nodes(y_e, hypergraph, "sum") * power(degree, -0.5)


def unit_rows(x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
    """Rows of length 1, rows of zeros as they are; the lengths are constants to the gradient, as in UniGNN's code."""
    length = x.detach().norm(dim=1, keepdim=True)
    return x / torch.where(length > 0, length, 1)
