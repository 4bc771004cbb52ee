"""What a solver returns: the state it reached, how it ended, and the certificate it ended with."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import final

from jaxtyping import Float
from torch import Tensor

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
