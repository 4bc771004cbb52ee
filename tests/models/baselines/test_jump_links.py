"""The two models with jump links, in both forms, against dense matrices."""

import numpy as np
import pytest

from tests.models.dense import agree, build, elu, features, incidence, mlp, numbers, relu, sample, weighted

BOTH = pytest.mark.parametrize("hypergraph", [sample(), weighted()], ids=["plain", "weighted"])


def jumped(s, h, first, jump):
    return 0.75 * s + 0.25 * first if jump == "mix" else np.concatenate([h, s], axis=1)


@BOTH
@pytest.mark.parametrize("jump", ["mix", "join"])
@pytest.mark.parametrize("smoothing", ["symmetric", "row"])
def test_hgnn(hypergraph, jump, smoothing):
    options = {"hidden": 4, "layers": 2, "jump": jump, "smoothing": smoothing, "restart": 0.25}
    model, x = build("hgnn-jumplink", **options), features()
    inc, w_e = incidence(hypergraph)
    d, k = (inc * w_e).sum(axis=1), inc.sum(axis=0)
    left, right = (d**-0.5, d**-0.5) if smoothing == "symmetric" else (1 / d, np.ones_like(d))
    theta = np.diag(left) @ inc @ np.diag(w_e / k) @ inc.T @ np.diag(right)
    w = numbers(model)
    h = first = relu(x.numpy() @ w["encoder.linear.weight"].T + w["encoder.linear.bias"])
    for layer in range(2):
        z = jumped(theta @ h, h, first, jump)
        h = elu(z @ w[f"convolutions.{layer}.weight"].T + w[f"convolutions.{layer}.bias"])
    agree(model, hypergraph, x, h @ w["classifier.weight"].T + w["classifier.bias"])


@BOTH
@pytest.mark.parametrize("jump", ["mix", "join"])
def test_alldeepsets(hypergraph, jump):
    model, x = build("alldeepsets-jumplink", hidden=4, layers=2, jump=jump, restart=0.25), features()
    inc, w_e = incidence(hypergraph)
    w = numbers(model)
    h = first = relu(x.numpy() @ w["encoder.linear.weight"].T + w["encoder.linear.bias"])
    for half in (0, 2):
        y = relu(mlp(inc.T @ relu(mlp(h, w, f"encoders.{half}")), w, f"decoders.{half}"))
        s = (inc * w_e) @ relu(mlp(y, w, f"encoders.{half + 1}"))
        h = relu(mlp(jumped(s, h, first, jump), w, f"decoders.{half + 1}"))
    agree(model, hypergraph, x, mlp(h, w, "classifier"))
