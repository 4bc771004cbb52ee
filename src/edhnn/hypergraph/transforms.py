"""Hypergraphs made from hypergraphs: add singletons, restrict to some nodes, make disjoint copies."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph


def add_singletons(hypergraph: Hypergraph) -> Hypergraph:
    """Add a hyperedge {v} for every node v without one, after the other hyperedges and in the order of the nodes.

    The released code does this before training; the paper does not mention it. Afterwards every node has a degree of
    at least 1, and a mean over hyperedges includes a share of the node's own state.

    Args:
        hypergraph: Any hypergraph. New hyperedges get weight 1 where others have weights.

    Returns:
        The hypergraph with the new hyperedges; the same object if every node has a singleton.
    """
    in_singleton = hypergraph.edge_size[hypergraph.edge_index] == 1
    has_singleton = torch.zeros(hypergraph.num_nodes, dtype=torch.bool, device=hypergraph.device)
    has_singleton[hypergraph.node_index[in_singleton]] = True
    node = (~has_singleton).nonzero()[:, 0]
    if len(node) == 0:
        return hypergraph
    edge = hypergraph.num_edges + torch.arange(len(node), device=hypergraph.device)
    edge_weight, incidence_weight = (
        None if weight is None else torch.cat([weight, weight.new_ones(len(node))])
        for weight in (hypergraph.edge_weight, hypergraph.incidence_weight)
    )
    return Hypergraph(
        torch.cat([hypergraph.node_index, node]),
        torch.cat([hypergraph.edge_index, edge]),
        hypergraph.num_nodes,
        hypergraph.num_edges + len(node),
        edge_weight,
        incidence_weight,
    )


def subhypergraph(hypergraph: Hypergraph, nodes: Int[Tensor, " K"]) -> Hypergraph:
    """Restrict a hypergraph to some of its nodes.

    Args:
        hypergraph: The hypergraph.
        nodes: The nodes to keep, without duplicates; the i-th becomes node i.

    Returns:
        The hypergraph on these nodes. Hyperedges keep their numbers and weights and lose the other members; some may
        become empty.

    Raises:
        DataError: if a node does not exist or occurs twice.

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
    distinct, counts = torch.unique(nodes, return_counts=True)
    if len(distinct) != len(nodes):
        raise DataError(f"Nodes must be unique. Node {int(distinct[counts > 1][0])} occurs more than once.")
    number = torch.full((hypergraph.num_nodes,), -1, device=hypergraph.device)
    number[nodes] = torch.arange(len(nodes), device=hypergraph.device)
    member = number[hypergraph.node_index]
    inside, weight = member >= 0, hypergraph.incidence_weight
    return Hypergraph(
        member[inside],
        hypergraph.edge_index[inside],
        len(nodes),
        hypergraph.num_edges,
        hypergraph.edge_weight,
        None if weight is None else weight[inside],
    )


def disjoint_copies(hypergraph: Hypergraph, count: int) -> Hypergraph:
    """Join ``count`` copies that share no node or hyperedge, so that a batch of states becomes one state."""
    copy = torch.arange(count, device=hypergraph.device).repeat_interleave(hypergraph.num_incidences)
    return Hypergraph(
        hypergraph.node_index.repeat(count) + copy * hypergraph.num_nodes,
        hypergraph.edge_index.repeat(count) + copy * hypergraph.num_edges,
        count * hypergraph.num_nodes,
        count * hypergraph.num_edges,
        None if hypergraph.edge_weight is None else hypergraph.edge_weight.repeat(count),
        None if hypergraph.incidence_weight is None else hypergraph.incidence_weight.repeat(count),
    )
