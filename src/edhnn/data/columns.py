"""Which columns are labels and which are features: asked for by name, or guessed and said aloud.

A node table and the attributes of a HIF document are both named columns. A column that was not taken as label or
feature stays an attribute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from edhnn.data.column_values import (
    Column,
    as_list,
    first_other,
    is_rounded,
    mostly_numbers,
    numbers_in,
    numbers_or_nothing,
)
from edhnn.data.dataset import Task
from edhnn.data.labels import Labels, labels_from_columns, labels_from_values
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.typing import JsonObject

LABEL_GUESSES = ("label", "labels", "class", "category", "kind", "target", "y")
_SHOWN = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRequest:
    """What the user said about columns.

    Attributes:
        label: The label column; several for multi-label or several targets; ``None`` to guess.
        features: The feature columns; ``None`` to take every other column of numbers.
        task: What the labels are; ``None`` to infer it from them.
        keep_missing: Keep missing feature values as NaN instead of refusing them.

    Raises:
        UsageError: if a column is named twice.
    """

    label: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    task: Task | None = None
    keep_missing: bool = False

    def __post_init__(self) -> None:
        label, features = self.label or (), self.features or ()
        for name, times in Counter((*label, *features)).items():
            if times > 1:
                both = name in label and name in features
                raise UsageError(
                    f"A column must be named once, as label or as feature. '{name}' is named "
                    f"{'as both' if both else 'twice'}."
                )


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


def names_in(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names of columns as a caller gives them: a text is one name, not its letters."""
    return (given,) if isinstance(given, str) else tuple(given)


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


def _label_names(columns: Mapping[str, Column], request: ColumnRequest, notes: list[str]) -> tuple[str, ...]:
    found = label_columns(columns, request)
    need_columns(columns, found, "label")
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
        column = numbers_or_nothing(columns[name])
        if column is None:
            raise DataError(f"Of several labels each must be a column of numbers. '{name}' is not.")
        numbers.append(column.tolist())
    return labels_from_columns(numbers, names, request.task)


def _feature_names(
    columns: Mapping[str, Column],
    request: ColumnRequest,
    labels: Iterable[str],
    notes: list[str],
) -> tuple[str, ...]:
    if request.features is not None:
        need_columns(columns, request.features, "features")
        return request.features
    taken = set(labels)
    guess: list[str] = []
    rounded: list[str] = []
    broken: list[str] = []
    for name, column in columns.items():
        numbers = None if name in taken else numbers_in(column)
        if numbers is not None:
            (rounded if is_rounded(column, numbers) else guess).append(name)
        elif name not in taken and mostly_numbers(column):
            broken.append(name)
    if guess:
        notes.append(f"feature columns guessed (all other columns of numbers): {_shown(guess)}")
    if rounded:
        notes.append(f"not taken for features, as 32 bits would round their whole numbers: {_shown(rounded)}")
    for name in broken[:_SHOWN]:
        row, value = first_other(columns[name])
        notes.append(f"not taken for a feature, as {value!r:.60} is not a number: {name}, row {row + 1} of the data")
    if len(broken) > _SHOWN:
        notes.append(f"not taken for features, as not all their entries are numbers: {_shown(broken)}")
    return tuple(guess)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f", ... ({len(names)} in all)" if len(names) > _SHOWN else "")


def _feature(
    name: str, column: Column, request: ColumnRequest, place: Callable[[int], str], notes: list[str]
) -> npt.NDArray[np.float32]:
    numbers = numbers_or_nothing(column)
    if numbers is None:
        row, value = first_other(column)
        raise DataError(
            f"The feature column '{name}' must hold numbers only. Got {value!r:.60}.",
            where=place(row),
            remedy="Mend it, or name the other columns only with --features ('' for none).",
        )
    with np.errstate(over="ignore"):  # beyond 32 bits: infinite, and refused below
        narrow = numbers.astype(np.float32)
    wrong = np.flatnonzero(np.isinf(narrow) if request.keep_missing else ~np.isfinite(narrow))
    if len(wrong):
        raise DataError(
            f"Every value of the feature '{name}' must be a finite number (of 32 bits). "
            f"Got {'nothing' if np.isnan(numbers[wrong[0]]) else numbers[wrong[0]]}; {len(wrong)} such in all.",
            where=place(int(wrong[0])),
            remedy="Fill the gap, or name the other columns only with --features ('' for none).",
        )
    if is_rounded(column, numbers):
        notes.append(f"the whole numbers of the feature '{name}' were rounded to 32 bits")
    return narrow


def need_columns(columns: Collection[str], names: Iterable[str], option: str) -> None:
    """A usage error if a column that an option names is not there."""
    for name in names:
        if name not in columns:
            if not columns:
                raise UsageError(f"--{option} names the column '{name}', but the nodes have no columns.")
            raise unknown_name(f"--{option} column", name, columns)
