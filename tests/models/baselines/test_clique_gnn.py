"""CE-GCN and CE-GAT against dense graphs, loops, and PyG's layers."""

import numpy as np
import pytest
import torch

from edhnn import Hypergraph
from tests.models.dense import EDGES, NODES, agree, build, features, incidence, leaky, numbers, relu, sample, weighted


def clique(hypergraph, direction: str) -> np.ndarray:
    """Return the adjacency; a row holds the edges into a node."""
    h, w_e = incidence(hypergraph)
    shared = (h * w_e) @ h.T
    np.fill_diagonal(shared, 0)
    return shared if direction == "both" else np.tril(shared)


@pytest.mark.parametrize("direction", ["both", "upwards"])
@pytest.mark.parametrize("hypergraph", [sample(), weighted()], ids=["plain", "weighted"])
def test_gcn_equals_the_dense_convolution(direction, hypergraph):
    model, x = build("ce-gcn", hidden=5, layers=3, direction=direction), features()
    looped = clique(hypergraph, direction) + np.eye(NODES)
    scale = looped.sum(axis=1) ** -0.5
    a, w, h = scale[:, None] * looped * scale, numbers(model), x.numpy()
    for layer in range(3):
        h = a @ h @ w[f"convolutions.{layer}.weight"].T + w[f"convolutions.{layer}.bias"]
        h = relu(h) if layer < 2 else h
    agree(model, hypergraph, x, h)


def attention(x, w, prefix, neighbours, heads, average):
    z = (x @ w[f"{prefix}.projection.weight"].T).reshape(NODES, heads, -1)
    out = np.zeros_like(z)
    for v in range(NODES):
        for a in range(heads):
            scores = np.array(
                [leaky(w[f"{prefix}.target"][a] @ z[v, a] + w[f"{prefix}.source"][a] @ z[u, a]) for u in neighbours[v]]
            )
            share = np.exp(scores) / np.exp(scores).sum()
            out[v, a] = sum(s * z[u, a] for s, u in zip(share, neighbours[v], strict=True))
    return (out.mean(axis=1) if average else out.reshape(NODES, -1)) + w[f"{prefix}.bias"]


@pytest.mark.parametrize("direction", ["both", "upwards"])
def test_gat_equals_the_loop_over_neighbours(direction):
    model, x = build("ce-gat", hidden=4, heads=2, output_heads=3, direction=direction), features()
    graph = clique(sample(), direction) + np.eye(NODES)
    neighbours = [np.flatnonzero(row) for row in graph]
    w = numbers(model)
    h = relu(attention(x.numpy(), w, "layers.0", neighbours, 2, False))
    agree(model, sample(), x, attention(h, w, "layers.1", neighbours, 3, True))


def test_model_equals_pyg():
    pyg = pytest.importorskip("torch_geometric.nn", reason="PyG, an optional bridge, is not installed")
    x = features()
    for name, convolve, prefix in (("ce-gcn", pyg.GCNConv, "convolutions"), ("ce-gat", pyg.GATConv, "layers")):
        model = build(name, hidden=5)
        matrix = clique(sample(), "both")
        target, source = (torch.from_numpy(index) for index in np.nonzero(matrix))
        edges = torch.stack([source, target])
        weight = {"edge_weight": torch.from_numpy(matrix[matrix > 0])} if name == "ce-gcn" else {}
        h, w = x, model.state_dict()
        for layer, (wide, out) in enumerate(((6, 5), (5, 3))):
            their = convolve(wide, out).double()
            at = f"{prefix}.{layer}"
            state = {"bias": w[f"{at}.bias"]}
            if name == "ce-gcn":
                state |= {"lin.weight": w[f"{at}.weight"]}
            else:
                state |= {"lin.weight": w[f"{at}.projection.weight"]}
                state |= {"att_src": w[f"{at}.source"][None], "att_dst": w[f"{at}.target"][None]}
            their.load_state_dict(state)
            h = their(h, edges, **weight)
            h = h.relu() if layer == 0 else h
        torch.testing.assert_close(model(x, sample()), h)


def test_only_the_upwards_direction_reveals_node_numbers():
    """Of two equal nodes, only AllSet's graph distinguishes the first from the second."""
    x, pair = torch.ones(2, 6, dtype=torch.float64), Hypergraph.from_hyperedges([[0, 1]], num_nodes=2)
    for name in ("ce-gcn", "ce-gat"):
        both = build(name)(x, pair)
        torch.testing.assert_close(both[0], both[1])
    upwards = build("ce-gcn", direction="upwards")(x, pair)
    assert not torch.allclose(upwards[0], upwards[1])


def test_singletons_change_nothing():
    from edhnn.hypergraph.transforms import add_singletons

    for name in ("ce-gcn", "ce-gat"):
        model, x = build(name), features()
        torch.testing.assert_close(model(x, add_singletons(sample())), model(x, sample()))
    assert any(len(edge) == 1 for edge in EDGES)
