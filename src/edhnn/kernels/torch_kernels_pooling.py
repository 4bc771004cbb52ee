r"""Pool adjacent violators in torch, all problems at once.

A block of places is kept as sums: its weight $n$, the weighted sum of $s$ and, for a tilted sequence $s - \tau y$, the
sums of $y$ and $|y|$. In a round every stretch of blocks that does not fall is pooled; such blocks share one value in
the answer, so rounds may pool as much as they see. They end when every problem falls, in practice after a few.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def stack_sums(
    s: Float[Tensor, "P K"], weight: Float[Tensor, "P K"], y: Float[Tensor, "P K"] | None = None
) -> Float[Tensor, "P K C"]:
    """The sums of single places: weight, weighted s and, with a tilt, y and |y|. Padding has weight 0."""
    channels = [weight, weight * s] if y is None else [weight, weight * s, y, y.abs()]
    return torch.stack(channels, 2)


def block_sums(places: Float[Tensor, "P K C"], block: Int[Tensor, "P K"]) -> Float[Tensor, "P K C"]:
    """The sums of blocks, given the block of each place; blocks that do not exist have weight 0."""
    return torch.zeros_like(places).scatter_add(1, block.unsqueeze(2).expand_as(places), places)


def mean_tilt(sums: Float[Tensor, "P K C"]) -> Float[Tensor, "P K"]:
    """Mean of y in each block, 0 where the sum of y is nothing but rounding (its derivative is kept)."""
    size, tilt, tilt_size = sums[..., 0], sums[..., 2], sums[..., 3]
    is_noise = tilt.abs() <= size * torch.finfo(sums.dtype).eps * tilt_size
    return (tilt - torch.where(is_noise, tilt.detach(), 0.0)) / size.masked_fill(size == 0, 1.0)


def block_values(sums: Float[Tensor, "P K C"], tau: Float[Tensor, "P 1"] | None) -> Float[Tensor, "P K"]:
    """The common value of each block."""
    value = sums[..., 1] / sums[..., 0].masked_fill(sums[..., 0] == 0, 1.0)
    return value if tau is None else value - tau * mean_tilt(sums)


@torch.no_grad()
def pool(places: Float[Tensor, "P K C"], tau: Float[Tensor, "P 1"] | None) -> Int[Tensor, "P K"]:
    r"""The block of each place in the projection of $s - \tau y$ onto non-increasing sequences."""
    block = torch.arange(places.shape[1], device=places.device).expand(places.shape[:2]).clone()
    problem = torch.arange(len(places), device=places.device)
    sums = places
    while True:
        value = block_values(sums, tau)
        joins = (value[:, :-1] <= value[:, 1:]) & (sums[:, 1:, 0] > 0)
        moving = joins.any(1).nonzero().squeeze(1)
        if len(moving) == 0:
            return block
        sums, joins, problem = (part.index_select(0, moving) for part in (sums, joins, problem))
        tau = None if tau is None else tau[moving]
        onto = torch.nn.functional.pad((~joins).long().cumsum(1), (1, 0))
        block[problem] = onto.gather(1, block[problem])
        sums = block_sums(sums, onto)
