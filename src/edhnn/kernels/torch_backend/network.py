"""The network kernels in torch: any device and dtype, differentiable to any order. They test the native ones.

The torch forms keep tensors of one row per link for the gradient; the native ones do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn.functional import embedding_bag, gelu, layer_norm

from edhnn.kernels.dropout import VECTOR_WIDTH, drop_mask, scale_of
from edhnn.kernels.links import Links
from edhnn.kernels.options import PairOptions, RowOptions

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "identity": lambda x: x,
    "gelu": gelu,
    "tanh": torch.tanh,
}


def gather_sum(
    x: Float[Tensor, "S C"], links: Links, weight: Float[Tensor, " I"] | None, mean: int
) -> Float[Tensor, "R C"]:
    """See `edhnn.kernels.gather_sum`; ``mean`` divides by the links of the row (1), of the column (2), or not (0)."""
    ptr = (None, links.row_ptr, links.column_ptr)[mean]
    share = None if ptr is None else _reciprocal(ptr.diff(), x.dtype)[:, None]
    if mean == 2 and share is not None:
        x = x * share
    if weight is not None and _is_differentiated(weight):
        placed = weight if links.row_link is None else weight.index_select(0, links.row_link)
        out = _segment_sum(_spread_columns(x, links) * placed[:, None], links)
    else:
        out = _Product.apply(x, links, weight)  # type: ignore[no-untyped-call]
    return out * share if mean == 1 and share is not None else out


def _is_differentiated(tensor: Tensor) -> bool:
    return tensor.requires_grad or forward_ad.unpack_dual(tensor).tangent is not None  # type: ignore[no-untyped-call]


def link_dot(x: Float[Tensor, "S C"], grad: Float[Tensor, "R C"], links: Links, mean: int) -> Float[Tensor, " I"]:
    """Return the gradient of `gather_sum` with respect to its weight."""
    dots = (_spread_columns(x, links) * _spread_rows(grad, links)).sum(1)
    if mean:
        ptr, owner = (links.row_ptr, links.row_index) if mean == 1 else (links.column_ptr, links.row_column)
        dots = dots * _reciprocal(ptr.diff(), x.dtype).index_select(0, owner)
    return dots if links.row_link is None else torch.empty_like(dots).scatter(0, links.row_link, dots)


def pair_sum(
    a: Float[Tensor, "R C"], b: Float[Tensor, "S C"], links: Links, options: PairOptions
) -> Float[Tensor, "R C"]:
    """See `edhnn.kernels.pair_sum`."""
    z = _spread_rows(a, links) + _spread_columns(b, links)
    if options.q_row is not None:
        z = z * _rho(links, options)[:, None]
    if options.bias is not None:
        z = z + options.bias
    s = _activate(z, options)
    if options.threshold:
        numbers = links.num_links if links.row_link is None else links.row_link
        s = s.masked_fill(drop_mask(numbers, s.shape[1], options.threshold, options.seed, s.device), 0.0)
    if options.weight is not None:
        placed = options.weight if links.row_link is None else options.weight.index_select(0, links.row_link)
        s = s * placed[:, None]
    out = _segment_sum(s, links)
    if options.mean:
        out = out * _reciprocal(links.row_ptr.diff(), out.dtype)[:, None]
    return out * scale_of(options.threshold) if options.threshold else out


def row_activation(x: Float[Tensor, "R C"], options: RowOptions) -> Float[Tensor, "R C"]:
    """See `edhnn.kernels.row_activation`."""
    return drop(_activate(x, options), options.threshold, options.seed)


def _rho(links: Links, options: PairOptions) -> Float[Tensor, " I"]:
    _, q_row, mu_row, q_column, mu_column, *_ = options
    assert q_row is not None and mu_row is not None and q_column is not None and mu_column is not None
    row, column = links.row_index, links.row_column
    apart = mu_row.index_select(0, row) - mu_column.index_select(0, column)
    spread = q_row.index_select(0, row) + q_column.index_select(0, column) + options.kappa * apart * apart
    return (spread + options.eps).rsqrt()


def _activate(x: Float[Tensor, "R C"], options: PairOptions | RowOptions) -> Float[Tensor, "R C"]:
    u = ACTIVATIONS[options.activation](x)
    if options.norm_weight is None:
        return u
    return layer_norm(u, u.shape[1:], options.norm_weight, options.norm_bias, options.norm_eps)


def drop(x: Float[Tensor, "R C"] | Float[Tensor, " I"], threshold: int, seed: int) -> Tensor:
    """See `edhnn.kernels.hash_dropout`."""
    if not threshold:
        return x
    if x.dim() == 1:
        rows = -(-len(x) // VECTOR_WIDTH)
        mask = drop_mask(rows, VECTOR_WIDTH, threshold, seed, x.device).flatten()[: len(x)]
    else:
        mask = drop_mask(x.shape[0], x.shape[1], threshold, seed, x.device)
    return x.masked_fill(mask, 0.0) * scale_of(threshold)


def _reciprocal(count: Int[Tensor, " R"], dtype: torch.dtype) -> Tensor:
    return count.clamp(min=1).to(dtype).reciprocal()


class _Product(torch.autograd.Function):
    """Sum of weighted rows; the weight has no gradient here."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, links: Links, weight: Tensor | None) -> Tensor:
        ctx.links, ctx.weight = links, weight
        placed = weight if weight is None or links.row_link is None else weight.index_select(0, links.row_link)
        return _bags(x, links.row_column, links.row_ptr, placed)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Product.apply(grad, ctx.links.transposed(), ctx.weight), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: object) -> Tensor:
        return _Product.apply(tangent, ctx.links, ctx.weight)  # type: ignore[no-any-return, no-untyped-call]


