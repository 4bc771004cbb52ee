"""Softmax and maxima inside hyperedges, in torch: any device and dtype, differentiable."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def segment_softmax(scores: Float[Tensor, "I H"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Float[Tensor, "I H"]:
    """See `edhnn.kernels.segment_softmax`."""
    owner = torch.repeat_interleave(edge_ptr.diff())
    powers = (scores - _largest(scores.detach(), edge_ptr, owner).index_select(0, owner)).exp()
    totals = powers.new_zeros(len(edge_ptr) - 1, scores.shape[1]).index_add(0, owner, powers)
    return powers / totals.index_select(0, owner)


def segment_argmax(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "E D"]:
    """The first row with a hyperedge's largest value, NaN counting as the largest; -1 for an empty hyperedge."""
    owner = torch.repeat_interleave(edge_ptr.diff())
    largest = _largest(values, edge_ptr, owner).index_select(0, owner)
    rows = torch.arange(len(values), device=values.device)[:, None].expand_as(values)
    rows = rows.masked_fill((values != largest) & ~values.isnan(), len(values))
    first = rows.new_full((len(edge_ptr) - 1, values.shape[1]), len(values))
    first = first.scatter_reduce(0, owner[:, None].expand_as(values), rows, "amin")
    return first.masked_fill((edge_ptr.diff() == 0)[:, None], -1)


def _largest(values: Tensor, edge_ptr: Tensor, owner: Tensor) -> Tensor:
    lowest = values.new_full((len(edge_ptr) - 1, values.shape[1]), -torch.inf)
    return lowest.scatter_reduce(0, owner[:, None].expand_as(values), values, "amax")
