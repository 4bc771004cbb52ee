"""Turn named columns into labels, features and attributes.

A node table and the attributes of a HIF document are both named columns. The user names labels and features, or they
are guessed and a note reports the guess. Labels are classes, several labels at once, or real values. A column that is
neither label nor feature stays an attribute.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from edhnn.data.dataset import UNLABELLED, Task
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.typing import BoolArray, FloatArray, JsonObject, NodeOrEdgeId

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


RawLabel = str | int | float | None


class Labels(NamedTuple):
    """Labels ready for a `NodeDataset`."""

    y: Tensor
    task: Task
    class_names: tuple[NodeOrEdgeId, ...] | None


def label_fields(labels: Labels | None) -> dict[str, Any]:
    """Return ``y``, ``task`` and ``class_names`` of a `NodeDataset`; empty without labels."""
    return {} if labels is None else labels._asdict()


def recorded_columns(details: object, y: Tensor | None) -> tuple[str, ...]:
    """Return the label columns that a provenance records; empty unless each column of ``y`` has a name of its own."""
    names = details.get("label_columns") if isinstance(details, Mapping) else None
    width = 0 if y is None else int(y.shape[1]) if y.dim() == 2 else 1
    if not isinstance(names, list | tuple) or len(names) != width or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names) if len(set(names)) == width else ()


def labels_from_values(values: Sequence[RawLabel], task: Task | None = None) -> Labels:
    """Make one label per node: classes if all are text or whole numbers, real values otherwise.

    Args:
        values: The labels; ``None`` or NaN where unknown. Text classes are numbered in alphabetical order, integer
            classes in ascending order.
        task: ``classification`` or ``regression``; by default it follows from the values.

    Raises:
        DataError: if text and numbers are mixed, or the labels do not fit the task.
    """
    known = [value for value in values if not _missing(value)]
    kinds = {str if isinstance(value, str) else float for value in known}
    if len(kinds) > 1:
        shown = next(value for value in known if isinstance(value, str))
        raise DataError(f"Labels must be all text or all numbers. Got both: '{shown}' and a number.")
    real = any(isinstance(value, float) and not value.is_integer() for value in known)
    if task == "regression" or (task is None and real):
        if str in kinds:
            raise DataError(f"Labels for regression must be numbers. Got '{known[0]}'.")
        numbers = [math.nan if _missing(value) else _float(value) for value in values]
        return Labels(_real_targets(numbers), "regression", None)
    if real:
        raise DataError(
            "Class labels must be text or whole numbers. Got real values.", remedy="Set `task=` to 'regression'."
        )
    names = sorted({_class(value) for value in known})
    number = {name: index for index, name in enumerate(names)}
    y = [UNLABELLED if _missing(value) else number[_class(value)] for value in values]
    return Labels(torch.tensor(y, dtype=torch.int64), "classification", tuple(names))


def labels_from_columns(columns: Sequence[npt.ArrayLike], names: Sequence[str], task: Task | None = None) -> Labels:
    """Combine several numeric label columns: 0/1 columns are multi-label, others are real targets."""
    y = _real_targets(np.array(columns, dtype=np.float64).T)
    binary = bool(((y == 0) | (y == 1) | y.isnan()).all())
    if task == "classification":
        raise DataError(f"Class labels must be in one column. Got {', '.join(names)}.")
    if task == "multilabel" and not binary:
        raise DataError(f"Multi-label columns must hold 0 and 1 only. Got other values in {', '.join(names)}.")
    if task == "multilabel" or (task is None and binary):
        return Labels(y, "multilabel", tuple(names))
    return Labels(y, "regression", None)


def _real_targets(numbers: npt.ArrayLike) -> Tensor:
    """Convert real values to 32 bits, NaN where unknown; raise `DataError` if one is infinite or too large."""
    exact = np.asarray(numbers, dtype=np.float64)
    y = torch.from_numpy(exact).to(torch.float32)
    infinite = y.isinf()
    if infinite.any():
        raise DataError(
            f"Labels that are real values must be finite numbers of at most {torch.finfo(torch.float32).max:.2g}. "
            f"Got {exact[infinite.numpy()][0]}."
        )
    return y


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _missing(value: RawLabel) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _class(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)


LABEL_GUESSES = ("label", "labels", "class", "category", "kind", "target", "y")
_SHOWN = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRequest:
    """The columns that the user requests.

    Attributes:
        label: The label column; several for multi-label or several targets; ``None`` to guess.
        features: The feature columns; ``None`` to take every other column of numbers.
        task: The kind of labels; ``None`` to infer it from them.
        keep_missing: Keep missing feature values as NaN instead of raising `DataError`.
        attributes: Columns that are never guessed as label or feature, such as a column of groups or of splits.

    Raises:
        UsageError: if a column is named twice.
    """

    label: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    task: Task | None = None
    keep_missing: bool = False
    attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        label, features = self.label or (), self.features or ()
        for name in self.attributes:
            if name in label or name in features:
                raise UsageError(
                    f"The column '{name}' is a {'label' if name in label else 'feature'}, so it cannot also be a "
                    "column of groups or of splits."
                )
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
    """Features, labels and attributes for a `NodeDataset`."""

    x: Tensor | None = None
    feature_names: tuple[str, ...] | None = None
    labels: Labels | None = None
    label_columns: tuple[str, ...] = ()
    attributes: dict[str, Sequence[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def details(self) -> JsonObject:
        """The label columns, for `Provenance.details`."""
        return {"label_columns": list(self.label_columns)} if self.label_columns else {}


def names_in(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return column names as a tuple; a string is one name."""
    return (given,) if isinstance(given, str) else tuple(given)


