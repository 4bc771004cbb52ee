"""A dataset as dictionaries per node and hyperedge, with a manifest that makes the round trip exact.

XGI, HyperNetX, NetworkX and HIF keep attributes in dictionaries. A dataset looks the same in all of them:

    node record           its attributes; ``label``: the original class name, or numbers; ``features``: a list, or for
                          sparse features a dictionary from column to value
    hyperedge record      its attributes; ``weight``
    manifest (``edhnn``)  the kinds of labels and features, so that reading restores order, types and empty classes

Unknown values are not written: a record without ``label`` is an unlabelled node.

A user may also request labels and features by name. The manifest holds the names of the columns, so they are selected
as from a node table with these columns; the manifest decides everything that is not requested.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.columns import ColumnRequest, Labels, NodeColumns, need_columns, recorded_columns, sort_columns
from edhnn.data.dataset import UNLABELLED, Attributes, NodeDataset, Task, select_columns, sparse_features
from edhnn.data.ids import Ids
from edhnn.data.limits import FREE_ARRAYS, Limits, size_in_words
from edhnn.errors import DataError, LimitError
from edhnn.typing import FloatArray, JsonObject

MANIFEST, LABEL, FEATURES, WEIGHT = "edhnn", "label", "features", "weight"
Record = dict[str, Any]
FloatName = Literal["float16", "bfloat16", "float32", "float64"]
Width = Annotated[int, msgspec.Meta(ge=0)]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a dataset that are not in its records."""

    name: str
    task: Task | None = None
    class_names: tuple[str | int, ...] | None = None
    label_width: Width | None = None
    label_type: FloatName = "float32"
    num_features: Width | None = None
    features_type: FloatName = "float32"
    sparse: bool = False
    feature_names: tuple[str, ...] | None = None
    node_attributes: tuple[str, ...] = ()
    edge_attributes: tuple[str, ...] = ()
    provenance: JsonObject = {}


def manifest_of(dataset: NodeDataset) -> JsonObject:
    """Return the manifest of a dataset, as plain values."""
    x, y, provenance = dataset.x, dataset.y, dataset.provenance
    manifest = Manifest(
        name=dataset.name,
        task=dataset.task,
        class_names=dataset.class_names,
        label_width=int(y.shape[1]) if y is not None and y.dim() == 2 else None,
        label_type=_float_name(y),
        num_features=None if x is None else dataset.num_features,
        features_type=_float_name(x),
        sparse=x is not None and x.layout == torch.sparse_csr,
        feature_names=dataset.feature_names,
        node_attributes=tuple(dataset.node_attributes),
        edge_attributes=tuple(dataset.edge_attributes),
        provenance={
            "source": PurePath(provenance.source).name,
            "format": provenance.format,
            "notes": list(provenance.notes),
            "details": provenance.details,
        },
    )
    values = msgspec.structs.asdict(manifest)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def read_manifest(value: object, library: str) -> Manifest | None:
    """Return the checked manifest of a foreign object; ``None`` if it has none."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, Manifest)
    except msgspec.ValidationError as error:
        raise DataError(
            f"The attribute '{MANIFEST}' of the {library} object is not a valid manifest. Cause: {error}.",
            remedy=f"Remove the attribute '{MANIFEST}' and name the labels and features.",
        ) from error


def node_records(dataset: NodeDataset, reserved: Collection[str] = ()) -> list[Record]:
    """Return a record per node, in the order of the nodes.

    Args:
        dataset: The dataset.
        reserved: Attribute names with a special meaning in the target.

    Raises:
        DataError: if an attribute has a name that would be read as something else.
    """
    columns = {LABEL: label_values(dataset), FEATURES: _feature_rows(dataset.x)}
    present = {name: values for name, values in columns.items() if values is not None}
    nodes = dataset.hypergraph.num_nodes
    records = attribute_records("node", dataset.node_attributes, nodes, {*reserved, *present})
    for name, values in present.items():
        _fill(records, name, values)
    return records


def edge_records(dataset: NodeDataset, reserved: Collection[str] = ()) -> list[Record]:
    """Return a record per hyperedge; see `node_records`."""
    hypergraph = dataset.hypergraph
    records = attribute_records("hyperedge", dataset.edge_attributes, hypergraph.num_edges, {WEIGHT, *reserved})
    if hypergraph.edge_weight is not None:
        _fill(records, WEIGHT, hypergraph.edge_weight.tolist())
    return records


def label_values(labels: NodeDataset | Labels) -> list[Any] | None:
    """Return each node's label: its class name, a number, or a list of numbers; ``None`` where unknown."""
    if labels.y is None:
        return None
    values: list[Any] = labels.y.tolist()
    if labels.task != "classification":
        return [_without_nan(value) for value in values]
    names = labels.class_names
    return [None if value < 0 else value if names is None else names[value] for value in values]


