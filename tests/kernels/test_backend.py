"""Which implementation runs, how one is forced, and how the command reports it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.autograd import forward_ad

from edhnn import DataError, Hypergraph, UsageError, kernels, make_model
from edhnn.kernels import backend, library, native_backend
from tests.kernels.implementations import needs_native
from tests.kernels.strategies import random_case


@pytest.fixture
def free(monkeypatch):
    """Reset the chosen implementation."""
    monkeypatch.delenv("EDHNN_KERNELS", raising=False)
    monkeypatch.setattr(backend, "_active", None)


@pytest.fixture
def not_built(monkeypatch, free):
    monkeypatch.setattr(native_backend, "BUILT", False)


@needs_native
def test_native_runs_where_it_can(free):
    assert kernels.active() == "native"
    values = random_case(0, [2, 3], 2)[0]
    assert backend.use_native(values)
    assert backend.use_native(values.float(), None)
    assert not backend.use_native(values.half())
    assert not backend.use_native(values.to("meta"))


@needs_native
def test_a_gradient_is_served_by_torch(free):
    values, edge_ptr, step, *_ = random_case(0, [2, 3], 2)
    assert backend.use_native(values.clone().requires_grad_())
    assert not backend.use_native(values.clone().requires_grad_(), has_gradient=False)
    assert not backend.use_native(values, step.clone().requires_grad_(), has_gradient=False)
    assert kernels.prox_total_variation(values, edge_ptr, step.clone().requires_grad_(), 2).requires_grad
    with torch.no_grad():
        assert backend.use_native(values.clone().requires_grad_(), has_gradient=False)
    assert kernels.segment_sort(values.clone().requires_grad_(), edge_ptr).dtype == torch.int64


def test_forward_mode_derivatives_are_not_lost(free):
    values, edge_ptr, step, *_ = random_case(0, [2, 3], 2)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(values, torch.ones_like(values))
        moved = forward_ad.unpack_dual(kernels.prox_total_variation(dual, edge_ptr, step, 2)).tangent
    torch.testing.assert_close(moved, torch.ones_like(values))  # a translation passes through


def test_forward_mode_derivatives_of_network_kernels(free):
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], []], num_nodes=5)
    generator = torch.Generator().manual_seed(0)
    x, tangent = (torch.randn(5, 3, dtype=torch.float64, generator=generator) for _ in range(2))
    weight, moved_weight = (torch.rand(5, dtype=torch.float64, generator=generator) for _ in range(2))
    links = kernels.edge_links(hypergraph)
    with forward_ad.dual_level():
        dual, dual_weight = forward_ad.make_dual(x, tangent), forward_ad.make_dual(weight, moved_weight)
        moved = forward_ad.unpack_dual(kernels.gather_sum(dual, links)).tangent
        both = forward_ad.unpack_dual(kernels.gather_sum(dual, links, dual_weight)).tangent
    torch.testing.assert_close(moved, kernels.gather_sum(tangent, links))
    expected = kernels.gather_sum(tangent, links, weight) + kernels.gather_sum(x, links, moved_weight)
    torch.testing.assert_close(both, expected)


def test_forward_mode_derivatives_of_a_network(free):
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3]], num_nodes=4)
    model = make_model("ed-hnn", in_features=3, num_classes=2, hidden=4).double().eval()
    generator = torch.Generator().manual_seed(0)
    x, tangent = (torch.randn(4, 3, dtype=torch.float64, generator=generator) for _ in range(2))
    with forward_ad.dual_level():
        moved = forward_ad.unpack_dual(model(forward_ad.make_dual(x, tangent), hypergraph)).tangent
    step = 1e-6
    expected = (model(x + step * tangent, hypergraph) - model(x - step * tangent, hypergraph)) / (2 * step)
    torch.testing.assert_close(moved, expected, rtol=1e-5, atol=1e-7)


@needs_native
@pytest.mark.parametrize("choice", ["torch", "native"])
def test_the_environment_forces_one(monkeypatch, free, choice):
    monkeypatch.setenv("EDHNN_KERNELS", choice)
    assert kernels.active() == choice
    called = []
    monkeypatch.setattr(
        native_backend, "segment_sort", lambda values, edge_ptr: called.append(1) or edge_ptr.new_empty(values.shape)
    )
    kernels.segment_sort(torch.zeros(2, 1), torch.tensor([0, 2]))
    assert bool(called) == (choice == "native")


@needs_native
def test_a_choice_holds_until_the_next_one(monkeypatch, free):
    assert kernels.choose("torch") is None
    assert kernels.active() == "torch"
    monkeypatch.setenv("EDHNN_KERNELS", "native")
    assert kernels.active() == "torch", "the environment is read once"
    assert kernels.choose(None) == "torch"
    assert kernels.active() == "native"
    with pytest.raises(UsageError, match="must be one of torch, native"):
        kernels.choose("naitve")


def test_bounds_of_segments_are_read_again_after_a_change_in_place():
    values, edge_ptr = torch.ones(5, 2), torch.tensor([0, 2, 5])
    kernels.segment_sort(values, edge_ptr)
    with pytest.raises(DataError, match="number of rows, 4"):
        kernels.segment_sort(values[1:], edge_ptr)
    edge_ptr[1] = 9
    with pytest.raises(DataError, match="falling in between"):
        kernels.segment_sort(values, edge_ptr)


def test_without_the_library_torch_serves(not_built):
    assert not kernels.native_available()
    assert kernels.active() == "torch"
    found = kernels.segment_sort(torch.tensor([[1.0], [2.0]]), torch.tensor([0, 2]))
    assert found.flatten().tolist() == [1, 0]


def test_asking_for_a_library_that_is_not_built_says_how_to_build_it(not_built, monkeypatch):
    monkeypatch.setenv("EDHNN_KERNELS", "native")
    with pytest.raises(UsageError, match=r"not built here. Install a C\+\+17 compiler.*pip install -e"):
        kernels.segment_sort(torch.zeros(2, 1), torch.tensor([0, 2]))


def test_unknown_choices_are_refused(monkeypatch, free):
    monkeypatch.setenv("EDHNN_KERNELS", "naitve")
    with pytest.raises(UsageError, match="must be one of torch, native. Got 'naitve'.*Did you mean 'native'"):
        kernels.active()


@needs_native
def test_a_library_of_another_version_is_not_used(monkeypatch):
    monkeypatch.setattr(library, "ABI", -1)
    assert library.load() is None


@needs_native
def test_memory_that_cannot_be_had_is_an_error_not_a_crash(monkeypatch):
    monkeypatch.setitem(native_backend._FUNCTIONS, ("segment_sort", torch.float32), lambda *arguments: 1)
    with pytest.raises(MemoryError, match="segment_sort"):
        native_backend.segment_sort(torch.zeros(2, 1), torch.tensor([0, 2]))


def test_the_command_says_which_runs():
    command = [Path(sys.executable).with_name("edhnn"), "--version"]
    environment = {**os.environ, "EDHNN_KERNELS": "torch"}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120).stdout.splitlines()
    assert said[0].startswith("edhnn 0.")
    assert said[1].startswith("kernels: torch")
