"""``edhnn::pair_sum`` and its gradient: operators that autograd, torch.compile and torch.export see.

The gradient recomputes the messages and has no derivative of its own. An exported program that meets the first where
the native library is not built is served by the torch kernels.
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op, register_autograd

from edhnn.kernels import native_network, torch_kernels_network
from edhnn.kernels.links import from_parts
from edhnn.kernels.native_kernels import load
from edhnn.kernels.operators_rows import differentiate_once
from edhnn.kernels.options import PairOptions


@custom_op("edhnn::pair_sum", mutates_args=(), device_types="cpu")
def pair_sum(
    a: Tensor,
    b: Tensor,
    row_ptr: Tensor,
    row_column: Tensor,
    row_link: Tensor | None,
    column_ptr: Tensor,
    column_row: Tensor,
    column_link: Tensor | None,
    bias: Tensor | None,
    q_row: Tensor | None,
    mu_row: Tensor | None,
    q_column: Tensor | None,
    mu_column: Tensor | None,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    weight: Tensor | None,
    kappa: float,
    eps: float,
    norm_eps: float,
    threshold: int,
    seed: int,
    activation: str,
) -> Tensor:
    """The fused sum of messages; see `edhnn.kernels.pair_sum`."""
    links = from_parts(row_ptr, row_column, row_link, column_ptr, column_row, column_link)
    tensors = bias, q_row, mu_row, q_column, mu_column, norm_weight, norm_bias, weight
    options = PairOptions(*tensors, kappa, eps, norm_eps, threshold, seed, activation)
    if load() is None:
        return torch_kernels_network.pair_sum(a, b, links, options)
    return native_network.pair_sum(a, b, links, options)


@pair_sum.register_fake
def _(a: Tensor, *_rest: Any) -> Tensor:
    return torch.empty_like(a, memory_format=torch.contiguous_format)


@custom_op("edhnn::pair_sum_backward", mutates_args=(), device_types="cpu")
def pair_sum_backward(
    grad: Tensor,
    a: Tensor,
    b: Tensor,
    row_ptr: Tensor,
    row_column: Tensor,
    row_link: Tensor | None,
    column_ptr: Tensor,
    column_row: Tensor,
    column_link: Tensor | None,
    bias: Tensor | None,
    q_row: Tensor | None,
    mu_row: Tensor | None,
    q_column: Tensor | None,
    mu_column: Tensor | None,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    weight: Tensor | None,
    kappa: float,
    eps: float,
    norm_eps: float,
    threshold: int,
    seed: int,
    activation: str,
    wants_weight: bool,
) -> list[Tensor]:
    """Gradients of a, b and the eight tensor options of ``edhnn::pair_sum``; empty where there is none."""
    links = from_parts(row_ptr, row_column, row_link, column_ptr, column_row, column_link)
    tensors = bias, q_row, mu_row, q_column, mu_column, norm_weight, norm_bias, weight
    options = PairOptions(*tensors, kappa, eps, norm_eps, threshold, seed, activation)
    return native_network.pair_sum_backward(grad, a, b, links, options, wants_weight)


@pair_sum_backward.register_fake
def _(_grad: Tensor, a: Tensor, b: Tensor, *rest: Any) -> list[Tensor]:
    options = rest[6:14] if rest[-1] else (*rest[6:13], None)
    return [a.new_empty(0 if tensor is None else tensor.shape) for tensor in (a, b, *options)]


def _keep_pair(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    del output
    ctx.save_for_backward(*inputs[:16])
    ctx.settings = inputs[16:]


def _pair_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    inputs = ctx.saved_tensors
    found = pair_sum_backward(grad, *inputs, *ctx.settings, ctx.needs_input_grad[15])
    places = (0, 1, *range(8, 16))
    by_place = {place: gradient for place, gradient in zip(places, found, strict=True) if ctx.needs_input_grad[place]}
    return tuple(by_place.get(place) for place in range(22))


register_autograd(pair_sum, _pair_backward, setup_context=_keep_pair)
differentiate_once(pair_sum_backward, "pair_sum")