def attribute_records(kind: str, columns: Attributes, count: int, taken: Collection[str]) -> list[Record]:
    """Turn columns into a record per node or hyperedge; raise `DataError` if a column has a name in ``taken``."""
    clash = next((name for name in columns if name in taken), None)
    if clash is not None:
        raise reserved_name(kind, clash)
    records: list[Record] = [{} for _ in range(count)]
    for name, column in columns.items():
        _fill(records, name, column)
    return records


def reserved_name(kind: str, name: str) -> DataError:
    """Return the error for an attribute whose name has another meaning in the target."""
    return DataError(
        f"No {kind} attribute may be called '{name}' here: it would be read as something else.",
        remedy="Rename the attribute first.",
    )


def _fill(records: Sequence[Record], name: str, values: Sequence[Any]) -> None:
    for record, value in zip(records, values, strict=True):
        if value is not None:
            record[name] = value.tolist() if isinstance(value, np.generic | np.ndarray | Tensor) else value


def _feature_rows(x: Tensor | None) -> list[Any] | None:
    if x is None:
        return None
    if x.layout != torch.sparse_csr:
        rows: list[Any] = x.tolist()
        return [_without_nan(row) for row in rows] if bool(x.isnan().any()) else rows
    keys = [str(column) for column in x.col_indices().tolist()]
    values, bounds = _without_nan(x.values().tolist()), x.crow_indices().tolist()
    return [dict(zip(keys[start:stop], values[start:stop], strict=True)) for start, stop in pairwise(bounds)]


def _without_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [None if number != number else number for number in value]
    return None if value != value else value


def _float_name(tensor: Tensor | None) -> FloatName:
    if tensor is None or not tensor.is_floating_point():
        return "float32"
    name: FloatName = str(tensor.dtype).removeprefix("torch.")  # type: ignore[assignment]  # NodeDataset checked it
    return name


_REMEDY = "Correct it, or remove the attribute 'edhnn' and name the labels and features."


def restore_columns(
    columns: dict[str, Sequence[Any]], manifest: Manifest, ids: Ids, limits: Limits | None = None
) -> NodeColumns:
    """Restore labels and features as the manifest describes them; other columns are attributes.

    Args:
        columns: The node attributes by name, one entry per node, ``None`` where absent.
        manifest: The description of the dataset.
        ids: Node ids, for errors.
        limits: Size limits: a manifest can declare widths that no record has.
    """
    result, limits = NodeColumns(), limits or Limits()
    for what, width, name in (
        ("feature columns", manifest.num_features, FEATURES),
        ("label columns", manifest.label_width, LABEL),
    ):
        entries = sum(len(value) for value in columns.get(name, ()) if isinstance(value, list | dict))
        limits.check_count(what, width or 0, None, MANIFEST, entries=entries)
    if manifest.num_features is not None:
        rows = columns.pop(FEATURES, [None] * len(ids))
        result.x = _features(rows, manifest, manifest.num_features, ids)
        result.feature_names = manifest.feature_names
    if manifest.task is not None:
        values = columns.pop(LABEL, [None] * len(ids))
        if manifest.task == "classification":
            y = _classes(values, manifest, ids)
            limits.check_count("classes", int(y.max()) + 1 if len(y) else 0, None, LABEL, entries=len(y))
        else:
            y = _numbers(values, manifest, ids, limits)
        result.labels = Labels(y, manifest.task, manifest.class_names)
        result.label_columns = recorded_columns(manifest.provenance.get("details"), y)
    result.attributes = columns
    return result


