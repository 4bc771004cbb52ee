"""The contract of every registered model. Exceptions are declared here, each with its reason."""

import copy
import pickle
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
"""Options of the tests, for models that have them."""

COUNTS = "the logarithms of counts ignore weights"
MEMBERS = "it makes a graph of the members of hyperedges"
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "auto": {
        "float32 buffers": "the weights of its parts stay in float32",
        "unreached": ["networks.1.beliefs.weight", "networks.2.beliefs.weight"],
        "weights": COUNTS,
    },
    "belief-diffusion": {"unreached": ["beliefs.weight"], "weights": COUNTS},  # beliefs of these tests are zeros
    "mlp": {"second": "ignores the hypergraph"},
    "ce-gat": {
        "unsupported": {"edge_weight": "its graph has no weights", "incidence_weight": "its graph has no weights"},
        "meta": MEMBERS,
    },
    "ce-gcn": {"meta": MEMBERS},
    "hypergcn": {"unsupported": {"incidence_weight": "a node is either a member or not"}, "meta": "its graph depends"},
    "hypernd": {"meta": "its number of steps depends on the features"},
    "hypersage": {"unsupported": {"incidence_weight": "a node is either a neighbour or not"}},
    "legcn": {
        "unsupported": {"edge_weight": "its graph has no weights", "incidence_weight": "its graph has no weights"}
    },
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
"""Other options that must be set for an option to have an effect."""

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
"""Another value of an option, for options where adding 1, negation and the next choice do not work."""

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
    """Draw positive features, as power means require."""
    return torch.rand(nodes, IN, generator=torch.Generator().manual_seed(seed))


def example(**weights: Any) -> Hypergraph:
    plain = Hypergraph.from_hyperedges(EDGES, num_nodes=NODES)
    return Hypergraph(plain.node_index, plain.edge_index, NODES, len(EDGES), **weights)


def loss_of(out: torch.Tensor) -> torch.Tensor:
    return (out * torch.randn(out.shape, generator=torch.Generator().manual_seed(7))).sum()


@every_model
def test_output_has_a_row_per_node_and_a_column_per_class(name):
    out = build(name)(features(), example())
    assert out.shape == (NODES, OUT) and out.dtype == torch.float32


@every_model
def test_pairs_of_nodes_and_hyperedges_are_accepted(name):
    hypergraph, model = example(), build(name).eval()
    pairs = torch.stack([hypergraph.node_index, hypergraph.edge_index])
    torch.testing.assert_close(model(features(), pairs), model(features(), hypergraph))


@every_model
def test_permuting_the_nodes_permutes_the_output(name):
    model = build(name).double().eval()
    x, hypergraph = features().double(), example()
    new = torch.randperm(NODES, generator=torch.Generator().manual_seed(3))
    moved = Hypergraph(new[hypergraph.node_index], hypergraph.edge_index, NODES, hypergraph.num_edges)
    moved_x = torch.empty_like(x).index_copy(0, new, x)
    torch.testing.assert_close(model(moved_x, moved)[new], model(x, hypergraph), rtol=1e-9, atol=1e-10)


@every_model
def test_the_order_of_hyperedges_does_not_matter(name):
    model, x, hypergraph = build(name).double().eval(), features().double(), example()
    new = torch.randperm(hypergraph.num_edges, generator=torch.Generator().manual_seed(3))
    moved = Hypergraph(hypergraph.node_index, new[hypergraph.edge_index], NODES, hypergraph.num_edges)
    torch.testing.assert_close(model(x, moved), model(x, hypergraph), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [(NODES, EDGES), (0, []), (1, [[0]]), (1, []), (3, []), (3, [[], []]), (2, [[0], [1]]), (3, [[0, 1]])],
    ids=[
        "mixed",
        "no node",
        "one node",
        "isolated node",
        "no hyperedge",
        "empty hyperedges",
        "singletons",
        "pair and isolated",
    ],
)
@every_model
def test_unusual_hypergraphs_give_finite_outputs_and_gradients(name, nodes, edges):
    model = build(name)
    out = model(features(nodes), Hypergraph.from_hyperedges(edges, num_nodes=nodes))
    loss_of(out).backward()
    assert out.shape == (nodes, OUT) and out.isfinite().all()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


