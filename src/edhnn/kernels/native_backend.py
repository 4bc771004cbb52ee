"""The native kernels: C++ without Python or torch headers, called through ctypes.

``pip install`` compiles ``native/*.cpp`` into a shared library beside them. The library takes pointers and sizes and
gives the same bits for any number of threads. Arguments are checked by the caller.

A network kernel takes one struct of ``native/problems.h``. Every field is eight bytes wide, so both sides agree without
padding, and an option left out is a null pointer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from edhnn.kernels.library import load
from edhnn.kernels.options import PairOptions, RowOptions

SUFFIX = {torch.float32: "f32", torch.float64: "f64"}

_POINTER, _LONG, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_SEGMENTS = (_POINTER, _POINTER, _LONG, _LONG, _INT)  # values, edge_ptr, hyperedges, columns, threads
_SIGNATURES: dict[str, tuple[type, ...]] = {
    "segment_sort": (*_SEGMENTS, _POINTER),
    "segment_pav": (*_SEGMENTS, _POINTER, _LONG, _LONG, _POINTER),
    "prox_total_variation": (*_SEGMENTS, _POINTER, _POINTER, _INT, _POINTER),
    "prox_cardinality": (*_SEGMENTS, _POINTER, _POINTER, _INT, _POINTER),
    "segment_softmax": (*_SEGMENTS, _POINTER),
    "segment_softmax_backward": (*_SEGMENTS, _POINTER, _POINTER),
    "segment_argmax": (*_SEGMENTS, _POINTER),
    **dict.fromkeys(
        (
            *("pair_forward", "pair_backward", "gather", "gather_weight"),
            *("rows_forward", "rows_backward", "moments_forward", "moments_backward"),
            *("column_sum", "add_bias", "fold_forward", "fold_backward"),
        ),
        (_POINTER,),
    ),
}
# The structs, field by field: q for pointers and integers, d for doubles.
_GATHER = Struct("4q 5q 5q")  # ptr other link source_ptr; rows sources channels threads own_mean; tensors
_PAIR = Struct("6q 4q 10q 3d 4q 12q")  # links; sizes; a b tensors; three eps; seed threshold relu mean; outputs
_ROWS = Struct("4q d 2q 8q")  # rows channels threads relu; norm_eps; seed threshold; tensors
_MOMENTS = Struct("4q 6q")  # rows channels threads width; tensors
_COLUMNS = Struct("3q 4q")  # rows channels threads; x weight bias out
_FOLD = Struct("4q 13q")  # rows first second threads; tensors


def _functions(library: ctypes.CDLL | None) -> dict[tuple[str, torch.dtype], Callable[..., int]]:
    """Every function of the library with its signature, by name and type of number."""
    found: dict[tuple[str, torch.dtype], Callable[..., int]] = {}
    for name, arguments in _SIGNATURES.items() if library is not None else ():
        for dtype, suffix in SUFFIX.items():
            function = getattr(library, f"edhnn_{name}_{suffix}")
            function.argtypes = arguments
            found[name, dtype] = function
    return found


LOADED = load()
BUILT = LOADED is not None
_FUNCTIONS = _functions(LOADED)

LinkParts = tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor | None]
"""The six tensors of `Links`: the row order's three, then the column order's."""


def _run(name: str, dtype: torch.dtype, *arguments: Any) -> None:
    if _FUNCTIONS[name, dtype](*arguments) != 0:
        raise MemoryError(f"no memory for the work space of {name}")


def _plain(tensor: Tensor) -> Tensor:
    """Return the tensor lying in memory row by row, as C reads it."""
    return tensor if tensor.is_contiguous() and not tensor.is_neg() else tensor.resolve_neg().contiguous()


def _plain_or_none(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else _plain(tensor)


def _empty_like(tensor: Tensor | None) -> Tensor | None:
    """Return a new tensor of the same shape and type, row by row; nothing for nothing."""
    return None if tensor is None else torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


# --- networks -------------------------------------------------------------------------------------------------------


def gather_sum(x: Float[Tensor, "S C"], links: LinkParts, weight: Float[Tensor, " I"] | None, mean: int) -> Tensor:
    """See `edhnn.kernels.gather_sum`; ``mean`` divides by the links of the row (1), of the column (2), or not (0)."""
    x, weight = _plain(x), _plain_or_none(weight)
    out = torch.empty((len(links[0]) - 1, x.shape[1]), dtype=x.dtype)
    tensors = x.data_ptr(), _address(weight), out.data_ptr(), 0, 0
    _run("gather", x.dtype, _GATHER.pack(*_gather(x, links, mean), *tensors))
    return out


def link_dot(x: Float[Tensor, "S C"], grad: Float[Tensor, "R C"], links: LinkParts, mean: int) -> Float[Tensor, " I"]:
    """Return the gradient of `gather_sum` with respect to its weight."""
    x, grad = _plain(x), _plain(grad)
    out = torch.empty(len(links[1]), dtype=x.dtype)
    tensors = x.data_ptr(), 0, 0, grad.data_ptr(), out.data_ptr()
    _run("gather_weight", x.dtype, _GATHER.pack(*_gather(x, links, mean), *tensors))
    return out


def _gather(x: Tensor, links: LinkParts, mean: int) -> tuple[int, ...]:
    row_ptr, row_column, row_link, column_ptr = links[:4]
    pointers = _address(row_ptr), _address(row_column), _address(row_link), _address(column_ptr) if mean == 2 else 0
    sizes = len(row_ptr) - 1, len(column_ptr) - 1, x.shape[1]
    return *pointers, *sizes, torch.get_num_threads(), int(mean == 1)


def pair_sum(a: Float[Tensor, "R C"], b: Float[Tensor, "S C"], links: LinkParts, options: PairOptions) -> Tensor:
    """See `edhnn.kernels.pair_sum`."""
    out = torch.empty_like(a, memory_format=torch.contiguous_format)
    _pair("pair_forward", a, b, links, options, (out.data_ptr(), *(0,) * 11))
    return out


def pair_sum_backward(
    grad: Float[Tensor, "R C"],
    a: Float[Tensor, "R C"],
    b: Float[Tensor, "S C"],
    links: LinkParts,
    options: PairOptions,
    wants_weight: bool,
) -> list[Tensor | None]:
    """Return the gradients of a, b, bias, the four moments, norm_weight, norm_bias and weight."""
    made = [_empty_like(x) for x in (a, b, *options.tensors[:-1], options.weight if wants_weight else None)]
    grad = _plain(grad)
    _pair("pair_backward", a, b, links, options, (0, grad.data_ptr(), *map(_address, made)))
    return made


def _pair(name: str, a: Tensor, b: Tensor, links: LinkParts, options: PairOptions, outputs: Sequence[int]) -> None:
    tensors = [_plain_or_none(tensor) for tensor in (a, b, *options.tensors)]
    problem = _PAIR.pack(
        *map(_address, links),
        *(len(links[0]) - 1, len(links[3]) - 1, a.shape[1], torch.get_num_threads()),
        *map(_address, tensors),
        *(options.kappa, options.eps, options.norm_eps),
        *(options.seed, options.threshold, options.activation == "relu", options.mean),
        *outputs,
    )
    _run(name, a.dtype, problem)


def row_activation(x: Float[Tensor, "R C"], options: RowOptions) -> Float[Tensor, "R C"]:
    """See `edhnn.kernels.row_activation`."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    _rows("rows_forward", x, options, (out.data_ptr(), 0, 0, 0, 0))
    return out


