r"""The loop that every solver shares: step, check the certificate, stop.

A solver is an immutable value with three methods: `init`, `step`, and `certify`, which returns a state, a lower bound
on the minimum and a residual. The loop checks this certificate every few steps and compares the duality gap with the
objective, or the residual with the spread of ``x`` where no finite bound exists, as with fixed labels. All tolerances
are relative: if the objective is homogeneous of degree 2, diffusing $c\,x$ takes as many steps as diffusing $x$.

A `Solution` holds the state that was reached, how the solve ended, and the certificates on the way.
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
from edhnn.notebook import table


class Outcome(Enum):
    """How a solve ended; the value is the message."""

    CONVERGED = "The tolerance was reached."
    MAX_STEPS = "The tolerance was not reached within the allowed steps. Raise `max_steps=` or `tolerance=`."
    DIVERGED = "The state is no longer finite. Use a smaller `step_size=`, or let the solver choose it."


@final
@dataclass(frozen=True, slots=True)
class StepRecord:
    """The certificate of a solver at a step.

    Attributes:
        step: Steps taken.
        objective: The objective, summed over columns.
        gap: The largest duality gap of a column: its objective is at most this far above the minimum. Infinite if
            there is no finite bound.
        residual: The largest optimality residual of a column, as the solver defines it.
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
        outcome: How the solve ended.
        steps: Steps taken.
        history: The record of every check.
        certified_by: ``gap`` or ``residual``, whichever the tolerance was compared with.
    """

    value: Float[Tensor, "N D"]
    outcome: Outcome
    steps: int
    history: tuple[StepRecord, ...] = field(repr=False)
    certified_by: str = "gap"

    @property
    def last(self) -> StepRecord:
        """The record of the last check."""
        return self.history[-1]

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("outcome", self.outcome.value),
            ("steps", self.steps),
            ("nodes", self.value.shape[0]),
            ("columns", self.value.shape[1]),
        ]
        if self.value.numel():
            low, high = self.value.aminmax()
            rows.append(("range", f"{float(low):.4g} to {float(high):.4g}"))
        rows += [
            ("objective", f"{self.last.objective:.6g}"),
            ("duality gap", f"{self.last.gap:.3g}"),
            ("residual", f"{self.last.residual:.3g}"),
            ("seconds", f"{self.last.seconds:.2f}"),
        ]
        return table(f"Solution, certified by its {self.certified_by}", rows)


class SolverError(EdhnnError):
    """A solve did not reach its tolerance, and ``throw`` is set."""


State = TypeVar("State")
Watch = Callable[[StepRecord, Tensor], None]
"""A function that is called with the record and the state at every check."""
_NEGATIVE_GAP = 1e-10  # relative to the objective: a gap below this disproves the bound, one above it is rounding
_ROUNDING = 8 * torch.finfo(torch.float64).eps
_CONSTANT_ROUNDING = 1e-18  # relative to the energy of x
EARLY = 10  # the number of first steps after each of which the certificate is checked


class Certificate(NamedTuple):
    """The state of a solver and the bounds on its error.

    Attributes:
        h: The state.
        lower_bound: A lower bound on the objective; minus infinity if the solver has none.
        residual: The violation of the optimality conditions, for each column.
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
        """Stop after this many steps, with `Outcome.MAX_STEPS`."""

    def init(self, problem: DiffusionProblem) -> State:
        """Return the state before the first step."""

    def step(self, problem: DiffusionProblem, state: State) -> State:
        """Take one step."""

    def certify(self, problem: DiffusionProblem, state: State) -> Certificate:
        """Bound the error of the state."""


def solve(
    problem: DiffusionProblem,
    solver: Solver[State],
    *,
    throw: bool = True,
    check_every: int = 10,
    watch: Watch | None = None,
) -> Solution:
    """Minimise a diffusion problem in float64 and return the value in the precision of ``x``.

    Args:
        problem: The problem.
        solver: The method.
        throw: Raise an error if the tolerance is not reached; otherwise only the outcome shows it.
        check_every: Steps between checks of the certificate, after the first ten, which are all checked.
        watch: Called at every check, for progress bars and pictures.

    Raises:
        SolverError: if the tolerance is not reached and ``throw`` is set.
    """
    start = time.perf_counter()
    dtype = problem.x.dtype
    problem = replace(problem, x=problem.x.double())  # in float32, rounding errors are larger than useful gaps
    history: list[StepRecord] = []
    state, steps = solver.init(problem), 0
    bound = problem.x.new_full((problem.x.shape[1],), -torch.inf)
    while True:
        certificate = solver.certify(problem, state)
        bound = torch.fmax(bound, certificate.lower_bound)  # an earlier bound stays valid
        certificate = certificate._replace(lower_bound=bound)
        record, outcome, by = _check(problem, solver, certificate, steps, time.perf_counter() - start)
        history.append(record)
        if watch is not None:
            watch(record, certificate.h)
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
    return Solution(certificate.h.to(dtype), outcome, steps, tuple(history), by)


def _check(
    problem: DiffusionProblem, solver: Solver[State], certificate: Certificate, steps: int, seconds: float
) -> tuple[StepRecord, Outcome | None, str]:
    """Return the record of a step, the outcome if the solve ends with it, and whether gap or residual decided."""
    objective = problem.objective(certificate.h)
    gap = objective - certificate.lower_bound
    worst_gap = float(gap.max()) if len(gap) else 0.0
    worst_residual = float(certificate.residual.max()) if len(gap) else 0.0
    record = StepRecord(steps, float(objective.sum()), worst_gap, worst_residual, seconds)
    if not certificate.h.isfinite().all() or torch.isnan(objective).any():
        return record, Outcome.DIVERGED, "residual"
    size, noise = objective.abs(), _noise(problem, objective)
    # A clearly negative gap means that the potential is not convex, so that the bound is false.
    by_gap = worst_gap != float("inf") and bool((gap >= -_NEGATIVE_GAP * size - noise).all())
    if by_gap:
        converged = bool((gap <= solver.tolerance * size + noise).all())
    else:
        low, high = problem.x.aminmax(dim=0) if len(problem.x) else (size, size)
        close = solver.tolerance * (high - low) + _ROUNDING * torch.maximum(low.abs(), high.abs())
        converged = bool((certificate.residual <= close).all())
    return record, Outcome.CONVERGED if converged else None, "gap" if by_gap else "residual"


def _noise(problem: DiffusionProblem, objective: Float[Tensor, " D"]) -> Float[Tensor, " D"]:
    r"""Estimate the rounding error of a gap, for each column.

    A bound sums products $R_v x_v$ that cancel. With $\sum_v R_v^2$ about the objective $F$ and
    $E = \sum_v f(0; x_v)$ they are of the size $\sqrt{E F}$. For constant ``x`` the objective is 0 and $R$ itself is
    rounding error, which adds a share of $E$.
    """
    energy = problem.node_potential.value(torch.zeros_like(problem.x), problem.x).sum(0)
    return _ROUNDING * (energy * objective.abs()).sqrt() + _CONSTANT_ROUNDING * energy
