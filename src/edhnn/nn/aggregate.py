r"""Sums and means along memberships, with the hypergraph's weights.

A node speaks to a hyperedge with the weight of their membership, $w_{ev}$; a hyperedge answers with its own weight too,
$w_e w_{ev}$. A mean divides by the sum of the weights, and is 0 over an empty set.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn import kernels
from edhnn.hypergraph import Hypergraph
from edhnn.incidence import incidence_to_edge, incidence_to_node

Aggregate = Literal["sum", "mean"]


def edge_weights(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, " I"] | None:
    r"""$w_{ev}$, for what nodes say to hyperedges; ``None`` where all are 1."""
    weight = hypergraph.incidence_weight
    return None if weight is None else weight.to(like)


def node_weights(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, " I"] | None:
    r"""$w_e w_{ev}$, for what hyperedges say to nodes; ``None`` where all are 1."""
    weight = edge_weights(hypergraph, like)
    if hypergraph.edge_weight is None:
        return weight
    own = hypergraph.edge_weight.to(like).index_select(0, hypergraph.edge_index)
    return own if weight is None else own * weight


def edge_total(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "E 1"]:
    r"""$\sum_{v \in e} w_{ev}$."""
    return _total(hypergraph.edge_size, hypergraph.edge_index, edge_weights(hypergraph, like), like)


def node_total(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "N 1"]:
    r"""$\sum_{e \ni v} w_e w_{ev}$."""
    return _total(hypergraph.degree, hypergraph.node_index, node_weights(hypergraph, like), like)


def to_edges(x: Float[Tensor, "N D"], hypergraph: Hypergraph, aggregate: Aggregate) -> Float[Tensor, "E D"]:
    r"""$\sum_{v \in e} w_{ev} x_v$, or the mean. Paper: Algorithm 1, step 2."""
    weight, links = edge_weights(hypergraph, x), kernels.edge_links(hypergraph)
    if aggregate == "sum" or weight is None:
        return kernels.gather_sum(x, links, weight, mean=aggregate == "mean")
    return kernels.gather_sum(x, links, _shares(weight, hypergraph.edge_index, edge_total(hypergraph, x)))


def to_nodes(x_e: Float[Tensor, "E D"], hypergraph: Hypergraph, aggregate: Aggregate) -> Float[Tensor, "N D"]:
    r"""$\sum_{e \ni v} w_e w_{ev} x_e$, or the mean."""
    weight, links = node_weights(hypergraph, x_e), kernels.node_links(hypergraph)
    if aggregate == "sum" or weight is None:
        return kernels.gather_sum(x_e, links, weight, mean=aggregate == "mean")
    return kernels.gather_sum(x_e, links, _shares(weight, hypergraph.node_index, node_total(hypergraph, x_e)))


def incidences_to_edges(
    z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, aggregate: Aggregate
) -> Float[Tensor, "E D"]:
    r"""$\sum_{v \in e} w_{ev} z_{ev}$, or the mean: what `to_edges` does, for values that differ by incidence."""
    weight = edge_weights(hypergraph, z_ev)
    total = incidence_to_edge(z_ev if weight is None else z_ev * weight[:, None], hypergraph)
    return total if aggregate == "sum" else divided(total, edge_total(hypergraph, z_ev))


def incidences_to_nodes(
    z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, aggregate: Aggregate
) -> Float[Tensor, "N D"]:
    r"""$\sum_{e \ni v} w_e w_{ev} z_{ev}$, or the mean."""
    weight = node_weights(hypergraph, z_ev)
    total = incidence_to_node(z_ev if weight is None else z_ev * weight[:, None], hypergraph)
    return total if aggregate == "sum" else divided(total, node_total(hypergraph, z_ev))


def divided(total: Float[Tensor, "R D"], by: Float[Tensor, "R 1"]) -> Float[Tensor, "R D"]:
    """A sum over a sum of weights; where the weights add up to nothing so does the sum, and it stays."""
    return total / torch.where(by > 0, by, 1)


def _shares(weight: Tensor, index: Tensor, total: Tensor) -> Tensor:
    """Each incidence's share of the weights at its end."""
    return divided(weight[:, None], total.index_select(0, index))[:, 0]


def _total(count: Tensor, index: Tensor, weight: Tensor | None, like: Tensor) -> Tensor:
    if weight is None:
        return count.to(like)[:, None]
    return weight.new_zeros(len(count)).index_add(0, index, weight)[:, None]
