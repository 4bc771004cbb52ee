"""What this machine can do, measured when asked: multiply, copy, draw masks, start an operation, hold in memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch

_PATIENCE_SECONDS = 0.025
_MATRIX = 256
_MASK_ENTRIES = 2**17
_SMALL_CALLS = 200
_SMALLEST_PIECE, _LARGEST_COPY = 2**18, 2**26


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How fast torch works here, on the CPU with the threads it has now.

    Attributes:
        flops_per_second: In a product of square float32 matrices.
        bytes_per_second: Read and written by a copy into a fresh tensor.
        masks_per_second: Entries of a dropout mask drawn.
        seconds_per_call: Cost of starting one recorded operation, however small.
    """

    flops_per_second: float
    bytes_per_second: float
    masks_per_second: float
    seconds_per_call: float


def measure_rates(tensor_bytes: int = _LARGEST_COPY, working_bytes: int = _LARGEST_COPY) -> Rates:
    """Measure the rates, in a fifth of a second or so.

    Small tensors live in reused memory, large ones in fresh pages that cost ten times as much; few tensors live in
    caches, many do not. So copies are timed at the sizes the work will have, up to 64 MiB.

    Args:
        tensor_bytes: Size of the tensors the work is about.
        working_bytes: Size of all that it keeps at a time.

    Returns:
        The best of some repetitions of each, so that of a quiet moment.
    """
    matrix, small = torch.ones(_MATRIX, _MATRIX), torch.ones(8, requires_grad=True)
    mask, generator = torch.empty(_MASK_ENTRIES), torch.Generator()
    piece = min(max(tensor_bytes, _SMALLEST_PIECE), _LARGEST_COPY)
    pieces = [torch.ones(piece // 4) for _ in range(max(min(working_bytes, _LARGEST_COPY) // piece, 1))]

    def many_calls() -> None:
        for _ in range(_SMALL_CALLS):
            torch.add(small, small)

    return Rates(
        flops_per_second=2 * _MATRIX**3 / _best_of_one_or_all_threads(lambda: matrix @ matrix),
        bytes_per_second=2 * piece * len(pieces) / _best_of_one_or_all_threads(lambda: [t.clone() for t in pieces]),
        masks_per_second=_MASK_ENTRIES / _best_seconds(lambda: mask.bernoulli_(0.5, generator=generator)),
        seconds_per_call=_best_seconds(many_calls) / _SMALL_CALLS,
    )


def total_memory() -> int | None:
    """Bytes of memory in this machine; ``None`` where the system does not say."""
    try:
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not a POSIX system, or one without these names
        return None
    return pages * page if pages > 0 and page > 0 else None


def _best_of_one_or_all_threads(work: Callable[[], object]) -> float:
    """The better of both: on a busy machine threads that wait for each other can be a hundred times slower than one."""
    threads = torch.get_num_threads()
    together = _best_seconds(work)
    if threads == 1:
        return together
    torch.set_num_threads(1)
    try:
        return min(together, _best_seconds(work))
    finally:
        torch.set_num_threads(threads)


def _best_seconds(work: Callable[[], object]) -> float:
    work()  # the first call pays for threads and pages
    best, began = float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() - began < _PATIENCE_SECONDS:
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return max(best, 1e-9)
