"""``edhnn::segment_softmax`` and its gradient: operators that autograd, torch.compile and torch.export see.

An exported program that meets the first where the native library is not built is served by the torch kernels.
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op, register_autograd

from edhnn.kernels import native_kernels, torch_kernels_softmax
from edhnn.kernels.operators_rows import differentiate_once


@custom_op("edhnn::segment_softmax", mutates_args=(), device_types="cpu")
def segment_softmax(scores: Tensor, edge_ptr: Tensor) -> Tensor:
    """Softmax inside each hyperedge."""
    if native_kernels.load() is None:
        return torch_kernels_softmax.segment_softmax(scores, edge_ptr)
    return native_kernels.segment_softmax(scores, edge_ptr)


@custom_op("edhnn::segment_softmax_backward", mutates_args=(), device_types="cpu")
def segment_softmax_backward(grad: Tensor, soft: Tensor, edge_ptr: Tensor) -> Tensor:
    """The gradient of the scores."""
    return native_kernels.segment_softmax_backward(grad, soft, edge_ptr)


@segment_softmax.register_fake
def _(scores: Tensor, *_rest: Any) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


@segment_softmax_backward.register_fake
def _(grad: Tensor, *_rest: Any) -> Tensor:
    return torch.empty_like(grad, memory_format=torch.contiguous_format)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, inputs[1])


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    soft, edge_ptr = ctx.saved_tensors
    return segment_softmax_backward(grad, soft, edge_ptr), None


register_autograd(segment_softmax, _backward, setup_context=_keep)
differentiate_once(segment_softmax_backward, "segment_softmax")
