"""The native network kernels as torch operators: ``edhnn::gather_sum``, ``edhnn::pair_sum`` and so on.

An `Operator` has one schema, one kernel and one gradient. Autograd, torch.compile and torch.export see it as a
registered operator. An eager call with plain tensors skips torch's dispatcher, which costs more than a kernel on a
small hypergraph, and passes the same kernel and the same gradient to autograd directly.

An exported program that runs where the native library is not built uses the torch kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import torch
from torch import Tensor
from torch.autograd import Function

from edhnn.kernels import native_backend
from edhnn.kernels.backend import check_segments
from edhnn.kernels.links import Links, from_parts
from edhnn.kernels.options import PAIR_TENSORS, PairOptions, RowOptions
from edhnn.kernels.torch_backend import network as torch_network

_LIBRARY = torch.library.Library("edhnn", "DEF")  # type: ignore[no-untyped-call]
_PLAIN = frozenset((Tensor, torch.nn.Parameter, type(None), int, float, str, bool))
_SCHEMA_TYPES = {Tensor | None: "Tensor?", float: "float", int: "SymInt", str: "str", bool: "bool"}

Inputs = tuple[Any, ...]
Outputs = Any


def _fields(options: type[PairOptions] | type[RowOptions]) -> str:
    """Return the fields of an options tuple as a schema spells them."""
    return ", ".join(f"{_SCHEMA_TYPES[kind]} {name}" for name, kind in get_type_hints(options).items())


_LINKS = ", ".join(f"Tensor{'?' if name.endswith('_link') else ''} {name}" for name in Links.__dataclass_fields__)


def is_watched(inputs: Sequence[Any]) -> bool:
    """Return whether a tracer, a dispatch mode, functorch or a tensor of another class must see the call."""
    return (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._are_functorch_transforms_active()
        or torch._C._get_tracing_state() is not None
        or not _PLAIN.issuperset(map(type, inputs))
    )


class Operator:
    """A kernel that is registered with torch.

    Args:
        schema: Its name, arguments and outputs, in torch's language.
        kernel: What it computes, for CPU tensors.
        fake: Outputs of the right shape, for tracers.
        keep: Saves on a context what the gradient needs, from inputs and outputs.
        backward: The gradients of the inputs; without it the operator, a gradient itself, has none.
    """

    def __init__(
        self,
        schema: str,
        kernel: Callable[..., Outputs],
        fake: Callable[..., Outputs],
        keep: Callable[[Any, Inputs, Outputs], None] | None = None,
        backward: Callable[..., Outputs] | None = None,
    ) -> None:
        name = schema.split("(")[0]
        _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]
        _LIBRARY.impl(name, kernel, "CPU")  # type: ignore[no-untyped-call]
        torch.library.register_fake(f"edhnn::{name}", fake, lib=_LIBRARY)
        self.kernel, self.registered = kernel, getattr(torch.ops.edhnn, name).default
        self.function = None if backward is None else applied(_eager(name, kernel, keep or _keep_nothing, backward))
        torch.library.register_autograd(
            f"edhnn::{name}",
            backward or _refusal(name.removesuffix("_backward")),
            setup_context=keep or _keep_nothing,
            lib=_LIBRARY,
        )

    def __call__(self, *inputs: Any) -> Outputs:
        """Run the kernel, through torch's dispatcher where a tracer must see it."""
        if is_watched(inputs):
            return self.registered(*inputs)
        if not torch.is_grad_enabled():
            return self.kernel(*inputs)
        return self.registered(*inputs) if self.function is None else self.function(*inputs)


def applied(function: type[Function]) -> Callable[..., Outputs]:
    """Return a function's ``apply`` without torch's support for functorch, which `is_watched` excludes."""
    return super(Function, function).apply  # type: ignore[misc, no-any-return]


def _eager(
    name: str,
    kernel: Callable[..., Outputs],
    keep: Callable[[Any, Inputs, Outputs], None],
    backward: Callable[..., Outputs],
) -> type[Function]:
    def forward(ctx: Any, *inputs: Any) -> Outputs:
        out = kernel(*inputs)
        keep(ctx, inputs, out)
        return out

    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def _keep_nothing(ctx: Any, inputs: Inputs, output: Outputs) -> None:
    del ctx, inputs, output


def _refusal(name: str) -> Callable[..., Outputs]:
    def refuse(ctx: Any, *gradients: Any) -> None:
        """Make a double backward raise a clear error."""
        del ctx, gradients
        raise NotImplementedError(
            f"The gradient of {name} cannot be differentiated natively. Set EDHNN_KERNELS=torch for second derivatives."
        )

    return refuse


def _like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _filled(gradients: Sequence[Tensor | None]) -> list[Tensor]:
    """Return the gradients as a schema has them: an empty tensor in place of each that is absent."""
    return [torch.empty(0) if gradient is None else gradient for gradient in gradients]


