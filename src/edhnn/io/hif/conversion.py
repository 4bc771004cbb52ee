"""Conversion between a HIF document and a `NodeDataset`, and the format's entry.

A dataset written to HIF stores its features and labels in the attributes of the node records. The manifest under
`metadata.edhnn` describes them (`edhnn.data.manifest`), so that reading restores the dataset. The attributes of other
documents are sorted into labels and features like the columns of a node table. Options of the reader choose columns in
both cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edhnn.data.columns import ColumnRequest, label_fields, sort_columns
from edhnn.data.dataset import NodeDataset, Provenance
from edhnn.data.limits import FREE_ARRAYS, Limits, size_in_words
from edhnn.data.manifest import (
    MANIFEST,
    WEIGHT,
    attribute_records,
    manifest_of,
    node_records,
    read_manifest,
    requested_columns,
    restore_columns,
)
from edhnn.errors import DataError, LimitError
from edhnn.io.file_format import FileFormat, TableRequest
from edhnn.io.hif.document import HifDocument, Records, WeightColumn
from edhnn.io.hif.reader import read_hif
from edhnn.io.hif.writer import write_hif
from edhnn.io.json_files import dropped_details, need_finite_attributes, split_json
from edhnn.typing import JsonObject


def dataset_from_document(
    document: HifDocument,
    *,
    name: str,
    source: str,
    request: ColumnRequest | None = None,
    limits: Limits | None = None,
) -> NodeDataset:
    """Return the dataset in a HIF document. A dataset has no directions and no metadata.

    Args:
        document: The document.
        name: Name of the dataset, unless the document contains one.
        source: The file, for provenance and error messages.
        request: Which attributes are labels and features.
        limits: Size limits for the labels and features that the document declares.

    Returns:
        The dataset.
    """
    request, limits = request or ColumnRequest(), limits or Limits()
    nodes, edges = len(document.node_ids), len(document.edge_ids)
    try:
        manifest = read_manifest((document.metadata or {}).get(MANIFEST), "HIF")
        node_keys = [key for key in manifest.node_attributes if key != WEIGHT] if manifest else []
        columns = _attribute_columns("nodes", document.nodes, nodes, node_keys, limits)
        edge_keys = manifest.edge_attributes if manifest else ()
        edge_columns = _attribute_columns("edges", document.edges, edges, edge_keys, limits)
        if manifest is not None:
            restored = restore_columns(columns, manifest, document.node_ids, limits)
            sorted_columns = requested_columns(restored, request, document.node_ids)
        else:
            sorted_columns = sort_columns(columns, request, nodes, lambda index: f"node {document.node_ids[index]!r}")
        hypergraph = document.hypergraph()
        dropped = _dropped(document, hypergraph.merged_memberships)
        details: JsonObject = {"left_behind": dropped} if dropped else {}
        return NodeDataset(
            name=manifest.name if manifest else name,
            hypergraph=hypergraph,
            x=sorted_columns.x,
            **label_fields(sorted_columns.labels),
            feature_names=sorted_columns.feature_names,
            node_ids=document.node_ids,
            edge_ids=document.edge_ids,
            node_attributes=_with_weights(sorted_columns.attributes, document),
            edge_attributes=edge_columns,
            provenance=Provenance(
                source,
                "hif",
                (*sorted_columns.notes, *(f"only in the document, not in the dataset: {part}" for part in dropped)),
                {**details, **sorted_columns.details, **({"origin": manifest.provenance} if manifest else {})},
            ),
        )
    except DataError as error:
        raise type(error)(error.problem, path=source, where=error.where, remedy=error.remedy) from error


def document_from_dataset(dataset: NodeDataset) -> HifDocument:
    """Return a HIF document with all parts of a dataset."""
    for kind, tensor in (("features", dataset.x), ("labels", dataset.y)):
        values = tensor if tensor is None or tensor.layout == torch.strided else tensor.values()
        if values is not None and values.is_floating_point() and bool(values.isinf().any()):
            remedy = "Replace them by finite values, or write a dataset folder instead."
            raise DataError(f"HIF cannot store infinite {kind}.", remedy=remedy)
    need_finite_attributes(dataset, "HIF")
    hypergraph, weights = dataset.hypergraph, dataset.node_attributes.get(WEIGHT)
    incidences = Records(hypergraph.node_index.cpu().numpy(), hypergraph.edge_index.cpu().numpy())
    incidences.weight = _weight_column(hypergraph.incidence_weight)
    nodes = Records(node=np.arange(hypergraph.num_nodes))
    if weights is not None and all(weight is None or _is_number(weight) for weight in weights):
        nodes.weight = _weight_column(weights)
        others = {name: column for name, column in dataset.node_attributes.items() if name != WEIGHT}
        nodes.attrs = _present(node_records(replace(dataset, node_attributes=others)))
    else:
        nodes.attrs = _present(node_records(dataset))
    edges = Records(edge=np.arange(hypergraph.num_edges), weight=_weight_column(hypergraph.edge_weight))
    edges.attrs = _present(attribute_records("hyperedge", dataset.edge_attributes, hypergraph.num_edges, ()))
    return HifDocument(
        node_ids=dataset.node_ids,
        edge_ids=dataset.edge_ids,
        incidences=incidences,
        nodes=nodes,
        edges=edges,
        network_type="undirected",
        metadata={MANIFEST: _plain_manifest(dataset)},
    )


def read_hif_dataset(path: Path, request: TableRequest, limits: Limits) -> NodeDataset:
    """Read a dataset from a HIF file."""
    name = path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".hif")
    document = read_hif(path, limits)
    return dataset_from_document(document, name=name, source=str(path), request=request.columns, limits=limits)


def write_hif_dataset(dataset: NodeDataset, target: Path) -> list[Path]:
    """Write a dataset as a HIF file."""
    write_hif(document_from_dataset(dataset), target)
    return [target]


FORMAT = FileFormat(
    name="hif",
    patterns=(".hif.json", ".json"),
    read=read_hif_dataset,
    write=write_hif_dataset,
    dropped=lambda dataset, _: dropped_details(dataset),
    options="columns",
)


def _attribute_columns(
    section: str, records: Records | None, count: int, declared: Iterable[str], limits: Limits
) -> dict[str, Sequence[Any]]:
    """Return the attributes of nodes or hyperedges as columns, ``None`` where a record lacks the key.

    Args:
        section: `nodes` or `edges`, for the error message.
        records: That section of the document.
        count: Number of nodes or hyperedges.
        declared: Keys that come first, even if no record has them.
        limits: Size limits. A short document can have a different key for every node, so that most cells are empty.

    Returns:
        The columns. Of repeated records the last value of each key wins.
    """
    keys, filled = dict.fromkeys(declared), 0
    if records is not None:
        keys |= dict.fromkeys(key for attrs in records.attrs.values() for key in attrs)
        filled = sum(map(len, records.attrs.values()))
    size, most = len(keys) * count * 8, limits.most_bytes(filled * 8, FREE_ARRAYS)
    if size > most:
        raise LimitError(
            f"The attributes of '{section}' must take at most {size_in_words(most)} as columns. "
            f"Got {len(keys)} keys for {count} {section}, {size_in_words(size)}.",
            where=section,
            remedy="If you trust the file, raise the limit with `max_bytes=`.",
        )
    columns: dict[str, list[Any]] = {key: [None] * count for key in keys}
    if records is not None and records.index is not None:
        for number, attrs in sorted(records.attrs.items()):
            for key, value in attrs.items():
                columns[key][records.index[number]] = value
    return {**columns}


def _dropped(document: HifDocument, merged: int) -> list[str]:
    """Describe the parts of a document that a `NodeDataset` cannot store; ``merged`` incidences were duplicates."""
    dropped = ["the directions"] if document.has_directions() else []
    if document.network_type in ("directed", "asc") and not dropped:
        dropped.append(f"the network type '{document.network_type}'")
    dropped += ["the attributes of incidences"] if document.incidences.attrs else []
    dropped += ["the metadata"] if set(document.metadata or ()) - {MANIFEST} else []
    nodes = document.nodes
    if nodes is not None and nodes.weight is not None and any(WEIGHT in attrs for attrs in nodes.attrs.values()):
        dropped.append("the weights of node records (an attribute is named 'weight' too)")
    if merged:
        dropped.append(f"{merged} duplicate records of incidences (merged; the largest weight is kept)")
    for name, records in (("nodes", nodes), ("edges", document.edges)):
        index = None if records is None else records.index
        duplicates = 0 if index is None else len(index) - np.count_nonzero(np.bincount(index))
        if duplicates:
            dropped.append(f"{duplicates} duplicate records of {name} (merged; the last value of an attribute is kept)")
    return dropped


def _with_weights(columns: Mapping[str, Sequence[Any]], document: HifDocument) -> Mapping[str, Sequence[Any]]:
    """Return the node attributes with the weights of the node records, unless an attribute has that name."""
    nodes = document.nodes
    if WEIGHT in columns or nodes is None or nodes.weight is None or nodes.node is None:
        return columns
    weights: list[Any] = [None] * len(document.node_ids)
    for node, weight in zip(nodes.node.tolist(), nodes.weight.numbers(0, len(nodes)), strict=True):
        weights[node] = weights[node] if weight is None else weight
    return {**columns, WEIGHT: weights}


def _plain_manifest(dataset: NodeDataset) -> JsonObject:
    """Return the manifest of a dataset with the details that JSON can store, and a note about the others."""
    manifest = manifest_of(dataset)
    details, others = split_json(dataset.provenance.details)
    notes = [
        *dataset.provenance.notes,
        *([f"details left out, because JSON cannot store them: {', '.join(others)}"] if others else []),
    ]
    return {**manifest, "provenance": {**manifest["provenance"], "notes": notes, "details": details}}


def _present(records: list[JsonObject]) -> dict[int, JsonObject]:
    return {number: record for number, record in enumerate(records) if record}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _weight_column(weights: Tensor | Sequence[Any] | None) -> WeightColumn | None:
    if weights is None:
        return None
    column = WeightColumn()
    column.append(weights.tolist() if isinstance(weights, Tensor) else list(weights))
    return column
