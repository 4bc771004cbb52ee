"""What every model of the registry must do. Exceptions are declared in one place, each with its reason."""

import copy
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from edhnn.diffusion.diffusion import diffuse
from edhnn.errors import DataError, EdhnnError, UsageError
from edhnn.hypergraph import Hypergraph
from edhnn.models.registry import MODELS, make_config, make_model

IN, OUT, NODES = 5, 3, 9
EDGES = [[0, 1, 2], [2, 3], [4], [1, 2, 3, 5], [], [0, 5, 6], [0, 1, 2]]  # nodes 7 and 8 are isolated

SMALL = {"hidden": 8, "classifier_hidden": 6}
"""Sizes of the tests, where a model has such a field."""

COUNTS = "the logarithms of counts do not look at weights"
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "mlp": {"second": "does not look at the hypergraph"},
    "ce-gat": {"refuses": {"edge_weight": "its graph has no weights", "incidence_weight": "its graph has no weights"}},
    "hypergcn": {"refuses": {"incidence_weight": "extremes are members or not"}},
    "hypersage": {"refuses": {"incidence_weight": "a neighbour is one or not"}},
    "legcn": {"refuses": {"edge_weight": "its graph has no weights", "incidence_weight": "its graph has no weights"}},
    "mean-deg": {"weights": COUNTS},
}

CONTEXT: dict[tuple[str, str], dict[str, Any]] = {
    **{("mlp", name): {"layers": 2, "dropout": 0.1, "norm": "layer"} for name in ("hidden", "norm", "dropout")},
    **{(model, "dropout"): {"layers": 2} for model in ("hnhn", "hypergcn")},
    **{("hypergcn", name): {"layers": 2} for name in ("exponent", "fast")},
    **{(model, "hidden"): {"layers": 2} for model in ("hnhn", "ce-gcn")},
    **{
        (model, name): {"classifier_layers": 2}
        for model in ("alldeepsets", "allsettransformer", "alldeepsets-jumplink")
        for name in ("classifier_hidden", "norm")
    },
    ("hcha", "heads"): {"attention": True},
    ("hypernd", "max_steps"): {"tolerance": 1e-9},
    ("hypernd", "norm"): {"classifier_layers": 2},
    **{(model, "degree"): {"update": "concat"} for model in ("ed-hnn", "ed-hnn-ii", "invariant")},
    **{(model, "tied"): {"num_iterations": 2} for model in ("ed-hnn", "ed-hnn-ii", "invariant")},
    **{(model, "encoder"): {"hidden": IN} for model in ("ed-hnn", "ed-hnn-ii", "invariant", "mean-deg", "jump-link")},
}
"""What else must be chosen for an option to have a say."""

OTHER: dict[str, Any] = {
    "max_steps": 1,
    "tolerance": 0.5,
    "mean_power": 2.0,
    "factor": 2.0,
    "restart": 0.25,
    "sample": 1,
    "edge_power": 0.5,
    "node_power": 0.5,
    "identity_scale": 1.0,
    "hidden": 12,
}
"""Another value of an option, where adding 1, flipping and the next name will not do."""

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
every_model = pytest.mark.parametrize("name", sorted(MODELS))


def small(name: str) -> dict[str, Any]:
    known = {field.name for field in fields(MODELS[name].config)}
    return {field: value for field, value in SMALL.items() if field in known}


def build(name: str, seed: int = 0, **options: Any):
    return make_model(name, in_features=IN, num_classes=OUT, seed=seed, **small(name) | options)


def exception(name: str, what: str) -> Any:
    return EXCEPTIONS.get(name, {}).get(what)


def features(nodes: int = NODES, seed: int = 0) -> torch.Tensor:
    """Positive, as power means ask for."""
    return torch.rand(nodes, IN, generator=torch.Generator().manual_seed(seed))