# --- gather_sum and link_dot: each other's derivatives, so they can be differentiated any number of times -------------

_SWAPPED = (0, 2, 1)  # a row's own number of links is the source's in the transpose


def _transposed(parts: Inputs) -> Inputs:
    return *parts[3:], *parts[:3]


def _gather_kernel(x: Tensor, *rest: Any) -> Tensor:
    parts, weight, mean = rest[:6], rest[6], rest[7]
    if not native_backend.BUILT:
        return torch_network.gather_sum(x, from_parts(*parts), weight, mean)
    return native_backend.gather_sum(x, parts, weight, mean)


def _gather_fake(x: Tensor, row_ptr: Tensor, *_rest: Any) -> Tensor:
    return x.new_empty(row_ptr.shape[0] - 1, x.shape[1])


def _gather_keep(ctx: Any, inputs: Inputs, output: Tensor) -> None:
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


def _dot_kernel(x: Tensor, grad: Tensor, *rest: Any) -> Tensor:
    parts, mean = rest[:6], rest[6]
    if not native_backend.BUILT:
        return torch_network.link_dot(x, grad, from_parts(*parts), mean)
    return native_backend.link_dot(x, grad, parts, mean)


def _dot_fake(x: Tensor, _grad: Tensor, _row_ptr: Tensor, row_column: Tensor, *_rest: Any) -> Tensor:
    return x.new_empty(row_column.shape[0])


def _dot_keep(ctx: Any, inputs: Inputs, output: Tensor) -> None:
    del output
    ctx.save_for_backward(*inputs[:8])
    ctx.mean = inputs[8]


def _dot_backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
    x, grad, *parts = ctx.saved_tensors
    grad_x = gather_sum(grad, *_transposed(tuple(parts)), weight, _SWAPPED[ctx.mean])
    return grad_x, gather_sum(x, *parts, weight, ctx.mean), *(None,) * 7


gather_sum = Operator(
    f"gather_sum(Tensor x, {_LINKS}, Tensor? weight, SymInt mean) -> Tensor",
    _gather_kernel,
    _gather_fake,
    _gather_keep,
    _gather_backward,
)
link_dot = Operator(
    f"link_dot(Tensor x, Tensor grad, {_LINKS}, SymInt mean) -> Tensor",
    _dot_kernel,
    _dot_fake,
    _dot_keep,
    _dot_backward,
)


# --- pair_sum: the gradient recomputes the messages -------------------------------------------------------------------

_PAIR = f"Tensor a, Tensor b, {_LINKS}, {_fields(PairOptions)}"
_FIRST_OPTION = 8  # a, b and the six parts of the links come before
_FIRST_NUMBER = _FIRST_OPTION + PAIR_TENSORS


def _pair_kernel(a: Tensor, b: Tensor, *rest: Any) -> Tensor:
    parts, options = rest[:6], PairOptions(*rest[6:])
    if not native_backend.BUILT:
        return torch_network.pair_sum(a, b, from_parts(*parts), options)
    return native_backend.pair_sum(a, b, parts, options)


def _pair_gradient(grad: Tensor, a: Tensor, b: Tensor, *rest: Any) -> list[Tensor]:
    return _filled(native_backend.pair_sum_backward(grad, a, b, rest[:6], PairOptions(*rest[6:-1]), rest[-1]))


def _pair_gradient_fake(_grad: Tensor, a: Tensor, b: Tensor, *rest: Any) -> list[Tensor]:
    tensors = rest[6:14] if rest[-1] else (*rest[6:13], None)
    return [a.new_empty(0 if tensor is None else tensor.shape) for tensor in (a, b, *tensors)]


def _pair_keep(ctx: Any, inputs: Inputs, output: Tensor) -> None:
    del output
    ctx.save_for_backward(*inputs[:_FIRST_NUMBER])
    ctx.settings = inputs[_FIRST_NUMBER:]


def _pair_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    wants = ctx.needs_input_grad
    found = pair_sum_backward(grad, *ctx.saved_tensors, *ctx.settings, wants[_FIRST_NUMBER - 1])
    options = zip(found[2:], wants[_FIRST_OPTION:_FIRST_NUMBER], strict=True)
    gradients = [gradient if wanted else None for gradient, wanted in options]
    return (
        found[0] if wants[0] else None,
        found[1] if wants[1] else None,
        *(None,) * 6,
        *gradients,
        *(None,) * len(ctx.settings),
    )


pair_sum = Operator(
    f"pair_sum({_PAIR}) -> Tensor", _pair_kernel, lambda a, *_rest: _like(a), _pair_keep, _pair_backward
)
pair_sum_backward = Operator(
    f"pair_sum_backward(Tensor grad, {_PAIR}, bool wants_weight) -> Tensor[]", _pair_gradient, _pair_gradient_fake
)


