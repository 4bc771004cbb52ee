import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from edhnn import DataError, Hypergraph
from tests.strategies import hyperedge_lists


def pairs(hypergraph):
    return list(zip(hypergraph.edge_index.tolist(), hypergraph.node_index.tolist(), strict=True))


@given(hyperedge_lists())
def test_the_constructor_sorts_merges_and_counts(drawn):
    num_nodes, hyperedges = drawn
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    expected = sorted({(e, v) for e, members in enumerate(hyperedges) for v in members})
    assert pairs(hypergraph) == expected
    assert list(hypergraph.hyperedges()) == [sorted(set(members)) for members in hyperedges]
    assert hypergraph.merged_memberships == sum(map(len, hyperedges)) - len(expected)
    assert (hypergraph.num_nodes, hypergraph.num_edges) == (num_nodes, len(hyperedges))
    assert hypergraph.degree.tolist() == [sum(v in set(e) for e in hyperedges) for v in range(num_nodes)]
    assert hypergraph.edge_size.tolist() == [len(set(e)) for e in hyperedges]


@given(hyperedge_lists())
def test_both_compressed_orders_agree_with_the_pairs(drawn):
    num_nodes, hyperedges = drawn
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    for v in range(num_nodes):
        incidences = hypergraph.node_order[hypergraph.node_ptr[v] : hypergraph.node_ptr[v + 1]]
        assert hypergraph.node_index[incidences].tolist() == [v] * len(incidences)
        assert hypergraph.edge_index[incidences].tolist() == [e for e, members in enumerate(hyperedges) if v in members]
    assert sorted(hypergraph.node_order.tolist()) == list(range(hypergraph.num_incidences))


@given(hyperedge_lists(), st.randoms(use_true_random=False), st.data())
def test_the_order_of_pairs_is_ignored_and_the_largest_weight_kept(drawn, random, data):
    num_nodes, hyperedges = drawn
    given_pairs = [(v, e) for e, members in enumerate(hyperedges) for v in members]
    weights = data.draw(st.lists(st.floats(0, 9), min_size=len(given_pairs), max_size=len(given_pairs)))
    shuffled = list(range(len(given_pairs)))
    random.shuffle(shuffled)

    def build(order):
        index = torch.tensor([given_pairs[i] for i in order], dtype=torch.int64).reshape(-1, 2).T
        weight = torch.tensor([weights[i] for i in order], dtype=torch.float64)
        return Hypergraph.from_incidence(index, num_nodes=num_nodes, num_edges=len(hyperedges), incidence_weight=weight)

    first, second = build(range(len(given_pairs))), build(shuffled)
    assert first.same_as(second)
    largest: dict[tuple[int, int], float] = {}
    for (v, e), weight in zip(given_pairs, weights, strict=True):
        largest[e, v] = max(largest.get((e, v), 0.0), weight)
    assert first.incidence_weight is not None
    assert dict(zip(pairs(first), first.incidence_weight.tolist(), strict=True)) == largest


@given(hyperedge_lists(), st.booleans())
def test_scipy_round_trip(drawn, weighted):
    num_nodes, hyperedges = drawn
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    if weighted:
        weight = torch.arange(1, hypergraph.num_incidences + 1, dtype=torch.float64)
        hypergraph = Hypergraph(
            hypergraph.node_index, hypergraph.edge_index, num_nodes, len(hyperedges), incidence_weight=weight
        )
    matrix = hypergraph.to_scipy()
    dense = np.zeros((num_nodes, len(hyperedges)))
    weights = np.ones(hypergraph.num_incidences)
    if hypergraph.incidence_weight is not None:
        weights = hypergraph.incidence_weight.numpy()
    for (e, v), value in zip(pairs(hypergraph), weights, strict=True):
        dense[v, e] = value
    np.testing.assert_array_equal(matrix.toarray(), dense)
    assert Hypergraph.from_scipy(matrix, weighted=weighted).same_as(hypergraph)
    assert Hypergraph.from_scipy(sp.csc_matrix(matrix), weighted=weighted).same_as(hypergraph)


def test_more_hyperedges_than_nodes_and_no_hyperedges_are_allowed():
    many = Hypergraph.from_hyperedges([[0]] * 5 + [[]], num_nodes=1)
    assert (many.num_nodes, many.num_edges, many.num_incidences) == (1, 6, 5)
    none = Hypergraph.from_hyperedges([], num_nodes=3)
    assert none.degree.tolist() == [0, 0, 0]
    assert none.edge_ptr.tolist() == [0]
    nothing = Hypergraph.from_hyperedges([])
    assert (nothing.num_nodes, nothing.num_edges, nothing.num_incidences) == (0, 0, 0)


def test_counts_are_stored_not_inferred():
    index = torch.tensor([[0, 1], [0, 0]])
    hypergraph = Hypergraph.from_incidence(index, num_nodes=7, num_edges=4)
    assert len(hypergraph.degree) == 7
    assert len(hypergraph.edge_size) == 4


