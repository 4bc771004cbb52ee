"""Compare the forecast of a training step with measured steps."""

import json
import os

import pytest
import scipy.sparse as sp
import torch
from torch.profiler import ProfilerActivity, profile

from edhnn import Hypergraph, NodeDataset, UsageError
from edhnn.data.dataset import sparse_features
from edhnn.doctor import cost
from edhnn.doctor.cost import ModelSize, count, forecast, total_memory
from edhnn.models.registry import make_model

SMALL = ModelSize(hidden=32, classifier_hidden=16)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(cost, "_TIMED_SECONDS", 1e-9)  # one step of each kind


def make_dataset(nodes=300, hyperedges=200, incidences=2500, features=40, classes=3):
    generator = torch.Generator().manual_seed(3)
    hypergraph = Hypergraph(
        torch.randint(nodes, (incidences,), generator=generator),
        torch.randint(hyperedges, (incidences,), generator=generator),
        nodes,
        hyperedges,
    )
    x = torch.randn(nodes, features, generator=generator)
    y = torch.randint(classes, (nodes,), generator=generator)
    return NodeDataset(name="random", hypergraph=hypergraph, x=x, y=y, task="classification")


def peak_bytes_of_a_step(model, dataset):
    """Return the highest sum of live allocations in a training step, plus those made before it."""
    optimiser = torch.optim.Adam(model.train().parameters())

    def step():
        optimiser.zero_grad()
        model(dataset.x, dataset.hypergraph).square().mean().backward()
        optimiser.step()

    step()  # Adam's moments are made in the first step
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    events = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    weights_and_moments = 3 * 4 * model.num_parameters()
    lasting = (dataset.x, dataset.hypergraph.node_index, dataset.hypergraph.edge_index)
    return peak + weights_and_moments + sum(tensor.nbytes for tensor in lasting)


@pytest.mark.parametrize(("hidden", "num_iterations"), [(32, 2), (64, 1), (16, 6)])
def test_peak_memory_is_within_a_factor_of_one_and_a_half(hidden, num_iterations):
    dataset, size = make_dataset(3000, 2000, 25_000), {"hidden": hidden, "num_iterations": num_iterations}
    model = make_model("ed-hnn", in_features=40, num_classes=3, seed=0, classifier_hidden=128, **size)
    predicted = forecast(dataset, ModelSize(self_loops=False, **size))
    assert predicted.parameters == model.num_parameters()
    assert 1 / 1.5 < predicted.peak_bytes / peak_bytes_of_a_step(model, dataset) < 1.5


@pytest.mark.parametrize("sizes", [{}, {"hyperedges": 3000}, {"incidences": 25_000}, {"nodes": 3000}])
@pytest.mark.parametrize("num_iterations", [1, 2, 8])
def test_step_bytes_bounds_what_a_step_keeps(sizes, num_iterations):
    dataset = make_dataset(**sizes)
    size = ModelSize(hidden=64, num_iterations=num_iterations, classifier_hidden=64)
    kept = forecast(dataset, size).activation_bytes
    assert kept < 1.35 * count(dataset).step_bytes(64, num_iterations) < 8 * kept


