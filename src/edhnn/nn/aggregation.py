r"""Sums and means along memberships, with the hypergraph's weights.

A message from a node to a hyperedge has the weight of their membership, $w_{ev}$; a message back also has the weight of
the hyperedge, $w_e w_{ev}$. A mean divides by the sum of the weights, and is 0 over an empty set.

The fixed averages at the end are the propagation of convolutions. $H$ is the incidence matrix (entries $w_{ev}$), $W$
holds the hyperedges' weights, $d_v = \sum_e w_e w_{ev}$, $k_e = \sum_v w_{ev}$. A degree of 0 contributes a factor of
0. All factors go into the weights of the memberships, computed once per hypergraph; a pass is two weighted sums.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn import kernels
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import incidence_to_edge, incidence_to_node
from edhnn.nn.cache import cached_per_hypergraph

Aggregate = Literal["sum", "mean"]


def edge_weights(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, " I"] | None:
    r"""Return $w_{ev}$, the weights of messages to hyperedges; ``None`` where all are 1."""
    weight = hypergraph.incidence_weight
    return None if weight is None else weight.to(like)


def node_weights(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, " I"] | None:
    r"""Return $w_e w_{ev}$, the weights of messages to nodes; ``None`` where all are 1."""
    weight = edge_weights(hypergraph, like)
    if hypergraph.edge_weight is None:
        return weight
    own = hypergraph.edge_weight.to(like).index_select(0, hypergraph.edge_index)
    return own if weight is None else own * weight


def edge_total(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "E 1"]:
    r"""Return $\sum_{v \in e} w_{ev}$."""
    return _total(hypergraph.edge_size, hypergraph.edge_index, edge_weights(hypergraph, like), like)


def node_total(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "N 1"]:
    r"""Return $\sum_{e \ni v} w_e w_{ev}$."""
    return _total(hypergraph.degree, hypergraph.node_index, node_weights(hypergraph, like), like)


def to_edges(
    x: Float[Tensor, "N D"],
    hypergraph: Hypergraph,
    aggregate: Aggregate = "sum",
    *,
    weight: Float[Tensor, " I"] | None = None,
) -> Float[Tensor, "E D"]:
    r"""Return $\sum_{v \in e} w_{ev} x_v$, or the mean. Paper: Algorithm 1, step 2.

    A ``weight`` per membership takes the place of the hypergraph's own, in a sum.
    """
    links = kernels.edge_links(hypergraph)
    if weight is None:
        weight = edge_weights(hypergraph, x)
        if aggregate == "mean" and weight is not None:
            weight = _shares(weight, hypergraph.edge_index, edge_total(hypergraph, x))
        elif aggregate == "mean":
            return kernels.gather_sum(x, links, mean=True)
    return kernels.gather_sum(x, links, weight)


def to_nodes(
    x_e: Float[Tensor, "E D"],
    hypergraph: Hypergraph,
    aggregate: Aggregate = "sum",
    *,
    weight: Float[Tensor, " I"] | None = None,
) -> Float[Tensor, "N D"]:
    r"""Return $\sum_{e \ni v} w_e w_{ev} x_e$, or the mean; a ``weight`` takes the place of $w_e w_{ev}$, in a sum."""
    links = kernels.node_links(hypergraph)
    if weight is None:
        weight = node_weights(hypergraph, x_e)
        if aggregate == "mean" and weight is not None:
            weight = _shares(weight, hypergraph.node_index, node_total(hypergraph, x_e))
        elif aggregate == "mean":
            return kernels.gather_sum(x_e, links, mean=True)
    return kernels.gather_sum(x_e, links, weight)


def aggregate_at_edges(
    z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, aggregate: Aggregate
) -> Float[Tensor, "E D"]:
    r"""Return $\sum_{v \in e} w_{ev} z_{ev}$, or the mean: `to_edges` for values on incidences."""
    weight = edge_weights(hypergraph, z_ev)
    total = incidence_to_edge(z_ev if weight is None else z_ev * weight[:, None], hypergraph)
    return total if aggregate == "sum" else divided(total, edge_total(hypergraph, z_ev))


def aggregate_at_nodes(
    z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, aggregate: Aggregate
) -> Float[Tensor, "N D"]:
    r"""Return $\sum_{e \ni v} w_e w_{ev} z_{ev}$, or the mean."""
    weight = node_weights(hypergraph, z_ev)
    total = incidence_to_node(z_ev if weight is None else z_ev * weight[:, None], hypergraph)
    return total if aggregate == "sum" else divided(total, node_total(hypergraph, z_ev))


class Weighing(NamedTuple):
    """The weights of messages along links; see `weighing_at_nodes`.

    Args:
        weight: By link; ``None`` for 1.
        mean: Whether the sum is divided by the number of links.
        total: The sum of all these factors at each row; ``None`` where it is 1 everywhere.
    """

    weight: Float[Tensor, " I"] | None
    mean: bool
    total: Float[Tensor, " R"] | None


def weighing_at_nodes(hypergraph: Hypergraph, like: Tensor, aggregate: Aggregate) -> Weighing:
    """Return the weights of messages to nodes, computed once per hypergraph."""
    return _weighing(hypergraph, like, aggregate, "node", node_weights, node_total, hypergraph.node_index)


def weighing_at_edges(hypergraph: Hypergraph, like: Tensor, aggregate: Aggregate) -> Weighing:
    """Return the weights of messages to hyperedges, computed once per hypergraph."""
    return _weighing(hypergraph, like, aggregate, "edge", edge_weights, edge_total, hypergraph.edge_index)


def _weighing(
    hypergraph: Hypergraph,
    like: Tensor,
    aggregate: Aggregate,
    end: str,
    weights: Callable[[Hypergraph, Tensor], Tensor | None],
    totals_at: Callable[[Hypergraph, Tensor], Tensor],
    index: Tensor,
) -> Weighing:
    def make() -> Weighing:
        weight, total = weights(hypergraph, like), totals_at(hypergraph, like)
        if aggregate == "sum":
            return Weighing(weight, False, total[:, 0])
        shares = None if weight is None else _shares(weight, index, total)
        reached = total[:, 0] > 0
        everywhere = not (torch.compiler.is_compiling() or reached.is_meta) and bool(reached.all())
        return Weighing(shares, weight is None, None if everywhere else reached.to(like))

    if torch.compiler.is_compiling():
        return make()
    return cached_per_hypergraph(hypergraph, ("weighing", end, aggregate, like.dtype), make)


def divided(total: Float[Tensor, "R D"], by: Float[Tensor, "R 1"]) -> Float[Tensor, "R D"]:
    """Return a sum divided by a sum of weights; where the weights sum to 0 it stays 0."""
    return total / torch.where(by > 0, by, 1)


def _shares(weight: Tensor, index: Tensor, total: Tensor) -> Tensor:
    """Return each incidence's share of the weights at its end."""
    return divided(weight[:, None], total.index_select(0, index))[:, 0]


