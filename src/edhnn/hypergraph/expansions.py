r"""The clique expansion: two nodes are neighbours when some hyperedge holds both.

A hyperedge of size $|e|$ puts $|e|^2$ ordered pairs into the product $H H^\top$ of the incidence matrix with its
transpose, so the cost of everything here is $\sum_e |e|^2$ (`clique_pairs`), not the number of memberships: ask
before expanding. `clique_rows` yields the expansion a few rows at a time, for quantities that never need all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.typing import IntArray

ENTRIES_PER_BLOCK = 2**23
"""Stored neighbours a block of `clique_rows` may hold: about 70 MB."""


def clique_pairs(hypergraph: Hypergraph) -> int:
    r"""What expanding costs: $\sum_e |e|^2$ ordered pairs, each node with itself included.

    Example:
        >>> from edhnn import Hypergraph
        >>> clique_pairs(Hypergraph.from_hyperedges([[0, 1, 2], [2, 3]]))
        13
    """
    return int((hypergraph.edge_size**2).sum())


def clique_expansion(hypergraph: Hypergraph, *, include_self: bool) -> sp.csr_array:
    r"""The binary clique expansion, $A_{uv} = 1$ if $u$ and $v$ share a hyperedge, else 0.

    Paper: Example 1 (CE); with the node itself, the neighbourhood of Tables 1 and 5.

    Args:
        hypergraph: The hypergraph; weights are not looked at.
        include_self: Whether every node, an isolated one too, is its own neighbour. Otherwise none is.

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
    r"""How many hyperedges two different nodes share, $A_{uv} = |\{e : u, v \in e\}|$ for $u \neq v$, $A_{vv} = 0$.

    Paper: Example 1 (CE), the graph whose edge weights the clique-expansion potential sums.

    Args:
        hypergraph: The hypergraph; weights are not looked at.

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
    shared = sp.vstack([without_self(start, rows) for start, rows in clique_rows(hypergraph)], format="csr")
    shared.sort_indices()
    return shared.astype(np.int64)


def clique_rows(hypergraph: Hypergraph, *, max_entries: int = ENTRIES_PER_BLOCK) -> Iterator[tuple[int, sp.csr_array]]:
    r"""Rows of $H H^\top$ in blocks of bounded size: how many hyperedges a node shares with every node, itself too.

    Args:
        hypergraph: The hypergraph; weights are not looked at.
        max_entries: Bound on the stored entries of a block; a block is one row at least.

    Yields:
        The number of a block's first node, and its rows (block x N, column indices unsorted, diagonal $d_v$).
    """
    members, order = hypergraph.node_index.cpu().numpy(), hypergraph.node_order.cpu().numpy()
    edges_of_node = _pattern(
        hypergraph.edge_index.cpu().numpy()[order], hypergraph.node_ptr.cpu().numpy(), hypergraph.num_edges
    )
    nodes_of_edge = _pattern(members, hypergraph.edge_ptr.cpu().numpy(), hypergraph.num_nodes)
    bounds = _block_bounds(hypergraph, max_entries)
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield start, edges_of_node[start:stop] @ nodes_of_edge


def without_self(start: int, rows: sp.csr_array) -> sp.csr_array:
    """Rows of `clique_rows` with each node struck from its own row."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    other = rows.indices != row + start
    lengths = np.bincount(row[other], minlength=rows.shape[0])
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    return sp.csr_array((rows.data[other], rows.indices[other], indptr), shape=rows.shape)


def _pattern(indices: IntArray, indptr: IntArray, width: int) -> sp.csr_array:
    """Compressed rows of ones, their indices in 32 bits where they fit."""
    ones, narrow = np.ones(len(indices), dtype=np.int32), np.int32 if max(len(indices), width) < 2**31 else np.int64
    return sp.csr_array((ones, indices.astype(narrow), indptr.astype(narrow)), shape=(len(indptr) - 1, width))


def _block_bounds(hypergraph: Hypergraph, max_entries: int) -> IntArray:
    """Cuts of 0..N such that the neighbours of a block, counted with multiplicity up to N, stay within the bound."""
    size = hypergraph.edge_size.cpu().numpy()
    by_node = size[hypergraph.edge_index.cpu().numpy()[hypergraph.node_order.cpu().numpy()]]
    total = np.concatenate(([0], np.cumsum(by_node)))
    reach = np.diff(total[hypergraph.node_ptr.cpu().numpy()])
    filled = np.cumsum(np.minimum(reach, hypergraph.num_nodes))
    # A block that begins at fullness f ends before the first node that would carry it past f + max_entries.
    cuts = [0]
    while cuts[-1] < hypergraph.num_nodes:
        before = filled[cuts[-1] - 1] if cuts[-1] else 0
        cuts.append(max(int(np.searchsorted(filled, before + max_entries, side="right")), cuts[-1] + 1))
    return np.array(cuts, dtype=np.int64)
