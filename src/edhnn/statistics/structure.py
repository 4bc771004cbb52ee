"""Connected components and repeated hyperedges, exact and linear in the memberships up to a sort of the hyperedges."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from edhnn.hypergraph import Hypergraph
from edhnn.typing import BoolArray, IntArray


def component_sizes(hypergraph: Hypergraph) -> IntArray:
    """Nodes in each connected component, largest first; found on the star form, so linear in the memberships."""
    nodes, edges = hypergraph.num_nodes, hypergraph.num_edges
    last = np.full(edges, hypergraph.num_incidences)
    narrow = np.int32 if max(nodes + edges, hypergraph.num_incidences) < 2**31 else np.int64
    neighbours = hypergraph.edge_index.cpu().numpy()[hypergraph.node_order.cpu().numpy()] + nodes
    indptr = np.concatenate((hypergraph.node_ptr.cpu().numpy(), last))
    ones = np.ones(len(neighbours), dtype=np.int8)
    star = sp.csr_array((ones, neighbours.astype(narrow), indptr.astype(narrow)), shape=(nodes + edges, nodes + edges))
    if not nodes:
        return np.zeros(0, dtype=np.int64)
    _, component = connected_components(star, directed=False)
    sizes = np.bincount(component[:nodes])
    return -np.sort(-sizes[sizes > 0])


def first_equal_hyperedge(hypergraph: Hypergraph) -> IntArray:
    """The number of the first hyperedge with the same members, for every hyperedge; its own number if it is new.

    Hashes preselect: hyperedges of one hash and size are compared, member by member, with the first of them. Those
    that differ from it (a collision) are compared among themselves in the next round.

    Example:
        >>> from edhnn import Hypergraph
        >>> first_equal_hyperedge(Hypergraph.from_hyperedges([[0, 1], [2], [1, 0], [2], []])).tolist()
        [0, 1, 0, 1, 4]
    """
    node, ptr = hypergraph.node_index.cpu().numpy(), hypergraph.edge_ptr.cpu().numpy()
    size, hashes = np.diff(ptr), _set_hashes(node, ptr)
    first = np.arange(hypergraph.num_edges)
    unsettled = first.copy()
    while len(unsettled):
        order = unsettled[np.lexsort((unsettled, size[unsettled], hashes[unsettled]))]
        leads = np.append(True, (np.diff(hashes[order]) != 0) | (np.diff(size[order]) != 0))
        leader = order[np.maximum.accumulate(np.where(leads, np.arange(len(order)), 0))]
        followers, leaders = order[~leads], leader[~leads]
        equal = _same_members(node, ptr, followers, leaders)
        first[followers[equal]] = leaders[equal]
        unsettled = followers[~equal]
    return first


def _same_members(node: IntArray, ptr: IntArray, left: IntArray, right: IntArray) -> BoolArray:
    """Whether ``left[i]`` and ``right[i]``, of one size, have the same members (which are stored in order)."""
    size = ptr[left + 1] - ptr[left]
    ends = np.cumsum(size)
    step = np.arange(int(size.sum())) - np.repeat(ends - size, size)
    differs = node[np.repeat(ptr[left], size) + step] != node[np.repeat(ptr[right], size) + step]
    equal: BoolArray = np.bincount(np.repeat(np.arange(len(left)), size)[differs], minlength=len(left)) == 0
    return equal


def _set_hashes(node: IntArray, ptr: IntArray) -> IntArray:
    """A sum of scrambled node numbers (splitmix64) per hyperedge, modulo 2^64."""
    mixed = node.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    total = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)))
    return (total[ptr[1:]] - total[ptr[:-1]]).view(np.int64)