class _Spread(torch.autograd.Function):
    """Each link gets its owner's row, in row order; ``place`` says where the owner's links stand there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, owner: Tensor, ptr: Tensor, place: Tensor) -> Tensor:
        ctx.parts = owner, ptr, place
        return x.index_select(0, owner)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return _Collect.apply(grad, *ctx.parts), None, None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: object) -> Tensor:
        return _Spread.apply(tangent, *ctx.parts)  # type: ignore[no-any-return, no-untyped-call]


class _Collect(torch.autograd.Function):
    """The transpose of `_Spread`: each owner gets the sum of its links."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, owner: Tensor, ptr: Tensor, place: Tensor) -> Tensor:
        ctx.parts = owner, ptr, place
        return _bags(y, place, ptr, None)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return _Spread.apply(grad, *ctx.parts), None, None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: object) -> Tensor:
        return _Collect.apply(tangent, *ctx.parts)  # type: ignore[no-any-return, no-untyped-call]


def _spread_rows(x: Tensor, links: Links) -> Tensor:
    return _Spread.apply(x, links.row_index, links.row_ptr, links.row_place)  # type: ignore[no-any-return, no-untyped-call]


def _spread_columns(x: Tensor, links: Links) -> Tensor:
    return _Spread.apply(x, links.row_column, links.column_ptr, links.column_place)  # type: ignore[no-any-return, no-untyped-call]


def _segment_sum(y: Tensor, links: Links) -> Tensor:
    return _Collect.apply(y, links.row_index, links.row_ptr, links.row_place)  # type: ignore[no-any-return, no-untyped-call]


def _bags(x: Tensor, index: Tensor, ptr: Tensor, weight: Tensor | None) -> Tensor:
    if not len(index) or not x.shape[1]:
        return x.new_zeros(len(ptr) - 1, x.shape[1])
    weight = None if weight is None else weight.to(x.dtype)
    return embedding_bag(index, x, ptr, mode="sum", per_sample_weights=weight, include_last_offset=True)


def row_moments(x: Float[Tensor, "R C"], width: int) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """See `edhnn.kernels.row_moments`."""
    mean = x.mean(dim=1)
    return mean, (x - mean[:, None]).square().sum(dim=1) / width


def column_sum(x: Float[Tensor, "R C"], weight: Float[Tensor, " R"] | None) -> Float[Tensor, " C"]:
    """See `edhnn.kernels.column_sum`."""
    return (x if weight is None else x * weight[:, None]).sum(dim=0)


def add_bias(
    x: Float[Tensor, "R C"], bias: Float[Tensor, " C"], weight: Float[Tensor, " R"] | None
) -> Float[Tensor, "R C"]:
    """See `edhnn.kernels.add_bias`."""
    return x + (bias if weight is None else weight[:, None] * bias)


def fold_norm(
    weight: Float[Tensor, "H D"],
    bias: Float[Tensor, " H"],
    norm_weight: Float[Tensor, " D"],
    norm_bias: Float[Tensor, " D"],
    first: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """See `edhnn.kernels.fold_norm`."""
    scaled = weight * norm_weight
    centred = scaled - scaled.mean(dim=1, keepdim=True)
    return centred[:, :first], centred[:, first:], weight @ norm_bias + bias


def segment_softmax(scores: Float[Tensor, "I H"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Float[Tensor, "I H"]:
    """See `edhnn.kernels.segment_softmax`."""
    owner = torch.repeat_interleave(edge_ptr.diff(), output_size=len(scores))
    powers = (scores - _largest(scores.detach(), edge_ptr, owner).index_select(0, owner)).exp()
    totals = powers.new_zeros(len(edge_ptr) - 1, scores.shape[1]).index_add(0, owner, powers)
    return powers / totals.index_select(0, owner)


def segment_argmax(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "E D"]:
    """Return the first row with a hyperedge's largest value, NaN counting as the largest; -1 for an empty hyperedge."""
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