def test_a_reduced_dataset_gives_the_same_memory_and_products(monkeypatch):
    dataset = make_dataset(4000, 3000, 30_000)
    whole = forecast(dataset, SMALL)
    assert whole.timed_share == 1
    monkeypatch.setattr(cost, "_TIMED_BYTES", count(dataset).step_bytes(32, 2) // 4)
    part = forecast(dataset, SMALL)
    assert 0.2 < part.timed_share < 0.3
    assert part.parameters == whole.parameters
    for name in ("activation_bytes", "peak_bytes", "flops_per_step"):
        assert getattr(part, name) == pytest.approx(getattr(whole, name), rel=0.1)


@pytest.mark.slow
def test_a_reduced_dataset_gives_about_the_same_time(monkeypatch):
    monkeypatch.setattr(cost, "_TIMED_SECONDS", 1.0)
    dataset = make_dataset(20_000, 20_000, 200_000)
    size = ModelSize(hidden=64)
    part = forecast(dataset, size)
    monkeypatch.setattr(cost, "_TIMED_BYTES", 2**40)
    whole = forecast(dataset, size)
    assert part.timed_share < 0.5 and whole.timed_share == 1
    assert 1 / 3 < part.seconds_per_step / whole.seconds_per_step < 3


def test_more_of_anything_needs_more_memory():
    dataset = make_dataset()
    base = forecast(dataset, SMALL)
    for larger in (
        forecast(dataset, ModelSize(hidden=64, classifier_hidden=16)),
        forecast(dataset, ModelSize(hidden=32, classifier_hidden=16, num_iterations=3)),
        forecast(dataset, ModelSize(hidden=32, classifier_hidden=16, mlp_layers=3)),
        forecast(make_dataset(incidences=5000), SMALL),
        forecast(make_dataset(nodes=600), SMALL),
        forecast(make_dataset(hyperedges=4000), SMALL),
        forecast(make_dataset(features=80), SMALL),
    ):
        assert larger.peak_bytes > base.peak_bytes
    assert forecast(dataset, ModelSize(hidden=32, classifier_hidden=16, self_loops=False)).peak_bytes < base.peak_bytes


def test_a_run_has_its_epochs_and_splits(monkeypatch):
    monkeypatch.setattr(cost, "_best_seconds", lambda work, threads: 0.5)
    predicted = forecast(make_dataset(), ModelSize(hidden=8, epochs=20, splits=3))
    assert predicted.seconds_per_step == 0.5
    assert predicted.seconds_per_run == 60 * (0.5 + 0.5)  # a step and an evaluation


def test_self_loops_are_counted_for_nodes_without_one():
    hypergraph = Hypergraph.from_hyperedges([[0], [0], [1, 2]], num_nodes=4)
    dataset = NodeDataset(name="loops", hypergraph=hypergraph)
    without, with_loops = (count(dataset, self_loops=loops) for loops in (False, True))
    assert (without.hyperedges, without.incidences) == (3, 4)
    assert (with_loops.hyperedges, with_loops.incidences) == (3 + 3, 4 + 3)


def test_absent_features_and_labels_are_assumed():
    counts = forecast(NodeDataset(name="bare", hypergraph=Hypergraph.from_hyperedges([[0, 1]])), SMALL).counts
    assert (counts.features, counts.classes) == (100, 2)


def test_regression_has_an_output_per_column():
    hypergraph = Hypergraph.from_hyperedges([[0, 1]])
    for y, outputs in ((torch.zeros(2), 1), (torch.zeros(2, 5), 5)):
        dataset = NodeDataset(name="real", hypergraph=hypergraph, y=y, task="regression")
        assert forecast(dataset, SMALL).counts.classes == outputs


@pytest.mark.parametrize("kind", ["sparse", "float64", "nan", "constant"])
def test_features_of_every_kind_have_a_forecast(kind):
    x = {
        "sparse": sparse_features(sp.eye_array(300)),
        "float64": torch.rand(300, 4).double(),
        "nan": torch.full((300, 4), torch.nan),
        "constant": torch.zeros(300, 0),
    }[kind]
    dataset = NodeDataset(name=kind, hypergraph=make_dataset().hypergraph, x=x)
    assert forecast(dataset, SMALL).peak_bytes > 0


@pytest.mark.parametrize(("num_nodes", "hyperedges"), [(0, []), (3, []), (2, [[], [0]])])
def test_degenerate_hypergraphs_have_a_forecast(num_nodes, hyperedges):
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    predicted = forecast(NodeDataset(name="odd", hypergraph=hypergraph), SMALL)
    assert predicted.seconds_per_step > 0 and predicted.peak_bytes > 0


def test_whether_it_fits_depends_on_the_memory_of_the_machine(monkeypatch):
    dataset = make_dataset()
    peak = forecast(dataset, SMALL).run_bytes
    for memory, fits in ((peak, True), (peak - 1, False), (None, None)):
        monkeypatch.setattr("edhnn.doctor.cost.total_memory", lambda memory=memory: memory)
        assert forecast(dataset, SMALL).fits is fits


def test_memory_is_none_if_the_system_does_not_provide_it(monkeypatch):
    assert (total_memory() or 2**40) > 2**24

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown)
    assert total_memory() is None
    monkeypatch.delattr(os, "sysconf")
    assert total_memory() is None


def test_the_state_of_torch_is_unchanged():
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    forecast(make_dataset(), SMALL)
    assert torch.get_num_threads() == threads
    assert torch.equal(state, torch.get_rng_state())


def test_the_json_has_frozen_names():
    found = json.loads(json.dumps(forecast(make_dataset(), SMALL).to_json()))
    assert found["rates"]["flops_per_second"] == pytest.approx(found["flops_per_step"] / found["seconds_per_step"])
    assert {"size", "counts", "parameters", "activation_bytes", "bytes_per_step", "machine_bytes", "fits"} <= set(found)
    assert set(found["rates"]) == {"flops_per_second", "bytes_per_second", "masks_per_second", "seconds_per_call"}


def test_sizes_must_be_positive():
    with pytest.raises(UsageError, match=r"'hidden' must be 1 or more\. Got 0\."):
        ModelSize(hidden=0)
