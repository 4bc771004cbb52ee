"""The native kernels: C++ without Python or torch headers, called through ctypes.

``pip install`` compiles ``native/kernels.cpp`` into a shared library beside it. The library takes pointers and sizes,
computes in double precision, and gives the same bits for any number of threads. Arguments are checked by the caller.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

ABI = 3
"""Signatures and promises of ``native/kernels.cpp``; a library left over from another version is not used."""

LIBRARY = Path(__file__).parent / "native" / ("kernels.dll" if sys.platform == "win32" else "kernels.so")
SUFFIX = {torch.float32: "f32", torch.float64: "f64"}

_POINTER, _LONG, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_SEGMENTS = (_POINTER, _POINTER, _LONG, _LONG, _INT)  # values, edge_ptr, hyperedges, columns, threads
_SIGNATURES: dict[str, tuple[type, ...]] = {
    "segment_sort": (*_SEGMENTS, _POINTER),
    "segment_pav": (*_SEGMENTS, _POINTER, _LONG, _LONG, _POINTER),
    "prox_total_variation": (*_SEGMENTS, _POINTER, _POINTER, _INT, _POINTER),
    "prox_cardinality": (*_SEGMENTS, _POINTER, _POINTER, _INT, _POINTER),
}
_SIGNATURES |= {
    "segment_softmax": (*_SEGMENTS, _POINTER),
    "segment_softmax_backward": (*_SEGMENTS, _POINTER, _POINTER),
    "segment_argmax": (*_SEGMENTS, _POINTER),
}
_NETWORK = (
    *("pair_forward", "pair_backward", "gather", "gather_weight"),
    *("rows_forward", "rows_backward", "moments_forward", "moments_backward"),
)
_SIGNATURES |= dict.fromkeys(_NETWORK, (_POINTER,))  # a problem each: see `native_problems`


@cache
def load() -> ctypes.CDLL | None:
    """The library, or ``None`` where it was not built, cannot be loaded or belongs to another version."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError:
        return None
    if not hasattr(library, "edhnn_kernels_abi") or library.edhnn_kernels_abi() != ABI:
        return None
    for name, arguments in _SIGNATURES.items():
        for suffix in SUFFIX.values():
            getattr(library, f"edhnn_{name}_{suffix}").argtypes = arguments
    return library


def segment_sort(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "I D"]:
    """See `edhnn.kernels.segment_sort`."""
    order = torch.empty(values.shape, dtype=torch.int64)
    _call("segment_sort", values, edge_ptr, order.data_ptr())
    return order


def segment_pav(
    values: Float[Tensor, "I D"],
    edge_ptr: Int[Tensor, " E_plus_1"],
    weight: Float[Tensor, " I"] | Float[Tensor, "I D"] | None,
) -> Float[Tensor, "I D"]:
    """See `edhnn.kernels.segment_pav`."""
    out = torch.empty(values.shape, dtype=values.dtype)
    kept, pointer = _plain_or_none(weight)
    strides = (0, 0) if kept is None else (kept.stride(0), kept.stride(1) if kept.dim() == 2 else 0)
    _call("segment_pav", values, edge_ptr, pointer, *strides, out.data_ptr())
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
    step = _plain(step, torch.float64)
    kept, pointer = _plain_or_none(weight)
    _call("prox_total_variation", values, edge_ptr, step.data_ptr(), pointer, power, out.data_ptr())
    del kept
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
    step, cut_weight = _plain(step, torch.float64), _plain(cut_weight, torch.float64)
    _call("prox_cardinality", values, edge_ptr, step.data_ptr(), cut_weight.data_ptr(), power, out.data_ptr())
    return out


def segment_softmax(scores: Float[Tensor, "I H"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Float[Tensor, "I H"]:
    """See `edhnn.kernels.segment_softmax`."""
    out = torch.empty(scores.shape, dtype=scores.dtype)
    _call("segment_softmax", scores, edge_ptr, out.data_ptr())
    return out


def segment_softmax_backward(
    grad: Float[Tensor, "I H"], soft: Float[Tensor, "I H"], edge_ptr: Int[Tensor, " E_plus_1"]
) -> Float[Tensor, "I H"]:
    """The gradient of the scores, from that of the softmax and the softmax itself."""
    out = torch.empty(grad.shape, dtype=grad.dtype)
    soft = _plain(soft, grad.dtype)
    _call("segment_softmax_backward", grad, edge_ptr, soft.data_ptr(), out.data_ptr())
    return out


def segment_argmax(values: Float[Tensor, "I D"], edge_ptr: Int[Tensor, " E_plus_1"]) -> Int[Tensor, "E D"]:
    """See `torch_kernels_softmax.segment_argmax`."""
    out = torch.empty((len(edge_ptr) - 1, values.shape[1]), dtype=torch.int64)
    _call("segment_argmax", values, edge_ptr, out.data_ptr())
    return out


def _call(name: str, values: Tensor, edge_ptr: Tensor, *rest: int | None) -> None:
    library = load()
    assert library is not None
    values, edge_ptr = _plain(values, values.dtype), _plain(edge_ptr, torch.int64)
    function = getattr(library, f"edhnn_{name}_{SUFFIX[values.dtype]}")
    sizes = (len(edge_ptr) - 1, values.shape[1], torch.get_num_threads())
    if function(values.data_ptr(), edge_ptr.data_ptr(), *sizes, *rest) != 0:
        raise MemoryError(f"no memory for the work space of {name}")


def _plain(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers of ``dtype`` lying in memory row by row, as C reads them."""
    return tensor.detach().to(dtype).resolve_neg().contiguous()


def _plain_or_none(tensor: Tensor | None) -> tuple[Tensor | None, int | None]:
    """The tensor as C reads it, to be kept until the call is over, and where it begins."""
    if tensor is None:
        return None, None
    plain = _plain(tensor, torch.float64)
    return plain, plain.data_ptr()
