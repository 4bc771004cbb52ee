"""LEGCN: the factorised product against the explicit line expansion, and PyG's GCN on it."""

import numpy as np
import pytest
import torch

from edhnn.datasets.registry import load_dataset
from edhnn.hypergraph.transforms import add_singletons
from edhnn.models.baselines.legcn import line_product
from tests.models.dense import agree, build, features, numbers, relu, sample


def line_expansion(hypergraph) -> np.ndarray:
    """Find memberships that share a node or a hyperedge by comparing all pairs."""
    node, edge = hypergraph.node_index.numpy(), hypergraph.edge_index.numpy()
    shared = (node[:, None] == node) | (edge[:, None] == edge)
    return (shared & ~np.eye(len(node), dtype=bool)).astype(float)


def back(z, hypergraph):
    node = hypergraph.node_index.numpy()
    return np.stack([z[node == v].mean(axis=0) for v in range(hypergraph.num_nodes)])


@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_model_equals_the_gcn_on_the_explicit_line_expansion(normalisation, layers):
    hypergraph, x = sample(), features()
    model = build("legcn", hidden=4, layers=layers, normalisation=normalisation)
    a = line_expansion(hypergraph) + (1 if normalisation == "symmetric" else 2) * np.eye(hypergraph.num_incidences)
    d = a.sum(axis=1)
    a = a / np.sqrt(np.outer(d, d)) if normalisation == "symmetric" else a / d[:, None]
    w, z = numbers(model), x.numpy()[hypergraph.node_index]
    for layer in range(layers):
        z = a @ z @ w[f"convolutions.{layer}.weight"].T + w[f"convolutions.{layer}.bias"]
        z = relu(z) if layer < layers - 1 else z
    agree(model, hypergraph, x, back(z, hypergraph))


def test_model_equals_pyg():
    pyg = pytest.importorskip("torch_geometric.nn", reason="PyG, an optional bridge, is not installed")
    hypergraph, x, model = sample(), features(), build("legcn", hidden=4)
    edges = torch.from_numpy(np.stack(np.nonzero(line_expansion(hypergraph))))
    z, w = x[hypergraph.node_index], model.state_dict()
    for layer, (wide, out) in enumerate(((6, 4), (4, 3))):
        their = pyg.GCNConv(wide, out).double()
        at = f"convolutions.{layer}"
        their.load_state_dict({"bias": w[f"{at}.bias"], "lin.weight": w[f"{at}.weight"]})
        z = their(z, edges)
        z = z.relu() if layer == 0 else z
    agree(model, hypergraph, x, back(z.detach().numpy(), hypergraph))


def test_the_gradient_of_the_line_product():
    z = torch.randn(sample().num_incidences, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for normalisation in ("symmetric", "row"):
        assert torch.autograd.gradcheck(lambda z_ev: line_product(z_ev, sample(), normalisation), z.requires_grad_())  # noqa: B023


def test_the_line_expansion_of_cora_has_the_expected_number_of_entries(real_data):
    cora = load_dataset("cora", data_dir=real_data).hypergraph
    for hypergraph, entries in ((add_singletons(cora), 82_958), (cora, 73_386)):
        degree, size = hypergraph.degree, hypergraph.edge_size
        assert int((degree * (degree - 1)).sum() + (size * (size - 1)).sum()) == entries
