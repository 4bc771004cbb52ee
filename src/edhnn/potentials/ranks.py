r"""Order inside hyperedges: extremes, ranks and ties, for the potentials that depend on the order of values."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from edhnn.hypergraph import Hypergraph
from edhnn.incidence import edge_to_incidence, incidence_to_edge


def edge_extremes(
    z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph
) -> tuple[Float[Tensor, "E D"], Float[Tensor, "E D"]]:
    """The largest and the smallest value of each hyperedge; 0 and 0 for an empty one."""
    index = hypergraph.edge_index[:, None].expand_as(z_ev)
    zeros = z_ev.new_zeros(hypergraph.num_edges, z_ev.shape[1])
    largest = zeros.scatter_reduce(0, index, z_ev, "amax", include_self=False)
    smallest = zeros.scatter_reduce(0, index, z_ev, "amin", include_self=False)
    return largest, smallest


def share_of(chosen: Bool[Tensor, "I D"], hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I D"]:
    """Equal shares among the chosen members of each hyperedge: 1 over their number, 0 for the others."""
    marked = chosen.to(like)
    count = incidence_to_edge(marked, hypergraph)
    return marked / edge_to_incidence(count.clamp(min=1), hypergraph)


def average_over_ties(
    y_ev: Float[Tensor, "I D"], sorted_ev: Float[Tensor, "I D"], hypergraph: Hypergraph
) -> Float[Tensor, "I D"]:
    """Values in rank order, averaged over ranks whose sorted values are equal; keeps subgradients equivariant."""
    if not len(y_ev):
        return y_ev
    group = _tie_groups(sorted_ev, hypergraph)
    sums = torch.zeros_like(y_ev).scatter_add(0, group, y_ev)
    counts = torch.zeros_like(y_ev).scatter_add(0, group, torch.ones_like(y_ev))
    return (sums / counts.clamp(min=1)).gather(0, group)


def _tie_groups(sorted_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Int[Tensor, "I D"]:
    """A number per run of equal sorted values within a hyperedge, for each column."""
    fresh = torch.ones_like(sorted_ev, dtype=torch.bool)
    fresh[1:] = sorted_ev[1:] != sorted_ev[:-1]
    first_rows = hypergraph.edge_ptr[:-1][hypergraph.edge_size > 0]
    fresh[first_rows] = True
    return fresh.cumsum(0) - 1