@every_model
def test_gradients_reach_all_parameters(name):
    model, hypergraph = build(name), example()
    for _ in range(4):  # dropout or a ReLU may hide a parameter once
        loss_of(model(features(), hypergraph)).backward()
    without = [key for key, value in model.named_parameters() if value.grad is None or not value.grad.any()]
    assert without == (exception(name, "unreached") or [])


@every_model
def test_the_seed_determines_all_bits(name):
    hypergraph, x = example(), features()
    first, again, other = build(name, 1), build(name, 1), build(name, 2)
    weights = [torch.cat([p.flatten() for p in model.parameters()]) for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    outputs = [[model(x, hypergraph) for _ in range(2)] for model in (first, again, other)]
    assert torch.equal(torch.stack(outputs[0]), torch.stack(outputs[1]))
    assert not torch.equal(torch.stack(outputs[0]), torch.stack(outputs[2]))


@every_model
def test_the_global_random_state_is_neither_used_nor_changed(name):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = build(name)(features(), example())
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert torch.equal(build(name)(features(), example()), first)


@every_model
def test_state_dicts_and_copies_reproduce_the_model(name):
    x, hypergraph = features(), example()
    model, other = build(name, 1).eval(), build(name, 2).eval()
    expected = model(x, hypergraph)
    other(x, hypergraph)
    other.load_state_dict(copy.deepcopy(model.state_dict()))
    assert torch.equal(other(x, hypergraph), expected)
    assert torch.equal(copy.deepcopy(model)(x, hypergraph), expected)


@every_model
def test_evaluation_is_repeatable(name):
    model, x, hypergraph = build(name).eval(), features(), example()
    assert torch.equal(model(x, hypergraph), model(x, hypergraph))


@every_model
def test_caches_distinguish_hypergraphs(name):
    x, first = features(), example()
    second = Hypergraph.from_hyperedges([[0, 4, 8], [7, 3], [1, 6, 2, 5]], num_nodes=NODES)
    model = build(name).eval()
    outputs = [model(x, hypergraph) for hypergraph in (first, second, first)]
    assert torch.equal(outputs[0], outputs[2])
    assert torch.equal(build(name).eval()(x, second), outputs[1])
    assert exception(name, "second") or not torch.allclose(outputs[0], outputs[1])


@every_model
def test_caches_distinguish_features(name):
    model, hypergraph, x = build(name).eval(), example(), features()
    first = model(x, hypergraph)
    assert not torch.allclose(model(features(seed=1), hypergraph), first)
    changed = x.clone()
    before = model(changed, hypergraph)
    changed.pow_(2)  # not a factor: a model may be invariant to the scale
    assert not torch.allclose(model(changed, hypergraph), before)


@every_model
def test_sparse_and_dense_features_give_the_same_output(name):
    x = features() * (features(seed=5) > 0.5)
    model, hypergraph = build(name).double().eval(), example()
    sparse = x.double().to_sparse_csr()
    torch.testing.assert_close(model(sparse, hypergraph), model(x.double(), hypergraph), rtol=1e-9, atol=1e-10)
    model.train()
    loss_of(model(sparse, hypergraph)).backward()


@every_model
@pytest.mark.filterwarnings("ignore:Sparse CSC tensor support")
def test_features_of_another_layout_or_width_raise(name):
    model, hypergraph = build(name), example()
    for mode in (model.train, model.eval):
        mode()
        for x in (features().to_sparse_coo(), features().to_sparse_csc()):
            with pytest.raises(DataError, match="must be dense or sparse CSR"):
                model(x, hypergraph)
        with pytest.raises(DataError, match=r"must have shape \[N, 5\]"):
            model(features()[:, 1:], hypergraph)


@pytest.mark.parametrize("name", ["ed-hnn", "ed-hnn-ii", "invariant", "mean-deg", "jump-link"])
def test_without_an_encoder_features_are_checked_and_converted_too(name):
    model, hypergraph = build(name, hidden=IN, encoder=False).eval(), example()
    torch.testing.assert_close(model(features().double(), hypergraph), model(features(), hypergraph))
    with pytest.raises(DataError, match=r"must have shape \[N, 5\]"):
        model(features()[:, 1:], hypergraph)
    with pytest.raises(DataError, match="must be dense or sparse CSR"):
        model(features().to_sparse_coo(), hypergraph)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *[(name, {"dropout": 0.5}) for name in ("ed-hnn", "ed-hnn-ii", "hgnn", "allsettransformer")],
        ("hypersage", {"dropout": 0.0, "sample": 1}),
    ],
)
def test_activation_checkpointing_raises_if_masks_or_samples_would_differ(name, options):
    model, hypergraph = build(name, **options), example()
    out = checkpoint(model, features().requires_grad_(), hypergraph, use_reentrant=False)
    with pytest.raises(UsageError, match="drawn in a forward pass"):
        loss_of(out).backward()


