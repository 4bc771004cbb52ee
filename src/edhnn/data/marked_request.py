"""Labels and features that the user asks for by name in a file that says itself what they are.

A file with our mark (see `edhnn.data.records`) holds label and feature columns in one attribute each. Their names are
in the mark, so a request is answered as it would be for a node table with these columns. What is not asked for
otherwise stays as the mark says, with its types and its order of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from edhnn.data.columns import ColumnRequest, NodeColumns, need_columns, sort_columns
from edhnn.data.dataset import features_to_scipy, sparse_features
from edhnn.data.ids import Ids
from edhnn.data.records import LABEL, plain_labels


def as_asked(marked: NodeColumns, request: ColumnRequest, ids: Ids) -> NodeColumns:
    """The columns that a request asks for, out of those that a mark restored.

    Args:
        marked: What the mark restored.
        request: What the user said; for what was not said the mark is followed.
        ids: Node ids, for errors.

    Returns:
        Labels, features and attributes. Features that are not asked for become attributes, unless they are sparse;
        those are left out, and a note says so.

    Raises:
        UsageError: if a column is not there.
    """
    labels, features = _label_names(marked), _feature_names(marked)
    asked, wanted = request.label, request.features
    if asked is None:
        asked = tuple(name for name in labels if name not in (wanted or ()))
    elif labels and asked == (LABEL,) and LABEL not in features:  # what the attribute is called in the file
        asked = labels
    if wanted is None:
        wanted = features if request.label is None else tuple(name for name in features if name not in asked)
    everything = dict.fromkeys((*labels, *features, *marked.attributes))
    need_columns(everything, asked, "label")
    need_columns(everything, wanted, "features")
    same_labels = asked == labels and (marked.labels is None or request.task in (None, marked.labels.task))
    if same_labels and wanted == features:
        return marked

    request = replace(request, label=asked, features=wanted)  # refuses a column that is named as both
    kept = wanted if set(wanted) <= set(features) else ()
    named, moved, left_out = {*asked, *wanted}, [name for name in features if name not in kept], []
    if marked.x is not None and marked.x.layout != torch.strided:
        left_out = [name for name in moved if name not in named]
        moved = [name for name in moved if name in named]
    columns = {**marked.attributes, **_feature_columns(marked, features, moved)}
    if not same_labels:
        columns |= _label_columns(marked, labels)
    rest = replace(request, label=() if same_labels else asked, features=() if kept else wanted)
    found = sort_columns(columns, rest, len(ids), lambda place: f"node {ids[place]!r}")
    if same_labels:
        found.labels, found.label_columns = marked.labels, marked.label_columns
    if kept and marked.x is not None:
        found.x, found.feature_names = _chosen(marked.x, [features.index(name) for name in kept]), kept
    found.notes += [f"sparse features that were not asked for left out: {len(left_out)} columns"] if left_out else []
    return found


def _label_names(marked: NodeColumns) -> tuple[str, ...]:
    if marked.labels is None:
        return ()
    y, names = marked.labels.y, marked.labels.class_names
    if marked.label_columns or y.dim() == 1:
        return marked.label_columns or (LABEL,)
    return tuple(str(name) for name in names or (f"{LABEL}{number}" for number in range(y.shape[1])))


def _feature_names(marked: NodeColumns) -> tuple[str, ...]:
    width = 0 if marked.x is None else int(marked.x.shape[1])
    return marked.feature_names or tuple(f"x{number}" for number in range(width))


def _label_columns(marked: NodeColumns, names: Sequence[str]) -> dict[str, Sequence[Any]]:
    if marked.labels is None:
        return {}
    values = plain_labels(*marked.labels)
    if marked.labels.y.dim() == 1:
        return {names[0]: values}
    return {name: [row[number] for row in values] for number, name in enumerate(names)}


def _feature_columns(marked: NodeColumns, names: Sequence[str], wanted: Sequence[str]) -> dict[str, Sequence[Any]]:
    if marked.x is None:
        return {}
    x = _chosen(marked.x, [names.index(name) for name in wanted])
    rows = (x if x.layout == torch.strided else x.to_dense()).T.tolist()
    return {
        name: [None if number != number else number for number in row] for name, row in zip(wanted, rows, strict=True)
    }


def _chosen(x: Tensor, places: list[int]) -> Tensor:
    if x.layout == torch.strided:
        return x[:, places].contiguous()
    return sparse_features(features_to_scipy(x)[:, places], x.dtype)
