r"""Water levels in torch: the proximal operator of total variation, any device and dtype.

Let $s$ be sorted descending, $W_j$ the weight of its first $j$ values and $D_j = \sum_{i \le j} w_i (s_i - s_j)$ the
budget that lowers them all to $s_j$. The level that a budget $t$ buys is the largest of straight lines,

$h(t) = \max_j \; s_j - (t - D_j) / W_j,$

and the lower level is the same for $-s$. So $h(t) - l(t) - t / (2\eta)$ is convex, falling and piecewise linear:
Newton's method from $t = 0$ rises to its root and ends there exactly, after at most as many steps as there are pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from edhnn.kernels.torch_backend.segments import Group, over_segments, sorted_order, spoiled, widened


def saturate(step: Float[Tensor, "P 1"], x: Float[Tensor, "P 1"]) -> Float[Tensor, "P 1"]:
    r"""Return $\eta / (\tfrac12 + \eta x)$, without overflow for any finite step."""
    small, large = step.clamp(max=1.0), step.clamp(min=1.0)
    return torch.where(step <= 1.0, small / (0.5 + small * x), 1.0 / (0.5 / large + x))


@dataclass(frozen=True, slots=True)
class Water:
    """Values in descending order, the weight above each, and the budget that lowers the level to each."""

    s: Float[Tensor, "P K"]
    weight: Float[Tensor, "P K"]
    budget: Float[Tensor, "P K"]
    real: Bool[Tensor, "P K"]

    @staticmethod
    def over(s: Float[Tensor, "P K"], w: Float[Tensor, "P K"], real: Bool[Tensor, "P K"]) -> Water:
        """Build the running sums over sorted values with their weights."""
        weight = w.cumsum(1)
        steps = weight[:, :-1] * (s[:, :-1] - s[:, 1:])
        return Water(s, weight, torch.nn.functional.pad(steps, (1, 0)).cumsum(1), real)

    def at(self, place: Int[Tensor, "P 1"]) -> tuple[Tensor, Tensor, Tensor]:
        """Value, weight and budget at one place of each problem."""
        return self.s.gather(1, place), self.weight.gather(1, place), self.budget.gather(1, place)

    @torch.no_grad()
    def piece(self, t: Float[Tensor, "P 1"]) -> Int[Tensor, "P 1"]:
        """Return the line that is the level at budget ``t``."""
        lines = self.s - (t - self.budget) / self.weight
        return lines.masked_fill(~self.real, -torch.inf).argmax(1, keepdim=True)

    def rows(self, chosen: Int[Tensor, " Q"]) -> Water:
        """Return the chosen problems only."""
        return Water(*(part.index_select(0, chosen) for part in (self.s, self.weight, self.budget, self.real)))


def prox_total_variation(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    step: Float[Tensor, " E"],
    power: int,
    weight: Float[Tensor, " I"] | None,
) -> Float[Tensor, "I D"]:
    """See `edhnn.kernels.prox_total_variation`; differentiable in values, step and weight on the active piece."""
    if values.numel() == 0:
        return values.clone()
    wide, wide_step = widened(values), widened(step)
    wide_weight = torch.ones_like(wide[:, 0]) if weight is None else widened(weight)

    def solve(group: Group) -> Float[Tensor, "P K"]:
        a, w, eta, real = group.entries(wide), group.per_row(wide_weight), group.per_edge(wide_step), group.real
        wrong = spoiled(a, w, eta)
        a, eta = a.masked_fill(wrong, 0.0), eta.masked_fill(wrong, 0.0)
        w = torch.where(wrong, real.to(w.dtype), w)
        return _clip(a, w, eta, real, power).masked_fill(wrong, torch.nan)

    return over_segments(wide, edge_ptr, solve).to(values.dtype)


def _clip(
    a: Float[Tensor, "P K"],
    w: Float[Tensor, "P K"],
    step: Float[Tensor, "P 1"],
    real: Bool[Tensor, "P K"],
    power: int,
) -> Float[Tensor, "P K"]:
    order = sorted_order(a, real)
    last = real.sum(1, keepdim=True) - 1
    backwards = order.gather(1, (last - torch.arange(a.shape[1], device=a.device)).clamp(min=0))
    above = Water.over(a.gather(1, order), w.gather(1, order), real)
    below = Water.over(-a.gather(1, backwards), w.gather(1, backwards), real)

    if power == 1:
        t, top, bottom = step, above.piece(step), below.piece(step)
    else:
        top, bottom = _newton(above, below, step)
        t = _root_of_piece(above, below, step, top, bottom)
    s_top, w_top, budget_top = above.at(top)
    s_bottom, w_bottom, budget_bottom = below.at(bottom)
    high = s_top - (t - budget_top) / w_top
    low = (t - budget_bottom) / w_bottom - s_bottom
    s_last, w_last, budget_last = above.at(last)
    mean = s_last + budget_last / w_last
    clipped = torch.where(a > high, high, torch.where(a < low, low, a))
    return torch.where(high <= low, mean, clipped)


def _root_of_piece(
    above: Water, below: Water, step: Tensor, top: Int[Tensor, "P 1"], bottom: Int[Tensor, "P 1"]
) -> Float[Tensor, "P 1"]:
    """Where the lines of both levels are t / (2 step) apart."""
    s_top, w_top, budget_top = above.at(top)
    s_bottom, w_bottom, budget_bottom = below.at(bottom)
    gap = (s_top + s_bottom) + budget_top / w_top + budget_bottom / w_bottom
    return gap * saturate(step, 1.0 / w_top + 1.0 / w_bottom)


@torch.no_grad()
def _newton(above: Water, below: Water, step: Tensor) -> tuple[Int[Tensor, "P 1"], Int[Tensor, "P 1"]]:
    """Return the pieces of both levels on which the root for power 2 lies."""
    t = torch.zeros_like(step)
    top, bottom = above.piece(t), below.piece(t)
    problem = torch.arange(len(step), device=step.device)
    pieces = (top, bottom)
    while len(problem):
        root = _root_of_piece(above, below, step, *pieces)
        rises = (root > t).squeeze(1).nonzero().squeeze(1)
        above, below, step, t, problem = above.rows(rises), below.rows(rises), step[rises], root[rises], problem[rises]
        pieces = above.piece(t), below.piece(t)
        top[problem], bottom[problem] = pieces
    return top, bottom