def sort_columns(
    columns: Mapping[str, Column], request: ColumnRequest, count: int, location: Callable[[int], str]
) -> NodeColumns:
    """Divide named columns into labels, features and attributes.

    Args:
        columns: The columns, one entry per node.
        request: The columns that the user requests.
        count: Number of nodes.
        location: Returns where a node is in the file, for errors: ``line 3 (node 'milk')``.

    Returns:
        Labels, features, the remaining attributes, and notes about guesses.
    """
    result = NodeColumns()
    label_names = label_columns(columns, request)
    need_columns(columns, label_names, "label")
    if request.label is None:
        result.notes += [f"label column guessed: '{name}'" for name in label_names]
    if label_names:
        result.labels, result.label_columns = _labels(columns, label_names, request), label_names
    feature_names = _feature_names(columns, request, label_names, result.notes)
    if feature_names:
        matrix = np.empty((count, len(feature_names)), dtype=np.float32)
        for number, name in enumerate(feature_names):
            matrix[:, number] = _feature(name, columns[name], request, location, result.notes)
        result.x, result.feature_names = torch.from_numpy(matrix), tuple(feature_names)
    used = {*label_names, *feature_names}
    result.attributes = {name: as_list(column) for name, column in columns.items() if name not in used}
    return result


def label_columns(names: Iterable[str], request: ColumnRequest) -> tuple[str, ...]:
    """Return the requested label columns, or one with a usual name."""
    if request.label is not None:
        return request.label
    taken = (*(request.features or ()), *request.attributes)
    lower = {name.lower(): name for name in reversed(list(names)) if name not in taken}
    guess = next((lower[name] for name in LABEL_GUESSES if name in lower), None)
    return () if guess is None else (guess,)


def numeric_columns(labels: tuple[str, ...], request: ColumnRequest) -> tuple[str, ...]:
    """Return the columns that must hold numbers: requested features, several labels, labels that are real values."""
    real = request.task in ("multilabel", "regression") or len(labels) > 1
    return (*(request.features or ()), *(labels if real else ()))


def _labels(columns: Mapping[str, Column], names: tuple[str, ...], request: ColumnRequest) -> Labels:
    if len(names) == 1 and request.task != "multilabel":
        values = as_list(columns[names[0]])
        if not any(isinstance(value, list | dict) for value in values):
            return labels_from_values([int(v) if isinstance(v, bool) else v for v in values], request.task)
        raise DataError(f"The label '{names[0]}' must hold one text or number per node. It holds lists or objects.")
    numbers = []
    for name in names:
        column = numbers_or_all_empty(columns[name])
        if column is None:
            raise DataError(f"Label columns for multi-label or several targets must hold numbers. '{name}' does not.")
        numbers.append(column)
    return labels_from_columns(numbers, names, request.task)


def _feature_names(
    columns: Mapping[str, Column], request: ColumnRequest, labels: Collection[str], notes: list[str]
) -> tuple[str, ...]:
    if request.features is not None:
        need_columns(columns, request.features, "features")
        return request.features
    guess: list[str] = []
    rounded: list[str] = []
    partly_text: list[str] = []
    for name, column in columns.items():
        if name in labels or name in request.attributes:
            continue
        numbers = numbers_in(column)
        if numbers is not None:
            (rounded if is_rounded(column, numbers) else guess).append(name)
        elif mostly_numbers(column):
            partly_text.append(name)
    if guess:
        notes.append(f"feature columns guessed (all other columns of numbers): {_shown(guess)}")
    if rounded:
        notes.append(f"not used as features, as 32 bits would round their whole numbers: {_shown(rounded)}")
    for name in partly_text[:_SHOWN]:
        row, value = first_other(columns[name])
        notes.append(f"not used as a feature, as {value!r:.60} is not a number: {name}, row {row + 1} of the data")
    if len(partly_text) > _SHOWN:
        notes.append(f"not used as features, as not all their entries are numbers: {_shown(partly_text)}")
    return tuple(guess)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f", ... ({len(names)} in all)" if len(names) > _SHOWN else "")


def _feature(
    name: str, column: Column, request: ColumnRequest, location: Callable[[int], str], notes: list[str]
) -> npt.NDArray[np.float32]:
    numbers = numbers_or_all_empty(column)
    if numbers is None:
        row, value = first_other(column)
        raise DataError(
            f"The feature column '{name}' must hold numbers only. Got {value!r:.60}.",
            where=location(row),
            remedy="Correct the value, or name only the other columns with `features=` (empty for none).",
        )
    with np.errstate(over="ignore"):  # a number beyond 32 bits becomes infinite, which the next check rejects
        narrow = numbers.astype(np.float32)
    wrong = np.flatnonzero(np.isinf(narrow) if request.keep_missing else ~np.isfinite(narrow))
    if len(wrong):
        raise DataError(
            f"Every value of the feature '{name}' must be a finite number (of 32 bits). "
            f"Got {'nothing' if np.isnan(numbers[wrong[0]]) else numbers[wrong[0]]}; {len(wrong)} such in all.",
            where=location(int(wrong[0])),
            remedy="Fill in a number, or name only the other columns with `features=` (empty for none).",
        )
    if is_rounded(column, numbers):
        notes.append(f"the whole numbers of the feature '{name}' were rounded to 32 bits")
    return narrow


def need_columns(columns: Collection[str], names: Iterable[str], argument: str) -> None:
    """Raise `UsageError` if a column that an argument names does not exist."""
    for name in names:
        if name not in columns:
            if not columns:
                raise UsageError(f"`{argument}=` names the column '{name}', but the nodes have no columns.")
            raise unknown_name(f"`{argument}=` column", name, columns)
