"""Segment sort and segment pool-adjacent-violators in torch: any device and dtype."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from edhnn.kernels.torch_kernels_layout import Group, over_segments, sorted_order, spoiled, widened
from edhnn.kernels.torch_kernels_pooling import block_sums, block_values, pool, stack_sums


def segment_sort(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "I D"]:
    """See `edhnn.kernels.segment_sort`."""
    if values.numel() == 0:
        return torch.empty(values.shape, dtype=torch.int64, device=values.device)

    def solve(group: Group) -> Int[Tensor, "P K"]:
        order = sorted_order(group.entries(values), group.real)
        first = group.per_edge(edge_ptr[:-1].long())
        return torch.where(group.real, first + order, 0)

    return over_segments(values, edge_ptr, solve)


def segment_pav(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    weight: Float[Tensor, " I"] | Float[Tensor, "I D"] | None,
) -> Float[Tensor, "I D"]:
    """See `edhnn.kernels.segment_pav`; differentiable in values and weight, as pooled means are."""
    if values.numel() == 0:
        return values.clone()
    wide = widened(values)
    wide_weight = torch.ones_like(wide[:, 0]) if weight is None else widened(weight)

    def solve(group: Group) -> Float[Tensor, "P K"]:
        s = group.entries(wide)
        w = group.per_row(wide_weight) if wide_weight.dim() == 1 else group.entries(wide_weight)
        wrong = spoiled(s, w)
        places = stack_sums(s.masked_fill(wrong, 0.0), torch.where(wrong, group.real.to(w.dtype), w))
        block = pool(places, None)
        pooled = block_values(block_sums(places, block), None).gather(1, block)
        return pooled.masked_fill(wrong, torch.nan)

    return over_segments(wide, edge_ptr, solve).to(values.dtype)
