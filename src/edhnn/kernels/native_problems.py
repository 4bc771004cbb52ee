"""What the native network kernels are asked to do, field by field as ``native/problems.h`` reads it.

Every field is eight bytes wide, so both sides agree without padding. Pointers left at ``None`` are options left out.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from edhnn.kernels.native_kernels import SUFFIX, load


def _fields(**kinds: str) -> list[tuple[str, type]]:
    types = {"pointer": ctypes.c_void_p, "index": ctypes.c_int64, "double": ctypes.c_double}
    return [(name, types[kind]) for kind, names in kinds.items() for name in names.split()]


class Problem(ctypes.Structure):
    """A call's sizes and pointers; tensors handed over are kept until the problem is forgotten."""

    def __init__(self, **values: Tensor | float | int | None) -> None:
        super().__init__()
        self.kept = [value for value in values.values() if isinstance(value, Tensor)]
        self.threads = torch.get_num_threads()
        for name, value in values.items():
            setattr(self, name, value.data_ptr() if isinstance(value, Tensor) else value)


class Pair(Problem):
    """``Pair`` of ``native/problems.h``."""

    _fields_ = [
        *_fields(pointer="row_ptr row_column row_link column_ptr column_row column_link"),
        *_fields(index="rows columns channels threads"),
        *_fields(pointer="a b bias q_row mu_row q_column mu_column norm_weight norm_bias weight"),
        *_fields(double="kappa eps norm_eps", index="seed threshold relu"),
        *_fields(pointer="out grad grad_a grad_b grad_bias grad_q_row grad_mu_row grad_q_column grad_mu_column"),
        *_fields(pointer="grad_norm_weight grad_norm_bias grad_weight"),
    ]


class Gather(Problem):
    """``Gather`` of ``native/problems.h``."""

    _fields_ = [
        *_fields(pointer="ptr other link source_ptr", index="rows sources channels threads own_mean"),
        *_fields(pointer="x weight out grad weight_out"),
    ]


class Rows(Problem):
    """``Rows`` of ``native/problems.h``."""

    _fields_ = [
        *_fields(index="rows channels threads relu", double="norm_eps"),
        *_fields(index="seed threshold"),
        *_fields(pointer="x norm_weight norm_bias out grad grad_x grad_norm_weight grad_norm_bias"),
    ]


class MomentsProblem(Problem):
    """``Moments`` of ``native/problems.h``."""

    _fields_ = [
        *_fields(index="rows channels threads"),
        *_fields(pointer="x mean spread grad_mean grad_spread grad_x"),
    ]


def solve(name: str, problem: Problem, dtype: torch.dtype) -> None:
    """Run a native network kernel.

    Raises:
        MemoryError: if its work space cannot be had.
    """
    library = load()
    assert library is not None
    if getattr(library, f"edhnn_{name}_{SUFFIX[dtype]}")(ctypes.byref(problem)) != 0:
        raise MemoryError(f"no memory for the work space of {name}")


def plain(tensor: Tensor) -> Tensor:
    """The tensor lying in memory row by row, as C reads it."""
    return tensor.detach().resolve_neg().contiguous()


def plain_or_none(tensor: Tensor | None) -> Tensor | None:
    """The same, or ``None`` for an option left out."""
    return None if tensor is None else plain(tensor)