def test_a_hypergraph_is_frozen_and_does_not_share_memory_with_its_input():
    node, edge = torch.tensor([0, 1]), torch.tensor([0, 0])
    weight = torch.ones(1, dtype=torch.float64)
    hypergraph = Hypergraph(node, edge, 2, 1, edge_weight=weight)
    node[0], weight[0] = 1, 5.0
    assert hypergraph.node_index.tolist() == [0, 1]
    assert hypergraph.edge_weight is not None
    assert hypergraph.edge_weight.tolist() == [1.0]
    with pytest.raises(AttributeError):
        hypergraph.num_nodes = 3


def test_moving_to_a_device_keeps_everything():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 1], []], num_nodes=3, edge_weight=[2.0, 1.0])
    moved = hypergraph.to("cpu")
    assert moved is not hypergraph
    assert moved.same_as(hypergraph)
    assert moved.merged_memberships == 1
    assert moved.to("meta").device.type == "meta"


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(node_index=[0, 3], edge_index=[0, 0], num_nodes=3, num_edges=1), "Got 3 at incidence 1"),
        (dict(node_index=[0, -1], edge_index=[0, 0], num_nodes=3, num_edges=1), "Got -1 at incidence 1"),
        (dict(node_index=[0], edge_index=[1], num_nodes=3, num_edges=1), "hyperedge number must lie in 0..0"),
        (dict(node_index=[0], edge_index=[0, 0], num_nodes=3, num_edges=1), "equally long. Got 1 and 2"),
        (dict(node_index=[], edge_index=[], num_nodes=-1, num_edges=0), "0 or more. Got -1"),
        (dict(node_index=[0], edge_index=[0], num_nodes=1, num_edges=1, edge_weight=[-1.0]), "Got -1.0 at 0"),
        (dict(node_index=[0], edge_index=[0], num_nodes=1, num_edges=1, edge_weight=[float("nan")]), "Got nan"),
        (dict(node_index=[0], edge_index=[0], num_nodes=1, num_edges=1, incidence_weight=[1.0, 2.0]), "must be 1 "),
    ],
)
def test_invalid_arguments_raise_an_error(arguments, message):
    tensors = {
        key: torch.tensor(value, dtype=torch.int64 if "index" in key else torch.float64)
        if isinstance(value, list)
        else value
        for key, value in arguments.items()
    }
    with pytest.raises(DataError, match=message):
        Hypergraph(**tensors)


@pytest.mark.usefixtures("without_shape_checks")
def test_floating_point_indices_raise_an_error():
    with pytest.raises(DataError, match="vector of integers"):
        Hypergraph(torch.tensor([0.0]), torch.tensor([0]), 1, 1)


def test_equality_is_identity_and_same_as_compares():
    first, second = (Hypergraph.from_hyperedges([[0, 1]]) for _ in range(2))
    assert first != second
    assert first.same_as(second)
    assert not first.same_as(Hypergraph.from_hyperedges([[0, 1]], num_nodes=3))
    assert not first.same_as(Hypergraph.from_hyperedges([[0, 1]], edge_weight=[1.0]))
    assert "num_incidences=2" in repr(first)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("hyperedges", "edge", "value"),
    [
        ([[0.9, 1.7], ["2"]], 0, "0.9"),
        ([[0, 1], [1, 2.0]], 1, "2.0"),
        ([["milk", "bread"]], 0, "'milk'"),
        ([[0], ["2"]], 1, "'2'"),
        ([[0], [2**70]], 1, str(2**70)),
        ([[2**63]], 0, str(2**63)),
        ([[-1, 2**63]], 0, str(2**63)),
        ([[True]], 0, "True"),
        ([[0], [True, 2]], 1, "True"),
        ([[None]], 0, "None"),
        ([[[0, 1], [2]]], 0, r"\[0, 1\]"),
        ([[[0, 1], [2, 3]]], 0, r"\[0, 1\]"),
        ([np.array([0.0, 1.0])], 0, r".*0\.0.*"),
    ],
)
def test_members_that_are_not_integers_raise_an_error(hyperedges, edge, value):
    with pytest.raises(DataError, match=rf"^hyperedge {edge}: Every member .* Got {value}\. Number.*edhnn.Ids"):
        Hypergraph.from_hyperedges(hyperedges)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    "hyperedges",
    [
        [[0, 1], [2]],
        [(0, 1), {2}],
        [np.array([0, 1], dtype=np.uint8), np.array([2], dtype=np.uint64)],
        [np.array([0, 1]), np.array([2], dtype=np.uint64)],
        [torch.tensor([0, 1]), [2]],
    ],
)
def test_members_may_be_integers_of_any_type(hyperedges):
    assert list(Hypergraph.from_hyperedges(hyperedges).hyperedges()) == [[0, 1], [2]]
