"""Every hyperedge potential and option, with its definition in plain Python and, where possible, in cvxpy."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch

from edhnn import CliqueExpansion, DivergenceToMean, Hypergraph, LovaszCardinality, TotalVariation
from edhnn.potentials.lovasz import balanced_cut, total_variation_cut

HYPEREDGES = [[], [0], [1, 2], [0, 1, 2], [2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6], [3, 4, 5, 6, 7], [1, 2], [7, 8], [5]]
WEIGHTS = [1.0, 2.0, 0.5, 1.5, 1.0, 0.7, 2.5, 1.0, 0.0, 0.3]  # node 8 is in a hyperedge of weight 0 only


def falling_cut(size):
    """Return non-increasing weights that sum to 0, neither balanced nor total variation."""
    y = np.sort(np.cos(np.arange(1.0, size + 1)))[::-1]
    return (y - y.mean()).tolist() if size else []


def arbitrary_cut(size):
    """Return weights that are not monotone and do not sum to 0."""
    return [float(np.cos(3.0 * rank + 1)) for rank in range(size)]


@dataclass(frozen=True)
class Case:
    name: str
    potential: Any
    naive: Callable[[list[float], list[float]], float]  # values and scales d^-1/2 of one hyperedge's members
    cvx: Callable[[Any, np.ndarray], Any] | None = None
    proximable: bool = True
    invariant: bool = True  # under permuting the values alone, without their degrees


def naive_clique(normalisation):
    def value(z, s):
        x = z if normalisation == "none" else [a * b for a, b in zip(z, s, strict=True)]
        factor = 1 / (4 * len(z)) if normalisation == "laplacian" and z else 1
        return factor * sum((a - b) ** 2 for a in x for b in x)

    return value


def naive_divergence(power, mean):
    def value(z, s):
        if not z:
            return 0.0
        if mean == "literal":
            middle = sum(abs(a / len(z)) ** power for a in z) ** (1 / power)
        else:
            middle = (sum(abs(a) ** power for a in z) / len(z)) ** (1 / power)
        return sum((a - middle) ** 2 for a in z)

    return value


def naive_variation(power, normalised):
    def value(z, s):
        x = [a * b for a, b in zip(z, s, strict=True)] if normalised else z
        return (max(x) - min(x)) ** power if x else 0.0

    return value


def naive_lovasz(power, cut, normalised):
    def value(z, s):
        x = [a * b for a, b in zip(z, s, strict=True)] if normalised else z
        return sum(y * a for y, a in zip(cut(len(x)), sorted(x, reverse=True), strict=True)) ** power

    return value


def cvx_clique(normalisation):
    def value(z, s):
        x = z if normalisation == "none" else cp.multiply(s, z)
        size = z.shape[0]
        factor = 1 / (4 * size) if normalisation == "laplacian" else 1
        return 2 * factor * size * cp.sum_squares(x - cp.sum(x) / size)

    return value


def raised(t, power):
    return t if power == 1 else cp.square(cp.pos(t))


def cvx_variation(power, normalised):
    def value(z, s):
        x = cp.multiply(s, z) if normalised else z
        return raised(cp.max(x) - cp.min(x), power)

    return value


def cvx_lovasz(power, cut, normalised):
    def value(z, s):
        size, x = z.shape[0], cp.multiply(s, z) if normalised else z
        y = np.array(cut(size))
        falls = y[:-1] - y[1:]
        parts = [falls[k - 1] * cp.sum_largest(x, k) for k in range(1, size) if falls[k - 1] > 0]
        return raised(sum(parts) + y[-1] * cp.sum(x), power)

    return value


CUTS = {"balanced": balanced_cut, "tv": total_variation_cut, "falling": falling_cut, "arbitrary": arbitrary_cut}
CASES = [
    *[
        Case(f"ce-{n}", CliqueExpansion(normalisation=n), naive_clique(n), cvx_clique(n), invariant=n == "none")
        for n in ("none", "degree", "laplacian")
    ],
    *[
        Case(f"dtm-{m}-{p}", DivergenceToMean(power=p, mean=m), naive_divergence(p, m), proximable=p == 2)
        for m in ("literal", "power")
        for p in (1.0, 1.5, 2.0, 3.0)
    ],
    *[
        Case(
            f"tv-{p}{'-degree' if d else ''}",
            TotalVariation(power=p, degree_normalised=d),
            naive_variation(p, d),
            cvx_variation(p, d),
            invariant=not d,
        )
        for p in (1, 2)
        for d in (False, True)
    ],
    *[
        Case(
            f"lec-{p}-{n}{'-degree' if d else ''}",
            LovaszCardinality(power=p, cut_weights=c, degree_normalised=d),
            naive_lovasz(p, c, d),
            None if n == "arbitrary" else cvx_lovasz(p, c, d),
            proximable=not (d and n == "arbitrary"),
            invariant=not d,
        )
        for p in (1, 2)
        for n, c in CUTS.items()
        for d in (False, True)
    ],
]
BY_NAME = {case.name: case for case in CASES}


def over(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def standard(weighted=True):
    """Make sizes 0 to 7, a hyperedge of weight 0, singletons, a repeated hyperedge, and an isolated node."""
    return Hypergraph.from_hyperedges(HYPEREDGES, num_nodes=10, edge_weight=WEIGHTS if weighted else None)


every_case = over(CASES)
proximable_cases = over([case for case in CASES if case.proximable])
convex_cases = over([case for case in CASES if case.potential.convex_on(standard())])
cvx_cases = over([case for case in CASES if case.cvx])


def draw(hypergraph, *, seed=0, columns=3, dtype=torch.float64, scale=1.0):
    """Draw values on incidences, without ties."""
    generator = torch.Generator().manual_seed(seed)
    drawn = scale * torch.randn(hypergraph.num_incidences, columns, generator=generator, dtype=torch.float64)
    return drawn.to(dtype)


def draw_tied(hypergraph, *, seed=0, columns=3):
    """Draw small integers on incidences, with ties in almost every hyperedge."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-1, 3, (hypergraph.num_incidences, columns), generator=generator).double()


