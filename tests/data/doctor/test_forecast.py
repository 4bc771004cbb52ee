"""The forecast against a textbook ED-HNN that is built, run and measured here."""

import json
import os
import time
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from edhnn import Hypergraph, NodeDataset, UsageError
from edhnn.data.doctor import machine
from edhnn.data.doctor.forecast import count, forecast
from edhnn.data.doctor.machine import Rates, measure_rates, total_memory
from edhnn.data.doctor.training_cost import ModelSize

RATES = Rates(flops_per_second=1e11, bytes_per_second=1e10, masks_per_second=5e7, seconds_per_call=1e-6)


class MLP(nn.Module):
    def __init__(self, width_in, hidden, width_out, layers, dropout, input_norm):
        super().__init__()
        parts = [nn.LayerNorm(width_in)] if input_norm else []
        widths = [width_in, *[hidden] * (layers - 1)]
        for before, after in pairwise(widths):
            parts += [nn.Linear(before, after), nn.ReLU(), nn.LayerNorm(after)]
            parts += [nn.Dropout(0.5)] if dropout else []
        self.parts = nn.Sequential(*parts, nn.Linear(widths[-1], width_out))

    def forward(self, x):
        return self.parts(x)


class TextbookEDHNN(nn.Module):
    """Algorithm 1 with the released code's update, one line per equation."""

    def __init__(self, features, classes, size):
        super().__init__()
        c, n, drop = size.hidden, size.mlp_layers, size.dropout
        self.size, self.encoder = size, nn.Linear(features, c)
        self.phi, self.update = (MLP(c, c, c, n, drop, input_norm=True) for _ in range(2))
        self.rho = MLP(2 * c, c, c, n, drop, input_norm=True)
        self.classifier = MLP(c, size.classifier_hidden, classes, size.classifier_layers, drop, input_norm=False)

    def drop(self, x):
        return functional.dropout(x, 0.5) if self.size.dropout else x

    def forward(self, x, hypergraph):
        node, edge = hypergraph.node_index, hypergraph.edge_index
        h0 = h = functional.relu(self.encoder(self.drop(x)))
        for _ in range(self.size.num_iterations):
            a = self.drop(h)
            m_e = a.new_zeros(hypergraph.num_edges, a.shape[1]).index_add(0, edge, self.phi(a).index_select(0, node))
            pair_ev = torch.cat([a.index_select(0, node), m_e.index_select(0, edge)], dim=1)
            s_v = torch.zeros_like(a).index_add(0, node, self.rho(pair_ev))
            h = functional.relu(self.update(0.5 * s_v + 0.5 * h0))
        return self.classifier(self.drop(h))


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


def make_step(dataset, size):
    network = TextbookEDHNN(dataset.num_features, dataset.num_classes, size)
    optimiser = torch.optim.Adam(network.parameters())

    def step():
        optimiser.zero_grad()
        loss = functional.cross_entropy(network(dataset.x, dataset.hypergraph), dataset.y)
        loss.backward()
        optimiser.step()

    return network, step


def bytes_kept_for_backward(dataset, size):
    """Distinct storages autograd saves in a forward pass, but for parameters and data, which live anyway."""
    network = TextbookEDHNN(dataset.num_features, dataset.num_classes, size)
    graph = dataset.hypergraph
    lasting = [*network.parameters(), dataset.x, dataset.y, graph.node_index, graph.edge_index]
    known = {tensor.untyped_storage().data_ptr() for tensor in lasting}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)  # held, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        functional.cross_entropy(network(dataset.x, graph), dataset.y)
    return sum(size for size, _ in kept.values())


def peak_bytes_of_a_step(dataset, size):
    """The highest sum of live allocations in a whole training step, plus what lived before it."""
    network, step = make_step(dataset, size)
    step()  # Adam's moments are made in the first step
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    events = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    graph = dataset.hypergraph
    weights_and_moments = 3 * sum(p.numel() for p in network.parameters()) * 4
    return (
        peak + weights_and_moments + sum(t.nbytes for t in (dataset.x, dataset.y, graph.node_index, graph.edge_index))
    )


SIZES = [
    ModelSize(hidden=32, classifier_hidden=16, self_loops=False),
    ModelSize(hidden=32, classifier_hidden=16, self_loops=False, dropout=False),
    ModelSize(hidden=24, num_iterations=1, mlp_layers=1, classifier_layers=1, self_loops=False),
    ModelSize(hidden=16, num_iterations=4, mlp_layers=3, classifier_layers=3, dropout=False, self_loops=False),
]


@pytest.mark.parametrize("size", SIZES)
def test_activations_are_counted_exactly(size):
    dataset = make_dataset()
    assert forecast(dataset, size, rates=RATES).activation_bytes == pytest.approx(
        bytes_kept_for_backward(dataset, size), rel=1e-3
    )


@pytest.mark.parametrize("size", SIZES)
def test_peak_memory_is_within_a_factor_of_one_and_a_half(size):
    dataset = make_dataset()
    ratio = forecast(dataset, size, rates=RATES).peak_bytes / peak_bytes_of_a_step(dataset, size)
    assert 1 / 1.5 < ratio < 1.5


@pytest.mark.parametrize("size", SIZES)
def test_parameters_are_counted_exactly(size):
    network = TextbookEDHNN(40, 3, size)
    assert forecast(make_dataset(), size, rates=RATES).parameters == sum(p.numel() for p in network.parameters())


def test_parameters_of_the_paper():
    """Sizes of the paper's table with two-layer phi, rho and update: Senate, Walmart, House."""
    for classes, hidden, expected in ((2, 512, 2_029_314), (11, 512, 2_031_627), (2, 256, 523_138)):
        dataset = make_dataset(nodes=20, hyperedges=5, incidences=30, features=100, classes=classes)
        size = ModelSize(hidden=hidden, classifier_hidden=256 if hidden == 512 else 128)
        assert forecast(dataset, size, rates=RATES).parameters == expected


