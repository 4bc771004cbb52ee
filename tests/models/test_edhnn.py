"""ED-HNN, ED-HNN II and the invariant ablation against loops, and their error messages."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import Hypergraph
from edhnn.errors import DataError, UsageError
from edhnn.models.registry import make_model
from tests.models.reference import Loops
from tests.strategies import hyperedge_lists

FEATURES, CLASSES = 4, 3


def weighted(num_nodes, hyperedges, which, seed):
    plain = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    generator = torch.Generator().manual_seed(seed)
    edge = torch.rand(plain.num_edges, generator=generator, dtype=torch.float64) + 0.1
    pair = torch.rand(plain.num_incidences, generator=generator, dtype=torch.float64) + 0.1
    return Hypergraph(
        plain.node_index,
        plain.edge_index,
        num_nodes,
        plain.num_edges,
        edge if which in ("edges", "both") else None,
        pair if which in ("pairs", "both") else None,
    )


def scattered(model, seed):
    """Move the parameters away from their initial values, so that shifts and scales of norms matter."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return model


def both(model, hypergraph, x, x_e=None, *, seed=None):
    """Return outputs and gradients of the model and of the loops."""
    results = []
    for call in (lambda: run(model, hypergraph, x, x_e), lambda: Loops(model, hypergraph, x_e, seed=seed)(x)):
        model.zero_grad()
        x.grad = None
        if seed is not None:
            model.seeds.restart(seed)
        out = call()
        (out * torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view(out.shape)).sum().backward()
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()} | {"x": x.grad}
        results.append((out.detach(), {name: g.clone() for name, g in gradients.items() if g is not None}))
    return results


def run(model, hypergraph, x, x_e):
    return model(x, hypergraph) if x_e is None else model(x, hypergraph, x_e)


def assert_equal_to_loops(results, tolerance):
    (out, gradients), (expected, expected_gradients) = results
    scale = max(1.0, float(expected.abs().max()) if expected.numel() else 0.0)
    assert float((out - expected).abs().max()) <= tolerance * scale
    for name, gradient in expected_gradients.items():
        scale = max(1.0, float(gradient.abs().max()))
        assert float((gradients[name] - gradient).abs().max()) <= 10 * tolerance * scale, name
    for name in gradients.keys() - expected_gradients.keys():
        assert not gradients[name].any(), name


OPTIONS = {
    "phi_layers": st.integers(1, 3),
    "rho_layers": st.integers(1, 3),
    "update_layers": st.integers(1, 2),
    "classifier_layers": st.integers(1, 2),
    "num_iterations": st.integers(1, 2),
    "aggregate": st.sampled_from(["sum", "mean"]),
    "update": st.sampled_from(["restart", "concat"]),
    "restart": st.sampled_from([0.0, 0.3, 1.0]),
    "degree": st.sampled_from(["log", "count", "none"]),
    "norm": st.sampled_from(["layer", "none"]),
    "activation": st.sampled_from(["relu", "prelu", "identity"]),
    "dropout": st.sampled_from([0.0, 0.4]),
    "input_dropout": st.sampled_from([0.0, 0.3]),
    "tied": st.booleans(),
    "edge_features": st.sampled_from([0, 2]),
}


@pytest.mark.parametrize("name", ["ed-hnn", "ed-hnn-ii", "invariant"])
@given(
    hyperedge_lists(max_nodes=5, max_edges=4).filter(lambda drawn: drawn[0] > 0),
    st.fixed_dictionaries(OPTIONS),
    st.sampled_from(["none", "edges", "pairs", "both"]),
    st.integers(0, 2**20),
)
@settings(max_examples=25)
def test_outputs_and_gradients_equal_the_loops(name, drawn, options, weights, seed):
    hypergraph = weighted(*drawn, weights, seed)
    model = make_model(
        name, in_features=FEATURES, num_classes=CLASSES, seed=seed, hidden=5, classifier_hidden=4, **options
    ).double()
    scattered(model, seed)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(drawn[0], FEATURES, generator=generator, dtype=torch.float64, requires_grad=True)
    width = options["edge_features"]
    x_e = torch.randn(hypergraph.num_edges, width, generator=generator, dtype=torch.float64) if width else None
    assert_equal_to_loops(both(model, hypergraph, x, x_e, seed=seed), 1e-10)


@pytest.mark.parametrize("kernels", ["torch", "native"])
@pytest.mark.parametrize("name", ["ed-hnn", "ed-hnn-ii", "invariant"])
def test_single_precision_is_close_to_double_for_one_iteration(name, kernels, monkeypatch):
    monkeypatch.setattr("edhnn.kernels.backend._active", kernels)
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2, 3], [2, 3, 4], [5], [0, 4, 5]], num_nodes=7)
    options = dict(in_features=FEATURES, num_classes=CLASSES, hidden=16, num_iterations=1, dropout=0.0)
    single = make_model(name, **options, input_dropout=0.0)
    double = make_model(name, **options, input_dropout=0.0).double()
    x = torch.randn(7, FEATURES, generator=torch.Generator().manual_seed(0))
    out, expected = single(x, hypergraph), Loops(double, hypergraph)(x.double())
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)
    out.square().sum().backward()
    expected.square().sum().backward()
    for (name, a), b in zip(single.named_parameters(), double.parameters(), strict=True):
        scale = float(b.grad.abs().max()) + 1e-3
        assert float((a.grad - b.grad).abs().max()) <= 1e-5 * scale + 1e-6, name


