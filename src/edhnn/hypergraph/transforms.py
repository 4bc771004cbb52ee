"""Hypergraphs made from hypergraphs: singletons added, some nodes kept, copies side by side."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph


def add_singletons(hypergraph: Hypergraph) -> Hypergraph:
    """Add a hyperedge {v} for every node that has none of its own, after the others and in the order of the nodes.

    The released code does this before training and the paper does not mention it. Afterwards every node has a degree of
    at least 1, and with means a node keeps a share of its own state.

    Args:
        hypergraph: Any hypergraph. New hyperedges get weight 1 where others have weights.

    Returns:
        The hypergraph with the new hyperedges; the same object if no node lacks one.
    """
    lonely = hypergraph.edge_size[hypergraph.edge_index] == 1
    owns = torch.zeros(hypergraph.num_nodes, dtype=torch.bool, device=hypergraph.device)
    owns[hypergraph.node_index[lonely]] = True
    node = (~owns).nonzero()[:, 0]
    if len(node) == 0:
        return hypergraph
    edge = hypergraph.num_edges + torch.arange(len(node), device=hypergraph.device)
    weights = {
        name: None if weight is None else torch.cat([weight, weight.new_ones(len(node))])
        for name in ("edge_weight", "incidence_weight")
        for weight in (getattr(hypergraph, name),)
    }
    return Hypergraph(
        torch.cat([hypergraph.node_index, node]),
        torch.cat([hypergraph.edge_index, edge]),
        hypergraph.num_nodes,
        hypergraph.num_edges + len(node),
        **weights,
    )


def subhypergraph(hypergraph: Hypergraph, nodes: Int[Tensor, " K"]) -> Hypergraph:
    """Restrict a hypergraph to some of its nodes.

    Args:
        hypergraph: The hypergraph.
        nodes: The nodes to keep, each once; the i-th becomes node i.

    Returns:
        The hypergraph on these nodes. Hyperedges keep their numbers and weights and lose the other members, so that
        some may be empty.

    Raises:
        DataError: if a node does not exist or is named twice.

    Example:
        >>> import torch
        >>> from edhnn.hypergraph import Hypergraph, subhypergraph
        >>> trios = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3], [3]])
        >>> list(subhypergraph(trios, torch.tensor([2, 1])).hyperedges())
        [[0, 1], [0, 1], []]
    """
    nodes = nodes.to(hypergraph.device)
    if len(nodes) and not 0 <= int(nodes.min()) <= int(nodes.max()) < hypergraph.num_nodes:
        raise DataError(f"Nodes must lie in 0..{hypergraph.num_nodes - 1}. Got {int(nodes.min())}..{int(nodes.max())}.")
    if len(torch.unique(nodes)) != len(nodes):
        raise DataError("Nodes must be named once each. One is named twice.")
    number = torch.full((hypergraph.num_nodes,), -1, device=hypergraph.device)
    number[nodes] = torch.arange(len(nodes), device=hypergraph.device)
    member = number[hypergraph.node_index]
    kept, weight = member >= 0, hypergraph.incidence_weight
    return Hypergraph(
        member[kept],
        hypergraph.edge_index[kept],
        len(nodes),
        hypergraph.num_edges,
        hypergraph.edge_weight,
        None if weight is None else weight[kept],
    )


def disjoint_copies(hypergraph: Hypergraph, count: int) -> Hypergraph:
    """Put ``count`` copies side by side that share nothing: a batch of states on one hypergraph becomes one state."""
    copy = torch.arange(count, device=hypergraph.device).repeat_interleave(hypergraph.num_incidences)
    return Hypergraph(
        hypergraph.node_index.repeat(count) + copy * hypergraph.num_nodes,
        hypergraph.edge_index.repeat(count) + copy * hypergraph.num_edges,
        count * hypergraph.num_nodes,
        count * hypergraph.num_edges,
        None if hypergraph.edge_weight is None else hypergraph.edge_weight.repeat(count),
        None if hypergraph.incidence_weight is None else hypergraph.incidence_weight.repeat(count),
    )
