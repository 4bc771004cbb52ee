"""``edhnn::gather_sum`` and ``edhnn::link_dot``: operators that autograd, torch.compile and torch.export see.

They are each other's derivatives, so they can be differentiated any number of times. An exported program that meets
them where the native library is not built is served by the torch kernels.
"""

from typing import Any

from torch import Tensor
from torch.library import custom_op, register_autograd

from edhnn.kernels import native_network, torch_kernels_network
from edhnn.kernels.links import from_parts
from edhnn.kernels.native_kernels import load


@custom_op("edhnn::gather_sum", mutates_args=(), device_types="cpu")
def gather_sum(
    x: Tensor,
    row_ptr: Tensor,
    row_column: Tensor,
    row_link: Tensor | None,
    column_ptr: Tensor,
    column_row: Tensor,
    column_link: Tensor | None,
    weight: Tensor | None,
    mean: int,
) -> Tensor:
    """Sum of weighted rows over links."""
    links = from_parts(row_ptr, row_column, row_link, column_ptr, column_row, column_link)
    if load() is None:
        return torch_kernels_network.gather_sum(x, links, weight, mean)
    return native_network.gather_sum(x, links, weight, mean)


@gather_sum.register_fake
def _(x: Tensor, row_ptr: Tensor, *_rest: Any) -> Tensor:
    return x.new_empty(row_ptr.shape[0] - 1, x.shape[1])


@custom_op("edhnn::link_dot", mutates_args=(), device_types="cpu")
def link_dot(
    x: Tensor,
    grad: Tensor,
    row_ptr: Tensor,
    row_column: Tensor,
    row_link: Tensor | None,
    column_ptr: Tensor,
    column_row: Tensor,
    column_link: Tensor | None,
    mean: int,
) -> Tensor:
    """Dot product of the two rows each link joins, by number of link."""
    links = from_parts(row_ptr, row_column, row_link, column_ptr, column_row, column_link)
    if load() is None:
        return torch_kernels_network.link_dot(x, grad, links, mean)
    return native_network.link_dot(x, grad, links, mean)


@link_dot.register_fake
def _(x: Tensor, _grad: Tensor, _row_ptr: Tensor, row_column: Tensor, *_rest: Any) -> Tensor:
    return x.new_empty(row_column.shape[0])


def _transposed(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return *parts[3:], *parts[:3]


_SWAPPED = (0, 2, 1)  # a row's own number of links is the source's in the transpose


def _keep_gather(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    del output
    x, *parts, weight, mean = inputs
    ctx.save_for_backward(x if ctx.needs_input_grad[7] else None, weight, *parts)
    ctx.mean = mean


def _gather_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, *parts = ctx.saved_tensors
    grad_x = grad_weight = None
    if ctx.needs_input_grad[0]:
        grad_x = gather_sum(grad, *_transposed(tuple(parts)), weight, _SWAPPED[ctx.mean])
    if ctx.needs_input_grad[7]:
        grad_weight = link_dot(x, grad, *parts, ctx.mean)
    return grad_x, *(None,) * 6, grad_weight, None


def _keep_dot(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    del output
    x, grad, *parts, mean = inputs
    ctx.save_for_backward(x, grad, *parts)
    ctx.mean = mean


def _dot_backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
    x, grad, *parts = ctx.saved_tensors
    grad_x = gather_sum(grad, *_transposed(tuple(parts)), weight, _SWAPPED[ctx.mean])
    return grad_x, gather_sum(x, *parts, weight, ctx.mean), *(None,) * 7


register_autograd(gather_sum, _gather_backward, setup_context=_keep_gather)
register_autograd(link_dot, _dot_backward, setup_context=_keep_dot)
