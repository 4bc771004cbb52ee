r"""Diffusion in one call, with a potential and a solver by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.diffusion.admm import ADMM
from edhnn.diffusion.conjugate_gradient import ConjugateGradient
from edhnn.diffusion.gradient_descent import GradientDescent
from edhnn.diffusion.problem import DiffusionProblem
from edhnn.diffusion.solver import Solution, Solver, Watch, solve
from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence, incidence_to_node
from edhnn.potentials.base import HyperedgePotential, edge_scale, traits_of
from edhnn.potentials.registry import make_potential


def _admm(potential: HyperedgePotential, step_size: float | None, tolerance: float, max_steps: int) -> Solver[Any]:
    del potential
    eta, adaptive = (0.5, True) if step_size is None else (step_size, False)
    return ADMM(step_size=eta, adaptive=adaptive, tolerance=tolerance, max_steps=max_steps)


def _gradient(potential: HyperedgePotential, step_size: float | None, tolerance: float, max_steps: int) -> Solver[Any]:
    if traits_of(potential).smooth:
        if step_size is None:
            return GradientDescent(rule="backtracking", step_size=0.1, tolerance=tolerance, max_steps=max_steps)
        return GradientDescent(rule="fixed", step_size=step_size, tolerance=tolerance, max_steps=max_steps)
    if step_size is not None:
        raise UsageError(
            "For a potential with corners, gradient descent chooses its step sizes itself. Omit `step_size=`."
        )
    return GradientDescent(rule="averaging", step_size=0.1, tolerance=tolerance, max_steps=max_steps)


def _conjugate(potential: HyperedgePotential, step_size: float | None, tolerance: float, max_steps: int) -> Solver[Any]:
    del potential
    if step_size is not None:
        raise UsageError("Conjugate gradients choose their step sizes themselves. Omit `step_size=`.")
    return ConjugateGradient(tolerance=tolerance, max_steps=max_steps)


def _auto(potential: HyperedgePotential, step_size: float | None, tolerance: float, max_steps: int) -> Solver[Any]:
    """Make conjugate gradients for a quadratic form, descent for other smooth potentials, ADMM for those with corners.

    A gradient costs a fraction of a proximal operator that must find a root in each hyperedge.
    """
    traits = traits_of(potential)
    make = _conjugate if traits.quadratic else _admm if traits.has_prox and not traits.smooth else _gradient
    return make(potential, step_size, tolerance, max_steps)


SOLVERS: dict[str, Callable[[HyperedgePotential, float | None, float, int], Solver[Any]]] = {
    "auto": _auto,
    "admm": _admm,
    "gradient": _gradient,
    "cg": _conjugate,
}
"""The function that makes a solver, by the solver's short name."""


def make_solver(
    name: str, potential: HyperedgePotential, *, step_size: float | None, tolerance: float, max_steps: int
) -> Solver[Any]:
    """Make a solver by its short name (`SOLVERS`); ``auto`` chooses by the traits of the potential."""
    if name not in SOLVERS:
        raise unknown_name("solver", name, SOLVERS)
    return SOLVERS[name](potential, step_size, tolerance, max_steps)


Scaling = Literal["none", "degree"]
DEGREE_SCALED = ("tv", "lec")
"""Potentials whose strength is divided by the mean degree by default; see docs/adr/0029."""


def scaled_strength(
    hypergraph: Hypergraph, potential: HyperedgePotential | str, strength: float, scaling: Scaling | None = None
) -> float:
    r"""Return the weight of the hyperedge potentials in the objective.

    Args:
        hypergraph: The hypergraph.
        potential: The potential; a name decides the default of ``scaling``.
        strength: $\lambda$ as the user gives it.
        scaling: ``degree``: $\lambda$ over the mean of $d_v = \sum_{e \ni v} w_e$ of the nodes whose $d_v$ is positive,
            so that a node in hundreds of hyperedges is not pulled hundreds of times as hard as by its value. ``none``:
            $\lambda$ itself. By default ``degree`` for ``tv`` and ``lec`` by name, else ``none``.

    Raises:
        UsageError: if the scaling is unknown, or the strength is negative or not finite.

    Example:
        >>> from edhnn import Hypergraph
        >>> pairs = Hypergraph.from_hyperedges([[0, 1], [0, 1], [0, 1]])
        >>> scaled_strength(pairs, "tv", 6.0)
        2.0
    """
    if scaling is not None and scaling not in get_args(Scaling):
        raise unknown_name("scaling", scaling, get_args(Scaling))
    if not 0 <= strength < float("inf"):
        raise UsageError(f"The strength must be finite and 0 or more. Got {strength}.")
    if scaling is None:
        scaling = "degree" if potential in DEGREE_SCALED else "none"
    if scaling == "none":
        return strength
    like = torch.zeros((), dtype=torch.float64, device=hypergraph.device)
    at_members = edge_to_incidence(edge_scale(hypergraph, like), hypergraph)
    degree = incidence_to_node(at_members, hypergraph)
    return strength / float(degree[degree > 0].mean()) if bool((degree > 0).any()) else strength


def diffuse(
    hypergraph: Hypergraph,
    x: Float[Tensor, "N D"],
    *,
    potential: HyperedgePotential | str = "tv",
    power: int = 2,
    strength: float = 1.0,
    scaling: Scaling | None = None,
    solver: str = "auto",
    step_size: float | None = None,
    tolerance: float = 1e-8,
    max_steps: int = 10_000,
    throw: bool = True,
    watch: Watch | None = None,
) -> Solution:
    r"""Minimise $\sum_v (h_v - x_v)^2 + \lambda \sum_e w_e\, g(H_e)$, with a certificate. Paper: Eq. 1.

    Args:
        hypergraph: The hypergraph; its hyperedge weights are $w_e$.
        x: The values to diffuse; each column is diffused on its own.
        potential: $g$: an object, or ``ce``, ``divergence``, ``tv``, ``lec``.
        power: $p$ of a potential given by name.
        strength: $\lambda$, before scaling.
        scaling: ``degree`` divides $\lambda$ by the mean degree, ``none`` does not. By default ``degree`` for ``tv``
            and ``lec`` by name, else ``none``; see `scaled_strength`.
        solver: ``auto``, ``admm``, ``gradient`` or ``cg``.
        step_size: $\eta$; chosen by the solver if not given.
        tolerance: Relative duality gap at which to stop.
        max_steps: The most steps.
        throw: Raise an error if the tolerance is not reached.
        watch: Called with the record and the state at every check of the certificate.

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
    weight = scaled_strength(hypergraph, potential, strength, scaling)
    problem = DiffusionProblem(hypergraph=hypergraph, x=x, hyperedge_potential=chosen, strength=weight)
    method = make_solver(solver, chosen, step_size=step_size, tolerance=tolerance, max_steps=max_steps)
    return solve(problem, method, throw=throw, watch=watch)
