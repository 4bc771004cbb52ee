r"""Statistics of a hypergraph: classes inside hyperedges, connected components, repeated hyperedges, and all counts.

Everything is exact and linear in the memberships, up to a sort of the hyperedges and the cliques of `describe`.
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

from edhnn.hypergraph.expansions import binary_rows, clique_expansion_cost
from edhnn.hypergraph.homophily import Homophily, homophilies
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.typing import BoolArray, FloatArray, IntArray

_BLOCK = 2**18  # hyperedges compared at a time, to bound the memory


def class_indicator(labels: Int[Tensor, " N"], num_classes: int) -> sp.csr_array:
    """Return the N x C array with a 1 at (v, y_v); rows of unlabelled nodes are empty."""
    classes = labels.cpu().numpy()
    known = np.flatnonzero(classes >= 0)
    return sp.csr_array((np.ones(len(known), np.int64), (known, classes[known])), shape=(len(classes), num_classes))


def members_by_class(hypergraph: Hypergraph, indicator: sp.csr_array) -> sp.csr_array:
    r"""Count the members of each hyperedge in each class, $n_{e, c}$, from the N x C indicator of the classes."""
    node, ptr = hypergraph.node_index.cpu().numpy(), hypergraph.edge_ptr.cpu().numpy()
    return sp.csr_array(binary_rows(node, ptr, hypergraph.num_nodes) @ indicator)


def class_mixing(hypergraph: Hypergraph, labels: Int[Tensor, " N"], num_classes: int) -> FloatArray:
    r"""Return the distribution of a co-member's class given a node's, $P(y_u = c' \mid y_v = c)$, as a C x C array.

    Over all $(v, u, e)$ with $u \neq v$ both in $e$. A class without co-members has a row of NaN. Under perfect
    homophily it is the identity.
    """
    counts = members_by_class(hypergraph, class_indicator(labels, num_classes))
    pairs = (counts.T @ counts).toarray().astype(np.float64)
    pairs[np.diag_indices(num_classes)] -= counts.sum(axis=0)
    total = pairs.sum(axis=1, keepdims=True)
    shares: FloatArray = np.divide(pairs, total, out=np.full_like(pairs, np.nan), where=total > 0)
    return shares


def component_sizes(hypergraph: Hypergraph) -> IntArray:
    """Count the nodes of each connected component, largest first."""
    nodes, edges = hypergraph.num_nodes, hypergraph.num_edges
    if not nodes:
        return np.zeros(0, dtype=np.int64)
    # The star form, in which hyperedge e is vertex N + e, has one edge per membership: linear, unlike cliques.
    neighbours = hypergraph.edge_index.cpu().numpy()[hypergraph.node_order.cpu().numpy()] + nodes
    indptr = np.concatenate((hypergraph.node_ptr.cpu().numpy(), np.full(edges, hypergraph.num_incidences)))
    _, component = connected_components(binary_rows(neighbours, indptr, nodes + edges), directed=False)
    sizes = np.bincount(component[:nodes])
    return -np.sort(-sizes[sizes > 0])


def first_equal_hyperedge(hypergraph: Hypergraph) -> IntArray:
    """Return, for every hyperedge, the number of the first one with the same members, which may be itself.

    Hyperedges of equal hash and size are compared, member by member, with the first of them. Those that differ from it
    (a collision) are compared among themselves in the next round.

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
        order = unsettled[np.lexsort((size[unsettled], hashes[unsettled]))]  # stable, and the unsettled ones ascend
        leads = np.append(True, (np.diff(hashes[order]) != 0) | (np.diff(size[order]) != 0))
        leader = order[np.maximum.accumulate(np.where(leads, np.arange(len(order)), 0))]
        followers, leaders = order[~leads], leader[~leads]
        del order, leads, leader
        equal = np.ones(len(followers), dtype=np.bool_)
        for start in range(0, len(followers), _BLOCK):
            block = slice(start, start + _BLOCK)
            equal[block] = _same_members(node, ptr, followers[block], leaders[block])
        first[followers[equal]] = leaders[equal]
        unsettled = np.sort(followers[~equal])
    return first


def _same_members(node: IntArray, ptr: IntArray, left: IntArray, right: IntArray) -> BoolArray:
    """Return whether ``left[i]`` and ``right[i]``, which have one size, have the same members (stored in order)."""
    size = ptr[left + 1] - ptr[left]
    ends = np.cumsum(size)
    step = np.arange(int(size.sum())) - np.repeat(ends - size, size)
    differs = node[np.repeat(ptr[left], size) + step] != node[np.repeat(ptr[right], size) + step]
    equal: BoolArray = np.bincount(np.repeat(np.arange(len(left)), size)[differs], minlength=len(left)) == 0
    return equal


def _set_hashes(node: IntArray, ptr: IntArray) -> IntArray:
    """Sum scrambled node numbers (splitmix64) per hyperedge, modulo 2^64."""
    mixed = node.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    total = np.zeros(len(mixed) + 1, np.uint64)
    np.cumsum(mixed, out=total[1:])
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
        """Summarise some counts; return ``None`` if there are none."""
        if not len(values):
            return None
        lower, median, upper = np.quantile(values.cpu().numpy(), [0.25, 0.5, 0.75]).tolist()
        return cls(
            mean=float(values.double().mean()),
            minimum=int(values.min()),
            lower_quartile=lower,
            median=median,
            upper_quartile=upper,
            maximum=int(values.max()),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The result of `describe`.

    Attributes:
        num_nodes: Nodes, isolated ones included.
        num_hyperedges: Hyperedges, empty and singleton ones included.
        num_incidences: Memberships.
        degree: Hyperedges per node; ``None`` without nodes.
        edge_size: Nodes per hyperedge; ``None`` without hyperedges.
        isolated_nodes: Nodes in no hyperedge.
        empty_hyperedges: Hyperedges of size 0.
        singleton_hyperedges: Hyperedges of size 1.
        repeated_hyperedges: Hyperedges with the same members as an earlier one.
        merged_memberships: Duplicate memberships that were merged.
        components: Connected components; an isolated node counts as one, an empty hyperedge as none.
        largest_component: Nodes in the largest component.
        clique_pairs: The cost of the clique expansion, in ordered pairs.
        class_counts: Nodes per class; ``None`` without class labels.
        homophily: The four homophilies; ``None`` for those not computed.
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
        """Hyperedges of size 2 and more, as the paper's Tables 1 and 5 count them."""
        return self.num_hyperedges - self.singleton_hyperedges - self.empty_hyperedges


def describe(
    hypergraph: Hypergraph, labels: Int[Tensor, " N"] | None = None, *, max_clique_pairs: int | None = None
) -> Statistics:
    """Compute all counts of a hypergraph, and its homophily if nodes have class labels. Paper: Tables 1 and 5.

    Args:
        hypergraph: The hypergraph.
        labels: A class per node, -1 where unknown.
        max_clique_pairs: Skip the homophilies that expand cliques if that costs more pairs than this.
    """
    degree, size, pairs = hypergraph.degree, hypergraph.edge_size, clique_expansion_cost(hypergraph)
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
