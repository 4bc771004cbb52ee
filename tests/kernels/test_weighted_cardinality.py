"""The weighted cardinality prox: a convex solver, exact arithmetic, its special cases, its metric, its derivatives."""

import warnings
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from edhnn import DataError, kernels
from edhnn.kernels.torch_backend import cardinality as weighted
from tests.kernels import references
from tests.kernels.implementations import both_dtypes
from tests.kernels.strategies import paper_cut_weights, random_case, segments, tensors
from tests.kernels.test_references_agree import assert_close
from tests.potentials.cases import raised

SIZES = [1, 2, 3, 4, 7, 12, 0, 25, 50]
STEPS = [1e-3, 0.03, 1.0, 30.0, 1e3]
both_powers = pytest.mark.parametrize("power", [1, 2])
quick = pytest.mark.usefixtures("without_shape_checks")  # thousands of small calls; the others check their shapes


def falling(sizes, seed=0):
    """Random cut weights that do not rise and sum to 0."""
    rng = np.random.default_rng(seed)
    drawn = [np.sort(rng.normal(size=size))[::-1] for size in sizes]
    return torch.from_numpy(np.concatenate([y - y.mean() for y in drawn if len(y)]))


def stepped(sizes, seed=0):
    """Random, with equal stretches."""
    rng = np.random.default_rng(seed)
    drawn = [np.sort(rng.integers(-1, 3, size=size).astype(float))[::-1] for size in sizes]
    return torch.from_numpy(np.concatenate([y - y.mean() for y in drawn if len(y)]))


def paper(sizes):
    return torch.tensor([y for size in sizes for y in paper_cut_weights(size)], dtype=torch.float64)


def variation(sizes):
    rows = [[1.0] + [0.0] * (size - 2) + [-1.0] if size > 1 else [0.0] * size for size in sizes]
    return torch.tensor([y for row in rows for y in row], dtype=torch.float64)


CUTS = {"paper": paper, "tv": variation, "falling": falling, "stepped": stepped}
every_cut = pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)


def inputs(seed, sizes=SIZES, columns=3, spread=1.0, ties=False):
    """Values, edge_ptr and weights like degrees: spread over orders of magnitude."""
    values, edge_ptr, *_ = random_case(seed, sizes, columns, ties=ties)
    generator = torch.Generator().manual_seed(seed + 100)
    return values, edge_ptr, torch.exp(spread * torch.randn(len(values), generator=generator, dtype=torch.float64))


def equal_steps(sizes, eta):
    return torch.full((len(sizes),), eta, dtype=torch.float64)


def by_clarabel(a, w, y, edge_ptr, eta, power):
    """One column, all hyperedges in one problem, divided by what makes its terms moderate."""
    z = cp.Variable(len(a))
    total = cp.sum_squares(cp.multiply(np.sqrt(w), z - a)) / 2
    for start, stop in pairwise(edge_ptr.tolist()):
        if stop > start:
            part, mine = z[start:stop], y[start:stop]
            falls = mine[:-1] - mine[1:]
            tops = [falls[k] * cp.sum_largest(part, k + 1) for k in range(len(falls)) if falls[k] > 0]
            total = total + eta * raised(sum(tops) + mine[-1] * cp.sum(part), power)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"[\s\S]*too many subexpressions")
        warnings.filterwarnings("ignore", "Solution may be inaccurate")  # it may stop before 1e-13; the test judges
        problem = cp.Problem(cp.Minimize(total / max(1.0, eta)))
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    return z.value


@quick
@both_powers
@every_cut
def test_a_convex_solver_finds_the_same(power, cut):
    sizes = [1, 2, 3, 6, 17, 0, 50]
    y = cut(sizes)
    for number, eta in enumerate(STEPS):
        values, edge_ptr, weight = inputs(number, sizes, 1, ties=number % 2 == 1)
        found = kernels.prox_cardinality(values, edge_ptr, equal_steps(sizes, eta), power, y, weight)[:, 0].numpy()
        expected = by_clarabel(values[:, 0].numpy(), weight.numpy(), y.numpy(), edge_ptr, eta, power)
        assert np.abs(found - expected).max() < 1e-8, eta