def hypergraph(**weights: Any) -> Hypergraph:
    plain = Hypergraph.from_hyperedges(EDGES, num_nodes=NODES)
    return Hypergraph(plain.node_index, plain.edge_index, NODES, len(EDGES), **weights)


def loss_of(out: torch.Tensor) -> torch.Tensor:
    return (out * torch.randn(out.shape, generator=torch.Generator().manual_seed(7))).sum()


@every_model
def test_a_row_per_node_and_a_column_per_class(name):
    out = build(name)(features(), hypergraph())
    assert out.shape == (NODES, OUT) and out.dtype == torch.float32


@every_model
def test_pairs_of_nodes_and_hyperedges_do_for_a_hypergraph(name):
    joined, model = hypergraph(), build(name).eval()
    pairs = torch.stack([joined.node_index, joined.edge_index])
    torch.testing.assert_close(model(features(), pairs), model(features(), joined))


@every_model
def test_relabelling_the_nodes_relabels_the_answer(name):
    model = build(name).double().eval()
    x, joined = features().double(), hypergraph()
    new = torch.randperm(NODES, generator=torch.Generator().manual_seed(3))
    moved = Hypergraph(new[joined.node_index], joined.edge_index, NODES, joined.num_edges)
    moved_x = torch.empty_like(x).index_copy(0, new, x)
    torch.testing.assert_close(model(moved_x, moved)[new], model(x, joined), rtol=1e-9, atol=1e-10)


@every_model
def test_the_order_of_hyperedges_does_not_matter(name):
    model, x, joined = build(name).double().eval(), features().double(), hypergraph()
    new = torch.randperm(joined.num_edges, generator=torch.Generator().manual_seed(3))
    moved = Hypergraph(joined.node_index, new[joined.edge_index], NODES, joined.num_edges)
    torch.testing.assert_close(model(x, moved), model(x, joined), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [(NODES, EDGES), (0, []), (1, [[0]]), (1, []), (3, []), (3, [[], []]), (2, [[0], [1]]), (3, [[0, 1]])],
    ids=[
        "mixed",
        "no node",
        "one node",
        "one node alone",
        "no hyperedge",
        "empty hyperedges",
        "singletons",
        "isolated",
    ],
)
@every_model
def test_odd_hypergraphs_give_finite_answers_and_gradients(name, nodes, edges):
    model = build(name)
    out = model(features(nodes), Hypergraph.from_hyperedges(edges, num_nodes=nodes))
    loss_of(out).backward()
    assert out.shape == (nodes, OUT) and out.isfinite().all()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


@every_model
def test_gradients_reach_all_parameters(name):
    model, joined = build(name), hypergraph()
    for _ in range(4):  # dropout or a ReLU may hide a parameter once
        loss_of(model(features(), joined)).backward()
    silent = [key for key, value in model.named_parameters() if value.grad is None or not value.grad.any()]
    assert silent == []


