"""The learned operators: the fast path equals the definition, and both follow a relabelling (Proposition 2)."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import EquivariantOperator, Hypergraph, InvariantOperator, make_model
from edhnn.hypergraph.incidence import HyperedgeOperator, node_to_incidence
from edhnn.nn.aggregation import aggregate_at_edges, aggregate_at_nodes, to_edges, to_nodes
from edhnn.nn.mlp import MLP
from edhnn.nn.operators import SummedOperator
from edhnn.seeding import SeedStream
from tests.models.test_edhnn import weighted
from tests.strategies import hyperedge_lists

WIDTH = 3
DRAWN = hyperedge_lists(max_nodes=6, max_edges=5).filter(lambda drawn: drawn[0] > 0)
WEIGHTS = st.sampled_from(["none", "edges", "pairs", "both"])


def mlp(inputs, layers, norm="layer", dropout=0.0):
    return MLP(
        inputs, 5, WIDTH, layers, norm=norm, dropout=dropout, seeds=SeedStream(0),
        generator=torch.Generator().manual_seed(layers),
    ).double()  # fmt: skip


def make(kind, rho_layers, norm, aggregate, extra=0):
    phi = mlp(WIDTH, 2, norm)
    if kind == "equivariant":
        return EquivariantOperator(phi, mlp(2 * WIDTH + extra, rho_layers, norm), aggregate=aggregate)
    return InvariantOperator(phi, mlp(WIDTH + extra, rho_layers, norm), aggregate=aggregate)


def states(rows, seed=0):
    return torch.randn(rows, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", ["equivariant", "invariant"])
@given(
    DRAWN,
    WEIGHTS,
    st.integers(1, 3),
    st.sampled_from(["layer", "none"]),
    st.sampled_from(["sum", "mean"]),
    st.booleans(),
)
@settings(max_examples=30)
def test_the_fast_path_equals_the_definition(kind, drawn, weights, layers, norm, aggregate, with_features):
    hypergraph = weighted(*drawn, weights, 0)
    x_e = states(hypergraph.num_edges, 1)[:, :2] if with_features else None
    operator = make(kind, layers, norm, aggregate, 2 if with_features else 0)
    h = states(drawn[0])
    defined = aggregate_at_nodes(operator(node_to_incidence(h, hypergraph), hypergraph, x_e), hypergraph, aggregate)
    torch.testing.assert_close(operator.sum_to_nodes(h, hypergraph, x_e), defined, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind", ["equivariant", "invariant"])
@given(DRAWN, st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_operators_follow_a_relabelling(kind, drawn, random):
    num_nodes, hyperedges = drawn
    new_name = random.sample(range(num_nodes), num_nodes)
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    other = Hypergraph.from_hyperedges([[new_name[v] for v in e] for e in hyperedges[::-1]], num_nodes=num_nodes)
    operator, h = make(kind, 2, "layer", "sum"), states(num_nodes)
    moved = torch.empty_like(h)
    moved[new_name] = h
    expected = operator.sum_to_nodes(h, hypergraph)
    torch.testing.assert_close(operator.sum_to_nodes(moved, other)[new_name], expected, rtol=1e-10, atol=1e-10)


@given(DRAWN, WEIGHTS, st.sampled_from(["sum", "mean"]))
@settings(max_examples=30)
def test_aggregation_of_rows_equals_that_of_incidences(drawn, weights, aggregate):
    hypergraph = weighted(*drawn, weights, 0)
    x, x_e = states(drawn[0]), states(hypergraph.num_edges, 1)
    slow = aggregate_at_edges(x[hypergraph.node_index], hypergraph, aggregate)
    torch.testing.assert_close(to_edges(x, hypergraph, aggregate), slow, rtol=1e-12, atol=1e-12)
    slow = aggregate_at_nodes(x_e[hypergraph.edge_index], hypergraph, aggregate)
    torch.testing.assert_close(to_nodes(x_e, hypergraph, aggregate), slow, rtol=1e-12, atol=1e-12)


def test_weights_of_zero_are_silence():
    hypergraph = Hypergraph(
        torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), 3, 2, edge_weight=torch.tensor([0.0, 0.0])
    )
    for aggregate in ("sum", "mean"):
        out = make("equivariant", 2, "layer", aggregate).sum_to_nodes(states(3), hypergraph)
        assert not out.any()


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("edges", [1, 5])
@pytest.mark.parametrize("kind", [torch.float64, torch.int64])
def test_hyperedge_features_of_other_bits_are_taken(edges, kind):
    model = make_model("ed-hnn", in_features=2, num_classes=2, hidden=4, classifier_hidden=4, edge_features=3).eval()
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2]] * edges, num_nodes=3)
    x_e = torch.ones(edges, 3)
    expected = model(torch.ones(3, 2), hypergraph, x_e)
    assert torch.equal(model(torch.ones(3, 2), hypergraph, x_e.to(kind)), expected)


def test_operators_have_the_signature_of_the_house():
    for kind in ("equivariant", "invariant"):
        operator = make(kind, 2, "layer", "sum")
        assert isinstance(operator, HyperedgeOperator)
        assert isinstance(operator, SummedOperator)


def test_the_same_mask_serves_the_definition_and_the_fast_path():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3], [0, 3]])
    operator = EquivariantOperator(torch.nn.Identity(), mlp(2 * WIDTH, 2, dropout=0.5), aggregate="sum")
    h = states(4)
    operator.rho.dropout.seeds.restart(7)
    fast = operator.sum_to_nodes(h, hypergraph)
    operator.rho.dropout.seeds.restart(7)
    slow = aggregate_at_nodes(operator(node_to_incidence(h, hypergraph), hypergraph), hypergraph, "sum")
    torch.testing.assert_close(fast, slow, rtol=1e-12, atol=1e-12)
    operator.rho.dropout.seeds.restart(8)
    assert not torch.allclose(operator.sum_to_nodes(h, hypergraph), fast)


def test_hooks_on_the_layers_of_a_perceptron_are_called():
    mlp, seen = MLP(3, 4, 2, 2), []
    expected = mlp(torch.ones(5, 3))
    hooks = [part.register_forward_hook(lambda *_: seen.append(1)) for part in mlp.linears]
    assert torch.equal(mlp(torch.ones(5, 3)), expected)
    assert len(seen) == 2
    for hook in hooks:
        hook.remove()
    mlp(torch.ones(5, 3))
    assert len(seen) == 2