@every_model
def test_double_precision_is_kept(name):
    model, x, hypergraph = build(name), features(), example()
    single = model.eval()(x, hypergraph)
    double = model.double()(x.double(), hypergraph)
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), single, rtol=2e-4, atol=2e-5)
    loss_of(model.train()(x.double(), hypergraph)).backward()


@every_model
def test_pickles_and_copies_continue_as_the_model_would(name):
    model, x, hypergraph = build(name, 1), features(), example()
    model(x, hypergraph)  # caches, and the seeds of masks that were drawn, are part of the state
    stored = pickle.dumps((model, hypergraph))
    copied = copy.deepcopy(model)
    expected = model(x, hypergraph)
    assert torch.equal(copied(x, hypergraph), expected)
    loaded, same = pickle.loads(stored)
    assert same.same_as(hypergraph) and torch.equal(loaded(x, same), expected)


class Outputs(torch.utils.data.Dataset):
    """Each entry is the output of a model, computed where the entry is read."""

    def __init__(self, *parts):
        self.parts = parts

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, number):
        model, hypergraph = self.parts[number]
        return model(features(), hypergraph).detach()


@pytest.mark.slow
def test_models_and_hypergraphs_reach_the_workers_of_a_data_loader():
    parts = [(build(name).eval(), example()) for name in sorted(MODELS)]
    expected = [model(features(), hypergraph).detach() for model, hypergraph in parts]
    loader = torch.utils.data.DataLoader(
        Outputs(*parts), batch_size=None, num_workers=1, multiprocessing_context="spawn"
    )
    for name, out, wanted in zip(sorted(MODELS), loader, expected, strict=True):
        assert torch.equal(out, wanted), name


@every_model
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_autocast_computes_as_a_model_in_its_type_with_gradients_in_single_precision(name, norm):
    known = get_type_hints(MODELS[name].config).get("norm")
    options = {"norm": norm} if norm in get_args(known) and (name, norm) != ("ed-hnn-ii", "batch") else {}
    model, x, hypergraph = build(name, 1, **options), features(), example()
    low = copy.deepcopy(model).bfloat16()
    expected = low(x.bfloat16(), hypergraph)
    loss_of(expected.float()).backward()
    with torch.autocast("cpu", torch.bfloat16):
        out = model(x, hypergraph)
    assert out.dtype == (torch.float32 if exception(name, "float32 buffers") else torch.bfloat16)
    torch.testing.assert_close(out.float(), expected.float(), rtol=0.05, atol=0.05)  # features are float32 in autocast
    loss_of(out.float()).backward()
    for (key, parameter), other in zip(model.named_parameters(), low.parameters(), strict=True):
        assert parameter.dtype == torch.float32, key
        assert (parameter.grad is None) == (other.grad is None), key
        assert parameter.grad is None or (parameter.grad.dtype == torch.float32 and parameter.grad.isfinite().all())


