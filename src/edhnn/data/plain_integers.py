"""Ids that text spells as integers: which of them are integers, and which only look so."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edhnn.data.ids import IdColumn, integer_view


def integers_if_all_canonical(columns: Sequence[IdColumn]) -> None:
    """Turn text columns into integers where every entry is an integer in its plain spelling.

    Text files carry no types. ``7`` becomes the integer 7; one ``007``, ``+7``, ``7.0`` or ``n7`` anywhere keeps all of
    the columns text. The plain spelling is the shortest decimal one, so it is enough to compare the total lengths;
    Arrow takes ``0x1f`` for a number too, which can be shorter still and is looked for where numbers are that large.
    """
    if any(canonical_integers(column.chunks[0]) is None for column in columns if column.chunks):
        return  # the first lines tell already
    with ThreadPoolExecutor() as pool:
        converted = [list(pool.map(canonical_integers, column.chunks)) for column in columns]
    if all(chunk is not None for chunks in converted for chunk in chunks):
        for column, chunks in zip(columns, converted, strict=True):
            column.chunks = [chunk for chunk in chunks if chunk is not None]


def canonical_integers(texts: pa.Array) -> pa.Array | None:
    """Texts as integers, or ``None`` if one is not the plain spelling of an integer."""
    try:
        numbers = pc.cast(texts, pa.int64())
    except pa.ArrowInvalid:
        return None
    view = integer_view(numbers)
    if pc.sum(pc.binary_length(texts)).as_py() != _spelled_length(view):
        return None
    could_be_hexadecimal = int(_sizes(view).max(initial=0)) >= 10**9
    if could_be_hexadecimal and pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        return None
    return numbers


def _spelled_length(numbers: npt.NDArray[np.signedinteger[Any]]) -> int:
    """Characters needed to write the numbers in plain decimal."""
    size = _sizes(numbers)
    top = int(size.max(initial=0))
    longer = sum(int(np.count_nonzero(size >= 10**digits)) for digits in range(1, len(str(top))))
    return len(numbers) + longer + int(np.count_nonzero(numbers < 0))


def _sizes(numbers: npt.NDArray[np.signedinteger[Any]]) -> npt.NDArray[np.uint64]:
    """Absolute values; unsigned, as that of the smallest 64-bit integer is no 64-bit integer."""
    return np.abs(numbers.astype(np.int64, copy=False)).view(np.uint64)