def row_activation_backward(
    grad: Float[Tensor, "R C"], x: Float[Tensor, "R C"], options: RowOptions
) -> list[Tensor | None]:
    """Return the gradients of x, norm_weight and norm_bias."""
    made = [_empty_like(tensor) for tensor in (x, options.norm_weight, options.norm_bias)]
    grad = _plain(grad)
    _rows("rows_backward", x, options, (0, grad.data_ptr(), *map(_address, made)))
    return made


def _rows(name: str, x: Tensor, options: RowOptions, outputs: Sequence[int]) -> None:
    tensors = [_plain_or_none(tensor) for tensor in (x, options.norm_weight, options.norm_bias)]
    sizes = (*x.shape, torch.get_num_threads(), options.activation == "relu")
    settings = options.norm_eps, options.seed, options.threshold
    _run(name, x.dtype, _ROWS.pack(*sizes, *settings, *map(_address, tensors), *outputs))


def row_moments(x: Float[Tensor, "R C"], width: int) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """See `edhnn.kernels.row_moments`."""
    x = _plain(x)
    mean, spread = torch.empty(len(x), dtype=x.dtype), torch.empty(len(x), dtype=x.dtype)
    addresses = x.data_ptr(), mean.data_ptr(), spread.data_ptr(), 0, 0, 0
    _run("moments_forward", x.dtype, _MOMENTS.pack(*x.shape, torch.get_num_threads(), width, *addresses))
    return mean, spread


