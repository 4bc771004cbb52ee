r"""ADMM on the hyperedges, as in the paper.

$$ Q_e \leftarrow \mathrm{prox}_{\eta g}(2 H_e - Q_e) - H_e + Q_e, \qquad
   h_v \leftarrow \mathrm{prox}_{\eta f(\cdot; x_v)/d_v}\Big(\tfrac{1}{d_v} \sum_{e \ni v} q_{e,v}\Big), $$

from $h = x$, $Q_e = H_e$. Paper: Eq. 3 and 4, Appendix A.
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
from edhnn.potentials.base import Proximable


class AdmmState(NamedTuple):
    """$h$, $Q$, the step size, and the last proximal point with its remainder."""

    h: Float[Tensor, "N D"]
    q_ev: Float[Tensor, "I D"]
    step_size: float
    steps: int
    p_ev: Float[Tensor, "I D"] | None = None
    r_ev: Float[Tensor, "I D"] | None = None
    moved: float = 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ADMM:
    r"""Alternating directions. Paper: Eq. 3 and 4, Appendix A.

    Converges for convex potentials with any step size. The residual is
    $\max(\|p_e - H_e\|_\infty, \|\Delta h\|_\infty / \eta)$, which is 0 if the copies of each node agree and no longer
    change.

    Args:
        step_size: $\eta$.
        adaptive: Double or halve $\eta$ if one residual is ten times the other, in the first half of the steps.
        tolerance: Relative duality gap.
        max_steps: The most steps.
    """

    step_size: float = 0.5
    adaptive: bool = False
    tolerance: float = 1e-8
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        if not self.step_size > 0:
            raise UsageError(f"The step size of ADMM must be positive. Got {self.step_size}.")

    def init(self, problem: DiffusionProblem) -> AdmmState:
        """Start from $h = x$, $Q_e = H_e$."""
        if not isinstance(problem.hyperedge_potential, Proximable):
            raise UsageError(f"ADMM needs a proximal operator. {problem.hyperedge_potential!r} has none.")
        return AdmmState(problem.x, node_to_incidence(problem.x, problem.hypergraph), self.step_size, 0)

    def step(self, problem: DiffusionProblem, state: AdmmState) -> AdmmState:
        """Update $Q$ by Eq. 3 and $h$ by Eq. 4."""
        hypergraph, potential = problem.hypergraph, problem.hyperedge_potential
        assert isinstance(potential, Proximable)
        eta = state.step_size
        h_ev = node_to_incidence(state.h, hypergraph)
        a_ev = 2 * h_ev - state.q_ev
        p_ev = potential.prox(a_ev, hypergraph, step_size=eta * problem.strength)
        q_ev = p_ev - h_ev + state.q_ev  # Eq. 3
        degree = hypergraph.degree.to(problem.x)[:, None]
        mean = incidence_to_node(q_ev, hypergraph) / degree.clamp(min=1)
        mean = torch.where(degree > 0, mean, problem.x)
        h = problem.node_potential.prox(mean, problem.x, eta / degree)  # Eq. 4
        moved = float((h - state.h).abs().max()) if h.numel() else 0.0
        done = AdmmState(h, q_ev, eta, state.steps + 1, p_ev, (a_ev - p_ev) / eta, moved)
        return self._adapted(problem, done) if self.adaptive and done.steps < self.max_steps // 2 else done

    def certify(self, problem: DiffusionProblem, state: AdmmState) -> Certificate:
        """Return the lower bound of the last proximal step; minus infinity before the first."""
        if state.p_ev is None or state.r_ev is None:
            infinity = problem.x.new_full((problem.x.shape[1],), torch.inf)
            return Certificate(state.h, -infinity, infinity)
        bound = problem.lower_bound(state.r_ev, problem.conjugate_value(state.r_ev, state.p_ev))
        distance = (state.p_ev - node_to_incidence(state.h, problem.hypergraph)).abs()
        worst = distance.amax(0) if len(distance) else bound.new_zeros(bound.shape)
        return Certificate(state.h, bound, worst.clamp(min=state.moved / state.step_size))

    def _adapted(self, problem: DiffusionProblem, state: AdmmState) -> AdmmState:
        r"""Balance the residuals; rescale $Q$ so that the dual variables $(H_e - Q_e)/\eta$ do not change."""
        if state.steps % 10 or state.p_ev is None:
            return state
        h_ev = node_to_incidence(state.h, problem.hypergraph)
        primal = float((state.p_ev - h_ev).norm())
        dual = state.moved / state.step_size * max(1, problem.hypergraph.num_incidences) ** 0.5
        factor = 0.5 if primal > 10 * dual else 2.0 if dual > 10 * primal else 1.0
        if factor == 1.0:
            return state
        return state._replace(q_ev=h_ev + factor * (state.q_ev - h_ev), step_size=factor * state.step_size)
