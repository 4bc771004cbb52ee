r"""Attention along links: weights that add up to 1 at every row, one column per head.

A link of weight $w$ counts as $w$ links: $\alpha_{rs} = w_{rs} \exp(z_{rs}) / \sum_{s'} w_{rs'} \exp(z_{rs'})$.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from edhnn import kernels
from edhnn.kernels import Links


def link_softmax(
    scores: Float[Tensor, "I A"], row: Int[Tensor, " I"], num_rows: int, weight: Float[Tensor, " I"] | None = None
) -> Float[Tensor, "I A"]:
    """Softmax over the links of each row, head by head.

    Args:
        scores: A score per link and head.
        row: The row of each link.
        num_rows: How many rows there are.
        weight: How much each link counts; ``None`` for 1.

    Returns:
        Weights that add up to 1 at every row that has a link of positive weight.
    """
    place = row[:, None].expand_as(scores)
    heard = scores.detach() if weight is None else scores.detach().where(weight[:, None] > 0, -torch.inf)
    highest = scores.new_full((num_rows, scores.shape[1]), -torch.inf).scatter_reduce(0, place, heard, "amax")
    highest = highest.where(highest.isfinite(), 0.0)
    share = (scores - highest.index_select(0, row)).clamp(max=0).exp()
    if weight is not None:
        share = share * weight[:, None]
    total = share.new_zeros(num_rows, scores.shape[1]).index_add(0, row, share)
    return share / torch.where(total > 0, total, 1).index_select(0, row)


def attend(x: Float[Tensor, "S D"], links: Links, weight: Float[Tensor, "I A"]) -> Float[Tensor, "R D"]:
    r"""$\sum_s \alpha_{rs}\, x_s$ with the columns of $x$ dealt out to the heads in equal parts."""
    heads = zip(x.chunk(weight.shape[1], dim=1), weight.unbind(dim=1), strict=True)
    return torch.cat([kernels.gather_sum(part, links, alpha.contiguous()) for part, alpha in heads], dim=1)


def head_scores(x: Float[Tensor, "R D"], vector: Float[Tensor, "A W"]) -> Float[Tensor, "R A"]:
    """The inner product of each head's columns with its vector."""
    return (x.view(len(x), *vector.shape) * vector).sum(dim=2)
