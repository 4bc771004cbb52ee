"""HyperND against a dense diffusion."""

import numpy as np
import pytest
import torch

from edhnn.errors import DataError
from edhnn.models.baselines.hypernd import HyperNDConfig, diffused
from edhnn.nn.aggregation import symmetric_smoothing
from tests.models.dense import agree, build, features, incidence, mlp, numbers, sample, weighted


def dense_diffusion(x, hypergraph, p, factor=1.0, restart=0.5, steps=100, tolerance=1e-4, mean=False):
    h, w_e = incidence(hypergraph)
    d, k = (h * w_e).sum(axis=1), h.sum(axis=0)

    def mu(z):
        means = (h.T / k[:, None]) @ (d[:, None] ** -0.5 * z) ** p
        return (means / k[:, None] if mean else means) ** (1 / p)

    def lop(z):
        spread = d[:, None] ** -0.5 * ((h * w_e) @ mu(z))
        return spread / d[:, None] if mean else spread

    def scaled(z):
        return z / (2 * np.sqrt((w_e[:, None] * mu(z) ** 2).sum()))

    z = u = scaled(x)
    for _ in range(steps):
        before, z = z, scaled((1 - restart) * factor * lop(z) + restart * u)
        if np.linalg.norm(z - before) / np.linalg.norm(z) < tolerance:
            break
    return z


@pytest.mark.parametrize("hypergraph", [sample(), weighted()], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("options", "reference"),
    [
        ({}, {"p": 1}),
        ({"mean_power": 2.0}, {"p": 2}),
        ({"mean_power": 3.0, "factor": 2.0, "restart": 0.2}, {"p": 3, "factor": 2.0, "restart": 0.2}),
        ({"aggregate": "mean"}, {"p": 1, "mean": True}),
        ({"max_steps": 2}, {"p": 1, "steps": 2}),
    ],
)
def test_model_equals_the_dense_diffusion_and_a_perceptron(hypergraph, options, reference):
    model, x = build("hypernd", **options), features().abs()
    z = dense_diffusion(x.numpy(), hypergraph, **reference)
    agree(model, hypergraph, x, mlp(z, numbers(model), "classifier"))


def test_high_powers_do_not_vanish_in_32_bits():
    x = features().abs() * torch.logspace(0, -5, len(features()))[:, None]
    exact = diffused(x.double(), sample(), HyperNDConfig(mean_power=10.0))
    model = build("hypernd", mean_power=10.0)
    expected = model.double().classifier(exact)
    torch.testing.assert_close(model.float()(x.float(), sample()), expected.float(), rtol=1e-4, atol=1e-5)


def test_with_power_one_the_operator_equals_hgnn():
    config = HyperNDConfig(restart=0.0, max_steps=1)
    x = features()
    once, theta = diffused(x, sample(), config), symmetric_smoothing(x, sample())
    torch.testing.assert_close(once / once.norm(), theta / theta.norm())


def test_rows_can_be_scaled_by_their_largest_entry():
    rows = diffused(features().abs(), sample(), HyperNDConfig(scale_rows=True))
    torch.testing.assert_close(rows.amax(dim=1), torch.ones(len(rows), dtype=rows.dtype))


def test_a_power_mean_of_negative_features_raises():
    with pytest.raises(DataError, match="mean_power of 2.0 needs non-negative features.*`mean_power=1`"):
        build("hypernd", mean_power=2.0)(features(), sample())


@pytest.mark.parametrize("mean_power", [1.0, 0.5, 2.0, 3.0])
def test_features_that_require_a_gradient_get_one(mean_power):
    x = features().abs()
    x = (x * (x > 0.5)).requires_grad_()  # a power or a power mean can have an infinite slope at 0
    build("hypernd", mean_power=mean_power)(x, sample()).sum().backward()
    assert x.grad is not None and x.grad.any() and x.grad.isfinite().all()
