"""Reference implementations for the models: dense matrices and loops in float64 NumPy."""

import numpy as np
import torch

from edhnn.hypergraph import Hypergraph
from edhnn.models.registry import make_model

EDGES = [[0, 1, 2, 3], [2, 3], [4], [1, 4, 5, 6, 7], [0, 7], [8, 9, 10, 2, 5], [0, 1, 2, 3], [9], [10, 11]]
NODES = 12
IN, OUT = 6, 3


def sample(**weights) -> Hypergraph:
    """Return a hypergraph with repeated, nested and singleton hyperedges and no isolated node."""
    plain = Hypergraph.from_hyperedges(EDGES, num_nodes=NODES)
    return Hypergraph(plain.node_index, plain.edge_index, NODES, len(EDGES), **weights)


def weighted() -> Hypergraph:
    """Return the sample with weights of hyperedges and memberships."""
    draw = torch.Generator().manual_seed(4)
    count = sample().num_incidences
    return sample(
        edge_weight=torch.rand(len(EDGES), generator=draw, dtype=torch.float64) + 0.5,
        incidence_weight=torch.rand(count, generator=draw, dtype=torch.float64) + 0.5,
    )


def features(seed: int = 0) -> torch.Tensor:
    return torch.randn(NODES, IN, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def build(name: str, **options):
    """Make a model in float64, without dropout, with all parameters moved away from zeros and ones."""
    model = make_model(name, in_features=IN, num_classes=OUT, seed=3, **options).double().eval()
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=draw, dtype=torch.float64))
    return model


def numbers(model) -> dict[str, np.ndarray]:
    return {name: value.detach().numpy() for name, value in model.state_dict().items()}


def incidence(hypergraph: Hypergraph) -> tuple[np.ndarray, np.ndarray]:
    """Return H with the weights of memberships, and the weights of hyperedges."""
    h = np.zeros((hypergraph.num_nodes, hypergraph.num_edges))
    weight = hypergraph.incidence_weight
    h[hypergraph.node_index, hypergraph.edge_index] = 1 if weight is None else weight.numpy()
    w_e = hypergraph.edge_weight
    return h, np.ones(hypergraph.num_edges) if w_e is None else w_e.numpy()


def layer_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * scale + shift


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 0.2 * x)


def mlp(x: np.ndarray, weights: dict[str, np.ndarray], prefix: str) -> np.ndarray:
    """Apply a perceptron, given its parameters by name."""
    if f"{prefix}.input_norm.weight" in weights:
        x = layer_norm(x, weights[f"{prefix}.input_norm.weight"], weights[f"{prefix}.input_norm.bias"])
    layer = 0
    while f"{prefix}.linears.{layer}.weight" in weights:
        x = x @ weights[f"{prefix}.linears.{layer}.weight"].T + weights[f"{prefix}.linears.{layer}.bias"]
        if f"{prefix}.linears.{layer + 1}.weight" in weights:
            x = relu(x)
            if f"{prefix}.norms.{layer}.weight" in weights:
                x = layer_norm(x, weights[f"{prefix}.norms.{layer}.weight"], weights[f"{prefix}.norms.{layer}.bias"])
        layer += 1
    return x


def agree(model, hypergraph: Hypergraph, x: torch.Tensor, expected: np.ndarray) -> None:
    out = model(x, hypergraph).detach().numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-10)
