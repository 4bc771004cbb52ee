r"""Classes inside hyperedges: how many members of each class, and which classes keep company.

Connected components and repeated hyperedges, exact and linear in the memberships up to a sort of the hyperedges.

All counts of a hypergraph in one value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Int
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from edhnn.hypergraph.expansions import clique_pairs
from edhnn.hypergraph.homophily import Homophily, homophilies
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.typing import BoolArray, FloatArray, IntArray


def class_indicator(labels: Int[Tensor, " N"], num_classes: int) -> sp.csr_array:
    """The N x C array with a 1 at (v, y_v); rows of unlabelled nodes are empty."""
    classes = labels.cpu().numpy()
    known = np.flatnonzero(classes >= 0)
    return sp.csr_array((np.ones(len(known), np.int64), (known, classes[known])), shape=(len(classes), num_classes))


def members_by_class(hypergraph: Hypergraph, belongs: sp.csr_array) -> sp.csr_array:
    r"""How many members of a hyperedge are in a class, $n_{e, c}$, from the N x C indicator of the classes."""
    ones = np.ones(hypergraph.num_incidences, dtype=np.int64)
    shape = (hypergraph.num_edges, hypergraph.num_nodes)
    members = (ones, hypergraph.node_index.cpu().numpy(), hypergraph.edge_ptr.cpu().numpy())
    return sp.csr_array(sp.csr_array(members, shape=shape) @ belongs)


def class_mixing(hypergraph: Hypergraph, labels: Int[Tensor, " N"], num_classes: int) -> FloatArray:
    r"""The class of a co-member given the class of a node, $P(y_u = c' \mid y_v = c)$, as a C x C array.

    Over all $(v, u, e)$ with $u \neq v$ both in $e$. A class without co-members has a row of NaN. The rows are what
    the label gives away about the company a node keeps: the identity under perfect homophily.
    """
    counts = members_by_class(hypergraph, class_indicator(labels, num_classes))
    pairs = (counts.T @ counts).toarray().astype(np.float64)
    pairs[np.diag_indices(num_classes)] -= counts.sum(axis=0)
    total = pairs.sum(axis=1, keepdims=True)
    shares: FloatArray = np.divide(pairs, total, out=np.full_like(pairs, np.nan), where=total > 0)
    return shares


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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Mean and quartiles of degrees or sizes."""

    mean: float
    minimum: int
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: int

    @classmethod
    def of(cls, values: Int[Tensor, " K"]) -> Distribution | None:
        """The distribution of some counts; ``None`` of nothing."""
        if not len(values):
            return None
        quartiles = np.quantile(values.cpu().numpy(), [0, 0.25, 0.5, 0.75, 1]).tolist()
        low, lower, median, upper, high = quartiles
        return cls(
            mean=float(values.double().mean()),
            minimum=int(low),
            lower_quartile=lower,
            median=median,
            upper_quartile=upper,
            maximum=int(high),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What `describe` counts.

    Attributes:
        num_nodes: Nodes, isolated ones included.
        num_hyperedges: Hyperedges, empty and singleton ones included.
        num_incidences: Memberships.
        degree: Hyperedges per node; ``None`` without nodes.
        edge_size: Nodes per hyperedge; ``None`` without hyperedges.
        isolated_nodes: Nodes in no hyperedge.
        empty_hyperedges: Hyperedges of size 0.
        singleton_hyperedges: Hyperedges of size 1.
        repeated_hyperedges: Hyperedges equal, as sets, to an earlier one.
        merged_memberships: Duplicate memberships that were merged.
        components: Connected components; an isolated node is one, an empty hyperedge is none.
        largest_component: Nodes in the largest.
        clique_pairs: What expanding cliques costs.
        class_counts: Nodes per class; ``None`` without class labels.
        homophily: By its four names; those left out are ``None``.
    """

    num_nodes: int
    num_hyperedges: int
    num_incidences: int
    degree: Distribution | None
    edge_size: Distribution | None
    isolated_nodes: int
    empty_hyperedges: int
    singleton_hyperedges: int
    repeated_hyperedges: int
    merged_memberships: int
    components: int
    largest_component: int
    clique_pairs: int
    class_counts: tuple[int, ...] | None
    homophily: Homophily

    @property
    def num_hyperedges_without_singletons(self) -> int:
        """Hyperedges of size 2 and more, which is what the paper's Tables 1 and 5 count."""
        return self.num_hyperedges - self.singleton_hyperedges - self.empty_hyperedges


def describe(
    hypergraph: Hypergraph, labels: Int[Tensor, " N"] | None = None, *, max_clique_pairs: int | None = None
) -> Statistics:
    """All counts of a hypergraph, and its homophily when nodes have class labels.

    Args:
        hypergraph: The hypergraph.
        labels: A class per node, -1 where unknown.
        max_clique_pairs: Leave out the homophilies that expand cliques where that costs more pairs than this.

    Returns:
        The statistics. Paper: Tables 1 and 5.
    """
    degree, size, pairs = hypergraph.degree, hypergraph.edge_size, clique_pairs(hypergraph)
    components = component_sizes(hypergraph)
    affordable = max_clique_pairs is None or pairs <= max_clique_pairs
    return Statistics(
        num_nodes=hypergraph.num_nodes,
        num_hyperedges=hypergraph.num_edges,
        num_incidences=hypergraph.num_incidences,
        degree=Distribution.of(degree),
        edge_size=Distribution.of(size),
        isolated_nodes=int((degree == 0).sum()),
        empty_hyperedges=int((size == 0).sum()),
        singleton_hyperedges=int((size == 1).sum()),
        repeated_hyperedges=int((first_equal_hyperedge(hypergraph) != np.arange(hypergraph.num_edges)).sum()),
        merged_memberships=hypergraph.merged_memberships,
        components=len(components),
        largest_component=int(components.max(initial=0)),
        clique_pairs=pairs,
        class_counts=None if labels is None else tuple(torch.bincount(labels[labels >= 0]).tolist()),
        homophily=Homophily() if labels is None else homophilies(hypergraph, labels, expand=affordable),
    )
