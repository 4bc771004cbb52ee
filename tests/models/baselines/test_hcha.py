"""HCHA against its dense operator, a loop for the attention, and PyG's HypergraphConv."""

import numpy as np
import pytest
import torch

from tests.models.dense import NODES, agree, build, elu, features, incidence, leaky, numbers, sample, weighted


@pytest.mark.parametrize("hypergraph", [sample(), weighted()], ids=["plain", "weighted"])
def test_model_equals_the_dense_convolution(hypergraph):
    model, x = build("hcha", hidden=4, layers=3), features()
    h, w_e = incidence(hypergraph)
    d, k = (h * w_e).sum(axis=1), h.sum(axis=0)
    t, w, z = np.diag(1 / d) @ h @ np.diag(w_e / k) @ h.T, numbers(model), x.numpy()
    for layer in range(3):
        z = t @ z @ w[f"convolutions.{layer}.projection.weight"].T + w[f"convolutions.{layer}.bias"]
        z = elu(z) if layer < 2 else z
    agree(model, hypergraph, x, z)


def attended(x, w, prefix, heads, average):
    """Compute the convolution by loops, for unit weights."""
    hypergraph = sample()
    edges = list(hypergraph.hyperedges())
    z = (x @ w[f"{prefix}.projection.weight"].T).reshape(NODES, heads, -1)
    z_e = np.stack([z[members].mean(axis=0) for members in edges])
    out = np.zeros_like(z)
    for a in range(heads):
        alpha = np.zeros((NODES, len(edges)))
        for v in range(NODES):
            of = [e for e, members in enumerate(edges) if v in members]
            score = [
                leaky(w[f"{prefix}.node_vector"][a] @ z[v, a] + w[f"{prefix}.edge_vector"][a] @ z_e[e, a]) for e in of
            ]
            alpha[v, of] = np.exp(score) / np.exp(score).sum()
        m_e = np.stack([sum(alpha[u, e] * z[u, a] for u in members) / len(members) for e, members in enumerate(edges)])
        out[:, a] = (alpha @ m_e) / hypergraph.degree.numpy()[:, None]
    return (out.mean(axis=1) if average else out.reshape(NODES, -1)) + w[f"{prefix}.bias"]


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_equals_the_loop_over_memberships(heads):
    model, x = build("hcha", hidden=4, attention=True, heads=heads), features()
    w = numbers(model)
    hidden = elu(attended(x.numpy(), w, "convolutions.0", heads, False))
    agree(model, sample(), x, attended(hidden, w, "convolutions.1", heads, True))


def test_a_hyperedge_of_weight_two_counts_as_two_with_attention():
    from edhnn.hypergraph import Hypergraph
    from tests.models.dense import EDGES

    weight = torch.ones(len(EDGES), dtype=torch.float64)
    weight[3] = 2
    model, x = build("hcha", attention=True, heads=2), features()
    twice = Hypergraph.from_hyperedges([*EDGES, EDGES[3]], num_nodes=NODES)
    torch.testing.assert_close(model(x, sample(edge_weight=weight)), model(x, twice))


@pytest.mark.parametrize("attention", [False, True])
def test_model_equals_pyg_for_unit_weights(attention):
    pyg = pytest.importorskip("torch_geometric.nn", reason="PyG, an optional bridge, is not installed")
    heads, hypergraph, x = (2 if attention else 1), sample(), features()
    options = {"attention": True, "heads": 2} if attention else {}
    model = build("hcha", hidden=4, **options)
    pairs, w, h = torch.stack([hypergraph.node_index, hypergraph.edge_index]), model.state_dict(), x
    for layer, (wide, out) in enumerate(((6, 4), (4 * heads, 3))):
        options_of_layer = {"use_attention": attention, "attention_mode": "edge", "heads": heads, "concat": layer == 0}
        their = pyg.HypergraphConv(wide, out, **options_of_layer).double()
        at = f"convolutions.{layer}"
        state = {"lin.weight": w[f"{at}.projection.weight"], "bias": w[f"{at}.bias"]}
        if attention:
            state["att"] = torch.cat([w[f"{at}.node_vector"], w[f"{at}.edge_vector"]], dim=1)[None]
        their.load_state_dict(state)
        attr = torch.stack([h[members].mean(dim=0) for members in hypergraph.hyperedges()]) if attention else None
        h = their(h, pairs, hyperedge_attr=attr)
        h = torch.nn.functional.elu(h) if layer == 0 else h
    torch.testing.assert_close(model(x, hypergraph), h)
