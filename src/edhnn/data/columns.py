"""Which columns are labels and which are features: asked for by name, or guessed and said aloud.

A node table and the attributes of a HIF document are both named columns. A column that was not taken as label or
feature stays an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from edhnn.data.dataset import Task
from edhnn.data.labels import Labels, labels_from_columns, labels_from_values
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.typing import FloatArray, JsonObject

LABEL_GUESSES = ("label", "labels", "class", "category", "kind", "target", "y")

Column: TypeAlias = "Sequence[Any] | pa.ChunkedArray"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRequest:
    """What the user said about columns.

    Attributes:
        label: The label column; several for multi-label or several targets; ``None`` to guess.
        features: The feature columns; ``None`` to take every other column of numbers.
        task: What the labels are; ``None`` to infer it from them.
        keep_missing: Keep missing feature values as NaN instead of refusing them.
    """

    label: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    task: Task | None = None
    keep_missing: bool = False


@final
@dataclass(slots=True)
class NodeColumns:
    """Columns sorted into what a `NodeDataset` needs."""

    x: Tensor | None = None
    feature_names: tuple[str, ...] | None = None
    labels: Labels | None = None
    label_columns: tuple[str, ...] = ()
    attributes: dict[str, Sequence[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def details(self) -> JsonObject:
        """What is recorded about them."""
        return {"label_columns": list(self.label_columns)} if self.label_columns else {}


def sort_columns(
    columns: Mapping[str, Column], request: ColumnRequest, count: int, place: Callable[[int], str]
) -> NodeColumns:
    """Take labels and features out of named columns.

    Args:
        columns: The columns, one entry per node.
        request: What the user said.
        count: Number of nodes.
        place: Names the place of a node in the file, for errors: ``line 3 (node 'milk')``.

    Returns:
        Labels, features, the remaining attributes, and notes that say what was guessed.
    """
    result = NodeColumns()
    label_names = _label_names(columns, request, result.notes)
    if label_names:
        result.labels, result.label_columns = _labels(columns, label_names, request), label_names
    feature_names = _feature_names(columns, request, label_names, result.notes)
    if feature_names:
        matrix = np.empty((count, len(feature_names)), dtype=np.float32)
        for number, name in enumerate(feature_names):
            matrix[:, number] = _feature(name, columns[name], request, place, result.notes)
        result.x, result.feature_names = torch.from_numpy(matrix), tuple(feature_names)
    used = {*label_names, *feature_names}
    result.attributes = {name: as_list(column) for name, column in columns.items() if name not in used}
    return result


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


def _numbers_or_nothing(column: Column) -> FloatArray | None:
    """A column that was asked for by name: where it is empty throughout, numbers may be meant."""
    numbers = numbers_in(column)
    if numbers is None and all(value is None for value in as_list(column)):
        return np.full(len(column), np.nan)
    return numbers


def as_list(column: Column) -> list[Any]:
    """A column as a plain list."""
    return list(column.to_pylist() if isinstance(column, pa.ChunkedArray) else column)


def label_columns(names: Iterable[str], request: ColumnRequest) -> tuple[str, ...]:
    """The columns that are labels: those asked for, or the one that is called so."""
    if request.label is not None:
        return request.label
    lower = {name.lower(): name for name in reversed(list(names)) if name not in (request.features or ())}
    guess = next((lower[name] for name in LABEL_GUESSES if name in lower), None)
    return () if guess is None else (guess,)


def told_numbers(labels: tuple[str, ...], request: ColumnRequest) -> tuple[str, ...]:
    """The columns that are numbers by what was asked for: features, several labels, labels that are real values."""
    real = request.task in ("multilabel", "regression") or len(labels) > 1
    return (*(request.features or ()), *(labels if real else ()))


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


def _label_names(columns: Mapping[str, Column], request: ColumnRequest, notes: list[str]) -> tuple[str, ...]:
    found = label_columns(columns, request)
    _need(columns, found, "label")
    notes += [f"label column guessed: '{name}'" for name in found if request.label is None]
    return found


def _labels(columns: Mapping[str, Column], names: tuple[str, ...], request: ColumnRequest) -> Labels:
    if len(names) == 1 and request.task != "multilabel":
        values = as_list(columns[names[0]])
        if not any(isinstance(value, list | dict) for value in values):
            return labels_from_values([int(v) if isinstance(v, bool) else v for v in values], request.task)
        raise DataError(f"The label '{names[0]}' must hold one text or number per node.")
    numbers = []
    for name in names:
        column = _numbers_or_nothing(columns[name])
        if column is None:
            raise DataError(f"Of several labels each must be a column of numbers. '{name}' is not.")
        numbers.append(column.tolist())
    return labels_from_columns(numbers, names, request.task)


def _feature_names(
    columns: Mapping[str, Column], request: ColumnRequest, labels: Iterable[str], notes: list[str]
) -> tuple[str, ...]:
    if request.features is not None:
        _need(columns, request.features, "features")
        return request.features
    taken = set(labels)
    guess: list[str] = []
    rounded: list[str] = []
    for name, column in columns.items():
        numbers = None if name in taken else numbers_in(column)
        if numbers is not None:
            (rounded if is_rounded(column, numbers) else guess).append(name)
    if guess:
        notes.append(f"feature columns guessed (all other columns of numbers): {_shown(guess)}")
    if rounded:
        notes.append(f"not taken for features, as 32 bits would round their whole numbers: {_shown(rounded)}")
    return tuple(guess)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f", ... ({len(names)} in all)" if len(names) > 5 else "")


def _feature(
    name: str, column: Column, request: ColumnRequest, place: Callable[[int], str], notes: list[str]
) -> npt.NDArray[np.float32]:
    numbers = _numbers_or_nothing(column)
    if numbers is None:
        raise DataError(f"The feature column '{name}' must hold numbers only.")
    with np.errstate(over="ignore"):  # beyond 32 bits: infinite, and refused below
        narrow = numbers.astype(np.float32)
    wrong = np.flatnonzero(np.isinf(narrow) if request.keep_missing else ~np.isfinite(narrow))
    if len(wrong):
        raise DataError(
            f"Every value of the feature '{name}' must be a finite number (of 32 bits). "
            f"Got {'nothing' if np.isnan(numbers[wrong[0]]) else numbers[wrong[0]]}; {len(wrong)} such in all.",
            where=place(int(wrong[0])),
            remedy="Fill the gap or leave the column out with --features.",
        )
    if is_rounded(column, numbers):
        notes.append(f"the whole numbers of the feature '{name}' were rounded to 32 bits")
    return narrow


def _need(columns: Mapping[str, Column], names: Iterable[str], option: str) -> None:
    for name in names:
        if name not in columns:
            if not columns:
                raise UsageError(f"--{option} names the column '{name}', but the nodes have no columns.")
            raise unknown_name(f"--{option} column", name, columns)
