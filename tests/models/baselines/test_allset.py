"""AllDeepSets and AllSetTransformer against dense matrices and loops."""

import numpy as np
import pytest

from tests.models.dense import (
    agree,
    build,
    features,
    incidence,
    layer_norm,
    leaky,
    mlp,
    numbers,
    relu,
    sample,
    weighted,
)

BOTH = pytest.mark.parametrize("hypergraph", [sample(), weighted()], ids=["plain", "weighted"])


@BOTH
@pytest.mark.parametrize("options", [{}, {"layers": 2, "mlp_layers": 1}, {"norm": "none"}, {"degree_scaled": True}])
def test_alldeepsets(hypergraph, options):
    model, x = build("alldeepsets", hidden=4, classifier_layers=2, classifier_hidden=5, **options), features()
    h, w_e = incidence(hypergraph)
    d, k = (h * w_e).sum(axis=1), h.sum(axis=0)
    scale = np.outer(d**-0.5, k**-0.5) if options.get("degree_scaled") else 1
    w, z = numbers(model), x.numpy()
    for half in range(2 * options.get("layers", 1)):
        u = relu(mlp(z, w, f"encoders.{half}" + ("" if half else ".mlp")))
        mix = (h * scale).T if half % 2 == 0 else h * w_e * scale
        z = relu(mlp(mix @ u, w, f"decoders.{half}"))
    agree(model, hypergraph, x, mlp(z, w, "classifier"))


def pooled(z, w, prefix, weight, heads):
    """Pool one set at a time; weight[r, s] is the weight of s in the set of r."""
    keys = (z @ w[f"{prefix}.key"].T + w[f"{prefix}.key_bias"]).reshape(len(z), heads, -1)
    values = (z @ w[f"{prefix}.value"].T + w[f"{prefix}.value_bias"]).reshape(len(z), heads, -1)
    theta = w[f"{prefix}.seed_vector"]
    out = np.tile(theta[None], (len(weight), 1, 1))
    for r, row in enumerate(weight):
        of = np.flatnonzero(row)
        for a in range(heads if len(of) else 0):
            share = row[of] * np.exp(leaky(keys[of, a] @ theta[a]))
            out[r, a] += share @ values[of, a] / share.sum()
    y = layer_norm(out.reshape(len(weight), -1), w[f"{prefix}.norm_0.weight"], w[f"{prefix}.norm_0.bias"])
    y = y + relu(mlp(y, w, f"{prefix}.feed_forward"))
    return layer_norm(y, w[f"{prefix}.norm_1.weight"], w[f"{prefix}.norm_1.bias"])


@BOTH
@pytest.mark.parametrize(("heads", "layers"), [(1, 1), (4, 1), (2, 2)])
def test_allsettransformer(hypergraph, heads, layers):
    model, x = build("allsettransformer", hidden=8, heads=heads, layers=layers), features()
    h, w_e = incidence(hypergraph)
    w, z = numbers(model), x.numpy()
    for half in range(2 * layers):
        z = relu(pooled(z, w, f"poolings.{half}", h.T if half % 2 == 0 else h * w_e, heads))
    agree(model, hypergraph, x, mlp(z, w, "classifier"))