@pytest.mark.slow
@pytest.mark.parametrize("hidden, incidences", [(16, 2_000), (64, 20_000), (256, 20_000), (64, 200_000)])
def test_time_is_within_a_factor_of_four(hidden, incidences):
    dataset = make_dataset(nodes=incidences // 10, hyperedges=incidences // 10, incidences=incidences, features=100)
    size = ModelSize(hidden=hidden, self_loops=False)
    expected = forecast(dataset, size).seconds_per_step  # before the step, whose freed memory would flatter the copies
    _, step = make_step(dataset, size)
    step()
    seconds = []
    for _ in range(4):
        begun = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begun)
    assert 1 / 4 < expected / min(seconds) < 4


def test_more_of_anything_costs_more():
    dataset, base = make_dataset(), ModelSize(hidden=32, self_loops=False)
    cheap = forecast(dataset, base, rates=RATES)
    for larger in (
        forecast(dataset, ModelSize(hidden=64, self_loops=False), rates=RATES),
        forecast(dataset, ModelSize(hidden=32, self_loops=False, num_iterations=3), rates=RATES),
        forecast(dataset, ModelSize(hidden=32, self_loops=False, mlp_layers=3), rates=RATES),
        forecast(make_dataset(incidences=5000), base, rates=RATES),
        forecast(make_dataset(nodes=600), base, rates=RATES),
        forecast(make_dataset(hyperedges=4000), base, rates=RATES),
        forecast(make_dataset(features=80), base, rates=RATES),
        forecast(dataset, ModelSize(hidden=32), rates=RATES),
    ):
        assert larger.peak_bytes > cheap.peak_bytes
        assert larger.seconds_per_step > cheap.seconds_per_step
    without = forecast(dataset, ModelSize(hidden=32, self_loops=False, dropout=False), rates=RATES)
    assert without.peak_bytes < cheap.peak_bytes and without.seconds_per_step < cheap.seconds_per_step


def test_a_run_is_its_epochs_and_splits():
    dataset = make_dataset()
    one = forecast(dataset, ModelSize(epochs=1, splits=1), rates=RATES)
    many = forecast(dataset, ModelSize(epochs=20, splits=3), rates=RATES)
    assert many.seconds_per_run == pytest.approx(60 * one.seconds_per_run)
    assert one.seconds_per_step < one.seconds_per_run < 2 * one.seconds_per_step


def test_self_loops_are_counted_for_nodes_without_one():
    hypergraph = Hypergraph.from_hyperedges([[0], [0], [1, 2]], num_nodes=4)
    dataset = NodeDataset(name="loops", hypergraph=hypergraph)
    without, with_loops = (count(dataset, self_loops=wanted) for wanted in (False, True))
    assert (without.hyperedges, without.incidences) == (3, 4)
    assert (with_loops.hyperedges, with_loops.incidences) == (3 + 3, 4 + 3)


def test_absent_features_and_labels_are_assumed_and_said():
    counts = forecast(NodeDataset(name="bare", hypergraph=Hypergraph.from_hyperedges([[0, 1]])), rates=RATES).counts
    assert (counts.features, counts.classes) == (100, 2)


def test_regression_has_an_output_per_column():
    hypergraph = Hypergraph.from_hyperedges([[0, 1]])
    for y, outputs in ((torch.zeros(2), 1), (torch.zeros(2, 5), 5)):
        dataset = NodeDataset(name="real", hypergraph=hypergraph, y=y, task="regression")
        assert count(dataset, self_loops=False).classes == outputs


@pytest.mark.parametrize("num_nodes, hyperedges", [(0, []), (3, []), (2, [[], [0]])])
def test_degenerate_hypergraphs_have_a_forecast(num_nodes, hyperedges):
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    found = forecast(NodeDataset(name="odd", hypergraph=hypergraph), rates=RATES)
    assert found.seconds_per_step > 0 and found.peak_bytes > 0


def test_whether_it_fits_follows_the_machine(monkeypatch):
    dataset = make_dataset()
    peak = forecast(dataset, rates=RATES).peak_bytes
    for memory, fits in ((peak, True), (peak - 1, False), (None, None)):
        monkeypatch.setattr("edhnn.data.doctor.forecast.total_memory", lambda memory=memory: memory)
        assert forecast(dataset, rates=RATES).fits is fits


def test_memory_is_unknown_where_the_system_does_not_say(monkeypatch):
    assert (total_memory() or 2**40) > 2**24

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown)
    assert total_memory() is None
    monkeypatch.delattr(machine.os, "sysconf")
    assert total_memory() is None


def test_rates_are_measured_quickly_and_leave_torch_as_it_was():
    state, threads, begun = torch.get_rng_state(), torch.get_num_threads(), time.perf_counter()
    rates = measure_rates()
    assert time.perf_counter() - begun < 5  # about 0.2 on an idle machine
    assert torch.get_num_threads() == threads
    assert torch.equal(state, torch.get_rng_state())
    assert 1e8 < rates.flops_per_second < 1e15
    assert 1e8 < rates.bytes_per_second < 1e13
    assert 1e6 < rates.masks_per_second < 1e12
    assert 1e-8 < rates.seconds_per_call < 1e-2


def test_it_is_json():
    found = forecast(make_dataset(), rates=RATES)
    assert json.loads(json.dumps(found.to_json()))["rates"]["flops_per_second"] == 1e11


def test_sizes_must_be_positive():
    with pytest.raises(UsageError, match=r"'hidden' must be 1 or more\. Got 0\."):
        ModelSize(hidden=0)
