r"""Preconditioned conjugate gradients, for the clique expansion with the squared distance, which is a linear system.

The gradient of the objective vanishes where $(2 M + G) h = 2 M x$, with $M = \mathrm{diag}(\mu)$ and $G$ the linear map
$h \mapsto \sum_e \nabla g(H_e)$. The preconditioner is the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.diffusion.problem import DiffusionProblem
from edhnn.diffusion.solver import Certificate
from edhnn.errors import UsageError
from edhnn.hypergraph.incidence import incidence_to_node, node_to_incidence
from edhnn.potentials.base import Quadratic
from edhnn.potentials.node import SquaredDistance


class ConjugateState(NamedTuple):
    """The state, the residual, the direction, and the residual's preconditioned square."""

    h: Float[Tensor, "N D"]
    r: Float[Tensor, "N D"]
    direction: Float[Tensor, "N D"]
    square: Float[Tensor, " D"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConjugateGradient:
    r"""Conjugate gradients with Jacobi preconditioning, for a `Quadratic` potential and `SquaredDistance`.

    The residual is $\|\nabla\|_\infty$.

    Args:
        tolerance: Relative duality gap.
        max_steps: The most steps.
    """

    tolerance: float = 1e-8
    max_steps: int = 10_000

    def init(self, problem: DiffusionProblem) -> ConjugateState:
        """Start from $h = x$."""
        quadratic = isinstance(problem.hyperedge_potential, Quadratic)
        if not quadratic or not isinstance(problem.node_potential, SquaredDistance):
            raise UsageError("Conjugate gradients only solve the clique expansion with the squared distance.")
        r = -problem.grad(problem.x)
        z = r / self._diagonal(problem)
        return ConjugateState(problem.x, r, z, (r * z).sum(0))

    def step(self, problem: DiffusionProblem, state: ConjugateState) -> ConjugateState:
        """Take one step; a column that is solved does not change."""
        pull = problem.edge_grad(node_to_incidence(state.direction, problem.hypergraph))
        image = problem.node_potential.grad(state.direction, torch.zeros_like(problem.x))
        image = image + incidence_to_node(pull, problem.hypergraph)
        curve = (state.direction * image).sum(0)
        alpha = torch.where(curve > 0, state.square / torch.where(curve > 0, curve, 1), 0)
        h, r = state.h + alpha * state.direction, state.r - alpha * image
        z = r / self._diagonal(problem)
        square = (r * z).sum(0)
        beta = torch.where(state.square > 0, square / torch.where(state.square > 0, state.square, 1), 0)
        return ConjugateState(h, r, z + beta * state.direction, square)

    def certify(self, problem: DiffusionProblem, state: ConjugateState) -> Certificate:
        """Return the lower bound of the gradient at the state."""
        r_ev, conjugate = problem.subgradient(state.h)
        slope = problem.node_potential.grad(state.h, problem.x) + incidence_to_node(r_ev, problem.hypergraph)
        residual = slope.abs().amax(0) if len(slope) else slope.sum(0)
        return Certificate(state.h, problem.lower_bound(r_ev, conjugate), residual)

    def _diagonal(self, problem: DiffusionProblem) -> Tensor:
        potential = problem.hyperedge_potential
        assert isinstance(potential, Quadratic)
        on_nodes = problem.node_potential.grad(torch.ones_like(problem.x[:, :1]), torch.zeros_like(problem.x[:, :1]))
        on_edges = problem.strength * potential.curvature(problem.hypergraph, problem.x)
        return on_nodes + incidence_to_node(on_edges, problem.hypergraph)