# --- row_activation and row_moments -----------------------------------------------------------------------------------

_ROWS = f"Tensor x, {_fields(RowOptions)}"


def _rows_kernel(x: Tensor, *options: Any) -> Tensor:
    if not native_backend.BUILT:
        return torch_network.row_activation(x, RowOptions(*options))
    return native_backend.row_activation(x, RowOptions(*options))


def _rows_gradient(grad: Tensor, x: Tensor, *options: Any) -> list[Tensor]:
    return _filled(native_backend.row_activation_backward(grad, x, RowOptions(*options)))


def _rows_gradient_fake(_grad: Tensor, *inputs: Any) -> list[Tensor]:
    return [inputs[0].new_empty(0 if tensor is None else tensor.shape) for tensor in inputs[:3]]


def _rows_keep(ctx: Any, inputs: Inputs, output: Tensor) -> None:
    x, norm_weight, norm_bias = inputs[:3]
    # Without a norm the sign of the output says all that the gradient needs, and the next layer keeps it anyway.
    ctx.save_for_backward(output if norm_weight is None else x, norm_weight, norm_bias)
    ctx.settings = inputs[3:]


def _rows_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = row_activation_backward(grad, *ctx.saved_tensors, *ctx.settings)
    wanted = zip(found, ctx.needs_input_grad, strict=False)
    return *(gradient if wants else None for gradient, wants in wanted), *(None,) * 4


row_activation = Operator(
    f"row_activation({_ROWS}) -> Tensor", _rows_kernel, lambda x, *_rest: _like(x), _rows_keep, _rows_backward
)
row_activation_backward = Operator(
    f"row_activation_backward(Tensor grad, {_ROWS}) -> Tensor[]", _rows_gradient, _rows_gradient_fake
)


def _moments_kernel(x: Tensor, width: int) -> tuple[Tensor, Tensor]:
    return native_backend.row_moments(x, width) if native_backend.BUILT else torch_network.row_moments(x, width)


def _moments_keep(ctx: Any, inputs: Inputs, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0], output[0])
    ctx.width = inputs[1]


def _moments_backward(ctx: Any, grad_mean: Tensor, grad_spread: Tensor) -> tuple[Tensor, None]:
    return row_moments_backward(grad_mean, grad_spread, *ctx.saved_tensors, ctx.width), None


row_moments = Operator(
    "row_moments(Tensor x, SymInt width) -> (Tensor, Tensor)",
    _moments_kernel,
    lambda x, _width: (x.new_empty(x.shape[0]), x.new_empty(x.shape[0])),
    _moments_keep,
    _moments_backward,
)
row_moments_backward = Operator(
    "row_moments_backward(Tensor grad_mean, Tensor grad_spread, Tensor x, Tensor mean, SymInt width) -> Tensor",
    native_backend.row_moments_backward,
    lambda _grad_mean, _grad_spread, x, *_rest: _like(x),
)


# --- column_sum, add_bias and linear: sums over rows are ours ---------------------------------------------------------


def _column_kernel(x: Tensor, weight: Tensor | None) -> Tensor:
    return native_backend.column_sum(x, weight) if native_backend.BUILT else torch_network.column_sum(x, weight)


def _column_keep(ctx: Any, inputs: Inputs, output: Tensor) -> None:
    del output
    x, weight = inputs
    ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, weight)
    ctx.rows = len(x)


def _column_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:
    x, weight = ctx.saved_tensors
    grad_x = grad.expand(ctx.rows, -1) if weight is None else weight[:, None] * grad
    return grad_x, (x * grad).sum(dim=1) if ctx.needs_input_grad[1] else None


column_sum = Operator(
    "column_sum(Tensor x, Tensor? weight) -> Tensor",
    _column_kernel,
    lambda x, _weight: x.new_empty(x.shape[1]),
    _column_keep,
    _column_backward,
)


def _bias_kernel(x: Tensor, bias: Tensor, weight: Tensor | None) -> Tensor:
    if not native_backend.BUILT:
        return torch_network.add_bias(x, bias, weight)
    return native_backend.add_bias(x, bias, weight)


def _bias_keep(ctx: Any, inputs: Inputs, output: Tensor) -> None:
    del output
    ctx.save_for_backward(inputs[1] if ctx.needs_input_grad[2] else None, inputs[2])


def _bias_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    bias, weight = ctx.saved_tensors
    wants = ctx.needs_input_grad
    grad_weight = (grad * bias).sum(dim=1) if wants[2] else None
    return grad if wants[0] else None, column_sum(grad, weight) if wants[1] else None, grad_weight


add_bias = Operator(
    "add_bias(Tensor x, Tensor bias, Tensor? weight) -> Tensor",
    _bias_kernel,
    lambda x, *_rest: _like(x),
    _bias_keep,
    _bias_backward,
)