@every_model
def test_same_seed_same_bits_other_seed_other_bits(name):
    joined, x = hypergraph(), features()
    first, again, other = build(name, 1), build(name, 1), build(name, 2)
    weights = [torch.cat([p.flatten() for p in model.parameters()]) for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    outputs = [[model(x, joined) for _ in range(2)] for model in (first, again, other)]
    assert torch.equal(torch.stack(outputs[0]), torch.stack(outputs[1]))
    assert not torch.equal(torch.stack(outputs[0]), torch.stack(outputs[2]))


@every_model
def test_no_global_seed_is_read_or_moved(name):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = build(name)(features(), hypergraph())
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert torch.equal(build(name)(features(), hypergraph()), first)


@every_model
def test_a_state_dict_or_a_copy_carries_the_model(name):
    x, joined = features(), hypergraph()
    model, other = build(name, 1).eval(), build(name, 2).eval()
    expected = model(x, joined)
    other(x, joined)
    other.load_state_dict(copy.deepcopy(model.state_dict()))
    assert torch.equal(other(x, joined), expected)
    assert torch.equal(copy.deepcopy(model)(x, joined), expected)


@every_model
def test_evaluation_is_repeatable(name):
    model, x, joined = build(name).eval(), features(), hypergraph()
    assert torch.equal(model(x, joined), model(x, joined))


@every_model
def test_a_second_hypergraph_gets_its_own_answer(name):
    x, first = features(), hypergraph()
    second = Hypergraph.from_hyperedges([[0, 4, 8], [7, 3], [1, 6, 2, 5]], num_nodes=NODES)
    model = build(name).eval()
    answers = [model(x, joined) for joined in (first, second, first)]
    assert torch.equal(answers[0], answers[2])
    assert torch.equal(build(name).eval()(x, second), answers[1])
    assert exception(name, "second") or not torch.allclose(answers[0], answers[1])


@every_model
def test_other_features_get_their_own_answer(name):
    model, joined, x = build(name).eval(), hypergraph(), features()
    first = model(x, joined)
    assert not torch.allclose(model(features(seed=1), joined), first)
    changed = x.clone()
    before = model(changed, joined)
    changed.pow_(2)  # a model may be blind to scale
    assert not torch.allclose(model(changed, joined), before)


@every_model
def test_sparse_features_are_dense_features(name):
    x = features() * (features(seed=5) > 0.5)
    model, joined = build(name).double().eval(), hypergraph()
    sparse = x.double().to_sparse_csr()
    torch.testing.assert_close(model(sparse, joined), model(x.double(), joined), rtol=1e-9, atol=1e-10)
    model.train()
    loss_of(model(sparse, joined)).backward()


@every_model
@pytest.mark.filterwarnings("ignore:Sparse CSC tensor support")
def test_features_of_another_layout_or_width_are_refused_in_training_and_evaluation(name):
    model, joined = build(name), hypergraph()
    for mode in (model.train, model.eval):
        mode()
        for x in (features().to_sparse_coo(), features().to_sparse_csc()):
            with pytest.raises(DataError, match="must be dense or sparse CSR"):
                model(x, joined)
        with pytest.raises(DataError, match=r"must have shape \[N, 5\]"):
            model(features()[:, 1:], joined)


@pytest.mark.parametrize("name", ["ed-hnn", "ed-hnn-ii", "invariant", "mean-deg", "jump-link"])
def test_without_an_encoder_features_are_checked_and_converted_too(name):
    model, joined = build(name, hidden=IN, encoder=False).eval(), hypergraph()
    torch.testing.assert_close(model(features().double(), joined), model(features(), joined))
    with pytest.raises(DataError, match=r"must have shape \[N, 5\]"):
        model(features()[:, 1:], joined)
    with pytest.raises(DataError, match="must be dense or sparse CSR"):
        model(features().to_sparse_coo(), joined)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *[(name, {"dropout": 0.5}) for name in ("ed-hnn", "ed-hnn-ii", "hgnn", "allsettransformer")],
        ("hypersage", {"dropout": 0.0, "sample": 1}),
    ],
)
def test_activation_checkpointing_is_refused_where_it_would_draw_other_masks_or_samples(name, options):
    model, joined = build(name, **options), hypergraph()
    out = checkpoint(model, features().requires_grad_(), joined, use_reentrant=False)
    with pytest.raises(UsageError, match="drawn in a forward pass"):
        loss_of(out).backward()


@every_model
def test_double_precision_throughout(name):
    model, x, joined = build(name), features(), hypergraph()
    single = model.eval()(x, joined)
    double = model.double()(x.double(), joined)
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), single, rtol=2e-4, atol=2e-5)
    loss_of(model.train()(x.double(), joined)).backward()


def options_of(name: str) -> list[str]:
    return [field.name for field in fields(MODELS[name].config)]


