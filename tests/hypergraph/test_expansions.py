"""The clique expansion against a loop over pairs."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edhnn import Hypergraph
from edhnn.hypergraph.expansions import clique_expansion, clique_expansion_cost, clique_multiplicity, clique_rows
from tests.strategies import hyperedge_lists


def multiplicity_by_loops(num_nodes, hyperedges):
    shared = np.zeros((num_nodes, num_nodes), dtype=int)
    for hyperedge in hyperedges:
        for u, v in permutations(set(hyperedge), 2):
            shared[u, v] += 1
    return shared


@given(hyperedge_lists())
def test_multiplicity_counts_shared_hyperedges(drawn):
    num_nodes, hyperedges = drawn
    shared = clique_multiplicity(Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes))
    np.testing.assert_array_equal(shared.toarray(), multiplicity_by_loops(num_nodes, hyperedges))
    assert shared.nnz == np.count_nonzero(shared.toarray())
    assert shared.has_sorted_indices


@given(hyperedge_lists(), st.booleans())
def test_expansion_is_binary_and_includes_self_if_requested(drawn, include_self):
    num_nodes, hyperedges = drawn
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    expected = (multiplicity_by_loops(num_nodes, hyperedges) > 0).astype(int)
    if include_self:
        expected += np.eye(num_nodes, dtype=int)
    expansion = clique_expansion(hypergraph, include_self=include_self)
    np.testing.assert_array_equal(expansion.toarray(), expected)
    assert expansion.nnz == expected.sum()


@given(hyperedge_lists())
def test_the_cost_is_the_sum_of_squared_sizes(drawn):
    num_nodes, hyperedges = drawn
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    assert clique_expansion_cost(hypergraph) == sum(len(set(hyperedge)) ** 2 for hyperedge in hyperedges)


@given(hyperedge_lists(), st.integers(1, 20))
def test_blocks_cover_every_row_once_and_respect_their_bound(drawn, max_entries):
    num_nodes, hyperedges = drawn
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    expected = multiplicity_by_loops(num_nodes, hyperedges) + np.diag(hypergraph.degree.numpy())
    reached = 0
    for start, rows in clique_rows(hypergraph, max_entries=max_entries):
        assert start == reached
        assert rows.nnz <= max_entries or rows.shape[0] == 1
        np.testing.assert_array_equal(rows.toarray(), expected[start : start + rows.shape[0]])
        reached += rows.shape[0]
    assert reached == num_nodes


def test_blocks_are_as_long_as_their_bound_allows():
    pairs = Hypergraph.from_hyperedges([[2 * i, 2 * i + 1] for i in range(50)])
    assert [rows.shape[0] for _, rows in clique_rows(pairs, max_entries=80)] == [40, 40, 20]


def test_weights_are_ignored():
    plain = Hypergraph.from_hyperedges([[0, 1], [0, 1, 2]])
    weighted = Hypergraph.from_hyperedges([[0, 1], [0, 1, 2]], edge_weight=[0.0, 7.0])
    assert (clique_multiplicity(plain) != clique_multiplicity(weighted)).nnz == 0


@pytest.mark.parametrize("hyperedges, num_nodes", [([], 0), ([[]], 0), ([], 3), ([[0]], 1)])
def test_hypergraphs_without_pairs_have_an_empty_expansion(hyperedges, num_nodes):
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    assert clique_multiplicity(hypergraph).shape == (num_nodes, num_nodes)
    assert clique_expansion(hypergraph, include_self=False).nnz == 0
    assert clique_expansion(hypergraph, include_self=True).nnz == num_nodes