@quick
@both_dtypes
@both_powers
@settings(max_examples=15)
@given(segments(largest=5))
def test_exact_arithmetic_finds_the_same(dtype, power, drawn):
    values, edge_ptr, step, weight, cut_weight = tensors(drawn, dtype)
    order = kernels.segment_sort(cut_weight.unsqueeze(1), edge_ptr).squeeze(1)
    y = cut_weight[order]
    if power == 2:  # eighths minus themselves in the opposite order: they fall, and sum to 0 without rounding
        parts = [part - part.flip(0) for part in y.split(edge_ptr.diff().tolist())]
        y = torch.cat([*parts, y[:0]])
    found = kernels.prox_cardinality(values, edge_ptr, step, power, y, weight)
    reference = references.weighted_cardinality(power)
    expected = references.over_segments(reference, values, edge_ptr, references.PerEdge(step), y, weight)
    assert_close(found, expected, edge_ptr, values, extra=1e3 * step.double() if power == 1 else None)


@quick
@both_powers
@every_cut
def test_special_cases(power, cut):
    steps = [0.0, *STEPS, 1e20]
    sizes, step = SIZES * len(steps), torch.tensor(steps, dtype=torch.float64).repeat_interleave(len(SIZES))
    values, edge_ptr, weight = inputs(1, sizes, spread=2.0)
    y = cut(sizes)
    same = torch.full_like(weight, 4.0)  # in an equally weighted metric the step is divided
    found = kernels.prox_cardinality(values, edge_ptr, step, power, y, same)
    plain = kernels.prox_cardinality(values, edge_ptr, step / 4, power, y)
    torch.testing.assert_close(found, plain, rtol=1e-12, atol=1e-11)
    found = kernels.prox_cardinality(values, edge_ptr, step, power, y, weight)
    if cut is variation:
        clipped = kernels.prox_total_variation(values, edge_ptr, step, power, weight)
        torch.testing.assert_close(found, clipped, rtol=1e-12, atol=1e-11)
    assert torch.equal(found[: sum(SIZES)], values[: sum(SIZES)])  # the step is 0
    edge = torch.arange(len(sizes)).repeat_interleave(edge_ptr.diff())
    pull = torch.zeros(len(sizes), 3).double().index_add(0, edge, weight.unsqueeze(1) * (found - values))
    assert pull.abs().max() < 1e-10  # the sum of y is 0


@quick
@both_powers
@every_cut
def test_the_metric_the_translations_and_the_order_of_rows(power, cut):
    sizes, step = SIZES * 3, torch.tensor([0.1, 1.0, 20.0], dtype=torch.float64).repeat_interleave(len(SIZES))
    a, edge_ptr, weight = inputs(2, sizes, spread=2.0)
    y = cut(sizes)
    found = kernels.prox_cardinality(a, edge_ptr, step, power, y, weight)
    other = inputs(3, sizes)[0]
    points = torch.cat([a + 7, other, a + 0.01 * other, a.round()], 1)
    shifted, *others = kernels.prox_cardinality(points, edge_ptr, step, power, y, weight).split(3, 1)
    torch.testing.assert_close(shifted, found + 7, rtol=1e-12, atol=1e-11)
    for b, there in zip(points.split(3, 1)[1:], others, strict=True):
        far, near = (weight.unsqueeze(1) * apart.square() for apart in (a - b, found - there))
        edge = torch.arange(len(sizes)).repeat_interleave(edge_ptr.diff())
        before, after = (torch.zeros(len(sizes), 3).double().index_add(0, edge, part) for part in (far, near))
        assert (after <= before * (1 + 1e-10) + 1e-20).all()
    rng = np.random.default_rng(0)
    shuffle = torch.from_numpy(np.concatenate([s + rng.permutation(t - s) for s, t in pairwise(edge_ptr.tolist())]))
    moved = kernels.prox_cardinality(a[shuffle], edge_ptr, step, power, y, weight[shuffle])
    torch.testing.assert_close(moved, found[shuffle], rtol=1e-12, atol=1e-11)


