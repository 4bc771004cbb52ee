"""HyperSAGE against the loop over hyperedges and members that it replaces."""

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
@pytest.mark.parametrize("weighed", [False, True])
def test_it_is_the_loop_over_hyperedges(p, weighed):
    weight = torch.arange(1, len(EDGES) + 1, dtype=torch.float64)
    joined = sample(edge_weight=weight) if weighed else sample()
    model, x = build("hypersage", mean_power=p, hidden=4), features()
    w, h = numbers(model), x.numpy()
    for layer in range(2):
        heard = loop_layer(relu(h) if layer else h, p, weight.numpy() if weighed else np.ones(len(EDGES)))
        h = heard @ w[f"projections.{layer}.weight"].T + w[f"projections.{layer}.bias"]
    agree(model, joined, x, h)
    assert (x < 0).any()  # and the features were not overwritten


def test_sampling_draws_so_many_others_and_keeps_the_divisor():
    joined, count = sample(), 2
    rows, links = draw_neighbours(joined, count, torch.Generator().manual_seed(0))
    sizes = joined.edge_size[joined.edge_index]
    assert rows.tolist() == (sizes - 1 > count).nonzero()[:, 0].tolist()
    drawn = links.row_column.view(len(rows), count)
    for row, nodes in zip(rows.tolist(), drawn.tolist(), strict=True):
        members = set(EDGES[int(joined.edge_index[row])]) - {int(joined.node_index[row])}
        assert len(set(nodes)) == count and set(nodes) <= members
    s = features().abs()
    means = neighbour_means(s, joined, 1.0, (rows, links))
    expected = torch.zeros_like(s)
    for place, (v, e) in enumerate(zip(joined.node_index.tolist(), joined.edge_index.tolist(), strict=True)):
        others = [u for u in EDGES[e] if u != v]
        if others:
            known = drawn[rows.tolist().index(place)].tolist() if place in rows.tolist() else others
            expected[v] += s[known].sum(dim=0) / len(others)
    torch.testing.assert_close(means, expected)


def test_every_other_member_is_drawn_equally_often():
    copies = 2000
    rows, links = draw_neighbours(disjoint_copies(sample(), copies), 2, torch.Generator().manual_seed(0))
    drawn = links.row_column.view(copies, -1, 2)[:, 0] % NODES  # for node 0 in hyperedge 0, whose others are 1, 2, 3
    share = np.bincount(drawn.flatten().numpy(), minlength=NODES) / copies
    assert len(rows) % copies == 0 and share[[v for v in range(NODES) if v not in (1, 2, 3)]].sum() == 0
    np.testing.assert_allclose(share[1:4], 2 / 3, atol=5 * np.sqrt(2 / 9 / copies))


def test_no_hyperedge_is_large_enough_to_sample():
    assert draw_neighbours(sample(), 100, torch.Generator()) is None
    model, exact, x = build("hypersage", sample=100), build("hypersage"), features()
    torch.testing.assert_close(model(x, sample()), exact(x, sample()))
