"""Derivatives of the torch kernels, at points where the answer is smooth, against central differences."""

import pytest
import torch

from edhnn import kernels
from tests.kernels.strategies import paper_cut_weights, random_case

SIZES = [2, 0, 1, 5]
BUDGETS = [0.05, 0.7, 30.0]
"""Steps for which levels are apart, blocks are partly pooled, and everything is constant."""

quick = pytest.mark.usefixtures("without_shape_checks")  # thousands of small calls


def inputs(seed, scale):
    values, edge_ptr, step, weight, cut_weight = random_case(seed, SIZES, 2)
    return values, edge_ptr, scale * (0.5 + torch.rand_like(step)), weight, cut_weight


def check(function, *arguments):
    assert torch.autograd.gradcheck(function, tuple(part.requires_grad_() for part in arguments))


@pytest.mark.parametrize("per_entry", [False, True])
def test_pav(per_entry):
    values, edge_ptr, _, weight, _ = inputs(0, 1.0)
    weight = weight.unsqueeze(1) * torch.tensor([1.0, 2.0], dtype=torch.float64) if per_entry else weight
    check(lambda s, w: kernels.segment_pav(s, edge_ptr, w), values, weight)


@quick
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("scale", BUDGETS)
def test_total_variation(power, scale):
    values, edge_ptr, step, weight, _ = inputs(1, scale)
    check(lambda a, eta, w: kernels.prox_total_variation(a, edge_ptr, eta, power, w), values, step, weight)


@quick
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("scale", BUDGETS)
@pytest.mark.parametrize("paper", [False, True])
def test_cardinality(power, scale, paper):
    values, edge_ptr, step, _, cut_weight = inputs(2, scale)
    if paper:
        cut_weight = torch.tensor([y for size in SIZES for y in paper_cut_weights(size)], dtype=torch.float64)
    check(lambda a, eta, y: kernels.prox_cardinality(a, edge_ptr, eta, power, y), values, step, cut_weight)


def test_gradients_are_finite_at_ties_and_zero_steps():
    values = torch.tensor([[1.0], [1.0], [0.0], [2.0], [2.0]], requires_grad=True)
    step = torch.zeros(2, requires_grad=True)
    weight, cut_weight = torch.ones(5, requires_grad=True), torch.ones(5, requires_grad=True)
    edge_ptr = torch.tensor([0, 3, 5])
    for power in (1, 2):
        found = kernels.prox_total_variation(values, edge_ptr, step, power, weight)
        found = found + kernels.prox_cardinality(values, edge_ptr, step, power, cut_weight)
        for gradient in torch.autograd.grad(found.sum(), (values, step, weight, cut_weight)):
            assert gradient.isfinite().all()


def test_empty_inputs_keep_the_graph():
    values = torch.zeros(0, 2, requires_grad=True)
    kernels.segment_pav(values, torch.tensor([0])).sum().backward()
    assert values.grad is not None


def test_single_precision_gradients_come_back_in_single_precision():
    values, edge_ptr, step, *_ = inputs(3, 1.0)
    values = values.float().requires_grad_()
    kernels.prox_total_variation(values, edge_ptr, step, 2).square().sum().backward()
    assert values.grad.dtype == torch.float32
