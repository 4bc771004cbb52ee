r"""The clique expansion: two nodes are neighbours when some hyperedge holds both.

A hyperedge of size $|e|$ puts $|e|^2$ ordered pairs into the product $H H^\top$ of the incidence matrix with its
transpose, so the cost of everything here is $\sum_e |e|^2$ (`clique_expansion_cost`), not the number of memberships.
Check the cost before expanding. `clique_rows` yields the expansion in blocks of rows, for callers that never need all
of it at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.typing import IntArray

ENTRIES_PER_BLOCK = 2**23
"""The most stored neighbours in a block of `clique_rows`: about 70 MB."""


def clique_expansion_cost(hypergraph: Hypergraph) -> int:
    r"""Return the cost of the expansion, $\sum_e |e|^2$ ordered pairs, pairs of a node with itself included.

    Example:
        >>> from edhnn import Hypergraph
        >>> clique_expansion_cost(Hypergraph.from_hyperedges([[0, 1, 2], [2, 3]]))
        13
    """
    return int((hypergraph.edge_size**2).sum())


def clique_expansion(hypergraph: Hypergraph, *, include_self: bool) -> sp.csr_array:
    r"""Return the binary clique expansion, $A_{uv} = 1$ if $u$ and $v$ share a hyperedge, else 0.

    Paper: Example 1 (CE); with the node itself, the neighbourhood of Tables 1 and 5.

    Args:
        hypergraph: The hypergraph; weights are ignored.
        include_self: Make every node, also an isolated one, its own neighbour; otherwise no node is.

    Returns:
        A symmetric N x N array of ones with sorted column indices.

    Example:
        >>> from edhnn import Hypergraph
        >>> trio = Hypergraph.from_hyperedges([[0, 1], [0, 1, 2]], num_nodes=4)
        >>> clique_expansion(trio, include_self=False).toarray().tolist()
        [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    """
    shared = clique_multiplicity(hypergraph)
    shared.data[:] = 1
    if include_self:
        shared = sp.csr_array(shared + sp.eye_array(hypergraph.num_nodes, dtype=np.int64, format="csr"))
    return shared


def clique_multiplicity(hypergraph: Hypergraph) -> sp.csr_array:
    r"""Count the hyperedges that two nodes share, $A_{uv} = |\{e : u, v \in e\}|$ for $u \neq v$, $A_{vv} = 0$.

    Paper: Example 1 (CE), the graph whose edge weights the clique-expansion potential sums.

    Args:
        hypergraph: The hypergraph; weights are ignored.

    Returns:
        A symmetric N x N array of positive integers with sorted column indices.

    Example:
        >>> from edhnn import Hypergraph
        >>> trio = Hypergraph.from_hyperedges([[0, 1], [0, 1, 2]])
        >>> clique_multiplicity(trio).toarray().tolist()
        [[0, 2, 1], [2, 0, 1], [1, 1, 0]]
    """
    if not hypergraph.num_nodes:
        return sp.csr_array((0, 0), dtype=np.int64)
    shared = sp.vstack([_without_self(start, rows) for start, rows in clique_rows(hypergraph)], format="csr")
    shared.sort_indices()
    return shared.astype(np.int64)


def clique_rows(hypergraph: Hypergraph, *, max_entries: int = ENTRIES_PER_BLOCK) -> Iterator[tuple[int, sp.csr_array]]:
    r"""Yield $H H^\top$ in blocks of rows: the number of hyperedges that a node shares with each node, itself included.

    Args:
        hypergraph: The hypergraph; weights are ignored.
        max_entries: The most stored entries in a block. A block has at least one row.

    Yields:
        The number of a block's first node, and its rows (block x N, column indices unsorted, diagonal $d_v$).
    """
    edges = hypergraph.edge_index.cpu().numpy()[hypergraph.node_order.cpu().numpy()]
    node_ptr = hypergraph.node_ptr.cpu().numpy()
    edges_of_node = binary_rows(edges, node_ptr, hypergraph.num_edges)
    nodes_of_edge = binary_rows(
        hypergraph.node_index.cpu().numpy(), hypergraph.edge_ptr.cpu().numpy(), hypergraph.num_nodes
    )
    # A row has at most as many entries as its hyperedges have members, and at most N.
    members = np.concatenate(([0], np.cumsum(hypergraph.edge_size.cpu().numpy()[edges])))
    entries = np.cumsum(np.minimum(np.diff(members[node_ptr]), hypergraph.num_nodes))
    start = 0
    while start < hypergraph.num_nodes:
        before = entries[start - 1] if start else 0
        stop = max(int(np.searchsorted(entries, before + max_entries, side="right")), start + 1)
        yield start, edges_of_node[start:stop] @ nodes_of_edge
        start = stop


def binary_rows(indices: IntArray, indptr: IntArray, width: int) -> sp.csr_array:
    """Return a compressed sparse array of ones, with 32-bit indices where they suffice."""
    dtype = np.int32 if max(len(indices), width) < 2**31 else np.int64
    ones = np.ones(len(indices), dtype=np.int32)
    return sp.csr_array((ones, indices.astype(dtype), indptr.astype(dtype)), shape=(len(indptr) - 1, width))


def _without_self(start: int, rows: sp.csr_array) -> sp.csr_array:
    """Remove from each row of `clique_rows` the node itself."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    other = rows.indices != row + start
    lengths = np.bincount(row[other], minlength=rows.shape[0])
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    return sp.csr_array((rows.data[other], rows.indices[other], indptr), shape=rows.shape)