def test_messages_of_the_appendix_form_depend_on_the_node_only():
    """In Algorithm 2 the message from u to e does not depend on e: the states of a node's memberships are equal."""
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3], [0, 3], [1]])
    model = make_model("ed-hnn-ii", in_features=2, num_classes=2, hidden=4, form="appendix").double().eval()
    loops = Loops(model, hypergraph)
    seen = []
    messages = loops.messages
    loops.messages = lambda *given: seen.append(messages(*given)) or seen[-1]
    loops(torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    for _, state in seen:
        for v in range(4):
            states = torch.stack([state[i] for i, (u, _) in enumerate(loops.pairs) if u == v])
            assert torch.equal(states, states[:1].expand_as(states))
    assert len(seen) == 2


def test_unsorted_pairs_of_nodes_and_hyperedges_are_accepted():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3]], num_nodes=5)
    index = torch.stack([hypergraph.node_index, hypergraph.edge_index])[:, torch.tensor([5, 0, 3, 1, 4, 2])]
    model = make_model("ed-hnn", in_features=FEATURES, num_classes=CLASSES).eval()
    x = torch.randn(5, FEATURES, generator=torch.Generator().manual_seed(0))
    assert torch.equal(model(x, index), model(x, hypergraph))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ed-hnn", {"rho_layers": 0}, "at least 1 layer"),
        ("ed-hnn", {"update": "concat", "update_layers": 0}, "at least 1 layer"),
        ("ed-hnn", {"update": "gated"}, "restart"),
        ("ed-hnn", {"aggregate": "max"}, "sum, mean"),
        ("ed-hnn-ii", {"aggregate": "Mean"}, "Did you mean 'mean'"),
        ("jump-link", {"aggregate": "max"}, "sum, mean"),
        ("ed-hnn", {"degree": "sqrt"}, "log"),
        ("ed-hnn", {"norm": "instance"}, "batch"),
        ("ed-hnn", {"activation": "tanh"}, "prelu"),
        ("ed-hnn", {"dropout": 1.0}, "less than 1"),
        ("ed-hnn", {"restart": 1.5}, "0..1"),
        ("ed-hnn", {"hidden": 0}, "'hidden'"),
        ("ed-hnn", {"encoder": False}, "must be the number of features, 4"),
        ("ed-hnn", {"widht": 3}, "option of model"),
        ("ed-hnnn", {}, "ed-hnn"),
        ("ed-hnn-ii", {"phi_layers": 0}, "at least 1 layer"),
        ("ed-hnn-ii", {"form": "c"}, "main-text"),
        ("ed-hnn-ii", {"norm": "batch"}, "batch norm"),
        ("invariant", {"rho_layers": 0, "edge_features": 2}, "at least 1 layer"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_invalid_options_raise(name, options, message):
    with pytest.raises(UsageError, match=message):
        make_model(name, in_features=FEATURES, num_classes=CLASSES, **options)


@pytest.mark.usefixtures("without_shape_checks")
def test_data_of_the_wrong_shape_raises():
    hypergraph = Hypergraph.from_hyperedges([[0, 1]], num_nodes=3)
    model = make_model("ed-hnn", in_features=FEATURES, num_classes=CLASSES)
    with pytest.raises(DataError, match=r"\[N, 4\]"):
        model(torch.ones(3, 5), hypergraph)
    with pytest.raises(DataError, match="row per node, 3"):
        model(torch.ones(2, 4), hypergraph)
    with pytest.raises(UsageError, match="absent"):
        model(torch.ones(3, 4), hypergraph, torch.ones(1, 2))
    with pytest.raises(DataError, match=r"\[2, I\]"):
        model(torch.ones(3, 4), torch.zeros(3, 2, dtype=torch.long))


def test_without_an_encoder_the_first_state_is_the_features():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3]])
    model = make_model("ed-hnn", in_features=6, num_classes=2, hidden=6, encoder=False, input_dropout=0.3).double()
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True, generator=torch.Generator().manual_seed(1))
    assert_equal_to_loops(both(model, hypergraph, x, seed=5), 1e-10)


def test_batch_norm_trains_and_evaluates():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], [0, 3]])
    model = make_model("ed-hnn", in_features=4, num_classes=2, norm="batch", hidden=5)
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    model(x, hypergraph).sum().backward()
    model.eval()
    assert torch.isfinite(model(x, hypergraph)).all()


def test_batch_norm_of_phi_is_over_nodes_and_of_rho_over_incidences():
    hypergraph = Hypergraph.from_hyperedges(
        [[0, 1, 2], [2, 3], [0, 3], [0, 1, 3]], num_nodes=6
    )  # two nodes are isolated
    model = make_model("ed-hnn", in_features=4, num_classes=2, norm="batch", hidden=5, dropout=0.0, input_dropout=0.0)
    operator = model.operators[0]
    h = torch.randn(6, 5, generator=torch.Generator().manual_seed(1))
    node, edge = hypergraph.node_index, hypergraph.edge_index
    m_v = operator.phi(h)
    m_e = torch.stack([m_v[node[edge == e]].mean(dim=0) for e in range(4)])
    m_ev = operator.rho(torch.cat([h[node], m_e[edge]], dim=1))
    isolated = torch.zeros(5)
    expected = torch.stack([m_ev[node == v].mean(dim=0) if bool((node == v).any()) else isolated for v in range(6)])
    torch.testing.assert_close(operator.sum_to_nodes(h, hypergraph), expected)