def row_moments_backward(
    grad_mean: Float[Tensor, " R"],
    grad_spread: Float[Tensor, " R"],
    x: Float[Tensor, "R C"],
    mean: Float[Tensor, " R"],
    width: int,
) -> Float[Tensor, "R C"]:
    """Return the gradient of x."""
    x, mean, grad_mean, grad_spread = _plain(x), _plain(mean), _plain(grad_mean), _plain(grad_spread)
    grad_x = torch.empty_like(x)
    addresses = (*map(_address, (x, mean)), 0, *map(_address, (grad_mean, grad_spread, grad_x)))
    _run("moments_backward", x.dtype, _MOMENTS.pack(*x.shape, torch.get_num_threads(), width, *addresses))
    return grad_x


def column_sum(x: Float[Tensor, "R C"], weight: Float[Tensor, " R"] | None) -> Float[Tensor, " C"]:
    """See `edhnn.kernels.column_sum`."""
    x, weight = _plain(x), _plain_or_none(weight)
    out = torch.empty(x.shape[1], dtype=x.dtype)
    addresses = x.data_ptr(), _address(weight), 0, out.data_ptr()
    _run("column_sum", x.dtype, _COLUMNS.pack(*x.shape, torch.get_num_threads(), *addresses))
    return out


def add_bias(
    x: Float[Tensor, "R C"], bias: Float[Tensor, " C"], weight: Float[Tensor, " R"] | None
) -> Float[Tensor, "R C"]:
    """See `edhnn.kernels.add_bias`."""
    x, bias, weight = _plain(x), _plain(bias), _plain_or_none(weight)
    out = torch.empty_like(x)
    addresses = x.data_ptr(), _address(weight), bias.data_ptr(), out.data_ptr()
    _run("add_bias", x.dtype, _COLUMNS.pack(*x.shape, torch.get_num_threads(), *addresses))
    return out