def _total(count: Tensor, index: Tensor, weight: Tensor | None, like: Tensor) -> Tensor:
    if weight is None:
        return count.to(like)[:, None]
    return weight.new_zeros(len(count)).index_add(0, index, weight)[:, None]


def power(count: Float[Tensor, "R 1"], exponent: float) -> Float[Tensor, "R 1"]:
    r"""Return $n^a$, and 0 where nothing is counted."""
    return torch.where(count > 0, torch.where(count > 0, count, 1) ** exponent, 0)


def symmetric_smoothing(x: Float[Tensor, "N D"], hypergraph: Hypergraph) -> Float[Tensor, "N D"]:
    r"""Return $D_v^{-1/2} H W D_e^{-1} H^\top D_v^{-1/2} x$. Source: HGNN (Feng et al., AAAI 2019), Eq. 10."""

    def factors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
        degree, size = totals(hypergraph)
        return power(degree, -0.5), torch.ones_like(size), power(size, -1.0), power(degree, -0.5)

    return smoothed(x, hypergraph, "symmetric", factors)


def row_smoothing(x: Float[Tensor, "N D"], hypergraph: Hypergraph) -> Float[Tensor, "N D"]:
    r"""Return $D_v^{-1} H W D_e^{-1} H^\top x$: a mean of means. Source: HCHA (Bai et al., 2021), Eq. 5."""

    def factors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
        degree, size = totals(hypergraph)
        return torch.ones_like(degree), torch.ones_like(size), power(size, -1.0), power(degree, -1.0)

    return smoothed(x, hypergraph, "row", factors)


def degree_smoothing(x: Float[Tensor, "N D"], hypergraph: Hypergraph, aggregate: Aggregate) -> Float[Tensor, "N D"]:
    r"""Return $d_v^{-1/2} \sum_{e \ni v} w_e w_{ev} \bar d_e^{-1/2} y_e$; $y_e, \bar d_e$ average (sum) $x, d$ in $e$.

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
    r"""Return $B_v H W B_e A_e H^\top A_v x$ with diagonal factors, computed once per hypergraph and key.

    Args:
        x: Values on nodes.
        hypergraph: The hypergraph.
        key: The name of these factors.
        factors: Gives them, as columns in double precision.

    Returns:
        Values on nodes.
    """
    inward, outward = membership_weights(x, hypergraph, key, factors)
    return to_nodes(to_edges(x, hypergraph, weight=inward), hypergraph, weight=outward)


def membership_weights(
    like: Tensor,
    hypergraph: Hypergraph,
    key: Hashable,
    factors: Callable[[], tuple[Tensor, Tensor, Tensor, Tensor]],
) -> tuple[Float[Tensor, " I"], Float[Tensor, " I"]]:
    """Return the weights of the two sums of `smoothed`, in the type of ``like``."""

    def make() -> tuple[Tensor, Tensor]:
        node_in, edge_in, edge_out, node_out = (factor[:, 0] for factor in factors())
        node, edge = hypergraph.node_index, hypergraph.edge_index
        inward, outward = node_in[node] * edge_in[edge], edge_out[edge] * node_out[node]
        own, both = edge_weights(hypergraph, inward), node_weights(hypergraph, inward)
        return (
            (inward if own is None else inward * own).to(like.dtype),
            (outward if both is None else outward * both).to(like.dtype),
        )

    return cached_per_hypergraph(hypergraph, ("smoothing", key, like.dtype), make)


def unit_rows(x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
    """Scale rows to length 1; rows of zeros stay. Lengths are constants to the gradient, as in UniGNN's code."""
    length = x.detach().norm(dim=1, keepdim=True)
    return x / torch.where(length > 0, length, 1)


def totals(hypergraph: Hypergraph) -> tuple[Float[Tensor, "N 1"], Float[Tensor, "E 1"]]:
    """Return weighted degrees and sizes, in double precision."""
    like = torch.empty(0, dtype=torch.float64, device=hypergraph.device)
    return node_total(hypergraph, like), edge_total(hypergraph, like)
