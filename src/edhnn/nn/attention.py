r"""Attention along links: weights that add up to 1 at every row, one column per head.

A link of weight $w$ counts as $w$ links: $\alpha_{rs} = w_{rs} \exp(z_{rs}) / \sum_{s'} w_{rs'} \exp(z_{rs'})$.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.kernels import Links


def link_softmax(
    scores: Float[Tensor, "I A"], links: Links, weight: Float[Tensor, " I"] | None = None
) -> Float[Tensor, "I A"]:
    """Apply softmax over the links of each row, head by head.

    Args:
        scores: A score per link and head, by the link's number.
        links: Who is joined to whom.
        weight: How much each link counts, by its number; ``None`` for 1.

    Returns:
        Weights, by number, that add up to 1 at every row that has a link of positive weight.
    """
    if weight is not None:
        has_weight = weight[:, None] > 0
        lowest = torch.finfo(scores.dtype).min
        counted = torch.where(has_weight, scores + weight.where(weight > 0, 1).log()[:, None], lowest)
        return link_softmax(counted, links) * has_weight
    if links.row_link is None:
        return kernels.segment_softmax(scores, links.row_ptr)
    share = kernels.segment_softmax(scores.index_select(0, links.row_link), links.row_ptr)
    return torch.empty_like(share).index_copy(0, links.row_link, share)


def attend(x: Float[Tensor, "S D"], links: Links, weight: Float[Tensor, "I A"]) -> Float[Tensor, "R D"]:
    r"""Return $\sum_s \alpha_{rs}\, x_s$ with the columns of $x$ divided equally among the heads."""
    heads = zip(x.chunk(weight.shape[1], dim=1), weight.unbind(dim=1), strict=True)
    return torch.cat([kernels.gather_sum(part, links, alpha.contiguous()) for part, alpha in heads], dim=1)


def head_scores(x: Float[Tensor, "R D"], vector: Float[Tensor, "A W"]) -> Float[Tensor, "R A"]:
    """Return the inner product of each head's columns with its vector."""
    return kernels.scale_columns(x, vector.flatten()).view(len(x), *vector.shape).sum(dim=2)


def glorot_heads(heads: int, width: int, generator: torch.Generator) -> nn.Parameter:
    r"""Draw a vector per head from $U(\pm\sqrt{6/(\text{heads} + \text{width})})$, as PyG's ``GATConv`` does."""
    bound = (6 / (heads + width)) ** 0.5
    return nn.Parameter(torch.empty(heads, width).uniform_(-bound, bound, generator=generator))