@every_model
def test_a_pass_on_the_meta_device_gives_the_shape_or_a_reason(name):
    model, x, hypergraph = build(name).to("meta"), features().to("meta"), example().to("meta")
    if reason := exception(name, "meta"):
        with pytest.raises(UsageError, match=f"cannot run on the meta device: {reason}.*Check its shapes with zeros"):
            model(x, hypergraph)
        return
    out = model(x, hypergraph)
    assert out.device.type == "meta" and out.shape == (NODES, OUT)
    with pytest.raises(DataError, match=r"must have shape \[N, 5\]"):
        model(x[:, 1:], hypergraph)


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
def test_every_option_has_an_effect(name, option):
    context = CONTEXT.get((name, option), {})
    model, other = build(name, **context), build(name, **context | {option: another(name, option)})
    shapes = [{key: value.shape for key, value in built.state_dict().items()} for built in (model, other)]
    if shapes[0] == shapes[1]:
        x, hypergraph = features(), example()
        assert any(not torch.equal(model(x, hypergraph), other(x, hypergraph)) for _ in range(3))


def weighted_output(name: str, what: str, weight: torch.Tensor) -> torch.Tensor | None:
    """Return the output with weights; ``None`` if they raise the declared error."""
    model, x, hypergraph = build(name).double().eval(), features().double(), example(**{what: weight})
    if what not in (exception(name, "unsupported") or {}):
        return model(x, hypergraph)
    with pytest.raises(EdhnnError, match=f"does not support '{what}': .+"):
        model(x, hypergraph)
    return None


@every_model
def test_a_hyperedge_of_weight_two_counts_as_two(name):
    weight = torch.ones(len(EDGES), dtype=torch.float64)
    weight[3] = 2
    out = weighted_output(name, "edge_weight", weight)
    if out is None or exception(name, "weights"):
        return
    twice = Hypergraph.from_hyperedges([*EDGES, EDGES[3]], num_nodes=NODES)
    model, x = build(name).double().eval(), features().double()
    torch.testing.assert_close(out, model(x, twice), rtol=1e-9, atol=1e-10)
    assert exception(name, "second") or not torch.allclose(out, model(x, example()))


@every_model
def test_a_membership_of_weight_zero_counts_as_none(name):
    weight = torch.ones(example().num_incidences, dtype=torch.float64)
    weight[0] = 0
    out = weighted_output(name, "incidence_weight", weight)
    if out is None or exception(name, "weights"):
        return
    without = Hypergraph.from_hyperedges([EDGES[0][1:], *EDGES[1:]], num_nodes=NODES)
    model, x = build(name).double().eval(), features().double()
    torch.testing.assert_close(out, model(x, without), rtol=1e-9, atol=1e-10)


def test_declared_exceptions_name_existing_models_and_options():
    assert set(EXCEPTIONS) <= set(MODELS)
    assert all(option in options_of(model) for model, option in CONTEXT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 64.0}, "'hidden' must be of type int. Got 64.0"),
        ({"num_iterations": 2.0}, "'num_iterations' must be of type int"),
        ({"dropout": "0.5"}, "'dropout' must be of type float"),
        ({"norm": None}, "'norm' must be of type str"),
        ({"num_classes": 2.0}, "as ints. Got 3 and 2.0"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_values_of_another_type_raise_an_error_with_their_name(options, message):
    with pytest.raises(UsageError, match=message):
        make_model("ed-hnn", **{"in_features": 3, "num_classes": 2} | options)


@pytest.mark.usefixtures("without_shape_checks")
def test_arguments_of_another_type_raise_an_error_with_the_type():
    model, x = make_model("hgnn", in_features=2, num_classes=2), torch.ones(3, 2)
    pair = Hypergraph.from_hyperedges([[0, 1], [1, 2]])
    with pytest.raises(DataError, match="Features must be a tensor. Got ndarray"):
        model(x.numpy(), pair)
    with pytest.raises(DataError, match="Got a list.*from_hyperedges"):
        model(x, [[0, 1], [1, 2]])
    with pytest.raises(DataError, match="'x' must be a tensor. Got ndarray"):
        diffuse(pair, x.numpy())
