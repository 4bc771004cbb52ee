"""``edhnn::row_moments`` and its gradient: operators that autograd, torch.compile and torch.export see."""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op, register_autograd

from edhnn.kernels import native_network, torch_kernels_network
from edhnn.kernels.native_kernels import load
from edhnn.kernels.operators_rows import differentiate_once


@custom_op("edhnn::row_moments", mutates_args=(), device_types="cpu")
def row_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and sum of squares around it, row by row."""
    return torch_kernels_network.row_moments(x) if load() is None else native_network.row_moments(x)


@row_moments.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape[0]), x.new_empty(x.shape[0])


@custom_op("edhnn::row_moments_backward", mutates_args=(), device_types="cpu")
def row_moments_backward(grad_mean: Tensor, grad_spread: Tensor, x: Tensor, mean: Tensor) -> Tensor:
    """The gradient of x."""
    return native_network.row_moments_backward(grad_mean, grad_spread, x, mean)


@row_moments_backward.register_fake
def _(_grad_mean: Tensor, _grad_spread: Tensor, x: Tensor, _mean: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0], output[0])


def _backward(ctx: Any, grad_mean: Tensor, grad_spread: Tensor) -> Tensor:
    return row_moments_backward(grad_mean, grad_spread, *ctx.saved_tensors)  # type: ignore[no-any-return]


register_autograd(row_moments, _backward, setup_context=_keep)
differentiate_once(row_moments_backward, "row_moments")
