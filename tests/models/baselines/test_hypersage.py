"""HyperSAGE against a loop over hyperedges and members."""

import numpy as np
import pytest
import torch

from edhnn.hypergraph.transforms import disjoint_copies
from edhnn.models.baselines.hypersage import draw_neighbours, neighbour_means
from tests.models.dense import EDGES, NODES, agree, build, features, numbers, relu, sample


def loop_layer(s, p, weight):
    s = np.clip(s, 1e-7, 10)
    out = s.copy()
    for e, members in enumerate(EDGES):
        for v in members if len(members) > 1 else []:
            others = [u for u in members if u != v]
            out[v] += weight[e] * (sum(s[u] ** p for u in others) / len(others)) ** (1 / p)
    return out / out.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("p", [1.0, 2.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_model_equals_the_loop_over_hyperedges(p, weighted):
    weight = torch.arange(1, len(EDGES) + 1, dtype=torch.float64)
    hypergraph = sample(edge_weight=weight) if weighted else sample()
    model, x = build("hypersage", mean_power=p, hidden=4), features()
    w, h = numbers(model), x.numpy()
    for layer in range(2):
        mixed = loop_layer(relu(h) if layer else h, p, weight.numpy() if weighted else np.ones(len(EDGES)))
        h = mixed @ w[f"projections.{layer}.weight"].T + w[f"projections.{layer}.bias"]
    agree(model, hypergraph, x, h)
    assert (x < 0).any()  # the features are not overwritten


def test_sampling_draws_the_given_number_of_neighbours_and_keeps_the_divisor():
    hypergraph, count = sample(), 2
    rows, links = draw_neighbours(hypergraph, count, torch.Generator().manual_seed(0))
    sizes = hypergraph.edge_size[hypergraph.edge_index]
    assert rows.tolist() == (sizes - 1 > count).nonzero()[:, 0].tolist()
    drawn = links.row_column.view(len(rows), count)
    for row, nodes in zip(rows.tolist(), drawn.tolist(), strict=True):
        members = set(EDGES[int(hypergraph.edge_index[row])]) - {int(hypergraph.node_index[row])}
        assert len(set(nodes)) == count and set(nodes) <= members
    s = features().abs()
    means = neighbour_means(s, hypergraph, 1.0, (rows, links))
    expected = torch.zeros_like(s)
    for incidence, (v, e) in enumerate(
        zip(hypergraph.node_index.tolist(), hypergraph.edge_index.tolist(), strict=True)
    ):
        others = [u for u in EDGES[e] if u != v]
        if others:
            known = drawn[rows.tolist().index(incidence)].tolist() if incidence in rows.tolist() else others
            expected[v] += s[known].sum(dim=0) / len(others)
    torch.testing.assert_close(means, expected)


def test_every_other_member_is_drawn_equally_often():
    copies = 2000
    rows, links = draw_neighbours(disjoint_copies(sample(), copies), 2, torch.Generator().manual_seed(0))
    drawn = (
        links.row_column.view(copies, -1, 2)[:, 0] % NODES
    )  # of node 0 in hyperedge 0, with the other members 1, 2, 3
    share = np.bincount(drawn.flatten().numpy(), minlength=NODES) / copies
    assert len(rows) % copies == 0 and share[[v for v in range(NODES) if v not in (1, 2, 3)]].sum() == 0
    np.testing.assert_allclose(share[1:4], 2 / 3, atol=5 * np.sqrt(2 / 9 / copies))


def test_sampling_without_large_hyperedges_changes_nothing():
    assert draw_neighbours(sample(), 100, torch.Generator()) is None
    model, exact, x = build("hypersage", sample=100), build("hypersage"), features()
    torch.testing.assert_close(model(x, sample()), exact(x, sample()))
