"""Node potentials against their definitions, numeric minimisation and numeric suprema."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from edhnn import DataError, SquaredDistance
from edhnn.potentials import FixedLabels, Logistic

N = 6
MU = torch.tensor([[0.3], [1.0], [2.0], [0.7], [5.0], [1.0]], dtype=torch.float64)
LABELS = torch.tensor([[1.0], [-1.0], [0.0], [1.0], [-1.0], [0.0]], dtype=torch.float64)
KNOWN = torch.tensor([True, False, True, True, False, True])
POINTS = torch.tensor([[0.3], [-2.0], [1.7], [4.0], [0.1], [-0.6]], dtype=torch.float64)
ETA = torch.tensor([[0.1], [1.0], [3.0], [20.0], [0.5], [7.0]], dtype=torch.float64)
SMOOTH = [
    pytest.param(SquaredDistance(), lambda h, x, v: (h - x) ** 2, id="squared"),
    pytest.param(SquaredDistance(weight=MU), lambda h, x, v: float(MU[v]) * (h - x) ** 2, id="squared-weighted"),
    pytest.param(Logistic(), lambda h, x, v: np.logaddexp(0, -x * h) if x else 0.0, id="logistic"),
]


@pytest.mark.parametrize(("potential", "naive"), SMOOTH)
def test_value_and_grad(potential, naive):
    value = potential.value(POINTS, LABELS)
    expected = [[naive(float(h), float(x), v)] for v, (h, x) in enumerate(zip(POINTS, LABELS, strict=True))]
    torch.testing.assert_close(value, torch.tensor(expected, dtype=torch.float64), rtol=1e-13, atol=1e-13)
    delta = 1e-6
    difference = (potential.value(POINTS + delta, LABELS) - potential.value(POINTS - delta, LABELS)) / (2 * delta)
    torch.testing.assert_close(potential.grad(POINTS, LABELS), difference, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("potential", "naive"), SMOOTH)
def test_prox_is_the_minimiser(potential, naive):
    z = potential.prox(POINTS, LABELS, ETA)
    stationary = ETA * potential.grad(z, LABELS) + z - POINTS  # strong convexity: this bounds the error
    assert float(stationary.abs().max()) < 1e-12
    for v in range(N):
        a, x, eta = float(POINTS[v]), float(LABELS[v]), float(ETA[v])

        def objective(t, a=a, x=x, eta=eta, v=v):
            return eta * naive(t, x, v) + (t - a) ** 2 / 2

        found = minimize_scalar(objective, bounds=(-30, 30), method="bounded")
        assert float(z[v]) == pytest.approx(found.x, abs=1e-4)


def test_prox_of_the_logistic_potential_far_from_its_root():
    a, x, eta = (
        part.reshape(-1, 1)
        for part in torch.meshgrid(
            torch.tensor([-1e5, -100.0, -5.0, -3.0, 0.0, 2.0, 50.0], dtype=torch.float64),
            torch.tensor([-1.0, 1.0], dtype=torch.float64),
            torch.tensor([1e-3, 1.0, 16.0, 20.0, 100.0, 150.0, 1e6, 1e12], dtype=torch.float64),
            indexing="ij",
        )
    )
    z = Logistic().prox(a, x, eta)
    low, high = torch.minimum(a, a + eta * x), torch.maximum(a, a + eta * x)
    for _ in range(200):  # the reference uses bisection only
        middle = (low + high) / 2
        right = middle - a - eta * x * torch.sigmoid(-x * middle) < 0
        low, high = torch.where(right, middle, low), torch.where(right, high, middle)
    torch.testing.assert_close(z, (low + high) / 2, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("without_shape_checks")
def test_weights_and_labels_of_wrong_shape_raise_an_error():
    with pytest.raises(DataError, match=r"shape \[N, 1\]. Got \[6\]"):
        SquaredDistance(weight=MU[:, 0])
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(DataError, match="positive and finite. Got .* at node 1"):
            SquaredDistance(weight=torch.tensor([[1.0], [bad]]))
    with pytest.raises(DataError, match="vector of booleans"):
        FixedLabels(KNOWN[:, None])
    for potential in (SquaredDistance(weight=MU[:1]), FixedLabels(KNOWN[:1])):
        with pytest.raises(DataError, match="as nodes, 6. Got 1"):
            potential.prox(POINTS, LABELS, ETA)


@pytest.mark.parametrize(("potential", "naive"), SMOOTH)
def test_conjugate_is_the_supremum(potential, naive):
    slopes = torch.tensor([[-0.4], [0.9], [0.0], [-0.7], [0.01], [0.0]], dtype=torch.float64)
    conjugate = potential.conjugate(slopes, LABELS)
    for v in range(N):
        x, r = float(LABELS[v]), float(slopes[v])

        def below(t, x=x, r=r, v=v):
            return naive(t, x, v) - r * t

        found = minimize_scalar(below, bounds=(-60, 60), method="bounded")
        assert float(conjugate[v]) == pytest.approx(-found.fun, abs=1e-8)
    young = potential.conjugate(potential.grad(POINTS, LABELS), LABELS)  # equality at a gradient
    expected = potential.grad(POINTS, LABELS) * POINTS - potential.value(POINTS, LABELS)
    torch.testing.assert_close(young, expected, rtol=1e-10, atol=1e-12)


def test_the_conjugate_is_infinite_outside_its_domain():
    x = torch.tensor([[1.0], [1.0], [-1.0], [0.0]], dtype=torch.float64)
    r = torch.tensor([[0.5], [-1.5], [-0.1], [0.1]], dtype=torch.float64)
    assert Logistic().conjugate(r, x).isinf().all()
    edge = Logistic().conjugate(torch.tensor([[0.0], [-1.0], [1.0], [0.0]], dtype=torch.float64), x)
    assert edge.tolist() == [[0.0]] * 4


def test_fixed_labels():
    potential = FixedLabels(KNOWN)
    moved = potential.prox(POINTS, LABELS, ETA)
    assert torch.equal(moved, torch.where(KNOWN[:, None], LABELS, POINTS))
    assert potential.value(moved, LABELS).tolist() == [[0.0]] * N
    assert potential.value(moved + 1, LABELS)[:, 0].isinf().tolist() == KNOWN.tolist()
    assert potential.grad(POINTS, LABELS).abs().sum() == 0
    slopes = torch.tensor([[2.0], [0.0], [1.0], [0.0], [0.5], [-1.0]], dtype=torch.float64)
    assert potential.conjugate(slopes, LABELS)[:, 0].tolist() == [2.0, 0.0, 0.0, 0.0, float("inf"), 0.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_prox_with_an_infinite_step_as_for_an_isolated_node(dtype):
    infinite = torch.full((N, 1), torch.inf, dtype=dtype)
    x, a = LABELS.to(dtype), POINTS.to(dtype)
    assert torch.equal(SquaredDistance().prox(a, x, infinite), x)
    assert torch.equal(FixedLabels(KNOWN).prox(a, x, infinite)[KNOWN], x[KNOWN])
    z = Logistic().prox(a, x, infinite)
    assert z.isfinite().all()
    assert torch.equal(z[x == 0], a[x == 0])
    assert float(Logistic().value(z, x).max()) < 1e-9
