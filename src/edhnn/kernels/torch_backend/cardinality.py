r"""The proximal operator of cardinality-based potentials in torch: any device and dtype.

**Without weights**, in sorted order, the answer is $z(\tau) = \mathrm{PAV}(s - \tau y)$. For power 2, $\tau$ is the
root of $\langle y, z(\tau) \rangle - \tau / (2\eta)$, which falls and is piecewise linear. On the piece of given blocks
$\langle y, z(\tau) \rangle = A - \tau B$ with $A = \sum_b \bar y_b S_b$ and $B = \sum_b n_b \bar y_b^2$, so Newton's
step is $\tau = 2\eta A / (1 + 2\eta B)$; it is exact once it stays on its piece.

**In a weighted metric** only convex potentials are solved. For non-increasing $y$ the potential
$\langle y, \varsigma(z) \rangle$ is the Lovász extension of a concave function of the cardinality, and the answer for a
fixed $\tau$ is found by decomposition (Groenevelt; Fujishige). Were a block of members $S$, which own the ranks $R$,
constant, its level would be

$\alpha = \big( \sum_{v \in S} w_v a_v - \tau \sum_{r \in R} y_r \big) \big/ \sum_{v \in S} w_v .$

Those above $\alpha$ in the answer are the $A \subseteq S$ that makes the excess
$\sum_{v \in A} w_v (a_v - \alpha) - \tau \sum_{r \le |A|} y_r$ largest: some first members by descending pull
$w_v (a_v - \alpha)$. If no $A$ has an excess above 0, the block is constant; else $A$ takes the first ranks, the others
the rest, and both are blocks again. So a problem of $k$ members ends after at most $k - 1$ splits, in practice in about
$\log k$ rounds. Order is found, not assumed: unequal weights may turn the order of $a$ round.

For power 2, $\tau$ is the root of $\langle y, \varsigma(z(\tau)) \rangle - \tau / (2\eta)$, which falls and is
piecewise linear: Newton's method, begun at the root that pooling in the order of $a$ has, which is most often the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from edhnn.errors import DataError
from edhnn.kernels.torch_backend.segments import (
    Group,
    block_sums,
    block_values,
    mean_tilt,
    over_segments,
    pool,
    sorted_order,
    spoiled,
    stack_sums,
    widened,
)
from edhnn.kernels.torch_backend.total_variation import saturate


def prox_cardinality(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    step: Float[Tensor, " E"],
    power: int,
    cut_weight: Float[Tensor, " I"],
) -> Float[Tensor, "I D"]:
    """See `edhnn.kernels.prox_cardinality`; differentiable in values, step and cut_weight on the active piece."""
    if values.numel() == 0:
        return values.clone()
    wide, wide_step, wide_cut_weight = widened(values), widened(step), widened(cut_weight)

    def solve(group: Group) -> Float[Tensor, "P K"]:
        a, y, eta, real = group.entries(wide), group.per_row(wide_cut_weight), group.per_edge(wide_step), group.real
        wrong = spoiled(a, y, eta)
        a, y, eta = (given.masked_fill(wrong, 0.0) for given in (a, y, eta))
        order = sorted_order(a, real)
        places = stack_sums(a.gather(1, order), real.to(a.dtype), y)
        if power == 1:
            block, tau = pool(places, eta), eta
        else:
            block, tau, is_root = _newton_in_order(places, eta)
            tau = torch.where(is_root, _root_in_piece(block_sums(places, block), eta), tau)
        pooled = block_values(block_sums(places, block), tau).gather(1, block)
        return torch.zeros_like(a).scatter(1, order, pooled).masked_fill(wrong, torch.nan)

    return over_segments(wide, edge_ptr, solve).to(values.dtype)


def _root_in_piece(sums: Float[Tensor, "P K C"], step: Float[Tensor, "P 1"]) -> Float[Tensor, "P 1"]:
    tilt = mean_tilt(sums)
    a, b = (tilt * sums[..., 1]).sum(1, keepdim=True), (tilt.square() * sums[..., 0]).sum(1, keepdim=True)
    return a * saturate(step, b)


def _root_in_order(places: Float[Tensor, "P K C"], step: Float[Tensor, "P 1"]) -> Float[Tensor, "P 1"]:
    """Return the tau for power 2, to rounding, if members may not change their order; places may have weights."""
    block, tau, is_root = _newton_in_order(places, step)
    return torch.where(is_root, _root_in_piece(block_sums(places, block), step), tau)


@torch.no_grad()
def _newton_in_order(
    places: Float[Tensor, "P K C"], step: Float[Tensor, "P 1"]
) -> tuple[Int[Tensor, "P K"], Float[Tensor, "P 1"], Bool[Tensor, "P 1"]]:
    """Return the blocks at the root for power 2, their tau, and whether it is the exact root of its piece."""
    tau = torch.zeros_like(step)
    block = pool(places, tau)
    root = _root_in_piece(block_sums(places, block), step)
    mirror = torch.where(root < 0, -1.0, 1.0)  # the potential is even in y: make <y, s> non-negative
    flips = torch.stack([torch.ones_like(mirror), torch.ones_like(mirror), mirror, torch.ones_like(mirror)], 2)
    flipped = places * flips

    def root_at(problem: Int[Tensor, " Q"], tau: Float[Tensor, "Q 1"]) -> Float[Tensor, "Q 1"]:
        part = flipped.index_select(0, problem)
        found = pool(part, tau)
        block[problem] = found
        return _root_in_piece(block_sums(part, found), step[problem])

    visible = torch.finfo(places.dtype).eps * places[..., 1].abs().amax(1, keepdim=True)
    tau, is_root = _guarded_newton(root_at, tau, root.abs(), places[..., 3].amax(1, keepdim=True), visible)
    return block, tau * mirror, is_root


@torch.no_grad()
def _guarded_newton(
    root_at: Callable[[Int[Tensor, " Q"], Float[Tensor, "Q 1"]], Float[Tensor, "Q 1"]],
    tau: Float[Tensor, "P 1"],
    root: Float[Tensor, "P 1"],
    steepest: Float[Tensor, "P 1"],
    visible: Float[Tensor, "P 1"],
) -> tuple[Float[Tensor, "P 1"], Bool[Tensor, "P 1"]]:
    """Take guarded Newton steps to the root, which is not negative; return tau and whether it is its piece's root.

    Left and right of the root are kept. A step that leaves them is first taken to just inside the end it passed, for
    rounding alone may have carried it over, and the next time to their middle, so that no cycle can last. Where they
    come closer than any value can show, tau is one of them.

    Args:
        root_at: The root, were the piece at tau a line, for some of the problems.
        tau: Where to begin.
        root: What ``root_at`` says there.
        steepest: The most by which tau moves a value.
        visible: The least that a value shows.
    """
    tau_found, is_root = tau.clone(), torch.zeros_like(tau, dtype=torch.bool)
    left, right = torch.zeros_like(tau), torch.full_like(tau, torch.inf)
    problem, halve = torch.arange(len(tau), device=tau.device), torch.zeros_like(is_root)
    eps = torch.finfo(tau.dtype).eps
    while True:
        left, right = torch.where(root > tau, tau, left), torch.where(root < tau, tau, right)
        outside = (root <= left) | (root >= right)
        nudge = 4.0 * eps * right
        inner = torch.where(root <= left, left + nudge, right - nudge)
        inner = torch.where(halve | (right - left <= nudge), left + 0.5 * (right - left), inner)
        ahead, halve = torch.where(outside, inner, root), halve ^ outside
        is_root[problem] = root == tau
        closed = (ahead == left) | (ahead == right) | ((right - left) * steepest <= visible)
        going = (~((root == tau) | closed)).squeeze(1).nonzero().squeeze(1)
        if len(going) == 0:
            return tau_found, is_root
        problem, tau, left, right, halve, steepest, visible = (
            kept.index_select(0, going) for kept in (problem, ahead, left, right, halve, steepest, visible)
        )
        tau_found[problem] = tau
        root = root_at(problem, tau)


def _check_convex(cut_weight: Float[Tensor, " I"], edge_ptr: Int[Tensor, " E_plus_1"], power: int) -> None:
    """Check that the cut weights of each hyperedge fall and, for power 2, sum to 0 up to rounding; NaN passes.

    Raises:
        DataError: naming the first hyperedge for which the potential is not convex.
    """
    size, y = edge_ptr.diff(), cut_weight.detach()
    edge = torch.repeat_interleave(torch.arange(len(size), device=y.device), size)
    wrong = torch.zeros(len(size), dtype=torch.bool, device=y.device)
    wrong[edge[1:][(y[1:] > y[:-1]) & (edge[1:] == edge[:-1])]] = True
    if power == 2:
        y, eps = widened(y), torch.finfo(y.dtype).eps
        total, magnitude = (torch.zeros_like(size, dtype=y.dtype).index_add(0, edge, part) for part in (y, y.abs()))
        wrong |= total.abs() > (4 * eps * magnitude).clamp(min=1e-9 * magnitude)
    if bool(wrong.any()):
        demand = "must not rise and must sum to 0" if power == 2 else "must not rise"
        raise DataError(
            f"With 'weight', the 'cut_weight' of a hyperedge {demand}: an exact solver is known for convex potentials "
            f"only. That of hyperedge {int(wrong.nonzero()[0])} is another."
        )


@dataclass(frozen=True, slots=True)
class _Problems:
    """Points, weights (0 in the padding), cut weights by rank, and which places are real."""

    a: Float[Tensor, "P K"]
    w: Float[Tensor, "P K"]
    y: Float[Tensor, "P K"]
    real: Bool[Tensor, "P K"]

    def rows(self, chosen: Int[Tensor, " Q"]) -> _Problems:
        """Return the chosen problems only."""
        return _Problems(*(part.index_select(0, chosen) for part in (self.a, self.w, self.y, self.real)))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """A split: for each member and each rank the first rank of its block; padding is a block of its own."""

    of_member: Int[Tensor, "P K"]
    of_rank: Int[Tensor, "P K"]

    def rows(self, chosen: Int[Tensor, " Q"]) -> _Blocks:
        """Return the chosen problems only."""
        return _Blocks(self.of_member.index_select(0, chosen), self.of_rank.index_select(0, chosen))

    def lines(self, given: _Problems) -> tuple[Float[Tensor, "P K"], Float[Tensor, "P K"], Float[Tensor, "P K"]]:
        r"""Mean, slope and sum of y for each block: its level is mean - tau slope."""
        zeros = torch.zeros_like(given.a)
        with torch.no_grad():  # means are taken around a member, so that a block of one keeps its value
            middle = zeros.scatter_reduce(1, self.of_member, given.a, "amax", include_self=False)
        weight = zeros.scatter_add(1, self.of_member, given.w)
        weight = weight.masked_fill(weight == 0, 1.0)
        apart = given.w * (given.a - middle.gather(1, self.of_member))
        mean = middle + zeros.scatter_add(1, self.of_member, apart) / weight
        count = zeros.scatter_add(1, self.of_rank, torch.ones_like(zeros))
        tilt = _without_noise(
            zeros.scatter_add(1, self.of_rank, given.y), zeros.scatter_add(1, self.of_rank, given.y.abs()), count
        )
        return mean, tilt / weight, tilt

    def root(self, given: _Problems, step: Float[Tensor, "P 1"]) -> Float[Tensor, "P 1"]:
        """Return the tau for power 2, if these blocks are the right ones."""
        mean, slope, tilt = self.lines(given)
        a, b = (tilt * mean).sum(1, keepdim=True), (tilt * slope).sum(1, keepdim=True)
        return (a * saturate(step, b)).clamp(min=0.0)


def prox_weighted_cardinality(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    step: Float[Tensor, " E"],
    power: int,
    cut_weight: Float[Tensor, " I"],
    weight: Float[Tensor, " I"],
) -> Float[Tensor, "I D"]:
    """See `edhnn.kernels.prox_cardinality`; differentiable in values, step and both weights on the active piece."""
    _check_convex(cut_weight, edge_ptr, power)
    if values.numel() == 0:
        return values.clone()
    wide, wide_step, wide_cut_weight, wide_weight = (widened(part) for part in (values, step, cut_weight, weight))

    def solve(group: Group) -> Float[Tensor, "P K"]:
        a, y, w, eta = (
            group.entries(wide),
            group.per_row(wide_cut_weight),
            group.per_row(wide_weight),
            group.per_edge(wide_step),
        )
        wrong, real = spoiled(a, y, w, eta), group.real
        a, y, eta = (given.masked_fill(wrong, 0.0) for given in (a, y, eta))
        given = _Problems(a, torch.where(wrong, real.to(w.dtype), w), y, real)
        if power == 1:
            blocks, tau = _split(given, eta), eta
        else:
            blocks, tau, is_root = _newton(given, eta)
            tau = torch.where(is_root, blocks.root(given, eta), tau)
        mean, slope, _ = blocks.lines(given)
        return (mean - tau * slope).gather(1, blocks.of_member).masked_fill(wrong, torch.nan)

    return over_segments(wide, edge_ptr, solve).to(values.dtype)


@torch.no_grad()
def _newton(given: _Problems, step: Float[Tensor, "P 1"]) -> tuple[_Blocks, Float[Tensor, "P 1"], Bool[Tensor, "P 1"]]:
    """Return the blocks at the root for power 2, their tau, and whether it is the exact root of its piece."""
    order = sorted_order(given.a, given.real)
    tau = _root_in_order(stack_sums(given.a.gather(1, order), given.w.gather(1, order), given.y), step).clamp(min=0.0)
    blocks = _split(given, tau)

    def root_at(problem: Int[Tensor, " Q"], tau: Float[Tensor, "Q 1"]) -> Float[Tensor, "Q 1"]:
        part = given.rows(problem)
        found = _split(part, tau)
        blocks.of_member[problem], blocks.of_rank[problem] = found.of_member, found.of_rank
        return found.root(part, step[problem])

    lightest = given.w.masked_fill(~given.real, torch.inf).amin(1, keepdim=True)
    steepest = given.y.abs().amax(1, keepdim=True) / lightest
    visible = torch.finfo(given.a.dtype).eps * given.a.abs().amax(1, keepdim=True)
    tau, is_root = _guarded_newton(root_at, tau, blocks.root(given, step), steepest, visible)
    return blocks, tau, is_root


@torch.no_grad()
def _split(given: _Problems, tau: Float[Tensor, "P 1"]) -> _Blocks:
    """Return the blocks on which the answer for ``tau`` is constant, in descending order.

    Every open block is a row of its own. Rows are as wide as the largest class of sizes that is open, a power of two;
    smaller blocks wait, so that at most half of a row is padding.
    """
    width = given.a.shape[1]
    size = given.real.sum(1)
    place = torch.arange(width, device=size.device)
    order = place.expand_as(given.a).clone()
    starts = (place == 0) | (place == size.unsqueeze(1))
    waiting = torch.stack([torch.arange(len(size), device=size.device), torch.zeros_like(size), size])
    while width > 1:
        here = waiting[:, waiting[2] > width // 2]
        waiting = waiting[:, waiting[2] <= width // 2]
        while here.shape[1]:
            children = _round(given, tau, order, here, width)
            starts[children[0], children[1]] = True
            here = children[:, children[2] > width // 2]
            waiting = torch.cat([waiting, children[:, (children[2] > 1) & (children[2] <= width // 2)]], 1)
        width //= 2
    of_rank = torch.where(starts, place, 0).cummax(1).values
    return _Blocks(torch.zeros_like(order).scatter(1, order, of_rank), of_rank)


def _round(
    given: _Problems, tau: Float[Tensor, "P 1"], order: Int[Tensor, "P K"], blocks: Int[Tensor, "3 Q"], width: int
) -> Int[Tensor, "3 C"]:
    """Split each block (problem, first rank, size) that must be, reorder its members, and return the new blocks."""
    problem, start, size = (part.unsqueeze(1) for part in blocks)
    place = torch.arange(width, device=size.device)
    real = place < size
    rank = start + place * real
    member = order[problem, rank]
    a, w, y = given.a[problem, member], given.w[problem, member] * real, tau[problem[:, 0]] * given.y[problem, rank]
    y = y * real
    magnitude = y.abs().sum(1, keepdim=True)
    tilt = _without_noise(y.sum(1, keepdim=True), magnitude, size)
    apart = a - a[:, :1]
    level = ((w * apart).sum(1, keepdim=True) - tilt) / w.sum(1, keepdim=True)
    pull = w * (apart - level)
    by_pull = pull.masked_fill(~real, -torch.inf).argsort(dim=1, descending=True, stable=True)
    excess = (pull.gather(1, by_pull) - y).cumsum(1)
    most, last = excess.masked_fill(place >= size - 1, -torch.inf).max(1)
    noise = 4.0 * torch.finfo(a.dtype).eps * (pull.abs().sum(1) + magnitude.squeeze(1))
    chosen = (most > noise).nonzero().squeeze(1)
    problem, start, size, last = problem[chosen, 0], start[chosen, 0], size[chosen, 0], last[chosen] + 1
    kept = real[chosen]
    order[problem.unsqueeze(1).expand_as(kept)[kept], rank[chosen][kept]] = member[chosen].gather(1, by_pull[chosen])[
        kept
    ]
    return torch.cat([torch.stack([problem, start, last]), torch.stack([problem, start + last, size - last])], 1)


def _without_noise(total: Float[Tensor, "P _"], magnitude: Float[Tensor, "P _"], count: Tensor) -> Float[Tensor, "P _"]:
    """Set sums to 0 where they are only rounding; their derivative is kept."""
    is_noise = total.abs() <= count * torch.finfo(total.dtype).eps * magnitude
    return total - torch.where(is_noise, total.detach(), 0.0)
