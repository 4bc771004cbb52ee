"""Columns as numbers, lists or Arrow arrays, and what in them is no number."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from torch import Tensor

from edhnn.typing import BoolArray, FloatArray

Column: TypeAlias = "Sequence[Any] | pa.ChunkedArray"

_NUMBER = r"(?i)^\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)\s*$"


def numbers_in(column: Column) -> FloatArray | None:
    """A column as floats, NaN where empty; ``None`` if it holds anything but numbers, or nothing."""
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


def numbers_or_nothing(column: Column) -> FloatArray | None:
    """A column that was asked for by name: where it is empty throughout, numbers may be meant."""
    numbers = numbers_in(column)
    if numbers is None and all(value is None for value in as_list(column)):
        return np.full(len(column), np.nan)
    return numbers


def as_list(column: Column) -> list[Any]:
    """A column as a plain list."""
    return list(column.to_pylist() if isinstance(column, pa.ChunkedArray) else column)


def is_rounded(column: Column, numbers: FloatArray) -> bool:
    """Whether a column holds whole numbers, and 32 bits are not enough for one of them.

    Args:
        column: The column.
        numbers: What `numbers_in` says of it.

    Returns:
        Whether features made of it would be other numbers: 5551234567 becomes 5551234560.
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
    """Values as an Arrow array, arrays as lists.

    Raises:
        pa.ArrowInvalid: if they are of several kinds, or lists and dictionaries would not stay what they are.
    """
    plain = [value.tolist() if isinstance(value, np.ndarray | np.generic | Tensor) else value for value in values]
    array = pa.array(plain)
    if pa.types.is_nested(array.type) and repr(array.to_pylist()) != repr(plain):
        raise pa.ArrowInvalid("its lists or dictionaries differ in the kinds or names of what is in them")
    return array


def mostly_numbers(column: Column) -> bool:
    """Whether a column that is not all numbers has more of them than other entries."""
    numbers, known = _looks(column)
    count, all_known = int(numbers.sum()), int(known.sum())
    return all_known - count < count < all_known


def first_other(column: Column) -> tuple[int, Any]:
    """The first entry that is no number, and its row; where all look like numbers, the first that there is."""
    numbers, known = _looks(column)
    others = known & ~numbers
    row = int(np.argmax(others if others.any() else known))
    return row, as_list(column[row : row + 1])[0]


def _looks(column: Column) -> tuple[BoolArray, BoolArray]:
    """Which entries are numbers, or texts that spell one, and which are there at all."""
    if isinstance(column, pa.ChunkedArray):
        known = pc.is_valid(column).to_numpy()
        if not pa.types.is_string(column.type):
            return np.zeros(len(column), dtype=np.bool_), known
        return pc.fill_null(pc.match_substring_regex(column, _NUMBER), fill_value=False).to_numpy(), known
    numbers = [_is_number(value) for value in column]
    return np.array(numbers, dtype=np.bool_), np.array([value is not None for value in column], dtype=np.bool_)


def _is_number(value: Any) -> bool:
    """Whether it is a number that a float can be near to."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) <= sys.float_info.max
