"""HNHN against dense matrices, with both denominators."""

import numpy as np
import pytest

from tests.models.dense import agree, build, features, incidence, numbers, relu, sample, weighted


@pytest.mark.parametrize("hypergraph", [sample(), weighted()], ids=["plain", "weighted"])
@pytest.mark.parametrize("denominator", ["powered", "plain"])
@pytest.mark.parametrize("layers", [1, 3])
def test_model_equals_the_dense_convolution(hypergraph, denominator, layers):
    model, x = build("hnhn", hidden=4, layers=layers, denominator=denominator), features()
    h, w_e = incidence(hypergraph)
    d, k = (h * w_e).sum(axis=1), h.sum(axis=0)
    d_beta, k_alpha = d**-0.5, k**-1.5
    powered = denominator == "powered"
    inward = np.diag(1 / (h.T @ (d_beta if powered else d))) @ h.T @ np.diag(d_beta)
    outward = np.diag(1 / ((h * w_e) @ (k_alpha if powered else k))) @ (h * w_e) @ np.diag(k_alpha)
    w, z = numbers(model), x.numpy()
    for layer in range(layers):
        e = relu(inward @ (z @ w[f"to_edges.{layer}.weight"].T + w[f"to_edges.{layer}.bias"]))
        z = outward @ (e @ w[f"to_nodes.{layer}.weight"].T + w[f"to_nodes.{layer}.bias"])
        z = relu(z) if layer < layers - 1 else z
    agree(model, hypergraph, x, z)
    if powered:
        np.testing.assert_allclose(inward.sum(axis=1), 1)
        np.testing.assert_allclose(outward.sum(axis=1), 1)
