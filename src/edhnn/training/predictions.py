"""Predictions as a table: original ids, answers, probabilities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.data.ids import Ids
from edhnn.training.pretrained import Pretrained

_YES = 0.5


def prediction_table(
    dataset: NodeDataset, answers: Tensor, model: Pretrained, *, held_out: Tensor | None = None, labels: bool = False
) -> pa.Table:
    """A row per node: ``node``, ``prediction``, and a column of probabilities per class (or label).

    Args:
        dataset: Says the ids and the labels.
        answers: Probabilities or values, a row per node.
        model: Says the task and the names of the classes.
        held_out: The same by models that never saw the node's label; NaN where there is none.
        labels: Whether the known labels stand beside the predictions.
    """
    columns: dict[str, Any] = {"node": id_column(dataset.node_ids)}
    names = class_names(model)
    if labels and dataset.y is not None:
        columns |= _said(dataset.y, "label", model, names)
    columns |= _said(answers, "prediction", model, names)
    if held_out is not None:
        columns |= _said(held_out, "held_out_prediction", model, names)
    if model.objective.task != "regression":
        columns |= {f"p({name})": pa.array(answers[:, k].numpy()) for k, name in enumerate(names)}
    return pa.table(columns)


def id_column(ids: Ids) -> pa.Array:
    """Ids as a column of a table: integers if all are and fit 64 bits, else text.

    Where an integer and a text would then read alike, as ``1`` and ``"1"`` do, all text stands in quotes as JSON writes
    it: no two ids are ever written the same.
    """
    values = ids.values
    if not isinstance(values, list):
        return pa.array(np.asarray(values, np.int64))
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # text and integers mixed, or beyond 64 bits
        names = [str(name) for name in values]
    if len(set(names)) < len(names):
        names = [json.dumps(name, ensure_ascii=False) for name in values]
    return pa.array(names)


def class_names(model: Pretrained) -> list[str]:
    """The classes for people; numbers if they have no names."""
    return [str(name) for name in model.class_names or range(model.model.num_classes)]


def _said(values: Tensor, title: str, model: Pretrained, names: Sequence[str]) -> dict[str, pa.Array]:
    """Answers or labels as their owner would write them; empty where nothing is known."""
    task = model.objective.task
    if task == "regression":
        table = values[:, None] if values.dim() == 1 else values
        numbers = [[None if value != value else value for value in column] for column in table.T.tolist()]
        targets = model.label_names or range(len(numbers))
        several = len(numbers) > 1
        return {
            f"{title}_{name}" if several else title: pa.array(column, pa.float64())
            for name, column in zip(targets, numbers, strict=True)
        }
    if task == "multilabel":
        rows = [
            None if all(value != value for value in row) else ";".join(
                name for name, value in zip(names, row, strict=True) if value >= _YES
            )
            for row in values.tolist()
        ]  # fmt: skip
        return {title: pa.array(rows, pa.string())}
    if values.is_floating_point():
        unknown = values.isnan().any(dim=1)
        values = values.nan_to_num().argmax(dim=1).masked_fill(unknown, -1)
    originals = model.class_names or tuple(range(model.model.num_classes))
    kind = pa.int64() if all(isinstance(name, int) for name in originals) else pa.string()
    written = [None if k < 0 else originals[k] if kind == pa.int64() else str(originals[k]) for k in values.tolist()]
    return {title: pa.array(written, kind)}
