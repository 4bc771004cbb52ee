"""Hypergraphs made from hypergraphs, by name and once, before any model sees them."""

from __future__ import annotations

import torch

from edhnn.hypergraph import Hypergraph


def add_singletons(hypergraph: Hypergraph) -> Hypergraph:
    """A hyperedge {v} for every node that has none of its own, after the others and in the order of the nodes.

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


def disjoint_copies(hypergraph: Hypergraph, count: int) -> Hypergraph:
    """``count`` copies side by side that share nothing: a batch of states on one hypergraph becomes one state."""
    copy = torch.arange(count, device=hypergraph.device).repeat_interleave(hypergraph.num_incidences)
    return Hypergraph(
        hypergraph.node_index.repeat(count) + copy * hypergraph.num_nodes,
        hypergraph.edge_index.repeat(count) + copy * hypergraph.num_edges,
        count * hypergraph.num_nodes,
        count * hypergraph.num_edges,
        None if hypergraph.edge_weight is None else hypergraph.edge_weight.repeat(count),
        None if hypergraph.incidence_weight is None else hypergraph.incidence_weight.repeat(count),
    )
