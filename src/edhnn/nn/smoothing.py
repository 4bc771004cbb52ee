r"""Fixed averages along memberships, the convolutions' propagation.

With $H$ the incidence matrix (entries $w_{ev}$), $W$ the hyperedges' weights, $d_v = \sum_e w_e w_{ev}$ and
$k_e = \sum_v w_{ev}$. A degree of 0 contributes a factor of 0. All factors go into the weights of the memberships,
which are found once per hypergraph: what is left for a pass is two weighted sums.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn import kernels
from edhnn.hypergraph import Hypergraph
from edhnn.nn.aggregate import Aggregate, edge_total, edge_weights, node_total, node_weights, to_edges
from edhnn.nn.remembered import per_hypergraph


def power(count: Float[Tensor, "R 1"], exponent: float) -> Float[Tensor, "R 1"]:
    r"""$n^a$, and 0 where nothing is counted."""
    return torch.where(count > 0, torch.where(count > 0, count, 1) ** exponent, 0)


def symmetric_smoothing(x: Float[Tensor, "N D"], hypergraph: Hypergraph) -> Float[Tensor, "N D"]:
    r"""$D_v^{-1/2} H W D_e^{-1} H^\top D_v^{-1/2} x$. Source: HGNN (Feng et al., AAAI 2019), Eq. 10."""

    def factors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
        degree, size = totals(hypergraph)
        return power(degree, -0.5), torch.ones_like(size), power(size, -1.0), power(degree, -0.5)

    return smoothed(x, hypergraph, "symmetric", factors)


def row_smoothing(x: Float[Tensor, "N D"], hypergraph: Hypergraph) -> Float[Tensor, "N D"]:
    r"""$D_v^{-1} H W D_e^{-1} H^\top x$: a mean of means. Source: HCHA (Bai et al., 2021), Eq. 5."""

    def factors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
        degree, size = totals(hypergraph)
        return torch.ones_like(degree), torch.ones_like(size), power(size, -1.0), power(degree, -1.0)

    return smoothed(x, hypergraph, "row", factors)


def degree_smoothing(x: Float[Tensor, "N D"], hypergraph: Hypergraph, aggregate: Aggregate) -> Float[Tensor, "N D"]:
    r"""$d_v^{-1/2} \sum_{e \ni v} w_e w_{ev} \bar d_e^{-1/2} y_e$ with $y_e, \bar d_e$ means (sums) of $x, d$ in $e$.

    Source: UniGNN (Huang and Yang, IJCAI 2021), Eq. 5.
    """

    def factors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
        degree, size = totals(hypergraph)
        within = power(to_edges(degree, hypergraph, aggregate), -0.5)
        share = power(size, -1.0) if aggregate == "mean" else torch.ones_like(size)
        return torch.ones_like(degree), torch.ones_like(size), share * within, power(degree, -0.5)

    return smoothed(x, hypergraph, ("degree", aggregate), factors)


def smoothed(
    x: Float[Tensor, "N D"],
    hypergraph: Hypergraph,
    key: Hashable,
    factors: Callable[[], tuple[Tensor, Tensor, Tensor, Tensor]],
) -> Float[Tensor, "N D"]:
    r"""$B_v H W B_e A_e H^\top A_v x$ with diagonal factors $A_v, A_e, B_e, B_v$, found once per hypergraph and key.

    Args:
        x: Values on nodes.
        hypergraph: The hypergraph.
        key: The name of these factors.
        factors: Gives them, as columns in double precision.

    Returns:
        Values on nodes.
    """
    inward, outward = membership_weights(x, hypergraph, key, factors)
    return speak(listen(x, hypergraph, inward), hypergraph, outward)


def membership_weights(
    like: Tensor,
    hypergraph: Hypergraph,
    key: Hashable,
    factors: Callable[[], tuple[Tensor, Tensor, Tensor, Tensor]],
) -> tuple[Float[Tensor, " I"], Float[Tensor, " I"]]:
    """The weights of the two sums of `smoothed`, in the type of ``like``."""

    def make() -> tuple[Tensor, Tensor]:
        node_in, edge_in, edge_out, node_out = (factor[:, 0] for factor in factors())
        node, edge = hypergraph.node_index, hypergraph.edge_index
        inward, outward = node_in[node] * edge_in[edge], edge_out[edge] * node_out[node]
        own, both = edge_weights(hypergraph, inward), node_weights(hypergraph, inward)
        return (
            (inward if own is None else inward * own).to(like.dtype),
            (outward if both is None else outward * both).to(like.dtype),
        )

    return per_hypergraph(hypergraph, ("smoothing", key, like.dtype), make)


def listen(x: Float[Tensor, "N D"], hypergraph: Hypergraph, weight: Float[Tensor, " I"]) -> Float[Tensor, "E D"]:
    """Weighted sums at hyperedges."""
    return kernels.gather_sum(x, kernels.edge_links(hypergraph), weight)


def speak(m_e: Float[Tensor, "E D"], hypergraph: Hypergraph, weight: Float[Tensor, " I"]) -> Float[Tensor, "N D"]:
    """Weighted sums at nodes."""
    return kernels.gather_sum(m_e, kernels.node_links(hypergraph), weight)


def unit_rows(x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
    """Rows of length 1, rows of zeros as they are; the lengths are constants to the gradient, as in UniGNN's code."""
    length = x.detach().norm(dim=1, keepdim=True)
    return x / torch.where(length > 0, length, 1)


def totals(hypergraph: Hypergraph) -> tuple[Float[Tensor, "N 1"], Float[Tensor, "E 1"]]:
    """Degrees and sizes, weights counted, in double precision."""
    like = torch.empty(0, dtype=torch.float64, device=hypergraph.device)
    return node_total(hypergraph, like), edge_total(hypergraph, like)
