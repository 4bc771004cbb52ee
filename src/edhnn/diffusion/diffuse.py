r"""Diffusion in one call, and hypergraph PageRank as a named problem."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.diffusion.admm import ADMM
from edhnn.diffusion.conjugate_gradient import ConjugateGradient
from edhnn.diffusion.gradient_descent import GradientDescent
from edhnn.diffusion.problem import DiffusionProblem
from edhnn.diffusion.solution import Solution
from edhnn.diffusion.solve import Solver, Watch, solve
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.hypergraph import Hypergraph
from edhnn.incidence import edge_to_incidence, incidence_to_node
from edhnn.potentials.clique import CliqueExpansion
from edhnn.potentials.divergence import DivergenceToMean
from edhnn.potentials.lovasz import LovaszCardinality
from edhnn.potentials.node import SquaredDistance
from edhnn.potentials.protocols import HyperedgePotential, edge_scale
from edhnn.potentials.total_variation import TotalVariation

PotentialName = Literal["ce", "divergence", "tv", "lec"]
SolverName = Literal["auto", "admm", "gradient", "cg"]


def make_potential(name: str, power: int = 2) -> HyperedgePotential:
    """A hyperedge potential by its short name.

    Args:
        name: ``ce`` clique expansion, ``divergence`` to the mean, ``tv`` total variation, ``lec`` Lovász extension of
            the paper's cardinality cut.
        power: $p$: 1 or 2 for ``tv`` and ``lec``, at least 1 for ``divergence``; ``ce`` is always a square.

    Returns:
        The potential.
    """
    if name not in get_args(PotentialName):
        raise unknown_name("potential", name, get_args(PotentialName))
    if name == "ce":
        if power != 2:
            raise UsageError(f"The clique expansion has power 2. Got {power}.")
        return CliqueExpansion()
    if name == "divergence":
        return DivergenceToMean(power=float(power))
    if power not in (1, 2):
        raise UsageError(f"The power of '{name}' must be 1 or 2. Got {power}.")
    exponent: Literal[1, 2] = 1 if power == 1 else 2
    return TotalVariation(power=exponent) if name == "tv" else LovaszCardinality(power=exponent)


def make_solver(
    name: str, potential: HyperedgePotential, *, step_size: float | None, tolerance: float, max_steps: int
) -> Solver[object]:
    """A solver by its short name; ``auto`` takes conjugate gradients for the clique expansion and ADMM otherwise."""
    if name not in get_args(SolverName):
        raise unknown_name("solver", name, get_args(SolverName))
    if name == "auto":
        known = not isinstance(potential, DivergenceToMean) or potential.power == 2
        name = "cg" if isinstance(potential, CliqueExpansion) else "admm" if known else "gradient"
    if name == "cg":
        if step_size is not None:
            raise UsageError("Conjugate gradients choose their step sizes themselves.")
        return ConjugateGradient(tolerance=tolerance, max_steps=max_steps)  # type: ignore[return-value]
    if name == "admm":
        eta, adaptive = (0.5, True) if step_size is None else (step_size, False)
        return ADMM(step_size=eta, adaptive=adaptive, tolerance=tolerance, max_steps=max_steps)  # type: ignore[return-value]
    corners = isinstance(potential, TotalVariation | LovaszCardinality)
    rule: Literal["fixed", "averaging", "backtracking"] = (
        "averaging" if corners else "backtracking" if step_size is None else "fixed"
    )
    if corners and step_size is not None:
        raise UsageError("Where the potential has corners, gradient descent chooses its step sizes itself.")
    first = 0.1 if step_size is None else step_size
    return GradientDescent(rule=rule, step_size=first, tolerance=tolerance, max_steps=max_steps)  # type: ignore[return-value]


def diffuse(
    hypergraph: Hypergraph,
    x: Float[Tensor, "N D"],
    *,
    potential: HyperedgePotential | PotentialName = "tv",
    power: int = 2,
    strength: float = 1.0,
    solver: SolverName = "auto",
    step_size: float | None = None,
    tolerance: float = 1e-8,
    max_steps: int = 10_000,
    throw: bool = True,
    watch: Watch | None = None,
) -> Solution:
    r"""Minimise $\sum_v (h_v - x_v)^2 + \lambda \sum_e w_e\, g(H_e)$, with a certificate. Paper: Eq. 1.

    Args:
        hypergraph: The hypergraph; its hyperedge weights are $w_e$.
        x: The values to diffuse, a column for each.
        potential: $g$: an object, or ``ce``, ``divergence``, ``tv``, ``lec``.
        power: $p$ of a potential given by name.
        strength: $\lambda$.
        solver: ``auto``, ``admm``, ``gradient`` or ``cg``.
        step_size: $\eta$; chosen by the solver if not given.
        tolerance: Relative duality gap at which to stop.
        max_steps: Most steps.
        throw: Raise an error if the tolerance is not reached.
        watch: Called with the record and the state at every look at the certificate.

    Returns:
        The solution; ``solution.last.gap`` bounds its distance from the minimum.

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph, diffuse
        >>> path = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3]])
        >>> seeds = torch.tensor([[1.0], [0.0], [0.0], [0.0]], dtype=torch.float64)
        >>> diffuse(path, seeds, potential="ce").value[:, 0].round(decimals=3)
        tensor([0.3860, 0.2430, 0.2220, 0.1480], dtype=torch.float64)
    """
    chosen = make_potential(potential, power) if isinstance(potential, str) else potential
    problem = DiffusionProblem(hypergraph=hypergraph, x=x, hyperedge_potential=chosen, strength=strength)
    method = make_solver(solver, chosen, step_size=step_size, tolerance=tolerance, max_steps=max_steps)
    return solve(problem, method, throw=throw, watch=watch)


def pagerank_problem(
    hypergraph: Hypergraph,
    seeds: Float[Tensor, "N D"],
    *,
    restart: float = 0.15,
    potential: HyperedgePotential | None = None,
) -> DiffusionProblem:
    r"""Personalised PageRank: $\min_h \alpha \sum_v d_v (h_v - s_v/d_v)^2 + (1 - \alpha) \sum_e w_e\, g(H_e)$.

    With hyperedges of two nodes and $g = (h_u - h_v)^2$ (total variation, $p = 2$) the vector $d_v h_v$ is the
    personalised PageRank of the graph with restart probability $\alpha$. Paper: Definition 3 (hypergraph PageRank).

    Args:
        hypergraph: The hypergraph, without isolated nodes among the seeds.
        seeds: $s$, a distribution over nodes in each column.
        restart: $\alpha$ in (0, 1).
        potential: $g$; total variation with $p = 2$ if not given.

    Returns:
        The problem, for `solve`.
    """
    if not 0 < restart < 1:
        raise UsageError(f"The restart probability must lie between 0 and 1. Got {restart}.")
    if seeds.dim() != 2 or len(seeds) != hypergraph.num_nodes or not seeds.is_floating_point():
        raise DataError(
            f"The seeds must be floating point of shape [{hypergraph.num_nodes}, D], a row per node. "
            f"Got {seeds.dtype} of shape {list(seeds.shape)}.",
            remedy="One column of seeds is seeds[:, None].",
        )
    degree = incidence_to_node(edge_to_incidence(edge_scale(hypergraph, seeds), hypergraph), hypergraph)[:, 0]
    if bool((seeds[degree == 0] != 0).any()):
        place = int(((degree == 0)[:, None] & (seeds != 0)).nonzero()[0, 0])
        raise UsageError(f"A seed must be in a hyperedge of positive weight. Node {place} is not.")
    safe = torch.where(degree > 0, degree, 1)[:, None]
    return DiffusionProblem(
        hypergraph=hypergraph,
        x=seeds / safe,
        hyperedge_potential=potential or TotalVariation(power=2),
        node_potential=SquaredDistance(weight=restart * safe),
        strength=1 - restart,
    )