def _features(rows: Sequence[Any], manifest: Manifest, width: int, ids: Ids) -> Tensor:
    kind = dict if manifest.sparse else Sequence
    shape = f"a dictionary from column to value, {width} columns wide" if manifest.sparse else f"{width} numbers"
    for row, name in zip(rows, ids, strict=True):
        if not isinstance(row, kind) or isinstance(row, str) or (not manifest.sparse and len(row) != width):
            raise DataError(f"'{FEATURES}' must be {shape}. Got {row!r} at node {name!r}.", remedy=_REMEDY)
    try:
        if not manifest.sparse:
            numbers = _floats([value for row in rows for value in row])
            return _tensor(numbers, manifest.features_type).reshape(len(ids), width)
        keys = np.array([int(key) for row in rows for key in row], dtype=np.int64)
        values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        bounds = np.cumsum([0, *(len(row) for row in rows)])
        matrix = sp.csr_array((values, keys, bounds), shape=(len(ids), width))
        matrix.check_format(full_check=True)
        return sparse_features(matrix, getattr(torch, manifest.features_type))
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"'{FEATURES}' must hold numbers, in {width} columns. Cause: {error}."
        raise DataError(problem, remedy=_REMEDY) from error


def _classes(values: Sequence[Any], manifest: Manifest, ids: Ids) -> Tensor:
    names = manifest.class_names
    number = {} if names is None else {name: index for index, name in enumerate(names)}
    y = []
    for value, name in zip(values, ids, strict=True):
        fits = isinstance(value, str | int) and (
            value in number or (names is None and isinstance(value, int) and 0 <= value < 2**62)
        )
        if value is not None and not fits:
            allowed = "a class number" if names is None else "one of the manifest's class names"
            raise DataError(f"'{LABEL}' must be {allowed}. Got {value!r} at node {name!r}.", remedy=_REMEDY)
        y.append(UNLABELLED if value is None else number[value] if names is not None else value)
    return torch.tensor(y, dtype=torch.int64)


