"""A dataset as records: a dictionary per node, a dictionary per hyperedge, and a mark about the whole.

XGI, HyperNetX and NetworkX keep attributes in dictionaries. There, and in HIF, a dataset looks the same:

    node record        its attributes; ``label``: the class as its owner wrote it, or numbers; ``features``: a list, or
                       for sparse features a dictionary from column to value
    hyperedge record   its attributes; ``weight``
    mark (``edhnn``)   what labels and features are, so that reading restores order, type and classes nobody has

Whatever is unknown or absent is not written: a record without ``label`` is an unlabelled node.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import torch
from torch import Tensor

from edhnn.data.dataset import Attributes, NodeDataset, Task
from edhnn.errors import DataError
from edhnn.typing import JsonObject, NodeOrEdgeId

MARK, LABEL, FEATURES, WEIGHT = "edhnn", "label", "features", "weight"

Record = dict[str, Any]
FloatName = Literal["float16", "bfloat16", "float32", "float64"]
Width = Annotated[int, msgspec.Meta(ge=0)]


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What the records of a dataset do not say themselves."""

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


def mark_of(dataset: NodeDataset) -> JsonObject:
    """The mark of a dataset, as plain values."""
    x, y, came = dataset.x, dataset.y, dataset.provenance
    mark = Mark(
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
            "source": PurePath(came.source).name,
            "format": came.format,
            "notes": list(came.notes),
            "details": came.details,
        },
    )
    values = {name: getattr(mark, name) for name in mark.__struct_fields__}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def read_mark(said: object, library: str) -> Mark | None:
    """The mark found in a foreign object, or ``None`` if there is none."""
    if said is None:
        return None
    try:
        return msgspec.convert(said, Mark)
    except msgspec.ValidationError as error:
        raise DataError(
            f"The attribute '{MARK}' of the {library} object must describe the dataset as edhnn writes it: {error}.",
            remedy=f"Remove the attribute '{MARK}'; then labels and features are asked for by name.",
        ) from error


def node_records(dataset: NodeDataset, reserved: Collection[str] = ()) -> list[Record]:
    """A record per node.

    Args:
        dataset: The dataset.
        reserved: Attribute names that mean something to the target.

    Returns:
        The records, in the order of the nodes.

    Raises:
        DataError: if an attribute has a name that would be read as something else.
    """
    taken = set(reserved) | ({LABEL} if dataset.y is not None else set())
    taken |= {FEATURES} if dataset.x is not None else set()
    records = attribute_records("node", dataset.node_attributes, dataset.hypergraph.num_nodes, taken)
    for name, values in ((LABEL, label_values(dataset)), (FEATURES, _feature_rows(dataset.x))):
        if values is not None:
            _fill(records, name, values)
    return records


def edge_records(dataset: NodeDataset, reserved: Collection[str] = ()) -> list[Record]:
    """A record per hyperedge; see `node_records`."""
    hypergraph = dataset.hypergraph
    records = attribute_records("hyperedge", dataset.edge_attributes, hypergraph.num_edges, {WEIGHT, *reserved})
    if hypergraph.edge_weight is not None:
        _fill(records, WEIGHT, hypergraph.edge_weight.tolist())
    return records


def label_values(dataset: NodeDataset) -> list[Any] | None:
    """Each node's label: a class as its owner wrote it, a number, or a list of numbers; ``None`` where unknown."""
    if dataset.y is None or dataset.task is None:
        return None
    return plain_labels(dataset.y, dataset.task, dataset.class_names)


def plain_labels(y: Tensor, task: Task, names: Sequence[NodeOrEdgeId] | None) -> list[Any]:
    """Labels as plain values; see `label_values`."""
    labels: list[Any] = y.tolist()
    if task != "classification":
        return [_without_nan(label) for label in labels]
    if names is None:
        return [None if label < 0 else label for label in labels]
    return [None if label < 0 else names[label] for label in labels]


def attribute_records(kind: str, columns: Attributes, count: int, taken: Collection[str]) -> list[Record]:
    """Columns as a record per node or hyperedge; a column called like one of ``taken`` is refused."""
    clash = next((name for name in columns if name in taken), None)
    if clash is not None:
        raise DataError(
            f"No {kind} attribute may be called '{clash}' here: it would be read as something else.",
            remedy="Rename the attribute first.",
        )
    records: list[Record] = [{} for _ in range(count)]
    for name, column in columns.items():
        _fill(records, name, column)
    return records


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
