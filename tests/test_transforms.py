"""Hypergraphs made from hypergraphs."""

import torch
from hypothesis import given

from edhnn import Hypergraph, add_singletons
from edhnn.transforms import disjoint_copies
from tests.strategies import hyperedge_lists


@given(hyperedge_lists())
def test_every_node_gets_a_hyperedge_of_its_own_once(drawn):
    num_nodes, hyperedges = drawn
    before = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    after = add_singletons(before)
    lacking = [v for v in range(num_nodes) if {v} not in [set(e) for e in hyperedges]]
    assert list(after.hyperedges()) == [*before.hyperedges(), *([v] for v in lacking)]
    assert add_singletons(after) is after


def test_new_hyperedges_weigh_one():
    weighted = Hypergraph(
        torch.tensor([0, 1]), torch.tensor([0, 0]), 2, 1,
        edge_weight=torch.tensor([3.0]), incidence_weight=torch.tensor([0.5, 2.0]),
    )  # fmt: skip
    after = add_singletons(weighted)
    assert after.edge_weight.tolist() == [3.0, 1.0, 1.0]
    assert after.incidence_weight.tolist() == [0.5, 2.0, 1.0, 1.0]


@given(hyperedge_lists(max_nodes=4, max_edges=3))
def test_copies_share_nothing(drawn):
    num_nodes, hyperedges = drawn
    one = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    three = disjoint_copies(one, 3)
    members = list(one.hyperedges())
    assert list(three.hyperedges()) == [[v + k * num_nodes for v in e] for k in range(3) for e in members]
    assert three.num_nodes == 3 * num_nodes