def _numbers(values: Sequence[Any], manifest: Manifest, ids: Ids, limits: Limits) -> Tensor:
    width = manifest.label_width
    row = (1 if width is None else width) * (8 + torch.finfo(getattr(torch, manifest.label_type)).bits // 8)
    size, most = len(ids) * row, limits.most_bytes(row * sum(value is not None for value in values), FREE_ARRAYS)
    if size > most:
        raise LimitError(
            f"The labels must take at most {size_in_words(most)}. "
            f"Got {width} columns for {len(ids)} nodes, {size_in_words(size)}.",
            where=MANIFEST,
            remedy="If you trust the file, raise the limit with `max_bytes=`.",
        )
    try:
        if width is None:
            return _tensor(_floats(values), manifest.label_type)
        numbers = np.full((len(ids), width), np.nan)
        for cells, value in zip(numbers, values, strict=True):
            if value is not None:
                if isinstance(value, str) or len(value) != width:
                    raise ValueError(f"got {value!r:.60}")
                cells[:] = _floats(value)
        return _tensor(numbers, manifest.label_type)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        shape = "a number" if width is None else f"{width} numbers"
        raise DataError(f"'{LABEL}' must be {shape} at every node. Cause: {error}.", remedy=_REMEDY) from error


def _floats(values: Sequence[Any]) -> FloatArray:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _tensor(numbers: FloatArray, kind: str) -> Tensor:
    tensor = torch.from_numpy(numbers).to(getattr(torch, kind))
    if bool(tensor.isinf().any()):
        raise ValueError(f"a number is too large for {kind}")
    return tensor


def requested_columns(restored: NodeColumns, request: ColumnRequest, ids: Ids) -> NodeColumns:
    """Select the columns that a request names among those that a manifest restored.

    Args:
        restored: The result of `restore_columns`.
        request: The columns that the user requests; the manifest decides the rest.
        ids: Node ids, for errors.

    Returns:
        Labels, features and attributes. Features that are not requested become attributes, unless they are sparse;
        sparse ones are left out, and a note reports it.

    Raises:
        UsageError: if a column does not exist.
    """
    old_labels, old_features = _label_names(restored), _feature_names(restored)
    labels, features = request.label, request.features
    if labels is None:
        labels = tuple(name for name in old_labels if name not in (features or ()))
    elif old_labels and labels == (LABEL,) and LABEL not in old_features:  # the name of the attribute in the file
        labels = old_labels
    if features is None:
        features = old_features if request.label is None else tuple(name for name in old_features if name not in labels)
    everything = dict.fromkeys((*old_labels, *old_features, *restored.attributes))
    need_columns(everything, labels, "label")
    need_columns(everything, features, "features")
    same_labels = labels == old_labels and (restored.labels is None or request.task in (None, restored.labels.task))
    if same_labels and features == old_features:
        return restored

    request = replace(request, label=labels, features=features)  # raises if a column is named as both
    selected = features if set(features) <= set(old_features) else ()
    moved, left_out = [name for name in old_features if name not in selected], []
    if restored.x is not None and restored.x.layout != torch.strided:
        left_out = [name for name in moved if name not in {*labels, *features}]
        moved = [name for name in moved if name in {*labels, *features}]
    columns = {**restored.attributes, **_feature_columns(restored, old_features, moved)}
    if not same_labels:
        columns |= _label_columns(restored, old_labels)
    rest = replace(request, label=() if same_labels else labels, features=() if selected else features)
    result = sort_columns(columns, rest, len(ids), lambda node: f"node {ids[node]!r}")
    if same_labels:
        result.labels, result.label_columns = restored.labels, restored.label_columns
    if selected and restored.x is not None:
        numbers = [old_features.index(name) for name in selected]
        result.x, result.feature_names = select_columns(restored.x, numbers), selected
    if left_out:
        result.notes.append(f"sparse features that were not requested were left out: {len(left_out)} columns")
    return result


def _label_names(restored: NodeColumns) -> tuple[str, ...]:
    if restored.labels is None:
        return ()
    y, names = restored.labels.y, restored.labels.class_names
    if restored.label_columns or y.dim() == 1:
        return restored.label_columns or (LABEL,)
    return tuple(str(name) for name in names or (f"{LABEL}{number}" for number in range(y.shape[1])))


def _feature_names(restored: NodeColumns) -> tuple[str, ...]:
    width = 0 if restored.x is None else int(restored.x.shape[1])
    return restored.feature_names or tuple(f"x{number}" for number in range(width))


def _label_columns(restored: NodeColumns, names: Sequence[str]) -> dict[str, Sequence[Any]]:
    if restored.labels is None:
        return {}
    values = label_values(restored.labels) or []
    if restored.labels.y.dim() == 1:
        return {names[0]: values}
    return {name: [row[number] for row in values] for number, name in enumerate(names)}


def _feature_columns(restored: NodeColumns, names: Sequence[str], selected: Sequence[str]) -> dict[str, Sequence[Any]]:
    if restored.x is None:
        return {}
    columns = select_columns(restored.x, [names.index(name) for name in selected]).to_dense().T.tolist()
    return {name: _without_nan(column) for name, column in zip(selected, columns, strict=True)}
