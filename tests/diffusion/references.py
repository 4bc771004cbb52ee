"""Diffusion problems for tests, and their minima by a convex solver."""

from functools import cache

import cvxpy as cp
import numpy as np
import torch

from edhnn import Hypergraph
from tests.potentials.cases import BY_NAME, clarabel, scales_of, weights_of


@cache
def random_hypergraph(nodes, edges, largest, seed):
    """Draw sizes 2 to ``largest`` and weights 0.1 to 2; the last node is isolated, the last hyperedge empty."""
    rng = np.random.default_rng(seed)
    members = [rng.choice(nodes - 1, size=rng.integers(2, largest + 1), replace=False).tolist() for _ in range(edges)]
    weights = rng.uniform(0.1, 2.0, edges + 1).tolist()
    return Hypergraph.from_hyperedges([*members, []], num_nodes=nodes, edge_weight=weights)


@cache
def random_values(nodes, columns, seed):
    return torch.from_numpy(np.random.default_rng(seed + 1000).normal(size=(nodes, columns)))


@cache
def minimum(name, hypergraph, seed, columns, strength=1.0):
    """Compute the minimum of each column by Clarabel, with the squared distance as node potential."""
    case, x = BY_NAME[name], random_values(hypergraph.num_nodes, columns, seed).numpy()
    scale = np.array(scales_of(hypergraph))
    minima = []
    for column in range(columns):
        h = cp.Variable(hypergraph.num_nodes)
        total = cp.sum_squares(h - x[:, column])
        for weight, members in zip(weights_of(hypergraph), hypergraph.hyperedges(), strict=True):
            if members and weight > 0:
                total = total + strength * weight * case.cvx(h[members], scale[members])
        minima.append(clarabel(total))
    return np.array(minima)
