r"""The loop that every solver shares: step, look, stop.

A solver is a frozen value with three verbs: `init`, `step`, and `certify`, which gives the state it vouches for, a
lower bound on the minimum and a residual. The loop looks every few steps, compares the duality gap with the objective
(the residual with the spread of ``x`` where no finite bound exists, as with fixed labels), and never stops without
saying why. All of it is relative: to diffuse $c\,x$ takes the steps of $x$ where the problem is a square.

What a solver returns: the state it reached, how it ended, and the certificate it ended with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar, final, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.diffusion.problem import DiffusionProblem
from edhnn.errors import EdhnnError


class Outcome(Enum):
    """How a solve ended; the value is the message."""

    CONVERGED = "The tolerance was reached."
    MAX_STEPS = "The tolerance was not reached within the allowed steps; raise max_steps or the tolerance."
    DIVERGED = "The state is no longer finite; take a smaller step size, or let the solver choose it."


@final
@dataclass(frozen=True, slots=True)
class StepRecord:
    """Where a solver stood at a step, the worst over columns.

    Attributes:
        step: Steps taken.
        objective: The objective, summed over columns.
        gap: Duality gap: the objective is at most this far above the minimum. Infinite if there is no finite bound.
        residual: Optimality residual; its meaning is the solver's (see there).
        seconds: Time since the start.
    """

    step: int
    objective: float
    gap: float
    residual: float
    seconds: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The result of a solve.

    Attributes:
        value: The node states.
        outcome: How it ended.
        steps: Steps taken.
        history: Where it stood at every check.
        certified_by: ``gap`` or ``residual``: what the tolerance was compared with.
    """

    value: Float[Tensor, "N D"]
    outcome: Outcome
    steps: int
    history: tuple[StepRecord, ...] = field(repr=False)
    certified_by: str = "gap"

    @property
    def last(self) -> StepRecord:
        """Where it ended."""
        return self.history[-1]


class SolverError(EdhnnError):
    """A solve did not reach its tolerance, and the caller asked to be told by an error."""


State = TypeVar("State")
Watch = Callable[[StepRecord, Tensor], None]
"""Called with what was recorded and the state, at every look."""
_CONTRADICTION = 1e-10  # of the objective: a gap so little below 0 is none
_ROUNDING = 8 * torch.finfo(torch.float64).eps
_NOTHING_LEFT = 1e-18  # of the energy of x
EARLY = 10  # steps that are looked at one by one


class Certificate(NamedTuple):
    """What a solver vouches for.

    Attributes:
        h: The state.
        lower_bound: No objective is below it; minus infinity if the solver has none.
        residual: How far the optimality conditions are from holding, for each column.
    """

    h: Float[Tensor, "N D"]
    lower_bound: Float[Tensor, " D"]
    residual: Float[Tensor, " D"]


@runtime_checkable
class Solver(Protocol[State]):
    """One method of minimising a `DiffusionProblem`."""

    @property
    def tolerance(self) -> float:
        """Stop when the gap is at most this times the objective."""

    @property
    def max_steps(self) -> int:
        """Stop after this many steps, and say so."""

    def init(self, problem: DiffusionProblem) -> State:
        """The state before the first step."""

    def step(self, problem: DiffusionProblem, state: State) -> State:
        """One step."""

    def certify(self, problem: DiffusionProblem, state: State) -> Certificate:
        """What can be said of the state."""


def solve(
    problem: DiffusionProblem,
    solver: Solver[State],
    *,
    throw: bool = True,
    check_every: int = 10,
    watch: Watch | None = None,
) -> Solution:
    """Minimise a diffusion problem, in 64 bits; the value is given in the bits of ``x``.

    Args:
        problem: The problem.
        solver: The method.
        throw: Raise an error if the tolerance is not reached; otherwise the outcome says so.
        check_every: Steps between looks at the certificate, after the first ten, which are looked at one by one.
        watch: Called at every look, for progress bars and pictures.

    Returns:
        The solution, with its history.

    Raises:
        SolverError: if the tolerance is not reached and ``throw`` is set.
    """
    begun = time.perf_counter()
    asked = problem.x.dtype
    problem = replace(problem, x=problem.x.double())  # a gap of rounded numbers would prove nothing
    history: list[StepRecord] = []
    state, steps = solver.init(problem), 0
    bound = problem.x.new_full((problem.x.shape[1],), -torch.inf)
    while True:
        found = solver.certify(problem, state)
        bound = torch.fmax(bound, found.lower_bound)  # what was once proved stays proved
        found = found._replace(lower_bound=bound)
        record, outcome, by = _look(problem, solver, found, steps, time.perf_counter() - begun)
        history.append(record)
        if watch is not None:
            watch(record, found.h)
        if outcome is None and steps >= solver.max_steps:
            outcome = Outcome.MAX_STEPS
        if outcome is not None:
            break
        for _ in range(min(1 if steps < EARLY else check_every, solver.max_steps - steps)):
            state = solver.step(problem, state)
            steps += 1
    if throw and outcome is not Outcome.CONVERGED:
        raise SolverError(
            f"{outcome.value} After {steps} steps the gap is {record.gap:.3g} and the residual {record.residual:.3g}."
        )
    return Solution(found.h.to(asked), outcome, steps, tuple(history), by)


def _look(
    problem: DiffusionProblem, solver: Solver[State], found: Certificate, steps: int, seconds: float
) -> tuple[StepRecord, Outcome | None, str]:
    objective = problem.objective(found.h)
    gap = objective - found.lower_bound
    finite = bool(found.h.isfinite().all())
    worst_gap = float(gap.max()) if len(gap) else 0.0
    worst_residual = float(found.residual.max()) if len(gap) else 0.0
    record = StepRecord(steps, float(objective.sum()), worst_gap, worst_residual, seconds)
    if not finite or torch.isnan(objective).any():
        return record, Outcome.DIVERGED, "residual"
    size, noise = objective.abs(), _noise(problem, objective)
    by_gap = worst_gap != float("inf") and bool(
        (gap >= -_CONTRADICTION * size - noise).all()
    )  # else it is proved false
    if by_gap:
        converged = bool((gap <= solver.tolerance * size + noise).all())
    else:
        low, high = problem.x.aminmax(dim=0) if len(problem.x) else (size, size)
        close = solver.tolerance * (high - low) + _ROUNDING * torch.maximum(low.abs(), high.abs())
        converged = bool((found.residual <= close).all())
    return record, Outcome.CONVERGED if converged else None, "gap" if by_gap else "residual"


def _noise(problem: DiffusionProblem, objective: Float[Tensor, " D"]) -> Float[Tensor, " D"]:
    r"""How far rounding alone can move a gap, for each column.

    A bound adds up products $R_v x_v$ that cancel. With $\sum_v R_v^2$ about the objective $F$ and
    $E = \sum_v f(0; x_v)$ these are of the size $\sqrt{E F}$. Where nothing is left to diffuse, what is left of $R$ is
    rounding too, by so many members as add up: a share of $E$.
    """
    energy = problem.node_potential.value(torch.zeros_like(problem.x), problem.x).sum(0)
    return _ROUNDING * (energy * objective.abs()).sqrt() + _NOTHING_LEFT * energy
