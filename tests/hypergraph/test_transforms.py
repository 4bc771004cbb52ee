"""Hypergraphs made from hypergraphs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edhnn import DataError, Hypergraph, add_singletons
from edhnn.hypergraph.transforms import disjoint_copies, subhypergraph
from tests.strategies import hyperedge_lists


@given(hyperedge_lists())
def test_every_node_without_a_singleton_gets_one(drawn):
    num_nodes, hyperedges = drawn
    before = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    after = add_singletons(before)
    without_singleton = [v for v in range(num_nodes) if {v} not in [set(e) for e in hyperedges]]
    assert list(after.hyperedges()) == [*before.hyperedges(), *([v] for v in without_singleton)]
    assert add_singletons(after) is after


def test_new_singletons_have_weight_one():
    weighted = Hypergraph(
        torch.tensor([0, 1]), torch.tensor([0, 0]), 2, 1,
        edge_weight=torch.tensor([3.0]), incidence_weight=torch.tensor([0.5, 2.0]),
    )  # fmt: skip
    after = add_singletons(weighted)
    assert after.edge_weight.tolist() == [3.0, 1.0, 1.0]
    assert after.incidence_weight.tolist() == [0.5, 2.0, 1.0, 1.0]


@given(hyperedge_lists(), st.randoms(use_true_random=False))
def test_a_subhypergraph_restricts_each_hyperedge(drawn, random):
    num_nodes, hyperedges = drawn
    whole = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    weight, edge_weight = torch.arange(whole.num_incidences) + 1.0, torch.arange(whole.num_edges) + 1.0
    whole = Hypergraph(whole.node_index, whole.edge_index, num_nodes, len(hyperedges), edge_weight, weight)
    nodes = random.sample(range(num_nodes), random.randint(0, num_nodes))
    part = subhypergraph(whole, torch.tensor(nodes, dtype=torch.long))
    assert (part.num_nodes, part.num_edges) == (len(nodes), whole.num_edges)
    assert torch.equal(part.edge_weight, edge_weight)
    restricted = [sorted(nodes.index(v) for v in members if v in nodes) for members in whole.hyperedges()]
    assert list(part.hyperedges()) == restricted
    dense = whole.to_scipy().toarray()[nodes] if nodes else np.zeros((0, whole.num_edges))
    assert np.array_equal(part.to_scipy().toarray(), dense)  # every membership keeps its weight
    everything = subhypergraph(whole, torch.arange(num_nodes))
    assert list(everything.hyperedges()) == list(whole.hyperedges())


@pytest.mark.parametrize(
    ("nodes", "message"),
    [([0, 3], "0..2. Got 0..3"), ([-1], "0..2. Got -1..-1"), ([0, 1, 1], "unique. Node 1 occurs more than once")],
)
def test_missing_or_duplicate_nodes_raise_an_error(nodes, message):
    with pytest.raises(DataError, match=message):
        subhypergraph(Hypergraph.from_hyperedges([[0, 1, 2]]), torch.tensor(nodes))


@given(hyperedge_lists(max_nodes=4, max_edges=3))
def test_copies_share_no_node_or_hyperedge(drawn):
    num_nodes, hyperedges = drawn
    one = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    three = disjoint_copies(one, 3)
    members = list(one.hyperedges())
    assert list(three.hyperedges()) == [[v + k * num_nodes for v in e] for k in range(3) for e in members]
    assert three.num_nodes == 3 * num_nodes
