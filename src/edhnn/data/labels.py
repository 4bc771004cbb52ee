"""Labels as files hold them, turned into tensors: classes, several labels at once, or real values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from edhnn.data.dataset import UNLABELLED, Task
from edhnn.errors import DataError
from edhnn.typing import NodeOrEdgeId

RawLabel = str | int | float | None


class Labels(NamedTuple):
    """Labels ready for a `NodeDataset`."""

    y: Tensor
    task: Task
    class_names: tuple[NodeOrEdgeId, ...] | None


class LabelFields(TypedDict):
    """The fields of a `NodeDataset` that are about labels."""

    y: Tensor | None
    task: Task | None
    class_names: tuple[NodeOrEdgeId, ...] | None


def label_fields(labels: Labels | None) -> LabelFields:
    """Labels, or that there are none, for a `NodeDataset`."""
    if labels is None:
        return {"y": None, "task": None, "class_names": None}
    return {"y": labels.y, "task": labels.task, "class_names": labels.class_names}


def recorded_columns(details: object, y: Tensor | None) -> tuple[str, ...]:
    """The label columns that details of a provenance name; none unless they name each column of the labels once."""
    names = details.get("label_columns") if isinstance(details, Mapping) else None
    width = 0 if y is None else int(y.shape[1]) if y.dim() == 2 else 1
    if not isinstance(names, list | tuple) or len(names) != width or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names) if len(set(names)) == width else ()


def labels_from_values(values: Sequence[RawLabel], task: Task | None = None) -> Labels:
    """One label per node: classes if all are text or whole numbers, real values otherwise.

    Args:
        values: Labels as found; ``None`` or NaN where unknown. Text classes are numbered in alphabetical order,
            integer classes in ascending order.
        task: ``classification`` or ``regression`` to say which; by default it follows from the values.

    Returns:
        The labels.

    Raises:
        DataError: if text and numbers are mixed, or real values are asked for and text is there.
    """
    known = [value for value in values if not _missing(value)]
    kinds = {str if isinstance(value, str) else float for value in known}
    if len(kinds) > 1:
        shown = next(value for value in known if isinstance(value, str))
        raise DataError(f"Labels must be all text or all numbers. Got both, such as '{shown}' beside a number.")
    real = any(isinstance(value, float) and not value.is_integer() for value in known)
    if task == "regression" or (task is None and real):
        if str in kinds:
            raise DataError(f"Labels for regression must be numbers. Got '{known[0]}'.")
        numbers = [math.nan if _missing(value) else _real(value) for value in values]
        return Labels(_real_targets(numbers), "regression", None)
    if real:
        raise DataError(
            "Class labels must be text or whole numbers. Got real values.", remedy="Ask for the task 'regression'."
        )
    names: list[NodeOrEdgeId] = sorted({value if isinstance(value, str) else int(value) for value in known})  # type: ignore[arg-type]
    number = {name: place for place, name in enumerate(names)}
    y = [UNLABELLED if _missing(value) else number[_class(value)] for value in values]
    return Labels(torch.tensor(y, dtype=torch.int64), "classification", tuple(names))


def labels_from_columns(columns: Sequence[Sequence[float]], names: Sequence[str], task: Task | None = None) -> Labels:
    """Several numeric label columns: 0/1 columns are labels that may hold together, others are real targets."""
    y = _real_targets(np.array(columns, dtype=np.float64).T)
    binary = bool(((y == 0) | (y == 1) | y.isnan()).all())
    if task == "classification":
        raise DataError(f"Class labels must stand in one column. Got {', '.join(names)}.")
    if task == "multilabel" and not binary:
        raise DataError(f"Multi-label columns must hold 0 and 1 only. Got other values in {', '.join(names)}.")
    if task == "multilabel" or (task is None and binary):
        return Labels(y, "multilabel", tuple(names))
    return Labels(y, "regression", None)


def _real_targets(numbers: npt.ArrayLike) -> Tensor:
    """Real values in 32 bits, NaN where unknown; infinite ones, and those too large for 32 bits, are refused."""
    exact = np.asarray(numbers, dtype=np.float64)
    y = torch.from_numpy(exact).to(torch.float32)
    infinite = y.isinf()
    if infinite.any():
        raise DataError(
            f"Labels that are real values must be finite numbers of at most {torch.finfo(torch.float32).max:.2g}. "
            f"Got {exact[infinite.numpy()][0]}."
        )
    return y


def _real(value: RawLabel) -> float:
    assert not isinstance(value, str) and value is not None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _missing(value: RawLabel) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _class(value: RawLabel) -> NodeOrEdgeId:
    assert value is not None
    return value if isinstance(value, str) else int(value)
