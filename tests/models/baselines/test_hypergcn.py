"""HyperGCN: its graph by a loop over hyperedges, and the convolution on it."""

import numpy as np
import pytest
import torch

from edhnn.hypergraph import Hypergraph
from edhnn.models.baselines.hypergcn import extremes_graph
from tests.models.dense import EDGES, NODES, agree, build, features, numbers, relu, sample


def loop_graph(p, edges, num_nodes, mediators, singletons, weight=None):
    a = np.zeros((num_nodes, num_nodes))
    for e, members in enumerate(edges):
        members = sorted(set(members))
        if len(members) < (1 if singletons else 2):
            continue
        w_e = 1 if weight is None else weight[e]
        values = [p[v] for v in members]
        high, low = members[int(np.argmax(values))], members[int(np.argmin(values))]
        share = w_e / (2 * len(members) - 3 if mediators else len(members))
        pairs = [(high, low)]
        if mediators:
            pairs += [(end, v) for v in members if v not in (high, low) for end in (high, low)]
        for u, v in pairs:
            a[u, v] += share
            a[v, u] += share
    return a


def normalised(a):
    a = a + np.eye(len(a))
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = a.sum(axis=1) ** -0.5
    scale[np.isinf(scale)] = 0
    return scale[:, None] * a * scale


@pytest.mark.parametrize("mediators", [True, False])
@pytest.mark.parametrize("singletons", [True, False])
def test_the_graph_equals_the_loop_over_hyperedges(mediators, singletons):
    p = features()[:, 0]
    p[3] = p[2]  # ties: the first member wins
    weight = torch.rand(len(EDGES), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for hypergraph, w_e in ((sample(), None), (sample(edge_weight=weight), weight.numpy())):
        graph = extremes_graph(p, hypergraph, mediators=mediators, keep_singletons=singletons)
        expected = loop_graph(p.numpy(), EDGES, NODES, mediators, singletons, w_e)
        np.testing.assert_allclose(graph.toarray(), expected, atol=1e-15)


def test_the_graph_of_equal_members():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2]], num_nodes=3)
    graph = extremes_graph(torch.zeros(3), hypergraph, mediators=True)
    np.testing.assert_allclose(graph.toarray(), loop_graph(np.zeros(3), [[0, 1, 2]], 3, True, False))


@pytest.mark.parametrize("mediators", [True, False])
@pytest.mark.parametrize("numbers", [[0.0, np.nan, 1.0, 2.0], [9.0, 1.0, np.nan, 0.5], [0.0, np.nan, np.nan, np.nan]])
def test_nan_is_no_extreme_and_only_members_are_joined(numbers, mediators):
    members = [1, 2, 3]
    hypergraph = Hypergraph.from_hyperedges([members], num_nodes=4)
    graph = extremes_graph(torch.tensor(numbers), hypergraph, mediators=mediators).toarray()
    assert not graph[0].any() and not graph[:, 0].any()
    known = [v for v in members if not np.isnan(numbers[v])]
    high, low = (max(known, key=numbers.__getitem__), min(known, key=numbers.__getitem__)) if known else (1, 1)
    expected = loop_graph([{high: 2.0, low: -2.0}.get(v, 0.0) for v in range(4)], [members], 4, mediators, False)
    np.testing.assert_allclose(graph, expected if known else loop_graph([0.0] * 4, [members], 4, mediators, False))


@pytest.mark.parametrize("mediators", [True, False])
def test_fast_form_equals_the_dense_convolution_with_relu_on_the_logits(mediators):
    model, x = build("hypergcn", layers=3, mediators=mediators), features()
    w = numbers(model)
    a = normalised(loop_graph(x.numpy() @ w["direction_0"][0], EDGES, NODES, mediators, False))
    h = x.numpy()
    for layer in range(3):
        h = relu(a @ h @ w[f"convolutions.{layer}.weight"].T + w[f"convolutions.{layer}.bias"])
    assert (h >= 0).all()
    agree(model, sample(), x, h)


def test_slow_form_makes_a_graph_for_every_layer():
    model, x = build("hypergcn", layers=2, fast=False), features()
    w, h = numbers(model), x.numpy()
    for layer in range(2):
        z = h @ w[f"convolutions.{layer}.weight"].T
        a = normalised(loop_graph(z @ w[f"direction_{layer}"][0], EDGES, NODES, True, False))
        h = relu(a @ z + w[f"convolutions.{layer}.bias"])
    agree(model, sample(), x, h)


def test_released_singletons_give_the_published_nan():
    singleton = Hypergraph.from_hyperedges([[0], [1, 2]], num_nodes=3)
    x = features()[:3]
    assert build("hypergcn", singletons="released")(x, singleton).isnan().any()
    assert build("hypergcn")(x, singleton).isfinite().all()


def test_widths_follow_the_depth():
    model = build("hypergcn", layers=3)
    assert [c.out_features for c in model.convolutions] == [32, 16, 3]
    assert [c.out_features for c in build("hypergcn", layers=2, exponent=4).convolutions] == [64, 3]
