"""UniGCN, UniGIN, UniSAGE, UniGAT and UniGCNII against dense matrices and loops."""

import math

import numpy as np
import pytest

from tests.models.dense import (
    NODES,
    agree,
    build,
    features,
    incidence,
    leaky,
    numbers,
    relu,
    sample,
    weighted,
)

BOTH = pytest.mark.parametrize("hypergraph", [sample(), weighted()], ids=["plain", "weighted"])


def parts(hypergraph, aggregate="mean"):
    """Return the maps V->E and E->V, the degrees, and their aggregates in hyperedges."""
    h, w_e = incidence(hypergraph)
    inward = h.T / h.sum(axis=0)[:, None] if aggregate == "mean" else h.T
    outward = h * w_e
    d = outward.sum(axis=1)
    return inward, outward, d, inward @ d


def unit(s):
    length = np.linalg.norm(s, axis=1, keepdims=True)
    return s / np.where(length > 0, length, 1)


def unigcn(x, hypergraph, aggregate):
    inward, outward, d, d_e = parts(hypergraph, aggregate)
    return np.diag(d**-0.5) @ outward @ np.diag(d_e**-0.5) @ inward @ x


@BOTH
@pytest.mark.parametrize("aggregate", ["mean", "sum"])
@pytest.mark.parametrize("scaled", [False, True])
def test_unigcn(hypergraph, aggregate, scaled):
    model, x = build("unigcn", hidden=2, heads=2, aggregate=aggregate, unit_rows=scaled), features()
    w, h = numbers(model), x.numpy()
    for layer in range(2):
        h = unigcn((relu(h) if layer else h) @ w[f"projections.{layer}.weight"].T, hypergraph, aggregate)
        h = unit(h) if scaled else h
    agree(model, hypergraph, x, h)


def test_unigcn2_mixes_before_projecting():
    model, x = build("unigcn", hidden=2, heads=2, project_first=False, unit_rows=True), features()
    w, h = numbers(model), x.numpy()
    for layer in range(2):
        mixed = unit(unigcn(relu(h) if layer else h, sample(), "mean"))
        h = mixed @ w[f"projections.{layer}.weight"].T + w[f"projections.{layer}.bias"]
    agree(model, sample(), x, h)


@BOTH
def test_unigin(hypergraph):
    model, x = build("unigin", hidden=2, heads=2), features()
    inward, outward, _, _ = parts(hypergraph)
    w, h = numbers(model), x.numpy()
    for layer in range(2):
        z = (relu(h) if layer else h) @ w[f"projections.{layer}.weight"].T
        h = (1 + w[f"extras.{layer}.0"]) * z + outward @ inward @ z
    agree(model, hypergraph, x, h)


@BOTH
@pytest.mark.parametrize("at_nodes", ["sum", "mean"])
def test_unisage(hypergraph, at_nodes):
    model, x = build("unisage", hidden=2, heads=2, node_aggregate=at_nodes), features()
    inward, outward, d, _ = parts(hypergraph)
    outward = outward / d[:, None] if at_nodes == "mean" else outward
    w, h = numbers(model), x.numpy()
    for layer in range(2):
        z = (relu(h) if layer else h) @ w[f"projections.{layer}.weight"].T
        h = z + outward @ inward @ z
    agree(model, hypergraph, x, h)


@BOTH
@pytest.mark.parametrize("scores", ["hyperedge", "pair"])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_unigat(hypergraph, scores, skip, unit):
    model, x = build("unigat", hidden=3, heads=2, scores=scores, skip=skip, unit_rows=unit), features()
    inward, outward, _, _ = parts(hypergraph)
    w, h = numbers(model), x.numpy()
    for layer, heads in enumerate((2, 1)):
        z = ((relu(h) if layer else h) @ w[f"projections.{layer}.weight"].T).reshape(NODES, heads, -1)
        y = np.einsum("ev,vac->eac", inward, z)
        out = np.zeros_like(z)
        for a in range(heads):
            for v in range(NODES):
                node_score = w[f"extras.{layer}.1"][a] @ z[v, a] if scores == "pair" else 0
                of = np.flatnonzero(outward[v])
                share = outward[v, of] * np.exp(leaky(y[of, a] @ w[f"extras.{layer}.0"][a] + node_score))
                out[v, a] = share @ y[of, a] / share.sum()
        h = out.reshape(NODES, -1)
        h = h / np.linalg.norm(h, axis=1, keepdims=True) if unit else h
        h = h + z.reshape(NODES, -1) if skip else h  # the projection is added after the scaling
    agree(model, hypergraph, x, h)


@BOTH
@pytest.mark.parametrize("smoothing", ["degree", "mean"])
@pytest.mark.parametrize("scaled", [False, True])
def test_unigcnii(hypergraph, smoothing, scaled):
    model, x = build("unigcnii", hidden=2, heads=2, layers=3, smoothing=smoothing, unit_rows=scaled), features()
    inward, outward, d, _ = parts(hypergraph)
    w = numbers(model)
    h = first = relu(x.numpy() @ w["encoder.linear.weight"].T + w["encoder.linear.bias"])
    for layer in range(3):
        s = unigcn(h, hypergraph, "mean") if smoothing == "degree" else outward @ inward @ h / d[:, None]
        z = 0.9 * (unit(s) if scaled else s) + 0.1 * first
        beta = math.log(0.5 / (layer + 1) + 1)
        h = relu((1 - beta) * z + beta * z @ w[f"maps.{layer}.weight"].T)
    agree(model, hypergraph, x, h @ w["classifier.weight"].T + w["classifier.bias"])


def test_unigcnii_groups_its_parameters_for_the_optimiser():
    model = build("unigcnii", hidden=4, layers=2)
    inside, ends = model.parameter_groups()
    assert (inside["weight_decay"], ends["weight_decay"]) == (0.01, 5e-4)
    grouped = [id(p) for group in (inside, ends) for p in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters())