SMALL_WORK = 1 << 20
"""Multiplications that one thread has done before a second one is awake: about 40 microseconds."""


class small_work:  # noqa: N801
    """Within the block torch uses one thread if the work, in multiplications, is small.

    MKL shares even a product of 100 rows among all threads. Waking them costs more than the product, and on a busy
    machine milliseconds. The number of threads does not change the result (docs/adr/0011).
    """

    __slots__ = ("threads",)

    def __init__(self, work: int) -> None:
        self.threads = torch.get_num_threads() if work <= SMALL_WORK else 1

    def __enter__(self) -> None:
        if self.threads > 1:
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        if self.threads > 1:
            torch.set_num_threads(self.threads)


class _Linear(Function):
    """A linear layer of rows whose bias has a gradient summed in our order; products are torch's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Apply the layer."""
        ctx.save_for_backward(x, weight)
        with small_work(x.shape[0] * weight.numel()):
            return torch.nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, weight and bias."""
        x, weight = ctx.saved_tensors
        wants = ctx.needs_input_grad
        with small_work(x.shape[0] * weight.numel()):
            grad_x = grad.mm(weight) if wants[0] else None
            grad_weight = grad.t().mm(x) if wants[1] else None
        return grad_x, grad_weight, column_sum(grad, None) if wants[2] else None


class _ScaleColumns(Function):
    """Columns times a factor each; the gradient of the factors is summed in our order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: Tensor) -> Tensor:
        """Return the product."""
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x and the factors."""
        x, factor = ctx.saved_tensors
        wants = ctx.needs_input_grad
        return grad * factor if wants[0] else None, column_sum(grad * x, None) if wants[1] else None


linear = applied(_Linear)
scale_columns = applied(_ScaleColumns)


# --- fold_norm --------------------------------------------------------------------------------------------------------


def _fold_kernel(weight: Tensor, bias: Tensor, norm_weight: Tensor, norm_bias: Tensor, first: int) -> Outputs:
    backend = native_backend if native_backend.BUILT else torch_network
    return backend.fold_norm(weight, bias, norm_weight, norm_bias, first)


def _fold_fake(weight: Tensor, bias: Tensor, _norm_weight: Tensor, _norm_bias: Tensor, first: int) -> Outputs:
    rows, width = weight.shape
    return weight.new_empty(rows, first), weight.new_empty(rows, width - first), bias.new_empty(rows)


def _fold_keep(ctx: Any, inputs: Inputs, output: Outputs) -> None:
    del output
    weight, _, norm_weight, norm_bias, _ = inputs
    ctx.save_for_backward(weight, norm_weight, norm_bias)


def _fold_backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    grad_weight, grad_norm_weight, grad_norm_bias = fold_norm_backward(*grads, *ctx.saved_tensors)
    return grad_weight, grads[2], grad_norm_weight, grad_norm_bias, None


fold_norm = Operator(
    "fold_norm(Tensor weight, Tensor bias, Tensor norm_weight, Tensor norm_bias, SymInt first) -> "
    "(Tensor, Tensor, Tensor)",
    _fold_kernel,
    _fold_fake,
    _fold_keep,
    _fold_backward,
)
fold_norm_backward = Operator(
    "fold_norm_backward(Tensor grad_first, Tensor grad_second, Tensor grad_bias, Tensor weight, Tensor norm_weight, "
    "Tensor norm_bias) -> (Tensor, Tensor, Tensor)",
    native_backend.fold_norm_backward,
    lambda _first, _second, _bias, *tensors: tuple(_like(tensor) for tensor in tensors),
)


# --- segment_softmax --------------------------------------------------------------------------------------------------


def _softmax_kernel(scores: Tensor, edge_ptr: Tensor) -> Tensor:
    check_segments(scores, edge_ptr)
    if not native_backend.BUILT:
        return torch_network.segment_softmax(scores, edge_ptr)
    return native_backend.segment_softmax(scores, edge_ptr)


def _softmax_keep(ctx: Any, inputs: Inputs, output: Tensor) -> None:
    ctx.save_for_backward(output, inputs[1])


def _softmax_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return segment_softmax_backward(grad, *ctx.saved_tensors), None


segment_softmax = Operator(
    "segment_softmax(Tensor scores, Tensor edge_ptr) -> Tensor",
    _softmax_kernel,
    lambda scores, _edge_ptr: _like(scores),
    _softmax_keep,
    _softmax_backward,
)
segment_softmax_backward = Operator(
    "segment_softmax_backward(Tensor grad, Tensor soft, Tensor edge_ptr) -> Tensor",
    native_backend.segment_softmax_backward,
    lambda grad, _soft, _edge_ptr: _like(grad),
)
