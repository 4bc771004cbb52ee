"""The values of one column: a list, or a column of Arrow. Which are numbers, and which would be rounded."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from torch import Tensor

from edhnn.typing import BoolArray, FloatArray, IntArray

Column: TypeAlias = "Sequence[Any] | pa.ChunkedArray"
_NUMBER = r"(?i)^\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)\s*$"


def numbers_in(column: Column) -> FloatArray | None:
    """Return a column as floats, NaN where empty; ``None`` if all of it is empty or it holds anything but numbers."""
    if isinstance(column, pa.ChunkedArray):
        if not (
            pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)
        ):
            return None
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    if any(value is not None for value in column) and all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in column
    ):
        with suppress(OverflowError):  # an integer beyond all floats stays an attribute
            return np.array([np.nan if value is None else value for value in column], dtype=np.float64)
    return None


def numbers_or_all_empty(column: Column) -> FloatArray | None:
    """Convert like `numbers_in`, but return all NaN for an all-empty column."""
    numbers = numbers_in(column)
    if numbers is None and all(value is None for value in as_list(column)):
        return np.full(len(column), np.nan)
    return numbers


def as_list(column: Column) -> list[Any]:
    """Return a column as a plain list."""
    return list(column.to_pylist() if isinstance(column, pa.ChunkedArray) else column)


def is_rounded(column: Column, numbers: FloatArray) -> bool:
    """Return whether 32 bits would round a column of whole numbers: 5551234567 becomes 5551234560.

    Args:
        column: The column.
        numbers: The result of `numbers_in` for it.
    """
    known = ~np.isnan(numbers)
    if not (numbers[known] == np.trunc(numbers[known])).all():
        return False
    with np.errstate(over="ignore"):
        if (numbers.astype(np.float32)[known] != numbers[known]).any():
            return True
    beyond = np.flatnonzero(np.abs(numbers) >= 2**53)  # where 64 bits may have rounded already
    values = column.take(pa.array(beyond)) if isinstance(column, pa.ChunkedArray) else [column[int(i)] for i in beyond]
    return any(value != number for value, number in zip(as_list(values), numbers[beyond].tolist(), strict=True))


def exact_array(values: Iterable[Any]) -> pa.Array:
    """Convert values to an Arrow array, arrays to lists.

    Raises:
        pa.ArrowInvalid: if the values have several types, or lists or dictionaries would not come back unchanged.
    """
    plain = [value.tolist() if isinstance(value, np.ndarray | np.generic | Tensor) else value for value in values]
    array = pa.array(plain)
    if pa.types.is_nested(array.type) and repr(array.to_pylist()) != repr(plain):
        raise pa.ArrowInvalid("its lists or dictionaries differ in the types or keys of their entries")
    return array


def mostly_numbers(column: Column) -> bool:
    """Return whether most entries of a column are numbers, but not all."""
    is_number, is_present = _entry_kinds(column)
    numbers, present = int(is_number.sum()), int(is_present.sum())
    return present - numbers < numbers < present


def first_other(column: Column) -> tuple[int, Any]:
    """Return row and value of the first entry that is not a number; if all look like numbers, of the first entry."""
    is_number, is_present = _entry_kinds(column)
    others = is_present & ~is_number
    row = int(np.argmax(others if others.any() else is_present))
    return row, as_list(column[row : row + 1])[0]


def _entry_kinds(column: Column) -> tuple[BoolArray, BoolArray]:
    """Return a mask of the entries that are numbers or spell one, and a mask of the entries that are not missing."""
    if isinstance(column, pa.ChunkedArray):
        present = pc.is_valid(column).to_numpy()
        if not pa.types.is_string(column.type):
            return np.zeros(len(column), dtype=np.bool_), present
        return pc.fill_null(pc.match_substring_regex(column, _NUMBER), fill_value=False).to_numpy(), present
    numbers = [_is_number(value) for value in column]
    return np.array(numbers, dtype=np.bool_), np.array([value is not None for value in column], dtype=np.bool_)


def _is_number(value: Any) -> bool:
    """Return whether a value is a float, or an integer within the range of floats."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max
    return isinstance(value, float)


def value_codes(column: Column) -> IntArray:
    """Return a number for each distinct value of a column, -1 where it is missing."""
    if not isinstance(column, pa.ChunkedArray):
        column = pa.chunked_array([pa.array([None if value is None else str(value) for value in column], pa.string())])
    encoded = pc.dictionary_encode(column).combine_chunks()
    return np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(), dtype=np.int64)
