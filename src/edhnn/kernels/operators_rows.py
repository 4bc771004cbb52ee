"""``edhnn::row_activation`` and its gradient: operators that autograd, torch.compile and torch.export see.

An exported program that meets the first where the native library is not built is served by the torch kernels.
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op, register_autograd

from edhnn.kernels import native_network, torch_kernels_network
from edhnn.kernels.native_kernels import load
from edhnn.kernels.options import RowOptions


def differentiate_once(gradient: Any, name: str) -> None:
    """Let a second derivative say that it is not to be had."""

    def keep_nothing(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        del ctx, inputs, output

    def refuse(ctx: Any, *gradients: Any) -> None:
        del ctx, gradients
        raise NotImplementedError(
            f"The gradient of {name} cannot be differentiated natively. Set EDHNN_KERNELS=torch for second derivatives."
        )

    gradient.register_autograd(refuse, setup_context=keep_nothing)


@custom_op("edhnn::row_activation", mutates_args=(), device_types="cpu")
def row_activation(
    x: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    norm_eps: float,
    threshold: int,
    seed: int,
    activation: str,
) -> Tensor:
    """Dropout of norm of activation, row by row."""
    options = RowOptions(norm_weight, norm_bias, norm_eps, threshold, seed, activation)
    if load() is None:
        return torch_kernels_network.row_activation(x, options)
    return native_network.row_activation(x, options)


@row_activation.register_fake
def _(x: Tensor, *_rest: Any) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@custom_op("edhnn::row_activation_backward", mutates_args=(), device_types="cpu")
def row_activation_backward(
    grad: Tensor,
    x: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    norm_eps: float,
    threshold: int,
    seed: int,
    activation: str,
) -> list[Tensor]:
    """Gradients of x, norm_weight and norm_bias; empty where there is none."""
    options = RowOptions(norm_weight, norm_bias, norm_eps, threshold, seed, activation)
    return native_network.row_activation_backward(grad, x, options)


@row_activation_backward.register_fake
def _(_grad: Tensor, x: Tensor, norm_weight: Tensor | None, norm_bias: Tensor | None, *_rest: Any) -> list[Tensor]:
    return [x.new_empty(0 if tensor is None else tensor.shape) for tensor in (x, norm_weight, norm_bias)]


def _keep_rows(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, norm_weight, norm_bias = inputs[:3]
    # Without a norm the sign of the output says all that the gradient needs, and the next layer keeps it anyway.
    ctx.save_for_backward(output if norm_weight is None else x, norm_weight, norm_bias)
    ctx.settings = inputs[3:]


def _rows_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = row_activation_backward(grad, *ctx.saved_tensors, *ctx.settings)
    wanted = zip(found, ctx.needs_input_grad, strict=False)
    return *(gradient if wants else None for gradient, wants in wanted), *(None,) * 4


register_autograd(row_activation, _rows_backward, setup_context=_keep_rows)
differentiate_once(row_activation_backward, "row_activation")
