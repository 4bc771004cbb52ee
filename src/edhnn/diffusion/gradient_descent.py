r"""Gradient descent, and the subgradient method with averaging for potentials with corners.

$$ h_v \leftarrow h_v - \eta \Big( \nabla f(h_v; x_v) + \sum_{e \ni v} [\nabla g(H_e)]_v \Big) $$

Paper: Eq. 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, final

from jaxtyping import Float
from torch import Tensor

from edhnn.diffusion.problem import DiffusionProblem
from edhnn.diffusion.solver import Certificate
from edhnn.errors import UsageError
from edhnn.hypergraph.incidence import incidence_to_node
from edhnn.potentials.node import FixedLabels

Rule = Literal["fixed", "backtracking", "averaging"]


class GradientState(NamedTuple):
    """The state, its step size, and, for the certificate, averages of subgradients and of their conjugates."""

    h: Float[Tensor, "N D"]
    step_size: float
    steps: int = 0
    mean_h: Float[Tensor, "N D"] | None = None
    mean_r_ev: Float[Tensor, "I D"] | None = None
    mean_conjugate: Float[Tensor, " D"] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDescent:
    r"""Gradient descent. Paper: Eq. 2.

    The certificate takes $r_e = \nabla g(H_e)$, $p_e = H_e$; for the squared distance the gap is then
    $\tfrac14 \|\nabla\|^2$. With ``averaging`` it takes averages of subgradients, whose conjugates average to an upper
    bound of the average's. The residual is $\|\nabla\|_\infty$.

    Args:
        rule: ``fixed``: every step has ``step_size``. ``backtracking``: halve until the objective falls enough, then
            try a longer step next time. ``averaging``: steps $1/(t + s)$, with $s$ the first of $2, 4, 8, \dots$ for
            which the first step does not raise the objective, and averages weighted by $(t+1)(t+2)(t+3)$; for
            potentials with corners and a node potential $(h - x)^2$.
        step_size: $\eta$, the first one for ``backtracking``; not used by ``averaging``.
        tolerance: Relative duality gap.
        max_steps: The most steps.
    """

    rule: Rule = "backtracking"
    step_size: float = 0.1
    tolerance: float = 1e-8
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        if self.rule not in ("fixed", "backtracking", "averaging") or not self.step_size > 0:
            raise UsageError(
                "GradientDescent needs the rule fixed, backtracking or averaging, and a positive step size. "
                f"Got {self.rule} and {self.step_size}."
            )

    def init(self, problem: DiffusionProblem) -> GradientState:
        """Start from $h = x$."""
        if isinstance(problem.node_potential, FixedLabels):
            raise UsageError("Gradient descent does not keep labels fixed. Use ADMM.")
        return GradientState(problem.x, self.step_size)

    def step(self, problem: DiffusionProblem, state: GradientState) -> GradientState:
        """Take one step of Eq. 2."""
        if self.rule == "averaging":
            return self._averaged(problem, state)
        slope = problem.grad(state.h)
        if self.rule == "fixed":
            return GradientState(state.h - state.step_size * slope, state.step_size, state.steps + 1)
        eta, before, square = 2 * state.step_size, problem.objective(state.h).sum(), (slope**2).sum()
        for _ in range(60):
            h = state.h - eta * slope
            if bool(problem.objective(h).sum() <= before - 0.5 * eta * square):
                break
            eta /= 2
        return GradientState(h, eta, state.steps + 1)

    def certify(self, problem: DiffusionProblem, state: GradientState) -> Certificate:
        """Return the lower bound of the (averaged) subgradients."""
        slope = problem.grad(state.h)
        residual = slope.abs().amax(0) if len(slope) else slope.sum(0)
        if state.mean_h is not None and state.mean_r_ev is not None and state.mean_conjugate is not None:
            h, r_ev, conjugate = state.mean_h, state.mean_r_ev, state.mean_conjugate
        else:
            h, (r_ev, conjugate) = state.h, problem.subgradient(state.h)
        return Certificate(h, problem.lower_bound(r_ev, conjugate), residual)

    def _averaged(self, problem: DiffusionProblem, state: GradientState) -> GradientState:
        r_ev, conjugate = problem.subgradient(state.h)
        slope = problem.node_potential.grad(state.h, problem.x) + incidence_to_node(r_ev, problem.hypergraph)
        share, eta = 4 / (state.steps + 4), state.step_size
        if state.steps == 0:
            before, eta = problem.objective(state.h).sum(), 0.5
            while eta > 1e-12 and bool(problem.objective(state.h - eta * slope).sum() > before):
                eta /= 2

        def average(mean: Tensor | None, new: Tensor) -> Tensor:
            return new if mean is None else mean + share * (new - mean)

        return GradientState(
            state.h - eta * slope,
            1 / (1 / eta + 1),
            state.steps + 1,
            average(state.mean_h, state.h),
            average(state.mean_r_ev, r_ev),
            average(state.mean_conjugate, conjugate),
        )