def fold_norm(
    weight: Float[Tensor, "H D"],
    bias: Float[Tensor, " H"],
    norm_weight: Float[Tensor, " D"],
    norm_bias: Float[Tensor, " D"],
    first: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """See `edhnn.kernels.fold_norm`."""
    given = [_plain(tensor) for tensor in (weight, bias, norm_weight, norm_bias)]
    rows, width = weight.shape
    sizes = ((rows, first), (rows, width - first), (rows,))
    made = [torch.empty(size, dtype=weight.dtype) for size in sizes]
    addresses = (tensor.data_ptr() for tensor in (*given, *made))
    sizes_and_threads = rows, first, width - first, torch.get_num_threads()
    _run("fold_forward", weight.dtype, _FOLD.pack(*sizes_and_threads, *addresses, *(0,) * 6))
    return made[0], made[1], made[2]


def fold_norm_backward(
    grad_first: Tensor, grad_second: Tensor, grad_bias: Tensor, weight: Tensor, norm_weight: Tensor, norm_bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of weight, norm_weight and norm_bias; that of bias is ``grad_bias``."""
    given = [_plain(tensor) for tensor in (weight, norm_weight, norm_bias)]
    grads = [_plain(tensor) for tensor in (grad_first, grad_second, grad_bias)]
    made = [torch.empty_like(tensor) for tensor in given]
    sizes_and_threads = len(weight), grad_first.shape[1], grad_second.shape[1], torch.get_num_threads()
    tensors = (given[0], None, *given[1:], None, None, None, *grads, *made)
    _run("fold_backward", weight.dtype, _FOLD.pack(*sizes_and_threads, *map(_address, tensors)))
    return made[0], made[1], made[2]


# --- segments -------------------------------------------------------------------------------------------------------


def segment_sort(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "I D"]:
    """See `edhnn.kernels.segment_sort`."""
    order = torch.empty(values.shape, dtype=torch.int64)
    _segments("segment_sort", values, edge_ptr, order.data_ptr())
    return order


def segment_pav(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    weight: Float[Tensor, " I"] | Float[Tensor, "I D"] | None,
) -> Float[Tensor, "I D"]:
    """See `edhnn.kernels.segment_pav`."""
    out = torch.empty(values.shape, dtype=values.dtype)
    weight = None if weight is None else _doubles(weight)
    strides = (0, 0) if weight is None else (weight.stride(0), weight.stride(1) if weight.dim() == 2 else 0)
    _segments("segment_pav", values, edge_ptr, _address(weight), *strides, out.data_ptr())
    return out


def prox_total_variation(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    step: Float[Tensor, " E"],
    power: int,
    weight: Float[Tensor, " I"] | None,
) -> Float[Tensor, "I D"]:
    """See `edhnn.kernels.prox_total_variation`."""
    out = torch.empty(values.shape, dtype=values.dtype)
    step, weight = _doubles(step), None if weight is None else _doubles(weight)
    addresses = step.data_ptr(), _address(weight)
    _segments("prox_total_variation", values, edge_ptr, *addresses, power, out.data_ptr())
    return out


def prox_cardinality(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    step: Float[Tensor, " E"],
    power: int,
    cut_weight: Float[Tensor, " I"],
) -> Float[Tensor, "I D"]:
    """See `edhnn.kernels.prox_cardinality`."""
    out = torch.empty(values.shape, dtype=values.dtype)
    step, cut_weight = _doubles(step), _doubles(cut_weight)
    _segments("prox_cardinality", values, edge_ptr, step.data_ptr(), cut_weight.data_ptr(), power, out.data_ptr())
    return out


def segment_softmax(scores: Float[Tensor, "I H"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Float[Tensor, "I H"]:
    """See `edhnn.kernels.segment_softmax`."""
    out = torch.empty(scores.shape, dtype=scores.dtype)
    _segments("segment_softmax", scores, edge_ptr, out.data_ptr())
    return out


def segment_softmax_backward(
    grad: Float[Tensor, "I H"], soft: Float[Tensor, "I H"], edge_ptr: Int[Tensor, " E_plus_1"]
) -> Float[Tensor, "I H"]:
    """Return the gradient of the scores, from that of the softmax and the softmax itself."""
    out = torch.empty(grad.shape, dtype=grad.dtype)
    soft = _plain(soft)
    _segments("segment_softmax_backward", grad, edge_ptr, soft.data_ptr(), out.data_ptr())
    return out


def segment_argmax(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "E D"]:
    """Return the first row with a hyperedge's largest value, NaN counting as the largest; -1 for an empty hyperedge."""
    out = torch.empty((len(edge_ptr) - 1, values.shape[1]), dtype=torch.int64)
    _segments("segment_argmax", values, edge_ptr, out.data_ptr())
    return out


def _segments(name: str, values: Tensor, edge_ptr: Tensor, *rest: int) -> None:
    values, edge_ptr = _plain(values), _plain(edge_ptr.long())
    sizes = len(edge_ptr) - 1, values.shape[1], torch.get_num_threads()
    _run(name, values.dtype, values.data_ptr(), edge_ptr.data_ptr(), *sizes, *rest)


def _doubles(tensor: Tensor) -> Tensor:
    return _plain(tensor.detach().double())