def weights_of(hypergraph):
    return [1.0] * hypergraph.num_edges if hypergraph.edge_weight is None else hypergraph.edge_weight.tolist()


def scales_of(hypergraph):
    """Compute d^-1/2 for each node by loops; 0 for degree 0."""
    degree = [0.0] * hypergraph.num_nodes
    for weight, members in zip(weights_of(hypergraph), hypergraph.hyperedges(), strict=True):
        for v in members:
            degree[v] += weight
    return [d**-0.5 if d > 0 else 0.0 for d in degree]


def naive_values(case, h_ev, hypergraph):
    """Compute w_e g(H_e) by loops."""
    scale, bounds = scales_of(hypergraph), hypergraph.edge_ptr.tolist()
    rows = []
    for e, (weight, members) in enumerate(zip(weights_of(hypergraph), hypergraph.hyperedges(), strict=True)):
        block, s = h_ev[bounds[e] : bounds[e + 1]].double(), [scale[v] for v in members]
        rows.append([weight * case.naive(block[:, c].tolist(), s) for c in range(h_ev.shape[1])])
    return torch.tensor(rows, dtype=torch.float64).reshape(hypergraph.num_edges, h_ev.shape[1])


def by_edge(z_ev, hypergraph):
    """Sum over the members of each hyperedge."""
    return z_ev.new_zeros(hypergraph.num_edges, z_ev.shape[1]).index_add(0, hypergraph.edge_index, z_ev)


def clarabel(objective, constraints=()):
    """Return the minimum. A tolerance of 1e-11 gives about 1e-10; smaller ones can make Clarabel's result worse."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"[\s\S]*too many subexpressions")
        problem = cp.Problem(cp.Minimize(objective), list(constraints))
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value)