def test_weights_can_turn_the_order_round():
    """A light member above a heavy one is pulled below it: sorting and pooling would hold both at one level."""
    values = torch.tensor([[1.0], [0.9], [-1.0]], dtype=torch.float64)
    weight, y = torch.tensor([0.1, 10.0, 1.0]).double(), torch.tensor([1.0, 1.0, -2.0]).double()
    found = kernels.prox_cardinality(values, torch.tensor([0, 3]), torch.ones(1).double() * 0.04, 1, y, weight)
    torch.testing.assert_close(found[:, 0], torch.tensor([0.6, 0.896, -0.92], dtype=torch.float64))


@both_powers
def test_geometric_values_need_many_rounds_and_get_them(power):
    size = 60
    values = (0.5 ** torch.arange(size, dtype=torch.float64)).unsqueeze(1)
    weight = torch.linspace(0.5, 2.0, size, dtype=torch.float64)
    step, edge_ptr = equal_steps([size], 1e-12), torch.tensor([0, size])
    found = kernels.prox_cardinality(values, edge_ptr, step, power, variation([size]), weight)
    torch.testing.assert_close(found, kernels.prox_total_variation(values, edge_ptr, step, power, weight))


@quick
def test_rounds_are_few(monkeypatch):
    sizes = [3] * 50 + [8] * 50 + [40] * 20
    values, edge_ptr, weight = inputs(4, sizes, 2, spread=2.0)
    one_round, counted = weighted._round, []
    monkeypatch.setattr(weighted, "_round", lambda *given: counted.append(1) or one_round(*given))
    for power, most in ((1, 60), (2, 400)):
        for eta in (0.03, 30.0):
            counted.clear()
            kernels.prox_cardinality(values, edge_ptr, equal_steps(sizes, eta), power, falling(sizes), weight)
            assert len(counted) <= most


@quick
@both_powers
@pytest.mark.parametrize("cut", [paper, falling])
def test_derivatives(power, cut):
    sizes = [3, 1, 4]
    values, edge_ptr, weight = inputs(5, sizes, 1)
    step = 0.7 * (0.5 + torch.rand(3, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    y, lean = cut(sizes), torch.tensor([1.0, 0, -1, 0, 2, 1, 0, -3], dtype=torch.float64)

    def prox(a, eta, w, tilt):  # y stays falling and keeps its sum
        return kernels.prox_cardinality(a, edge_ptr, eta, power, y + tilt * lean, w)

    tilt = torch.tensor(0.1, dtype=torch.float64)
    arguments = tuple(part.requires_grad_() for part in (values, step, weight, tilt))
    assert torch.autograd.gradcheck(prox, arguments)


def test_cut_weights_that_are_not_convex_are_refused():
    values, edge_ptr, weight = inputs(6, [2, 3], 1)
    step = equal_steps([2, 3], 1.0)
    rising, lopsided = torch.tensor([1.0, -1, 1, -2, 1]).double(), torch.tensor([1.0, -1, 2, 0, -1]).double()
    for power in (1, 2):
        with pytest.raises(DataError, match="must not rise.* That of hyperedge 1"):
            kernels.prox_cardinality(values, edge_ptr, step, power, rising, weight)
    with pytest.raises(DataError, match="must sum to 0: .* That of hyperedge 1"):
        kernels.prox_cardinality(values, edge_ptr, step, 2, lopsided, weight)
    kernels.prox_cardinality(values, edge_ptr, step, 1, lopsided, weight)
    with pytest.raises(DataError, match="'weight' must be positive"):
        kernels.prox_cardinality(values, edge_ptr, step, 1, lopsided, -weight)
