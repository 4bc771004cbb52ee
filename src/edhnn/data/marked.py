"""Labels and features restored from records that carry our mark (see `edhnn.data.records`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.columns import NodeColumns
from edhnn.data.dataset import UNLABELLED, sparse_features
from edhnn.data.files import Limits, size_in_words
from edhnn.data.ids import Ids
from edhnn.data.labels import Labels, recorded_columns
from edhnn.data.records import FEATURES, LABEL, MARK, Mark
from edhnn.errors import DataError, LimitError
from edhnn.typing import FloatArray

_UNMARK = "Correct it, or remove the attribute 'edhnn' and ask for labels and features by name."


def as_marked(columns: dict[str, Sequence[Any]], mark: Mark, ids: Ids, limits: Limits | None = None) -> NodeColumns:
    """Labels and features as the mark says they were written.

    Args:
        columns: The node attributes by name, one entry per node, ``None`` where absent.
        mark: What the dataset was.
        ids: Node ids, for errors.
        limits: Size limits: a mark can claim widths that no record has.

    Returns:
        Features, labels, and the columns that are neither.
    """
    result, limits = NodeColumns(), limits or Limits()
    limits.check_count("feature columns", mark.num_features or 0, None, MARK)
    limits.check_count("label columns", mark.label_width or 0, None, MARK)
    if mark.num_features is not None:
        rows = columns.pop(FEATURES, [None] * len(ids))
        result.x = _features(rows, mark, mark.num_features, ids)
        result.feature_names = mark.feature_names
    if mark.task is not None:
        values = columns.pop(LABEL, [None] * len(ids))
        if mark.task == "classification":
            y = _classes(values, mark, ids)
            limits.check_count("classes", int(y.max()) + 1 if len(y) else 0, None, LABEL)
        else:
            y = _numbers(values, mark, ids, limits)
        result.labels = Labels(y, mark.task, mark.class_names)
        result.label_columns = recorded_columns(mark.provenance.get("details"), y)
    result.attributes = columns
    return result


def _features(rows: Sequence[Any], mark: Mark, width: int, ids: Ids) -> Tensor:
    kind = dict if mark.sparse else Sequence
    for row, name in zip(rows, ids, strict=True):
        if not isinstance(row, kind) or isinstance(row, str) or (not mark.sparse and len(row) != width):
            shape = f"a dictionary from column to value, {width} columns wide" if mark.sparse else f"{width} numbers"
            raise DataError(f"'{FEATURES}' must be {shape}. Got {row!r} at node {name!r}.", remedy=_UNMARK)
    try:
        if not mark.sparse:
            numbers = _floats([value for row in rows for value in row])
            return _tensor(numbers, mark.features_type).reshape(len(ids), width)
        keys = np.array([int(key) for row in rows for key in row], dtype=np.int64)
        values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        bounds = np.cumsum([0, *(len(row) for row in rows)])
        matrix = sp.csr_array((values, keys, bounds), shape=(len(ids), width))
        matrix.check_format(full_check=True)
        return sparse_features(matrix, getattr(torch, mark.features_type))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"'{FEATURES}' must hold numbers, in {width} columns: {error}.", remedy=_UNMARK) from error


def _classes(values: Sequence[Any], mark: Mark, ids: Ids) -> Tensor:
    names = mark.class_names
    number = {} if names is None else {name: place for place, name in enumerate(names)}
    y = []
    for value, name in zip(values, ids, strict=True):
        fits = isinstance(value, str | int) and (
            value in number or (names is None and isinstance(value, int) and 0 <= value < 2**62)
        )
        if value is not None and not fits:
            allowed = "a class number" if names is None else "one of the class names of the mark"
            raise DataError(f"'{LABEL}' must be {allowed}. Got {value!r} at node {name!r}.", remedy=_UNMARK)
        y.append(UNLABELLED if value is None else number[value] if names is not None else value)
    return torch.tensor(y, dtype=torch.int64)


def _numbers(values: Sequence[Any], mark: Mark, ids: Ids, limits: Limits) -> Tensor:
    width = mark.label_width
    size = len(ids) * (1 if width is None else width) * (8 + torch.finfo(getattr(torch, mark.label_type)).bits // 8)
    if size > limits.max_bytes:
        raise LimitError(
            f"The labels must take at most {size_in_words(limits.max_bytes)}. "
            f"Got {width} columns for {len(ids)} nodes, {size_in_words(size)}.",
            where=MARK,
            remedy="If you trust the file, raise the limit with --max-bytes.",
        )
    try:
        if width is None:
            return _tensor(_floats(values), mark.label_type)
        numbers = np.full((len(ids), width), np.nan)
        for row, value in zip(numbers, values, strict=True):
            if value is not None:
                if isinstance(value, str) or len(value) != width:
                    raise ValueError(f"got {value!r:.60}")
                row[:] = _floats(value)
        return _tensor(numbers, mark.label_type)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        shape = "a number" if width is None else f"{width} numbers"
        raise DataError(f"'{LABEL}' must be {shape} at every node: {error}.", remedy=_UNMARK) from error


def _floats(values: Sequence[Any]) -> FloatArray:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _tensor(numbers: FloatArray, kind: str) -> Tensor:
    tensor = torch.from_numpy(numbers).to(getattr(torch, kind))
    if bool(tensor.isinf().any()):
        raise ValueError(f"a number is beyond {kind}")
    return tensor
