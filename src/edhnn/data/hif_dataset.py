"""Between a HIF document and a `NodeDataset`.

A dataset written to HIF keeps its features and labels in the node records (`attrs.features`, `attrs.label`) and says
under `metadata.edhnn` what they are, so that reading restores it. Sparse features are objects from column to value.
A document from elsewhere has its attributes sorted into labels and features as a node table has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.columns import ColumnRequest, sort_columns
from edhnn.data.dataset import NodeDataset, Provenance, Task, features_to_scipy, sparse_features
from edhnn.data.hif import HifDocument, Records, WeightColumn, attribute_columns, merged_attrs
from edhnn.data.labels import Labels, labels_from_values
from edhnn.errors import DataError
from edhnn.typing import JsonObject

_MARK = "edhnn"
_LABEL, _FEATURES = "label", "features"


class _Mark(msgspec.Struct, forbid_unknown_fields=False):
    """What `metadata.edhnn` says."""

    name: str
    task: Task | None = None
    class_names: list[int | str] | None = None
    num_features: int | None = None
    sparse: bool = False
    feature_names: list[str] | None = None


def dataset_from_document(
    document: HifDocument, *, name: str, source: str, request: ColumnRequest | None = None
) -> NodeDataset:
    """The dataset a HIF document holds; directions and metadata stay in the document.

    Args:
        document: The document.
        name: Name of the dataset, unless the document says one itself.
        source: The file, for provenance and errors.
        request: Which attributes are labels and features.

    Returns:
        The dataset.
    """
    request = request or ColumnRequest()
    count = len(document.node_ids)
    columns = attribute_columns(merged_attrs(document.nodes, count), count)
    mark = _read_mark(document, source)
    try:
        if mark is not None and request == ColumnRequest(keep_missing=request.keep_missing):
            x, labels = _own_features(columns.pop(_FEATURES, None), mark, count), _own_labels(columns, mark, count)
            feature_names = None if mark.feature_names is None else tuple(mark.feature_names)
            attributes: Mapping[str, Sequence[Any]] = columns
            notes: list[str] = []
        else:
            found = sort_columns(columns, request, count, lambda place: f"node {document.node_ids[place]!r}")
            x, labels, feature_names = found.x, found.labels, found.feature_names
            attributes, notes = found.attributes, found.notes
        hypergraph = document.hypergraph()
    except DataError as error:
        raise DataError(error.problem, path=source, where=error.where, remedy=error.remedy) from error
    left_behind = _left_behind(document)
    if "weight" not in attributes and document.nodes is not None and document.nodes.weight is not None:
        assert document.nodes.node is not None
        weights: list[Any] = [None] * count
        numbers = document.nodes.weight.numbers(0, len(document.nodes))
        for node, weight in zip(document.nodes.node.tolist(), numbers, strict=True):
            weights[node] = weights[node] if weight is None else weight
        attributes = {**attributes, "weight": weights}
    edges = len(document.edge_ids)
    return NodeDataset(
        name=mark.name if mark else name,
        hypergraph=hypergraph,
        x=x,
        y=None if labels is None else labels.y,
        task=None if labels is None else labels.task,
        class_names=None if labels is None else labels.class_names,
        feature_names=feature_names,
        node_ids=document.node_ids,
        edge_ids=document.edge_ids,
        node_attributes=attributes,
        edge_attributes=attribute_columns(merged_attrs(document.edges, edges), edges),
        provenance=Provenance(
            source,
            "hif",
            (*notes, *(f"only in the document, not in the dataset: {part}" for part in left_behind)),
            {"left_behind": left_behind} if left_behind else {},
        ),
    )


def document_from_dataset(dataset: NodeDataset) -> HifDocument:
    """A HIF document that holds all of a dataset."""
    hypergraph = dataset.hypergraph
    incidences = Records(hypergraph.node_index.cpu().numpy(), hypergraph.edge_index.cpu().numpy())
    if hypergraph.incidence_weight is not None:
        incidences.weight = _column(hypergraph.incidence_weight)
    nodes = Records(node=np.arange(hypergraph.num_nodes), attrs=_node_attrs(dataset))
    weights = dataset.node_attributes.get("weight")
    if weights is not None and all(weight is None or isinstance(weight, int | float) for weight in weights):
        nodes.weight = WeightColumn()
        nodes.weight.append(list(weights))
    edges = Records(edge=np.arange(hypergraph.num_edges), attrs=_attrs(dataset.edge_attributes))
    if hypergraph.edge_weight is not None:
        edges.weight = _column(hypergraph.edge_weight)
    mark = _Mark(
        dataset.name,
        dataset.task,
        None if dataset.class_names is None else list(dataset.class_names),
        None if dataset.x is None else dataset.num_features,
        dataset.x is not None and dataset.x.layout == torch.sparse_csr,
        None if dataset.feature_names is None else list(dataset.feature_names),
    )
    return HifDocument(
        node_ids=dataset.node_ids,
        edge_ids=dataset.edge_ids,
        incidences=incidences,
        nodes=nodes,
        edges=edges,
        network_type="undirected",
        metadata={_MARK: msgspec.to_builtins(mark)},
    )


def _left_behind(document: HifDocument) -> list[str]:
    """What a `NodeDataset` cannot hold of this document, in words."""
    lost = ["the directions"] if document.has_directions() else []
    lost += ["the attributes of incidences"] if document.incidences.attrs else []
    lost += ["the metadata"] if set(document.metadata or ()) - {_MARK} else []
    nodes = document.nodes
    if nodes is not None and nodes.weight is not None and any("weight" in attrs for attrs in nodes.attrs.values()):
        lost.append("the weights of node records (an attribute is called 'weight' too)")
    return lost


def _read_mark(document: HifDocument, source: str) -> _Mark | None:
    said = (document.metadata or {}).get(_MARK)
    if said is None:
        return None
    try:
        return msgspec.convert(said, _Mark)
    except msgspec.ValidationError as error:
        raise DataError(
            f"'metadata.{_MARK}' must describe features and labels as edhnn writes them: {error}.", path=source
        ) from error


def _own_features(column: list[object] | None, mark: _Mark, count: int) -> Tensor | None:
    if mark.num_features is None:
        return None
    rows: list[Any] = column if column is not None else [None] * count
    try:
        if mark.sparse:
            sizes = [len(row) for row in rows]
            indices = np.array([int(key) for row in rows for key in row], dtype=np.int64)
            values = np.array([value for row in rows for value in row.values()], dtype=np.float32)
            pointer = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
            matrix = sp.csr_array((values, indices, pointer), shape=(count, mark.num_features))
            matrix.check_format(full_check=True)
            return sparse_features(matrix)
        dense = np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=np.float32)
        return torch.from_numpy(dense.reshape(count, mark.num_features))
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"Every node's '{_FEATURES}' must be {mark.num_features} numbers: {error}.") from error


def _own_labels(columns: dict[str, list[object]], mark: _Mark, count: int) -> Labels | None:
    if mark.task is None:
        return None
    values: list[Any] = columns.pop(_LABEL, [None] * count)
    names = None if mark.class_names is None else tuple(mark.class_names)
    try:
        if mark.task == "classification":
            if names is None:
                return Labels(torch.tensor([-1 if v is None else int(v) for v in values]), "classification", None)
            number = {(type(name), name): place for place, name in enumerate(names)}
            y = [-1 if value is None else number[type(value), value] for value in values]
            return Labels(torch.tensor(y, dtype=torch.int64), "classification", names)
        if any(isinstance(value, list) for value in values):
            width = next(len(value) for value in values if isinstance(value, list))
            table = [[np.nan] * width if v is None else [np.nan if a is None else a for a in v] for v in values]
            return Labels(torch.tensor(table, dtype=torch.float32).reshape(count, width), mark.task, names)
        return labels_from_values(values, "regression")
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"Every node's '{_LABEL}' must fit the task '{mark.task}': {error!r}.") from error


def _node_attrs(dataset: NodeDataset) -> dict[int, JsonObject]:
    attrs = _attrs({name: column for name, column in dataset.node_attributes.items() if name != "weight"})
    if dataset.y is not None:
        for node, label in enumerate(dataset.y.tolist()):
            value = _label_out(label, dataset)
            if value is not None:
                attrs.setdefault(node, {})[_LABEL] = value
    if dataset.x is not None:
        for node, row in enumerate(_feature_rows(dataset.x)):
            attrs.setdefault(node, {})[_FEATURES] = row
    return attrs


def _label_out(label: Any, dataset: NodeDataset) -> Any:
    if dataset.task == "classification":
        return None if label < 0 else (label if dataset.class_names is None else dataset.class_names[label])
    if isinstance(label, list):
        return [None if value != value else value for value in label]
    return None if label != label else label


def _feature_rows(x: Tensor) -> list[Any]:
    if x.layout != torch.sparse_csr:
        return [[None if value != value else value for value in row] for row in x.tolist()]
    matrix = features_to_scipy(x)
    keys, values, bounds = matrix.indices.astype(str).tolist(), matrix.data.tolist(), matrix.indptr.tolist()
    return [dict(zip(keys[a:b], values[a:b], strict=True)) for a, b in pairwise(bounds)]


def _attrs(columns: Mapping[str, Sequence[Any]]) -> dict[int, JsonObject]:
    attrs: dict[int, JsonObject] = {}
    for name, column in columns.items():
        for number, value in enumerate(column):
            if value is not None:
                attrs.setdefault(number, {})[name] = value
    return attrs


def _column(weights: Tensor) -> WeightColumn:
    column = WeightColumn()
    column.append(weights.tolist())
    return column
