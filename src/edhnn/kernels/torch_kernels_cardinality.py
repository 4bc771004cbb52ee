r"""The proximal operator of cardinality-based potentials in torch: any device and dtype.

In sorted order the answer is $z(\tau) = \mathrm{PAV}(s - \tau y)$. For power 2, $\tau$ is the root of
$\langle y, z(\tau) \rangle - \tau / (2\eta)$, which falls and is piecewise linear. On the piece of given blocks
$\langle y, z(\tau) \rangle = A - \tau B$ with $A = \sum_b \bar y_b S_b$ and $B = \sum_b n_b \bar y_b^2$, so Newton's
step is $\tau = 2\eta A / (1 + 2\eta B)$; it is exact once it stays on its piece.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from edhnn.kernels.torch_kernels_layout import Group, over_segments, sorted_order, spoiled, widened
from edhnn.kernels.torch_kernels_pooling import block_sums, block_values, mean_tilt, pool, stack_sums
from edhnn.kernels.torch_kernels_water import saturate


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
            block, tau, is_root = _newton(places, eta)
            tau = torch.where(is_root, _root_of_piece(block_sums(places, block), eta), tau)
        pooled = block_values(block_sums(places, block), tau).gather(1, block)
        return torch.zeros_like(a).scatter(1, order, pooled).masked_fill(wrong, torch.nan)

    return over_segments(wide, edge_ptr, solve).to(values.dtype)


def _root_of_piece(sums: Float[Tensor, "P K C"], step: Float[Tensor, "P 1"]) -> Float[Tensor, "P 1"]:
    tilt = mean_tilt(sums)
    a, b = (tilt * sums[..., 1]).sum(1, keepdim=True), (tilt.square() * sums[..., 0]).sum(1, keepdim=True)
    return a * saturate(step, b)


def root_in_order(places: Float[Tensor, "P K C"], step: Float[Tensor, "P 1"]) -> Float[Tensor, "P 1"]:
    """The tau for power 2, to rounding, if members may not change their order; places may have weights."""
    block, tau, is_root = _newton(places, step)
    return torch.where(is_root, _root_of_piece(block_sums(places, block), step), tau)


@torch.no_grad()
def _newton(
    places: Float[Tensor, "P K C"], step: Float[Tensor, "P 1"]
) -> tuple[Int[Tensor, "P K"], Float[Tensor, "P 1"], Bool[Tensor, "P 1"]]:
    """The blocks at the root for power 2, their tau, and whether it is the exact root of its piece."""
    tau = torch.zeros_like(step)
    block = pool(places, tau)
    root = _root_of_piece(block_sums(places, block), step)
    mirror = torch.where(root < 0, -1.0, 1.0)  # the potential is even in y: make <y, s> non-negative
    flips = torch.stack([torch.ones_like(mirror), torch.ones_like(mirror), mirror, torch.ones_like(mirror)], 2)
    flipped = places * flips

    def root_at(problem: Int[Tensor, " Q"], tau: Float[Tensor, "Q 1"]) -> Float[Tensor, "Q 1"]:
        part = flipped.index_select(0, problem)
        found = pool(part, tau)
        block[problem] = found
        return _root_of_piece(block_sums(part, found), step[problem])

    visible = torch.finfo(places.dtype).eps * places[..., 1].abs().amax(1, keepdim=True)
    tau, is_root = guarded_newton(root_at, tau, root.abs(), places[..., 3].amax(1, keepdim=True), visible)
    return block, tau * mirror, is_root


@torch.no_grad()
def guarded_newton(
    root_at: Callable[[Int[Tensor, " Q"], Float[Tensor, "Q 1"]], Float[Tensor, "Q 1"]],
    tau: Float[Tensor, "P 1"],
    root: Float[Tensor, "P 1"],
    steepest: Float[Tensor, "P 1"],
    visible: Float[Tensor, "P 1"],
) -> tuple[Float[Tensor, "P 1"], Bool[Tensor, "P 1"]]:
    """Guarded Newton steps to the root, which is not negative: its tau, and whether it is the root of its own piece.

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
