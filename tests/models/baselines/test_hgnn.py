"""HGNN against its dense operator and PyG's convolution."""

import numpy as np
import pytest
import torch

from edhnn.nn.aggregation import symmetric_smoothing
from tests.models.dense import agree, build, elu, features, incidence, numbers, relu, sample, weighted


def theta(hypergraph) -> np.ndarray:
    h, w_e = incidence(hypergraph)
    d, k = (h * w_e).sum(axis=1), h.sum(axis=0)
    return np.diag(d**-0.5) @ h @ np.diag(w_e / k) @ h.T @ np.diag(d**-0.5)


@pytest.mark.parametrize("hypergraph", [sample(), weighted()], ids=["plain", "weighted"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("hidden", [4, 9])
def test_model_equals_the_dense_convolution(hypergraph, layers, hidden):
    model, x, t = build("hgnn", hidden=hidden, layers=layers), features(), theta(hypergraph)
    w, h = numbers(model), x.numpy()
    for layer in range(layers):
        h = t @ h @ w[f"convolutions.{layer}.weight"].T + w[f"convolutions.{layer}.bias"]
        h = elu(h) if layer < layers - 1 else h
    agree(model, hypergraph, x, h)


def test_the_original_variant_has_relu_and_adds_the_bias_before_the_propagation():
    model, x, t = build("hgnn", variant="original"), features(), theta(sample())
    w = numbers(model)
    h = relu(t @ (x.numpy() @ w["convolutions.0.weight"].T + w["convolutions.0.bias"]))
    agree(model, sample(), x, t @ (h @ w["convolutions.1.weight"].T + w["convolutions.1.bias"]))


def test_smoothing_equals_pyg_up_to_the_symmetric_scaling():
    pyg = pytest.importorskip("torch_geometric.nn", reason="PyG, an optional bridge, is not installed")
    hypergraph, x = sample(), features()
    their = pyg.HypergraphConv(6, 6, bias=False).double()
    their.load_state_dict({"lin.weight": torch.eye(6, dtype=torch.float64)})
    root = hypergraph.degree.double().sqrt()[:, None]
    pairs = torch.stack([hypergraph.node_index, hypergraph.edge_index])
    torch.testing.assert_close(symmetric_smoothing(x, hypergraph), root * their(x / root, pairs))
