"""Turn named columns into labels, features and attributes.

A node table and the attributes of a HIF document are both named columns. The user names labels and features, or they
are guessed and a note reports the guess. Labels are classes, several labels at once, or real values. Features may be
columns of any kind (`edhnn.data.encoding`). A column that is neither label nor feature stays an attribute, and so does
one whose text was encoded as features.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from edhnn.data.dataset import UNLABELLED, NodeDataset, Task, select_columns
from edhnn.data.encoding import (
    Encoding,
    decoded_numbers,
    describe_encoding,
    describe_left_out,
    encoding_from_json,
    fit_encoding,
    need_finite,
    need_same_columns,
)
from edhnn.data.values import (
    Column,
    as_list,
    is_rounded,
    numbers_in,
    numbers_or_all_empty,
    value_codes,
)
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.typing import FloatArray, JsonObject, NodeOrEdgeId

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
_COPY_NODES = 3  # a column is the label in other words only if it has as many nodes for each class
_COPY_SAMPLE = 1000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRequest:
    """The columns that the user requests.

    Attributes:
        label: The label column; several for multi-label or several targets; ``None`` to guess.
        features: The feature columns, of any kind; ``None`` to take every other column that can be encoded.
        task: The kind of labels; ``None`` to infer it from them.
        keep_missing: Encode nothing: only numbers are features, and missing ones are NaN.
        attributes: Columns that are never guessed as label or feature, such as a column of groups or of splits.
        usual_label: The label columns to use if they exist and ``label`` is ``None``, with ``usual_task``.
        usual_task: The kind of labels in ``usual_label``.
        encoding: The encoding of a model's training data, to repeat it; ``None`` to find one.

    Raises:
        UsageError: if a column is named twice.
    """

    label: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    task: Task | None = None
    keep_missing: bool = False
    attributes: tuple[str, ...] = ()
    usual_label: tuple[str, ...] = ()
    usual_task: Task | None = None
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        label, features = self.label or (), self.features or ()
        for name in self.attributes:
            if name in label or name in features:
                kind = "label" if name in label else "feature"
                raise UsageError(
                    f"The column '{name}' is a {kind}, so it cannot also be a column of groups or of splits."
                )
        for name, times in Counter((*label, *features)).items():
            if times > 1:
                both = name in label and name in features
                raise UsageError(
                    f"A column must be named once, as label or as feature. '{name}' is named "
                    f"{'as both' if both else 'twice'}."
                )

    def over(self, names: Collection[str]) -> ColumnRequest:
        """Return the request for data with these columns: the usual label is requested if it is among them."""
        if self.label is not None or not self.usual_label or not set(self.usual_label) <= set(names):
            return self
        return replace(self, label=self.usual_label, task=self.task or self.usual_task)


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
    encoding: Encoding | None = None

    @property
    def details(self) -> JsonObject:
        """The label columns and the encoding of the features, for `Provenance.details`."""
        labels = {"label_columns": list(self.label_columns)} if self.label_columns else {}
        return labels | ({} if self.encoding is None else {"encoding": self.encoding.to_json()})


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
    result, request = NodeColumns(), request.over(columns)
    label_names = label_columns(columns, request)
    need_columns(columns, label_names, "label")
    if request.label is None:
        result.notes += [f"label column guessed: '{name}'" for name in label_names]
    if label_names:
        result.labels, result.label_columns = _labels(columns, label_names, request), label_names
    numbers = _keep_numbers if request.keep_missing else _encode_features
    kept = {*label_names, *numbers(columns, request, label_names, count, location, result)}
    result.attributes = {name: as_list(column) for name, column in columns.items() if name not in kept}
    return result


def label_columns(names: Iterable[str], request: ColumnRequest) -> tuple[str, ...]:
    """Return the requested label columns, or one with a usual name."""
    if request.label is not None:
        return request.label
    taken = (*(request.features or ()), *request.attributes, *(request.encoding.names if request.encoding else ()))
    lower = {name.lower(): name for name in reversed(list(names)) if name not in taken}
    guess = next((lower[name] for name in LABEL_GUESSES if name in lower), None)
    return () if guess is None else (guess,)


def numeric_columns(labels: tuple[str, ...], request: ColumnRequest) -> tuple[str, ...]:
    """Return the columns that are numbers in any spelling: requested features, several labels, real values."""
    real = request.task in ("multilabel", "regression") or len(labels) > 1
    recorded = () if request.encoding is None else request.encoding.number_columns
    return (*(request.features or ()), *recorded, *(labels if real else ()))


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


def _candidates(columns: Mapping[str, Column], request: ColumnRequest, labels: Collection[str]) -> Mapping[str, Column]:
    """Return the columns that may be features: the requested ones, or all that are nothing else."""
    if request.features is not None:
        need_columns(columns, request.features, "features")
        return {name: columns[name] for name in request.features}
    return {name: column for name, column in columns.items() if name not in labels and name not in request.attributes}


def _encode_features(
    columns: Mapping[str, Column],
    request: ColumnRequest,
    labels: Collection[str],
    count: int,
    location: Callable[[int], str],
    result: NodeColumns,
) -> list[str]:
    """Encode the features into the result; return the columns that are features as they are: the numbers."""
    notes, encoding = result.notes, request.encoding
    if encoding is None:
        candidates = _candidates(columns, request, labels)
        encoding, left_out = fit_encoding(candidates, location, notes, requested=request.features or ())
        if request.features is None:
            numbers = [column.name for column in encoding.columns if not column.is_text]
            if numbers:
                notes.append(f"feature columns guessed (all other columns of numbers): {_shown(numbers)}")
        guessed = "feature columns" if request.features is not None else "feature columns guessed"
        notes += [f"{guessed} ({words})" for words in describe_encoding(encoding)]
        notes += describe_left_out(left_out)
        _note_copies(candidates, encoding, result)
    elif request.features is not None:
        need_same_columns(encoding, request.features)
    if encoding.columns:
        result.encoding = encoding
        result.x = encoding.apply(columns, count, location, notes)
        result.feature_names = encoding.feature_names
    return encoding.number_columns


def _note_copies(columns: Mapping[str, Column], encoding: Encoding, result: NodeColumns) -> None:
    """Note each feature column whose values are the classes under other names."""
    if result.labels is None or result.labels.task != "classification":
        return
    y = result.labels.y.numpy()
    classes = len(np.unique(y[y >= 0]))
    for name in encoding.names if classes > 1 else ():
        if value_codes(columns[name][:_COPY_SAMPLE]).max(initial=-1) >= classes:
            continue  # more values than classes
        codes = value_codes(columns[name])
        both = (y >= 0) & (codes >= 0)
        values = np.unique(codes[both])
        pairs = np.unique(y[both] * (int(codes.max(initial=0)) + 1) + codes[both])
        if both.sum() >= _COPY_NODES * classes and len(pairs) == len(values) == classes == len(np.unique(y[both])):
            result.notes.append(
                f"the feature '{name}' has one value for each class, so it may be the label in other words. If it is, "
                "name only the other columns with `features=`"
            )


def _keep_numbers(
    columns: Mapping[str, Column],
    request: ColumnRequest,
    labels: Collection[str],
    count: int,
    location: Callable[[int], str],
    result: NodeColumns,
) -> list[str]:
    """Put the columns of numbers into the result as they are; return their names."""
    candidates, notes = _candidates(columns, request, labels), result.notes
    found: list[str] = []
    rounded: list[str] = []
    for name, column in candidates.items():
        numbers = numbers_in(column) if request.features is None else numbers_or_all_empty(column)
        if numbers is not None and is_rounded(column, numbers):
            rounded.append(name)
        if numbers is not None and (name not in rounded or request.features is not None):
            found.append(name)
    if found and request.features is None:
        notes.append(f"feature columns guessed (all other columns of numbers): {_shown(found)}")
    if rounded and request.features is None:
        notes.append(f"not used as features, as 32 bits would round their whole numbers: {_shown(rounded)}")
    else:
        notes += [f"the whole numbers of the feature '{name}' were rounded to 32 bits" for name in rounded]
    others = {name: column for name, column in candidates.items() if name not in found and name not in rounded}
    further, left_out = fit_encoding(others, location, [], requested=request.features or (), of_text=False)
    if further.columns:
        names = [f"{column.name} ({column.title})" for column in further.columns]
        notes.append(f"not numbers, but features in training: {_shown(names)}")
    notes += describe_left_out(left_out)
    if found:
        matrix = np.empty((count, len(found)), dtype=np.float32)
        for number, name in enumerate(found):
            matrix[:, number] = _finite_or_missing(name, columns[name], location)
        result.x, result.feature_names = torch.from_numpy(matrix), tuple(found)
    return found


def _finite_or_missing(name: str, column: Column, location: Callable[[int], str]) -> FloatArray:
    numbers = numbers_or_all_empty(column)
    assert numbers is not None
    need_finite(name, numbers, location)
    return numbers


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f", ... ({len(names)} in all)" if len(names) > _SHOWN else "")


def need_columns(columns: Collection[str], names: Iterable[str], argument: str) -> None:
    """Raise `UsageError` if a column that an argument names does not exist."""
    for name in names:
        if name not in columns:
            if not columns:
                raise UsageError(f"`{argument}=` names the column '{name}', but the nodes have no columns.")
            raise unknown_name(f"`{argument}=` column", name, columns)


def encoded_again(dataset: NodeDataset, encoding: Encoding) -> NodeDataset:
    """Encode a dataset whose columns were read unchanged, like the training data of a model.

    Features with the encoding's names, or without names, are returned as they are.

    Raises:
        DataError: if a column is missing or of another kind.
    """
    names, x = dataset.feature_names, dataset.x
    if "encoding" in dataset.provenance.details or (x is not None and names is None):
        return dataset
    if names is not None and set(encoding.feature_names) <= set(names):
        return dataset
    columns: dict[str, Column] = dict(dataset.node_attributes)
    for name in encoding.names:
        if names is not None and x is not None and name in names:
            numbers = np.ravel(select_columns(x, [names.index(name)]).to_dense().double().numpy())
            whole = name in encoding.text_columns and bool((numbers == np.trunc(numbers)).all())
            columns[name] = numbers.astype(np.int64).tolist() if whole else numbers.tolist()
    notes: list[str] = []
    ids, count = dataset.node_ids, dataset.hypergraph.num_nodes
    encoded = encoding.apply(columns, count, lambda row: f"node {ids[row]!r}", notes)
    provenance = replace(
        dataset.provenance,
        notes=(*dataset.provenance.notes, *notes),
        details={**dataset.provenance.details, "encoding": encoding.to_json()},
    )
    return replace(dataset, x=encoded, feature_names=encoding.feature_names, provenance=provenance)


def without_encoding(dataset: NodeDataset) -> NodeDataset:
    """Return a dataset with its numbers as features, NaN where missing, instead of features that were encoded.

    The columns of text behind encoded features are attributes, so a reader can encode them again. A dataset whose
    features are not those of its recorded encoding is returned unchanged.
    """
    record = dataset.provenance.details.get("encoding")
    if record is None or dataset.x is None:
        return dataset
    encoding = encoding_from_json(record)
    if encoding.feature_names != dataset.feature_names or encoding.feature_names == tuple(encoding.number_columns):
        return dataset
    numbers, names = decoded_numbers(encoding, dataset.x), tuple(encoding.number_columns)
    x = torch.from_numpy(numbers.astype(np.float32)) if names else None
    return replace(dataset, x=x, feature_names=names or None)