def another(name: str, option: str) -> Any:
    context = CONTEXT.get((name, option), {})
    now = getattr(make_config(name, **small(name) | context), option)
    kind = get_type_hints(MODELS[name].config)[option]
    if get_origin(kind) is Literal:
        return next(choice for choice in reversed(get_args(kind)) if choice != now)
    if isinstance(now, bool):
        return not now
    if option in OTHER and OTHER[option] != now:
        return OTHER[option]
    return now + 1 if isinstance(now, int) else now / 2 + 0.15


@pytest.mark.parametrize(("name", "option"), [(name, option) for name in sorted(MODELS) for option in options_of(name)])
def test_every_option_is_live(name, option):
    context = CONTEXT.get((name, option), {})
    model, other = build(name, **context), build(name, **context | {option: another(name, option)})
    shapes = [{key: value.shape for key, value in built.state_dict().items()} for built in (model, other)]
    if shapes[0] == shapes[1]:
        x, joined = features(), hypergraph()
        assert any(not torch.equal(model(x, joined), other(x, joined)) for _ in range(3))


def weighed(name: str, what: str, weight: torch.Tensor) -> torch.Tensor | None:
    """The answer with weights; ``None`` where they are refused, as declared and with a reason."""
    model, x, joined = build(name).double().eval(), features().double(), hypergraph(**{what: weight})
    if what not in (exception(name, "refuses") or {}):
        return model(x, joined)
    with pytest.raises(EdhnnError, match=f"cannot honour '{what}': .+"):
        model(x, joined)
    return None


@every_model
def test_a_hyperedge_of_weight_two_counts_as_two(name):
    weight = torch.ones(len(EDGES), dtype=torch.float64)
    weight[3] = 2
    out = weighed(name, "edge_weight", weight)
    if out is None or exception(name, "weights"):
        return
    twice = Hypergraph.from_hyperedges([*EDGES, EDGES[3]], num_nodes=NODES)
    model, x = build(name).double().eval(), features().double()
    torch.testing.assert_close(out, model(x, twice), rtol=1e-9, atol=1e-10)
    assert exception(name, "second") or not torch.allclose(out, model(x, hypergraph()))


@every_model
def test_a_membership_of_weight_zero_is_none(name):
    weight = torch.ones(hypergraph().num_incidences, dtype=torch.float64)
    weight[0] = 0
    out = weighed(name, "incidence_weight", weight)
    if out is None or exception(name, "weights"):
        return
    without = Hypergraph.from_hyperedges([EDGES[0][1:], *EDGES[1:]], num_nodes=NODES)
    model, x = build(name).double().eval(), features().double()
    torch.testing.assert_close(out, model(x, without), rtol=1e-9, atol=1e-10)


def test_every_exception_names_a_model_that_exists():
    assert set(EXCEPTIONS) <= set(MODELS)
    assert all(option in options_of(model) for model, option in CONTEXT)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hidden": 64.0}, "'hidden' must be of type int. Got 64.0"),
        ({"num_iterations": 2.0}, "'num_iterations' must be of type int"),
        ({"dropout": "0.5"}, "'dropout' must be of type float"),
        ({"norm": None}, "'norm' must be of type str"),
        ({"num_classes": 2.0}, "as ints. Got 3 and 2.0"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_values_of_another_kind_are_refused_by_name(options, said):
    with pytest.raises(UsageError, match=said):
        make_model("ed-hnn", **{"in_features": 3, "num_classes": 2} | options)


@pytest.mark.usefixtures("without_shape_checks")
def test_what_is_no_tensor_or_hypergraph_is_refused_by_name():
    model, x = make_model("hgnn", in_features=2, num_classes=2), torch.ones(3, 2)
    pair = Hypergraph.from_hyperedges([[0, 1], [1, 2]])
    with pytest.raises(DataError, match="Features must be a tensor. Got a ndarray"):
        model(x.numpy(), pair)
    with pytest.raises(DataError, match="Got a list.*from_hyperedges"):
        model(x, [[0, 1], [1, 2]])
    with pytest.raises(DataError, match="'x' must be a tensor. Got a ndarray"):
        diffuse(pair, x.numpy())
