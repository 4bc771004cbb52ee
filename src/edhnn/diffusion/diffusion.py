r"""Diffusion in one call, with a potential and a solver by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor

from edhnn.diffusion.admm import ADMM
from edhnn.diffusion.conjugate_gradient import ConjugateGradient
from edhnn.diffusion.gradient_descent import GradientDescent
from edhnn.diffusion.problem import DiffusionProblem
from edhnn.diffusion.solver import Solution, Solver, Watch, solve
from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.potentials.base import HyperedgePotential, traits_of
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
    """Make conjugate gradients for a quadratic form, else ADMM if there is a proximal operator, else descent."""
    traits = traits_of(potential)
    make = _conjugate if traits.quadratic else _admm if traits.has_prox else _gradient
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


def diffuse(
    hypergraph: Hypergraph,
    x: Float[Tensor, "N D"],
    *,
    potential: HyperedgePotential | str = "tv",
    power: int = 2,
    strength: float = 1.0,
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
        strength: $\lambda$.
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
    problem = DiffusionProblem(hypergraph=hypergraph, x=x, hyperedge_potential=chosen, strength=strength)
    method = make_solver(solver, chosen, step_size=step_size, tolerance=tolerance, max_steps=max_steps)
    return solve(problem, method, throw=throw, watch=watch)
