r"""The weights of several predictors in one answer, found on the validation nodes.

Outputs are log-odds (in a regression: standardised values). Each predictor is calibrated first: its outputs are divided
by the temperature $T_k$ with the smallest validation loss. The answer has the outputs $\sum_k w_k o_k / T_k$ with
weights $w_k \ge 0$, $\sum_k w_k = 1$, of the smallest

$$ \mathrm{loss}(w) + \frac{0.25}{\sqrt{n}}\,(1 - w_0), $$

where predictor 0 is the base and $n$ the number of validation nodes. The loss is convex in $w$. The last term is the
price of every predictor but the base: on few validation nodes a network that adds nothing looks better than the base by
chance, and a small weight costs little. Weights below 0.02 become 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import torch
from torch import Tensor

from edhnn.training.objective import Objective

PRICE: Final = 0.25
_LEAST = 0.02
_TEMPERATURES: Final = tuple(2.0 ** (k / 4) for k in range(-6, 21))
_STEPS, _RATE = 400, 0.5


@final
@dataclass(frozen=True, slots=True)
class Blend:
    """Weights and temperatures.

    Attributes:
        weights: The weight of each predictor.
        temperatures: Its temperature.
        losses: Its validation loss after calibration.
        loss: The validation loss of the blend.
    """

    weights: tuple[float, ...]
    temperatures: tuple[float, ...]
    losses: tuple[float, ...]
    loss: float

    @property
    def coefficients(self) -> tuple[float, ...]:
        """The factor of each predictor's outputs."""
        return tuple(weight / heat for weight, heat in zip(self.weights, self.temperatures, strict=True))


def fit_blend(outputs: Sequence[Tensor], y: Tensor, objective: Objective) -> Blend:
    """Find the weights of predictors.

    Args:
        outputs: The outputs of each predictor for the validation nodes; the base is the first.
        y: The labels of these nodes.
        objective: The task.
    """
    exact = [output.double() for output in outputs]
    targets = objective.targets(y, torch.float64)

    def loss_of(output: Tensor) -> float:
        return float(objective.loss(output, targets))

    heats = [1.0] * len(exact)
    if objective.task != "regression":
        heats = [min(_TEMPERATURES, key=lambda heat, o=output: loss_of(o / heat)) for output in exact]  # type: ignore[misc]
    stacked = torch.stack([output / heat for output, heat in zip(exact, heats, strict=True)])
    weights = _descend(stacked, targets, objective)
    weights = torch.where(weights < _LEAST, 0.0, weights)
    weights = weights / weights.sum()
    return Blend(
        weights=tuple(weights.tolist()),
        temperatures=tuple(heats),
        losses=tuple(map(loss_of, stacked)),
        loss=loss_of((weights[:, None, None] * stacked).sum(dim=0)),
    )


def _descend(stacked: Tensor, targets: Tensor, objective: Objective) -> Tensor:
    """Return the best weights, by exponentiated gradient steps, which stay on the simplex; the best step is kept."""
    count = len(stacked)
    logits = torch.zeros(count, dtype=torch.float64)
    price = torch.full((count,), PRICE / stacked.shape[1] ** 0.5, dtype=torch.float64)
    price[0] = 0.0
    best, chosen = float("inf"), torch.eye(count, dtype=torch.float64)[0]
    corners = list(torch.eye(count, dtype=torch.float64))
    for step in range(_STEPS + count):
        start = corners[step] if step < count else torch.softmax(logits, dim=0)
        weights = start.clone().requires_grad_()
        value = objective.loss((weights[:, None, None] * stacked).sum(dim=0), targets) + weights @ price
        if float(value.detach()) < best - 1e-9:
            best, chosen = float(value.detach()), start.detach()
        if step >= count:
            (gradient,) = torch.autograd.grad(value, weights)
            rate = _RATE / (1 + (step - count) / 20) ** 0.5
            logits = logits - rate * (gradient - (gradient * start).sum()) / gradient.abs().max().clamp(min=1e-3)
    return chosen


def calibration_error(answers: Tensor, y: Tensor, bins: int = 10) -> tuple[float, list[dict[str, float]]]:
    """Measure how far the largest probability of a class is from the share of right answers.

    Args:
        answers: Probabilities of classes.
        y: Classes; negative if unknown.
        bins: Number of intervals of probability.

    Returns:
        The expected calibration error, and for each interval with nodes its mean probability, accuracy and count.
    """
    known = y >= 0
    sure, answer = answers[known].double().max(dim=1)
    right = (answer == y[known]).double()
    place = (sure * bins).long().clamp(max=bins - 1)
    rows, error = [], 0.0
    for number in range(bins):
        inside = place == number
        if bool(inside.any()):
            mean, accuracy = float(sure[inside].mean()), float(right[inside].mean())
            rows.append({"probability": mean, "accuracy": accuracy, "nodes": float(inside.sum())})
            error += abs(mean - accuracy) * float(inside.double().mean())
    return error, rows
