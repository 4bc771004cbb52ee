"""Between a HIF document and a `NodeDataset`, and the format's entry.

A dataset written to HIF keeps its features and labels in the attributes of the node records and says under
`metadata.edhnn` what they are (`edhnn.data.manifest`), so that reading restores it. A document from elsewhere has its
attributes sorted into labels and features as a node table has. Options of the reader choose among the columns in both.
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
from edhnn.data.limits import Limits, size_in_words
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
    """Return the dataset that a HIF document holds; directions and metadata stay in the document.

    Args:
        document: The document.
        name: Name of the dataset, unless the document says one itself.
        source: The file, for provenance and errors.
        request: Which attributes are labels and features.
        limits: Size limits, for what the document claims about its labels and features.

    Returns:
        The dataset.
    """
    request, limits = request or ColumnRequest(), limits or Limits()
    nodes, edges = len(document.node_ids), len(document.edge_ids)
    try:
        manifest = read_manifest((document.metadata or {}).get(MANIFEST), "HIF")
        claimed: Sequence[str] = () if manifest is None else [key for key in manifest.node_attributes if key != WEIGHT]
        columns = _attribute_columns("nodes", document.nodes, nodes, claimed, limits)
        edge_columns = _attribute_columns(
            "edges", document.edges, edges, () if manifest is None else manifest.edge_attributes, limits
        )
        if manifest is not None:
            found = requested_columns(
                restore_columns(columns, manifest, document.node_ids, limits), request, document.node_ids
            )
        else:
            found = sort_columns(columns, request, nodes, lambda place: f"node {document.node_ids[place]!r}")
        hypergraph = document.hypergraph()
        dropped = _dropped(document, hypergraph.merged_memberships)
        details: JsonObject = {"left_behind": dropped} if dropped else {}
        return NodeDataset(
            name=manifest.name if manifest else name,
            hypergraph=hypergraph,
            x=found.x,
            **label_fields(found.labels),
            feature_names=found.feature_names,
            node_ids=document.node_ids,
            edge_ids=document.edge_ids,
            node_attributes=_with_weights(found.attributes, document),
            edge_attributes=edge_columns,
            provenance=Provenance(
                source,
                "hif",
                (*found.notes, *(f"only in the document, not in the dataset: {part}" for part in dropped)),
                {**details, **found.details, **({"origin": manifest.provenance} if manifest else {})},
            ),
        )
    except DataError as error:
        raise type(error)(error.problem, path=source, where=error.where, remedy=error.remedy) from error


def document_from_dataset(dataset: NodeDataset) -> HifDocument:
    """Return a HIF document that holds all of a dataset."""
    _refuse_infinity(dataset)
    hypergraph, weights = dataset.hypergraph, dataset.node_attributes.get(WEIGHT)
    incidences = Records(hypergraph.node_index.cpu().numpy(), hypergraph.edge_index.cpu().numpy())
    incidences.weight = _column(hypergraph.incidence_weight)
    nodes = Records(node=np.arange(hypergraph.num_nodes))
    if weights is not None and all(weight is None or _is_number(weight) for weight in weights):
        nodes.weight = WeightColumn()
        nodes.weight.append(list(weights))
        others = {name: column for name, column in dataset.node_attributes.items() if name != WEIGHT}
        nodes.attrs = _present(node_records(replace(dataset, node_attributes=others)))
    else:
        nodes.attrs = _present(node_records(dataset))
    edges = Records(edge=np.arange(hypergraph.num_edges), weight=_column(hypergraph.edge_weight))
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
    section: str, records: Records | None, count: int, claimed: Iterable[str], limits: Limits
) -> dict[str, Sequence[Any]]:
    """Return the attributes of nodes or hyperedges as columns, ``None`` where one lacks the key.

    Args:
        section: `nodes` or `edges`, for the error.
        records: That section of the document.
        count: Number of nodes or hyperedges.
        claimed: Keys that come first, and even if nobody has them.
        limits: Size limits: a short document can have a key of its own for every node.

    Returns:
        The columns; of repeated records the later win, key by key.
    """
    keys = dict.fromkeys(
        [*claimed, *(key for attrs in records.attrs.values() for key in attrs)] if records else claimed
    )
    size = len(keys) * count * 8
    if size > limits.max_bytes:
        raise LimitError(
            f"The attributes of '{section}' must take at most {size_in_words(limits.max_bytes)} as columns. "
            f"Got {len(keys)} keys for {count} {section}, {size_in_words(size)}.",
            where=section,
            remedy="If you trust the file, raise the limit with --max-bytes.",
        )
    columns: dict[str, list[Any]] = {key: [None] * count for key in keys}
    index = None if records is None else records.index
    if records is not None and index is not None:
        for place, attrs in sorted(records.attrs.items()):
            for key, value in attrs.items():
                columns[key][index[place]] = value
    return {**columns}


def _dropped(document: HifDocument, merged: int) -> list[str]:
    """What a `NodeDataset` cannot hold of this document, of whose memberships some were merged, in words."""
    dropped = ["the directions"] if document.has_directions() else []
    if document.network_type in ("directed", "asc") and not dropped:
        dropped.append(f"the network type '{document.network_type}'")
    dropped += ["the attributes of incidences"] if document.incidences.attrs else []
    dropped += ["the metadata"] if set(document.metadata or ()) - {MANIFEST} else []
    nodes = document.nodes
    if nodes is not None and nodes.weight is not None and any(WEIGHT in attrs for attrs in nodes.attrs.values()):
        dropped.append("the weights of node records (an attribute is called 'weight' too)")
    return dropped + _repeated(document, merged)


def _repeated(document: HifDocument, merged: int) -> list[str]:
    """The records about what an earlier record is about already, in words."""
    dropped = [f"{merged} repeated records of incidences (merged, with the largest weight)"] if merged else []
    for name, records in (("nodes", document.nodes), ("edges", document.edges)):
        index = None if records is None else records.index
        again = 0 if index is None else len(index) - np.count_nonzero(np.bincount(index))
        if again:
            dropped.append(f"{again} repeated records of {name} (merged; of one attribute the last counts)")
    return dropped


def _with_weights(columns: Mapping[str, Sequence[Any]], document: HifDocument) -> Mapping[str, Sequence[Any]]:
    """The node attributes with the weights of the node records, unless the name is taken."""
    nodes = document.nodes
    if WEIGHT in columns or nodes is None or nodes.weight is None or nodes.node is None:
        return columns
    weights: list[Any] = [None] * len(document.node_ids)
    for node, weight in zip(nodes.node.tolist(), nodes.weight.numbers(0, len(nodes)), strict=True):
        weights[node] = weights[node] if weight is None else weight
    return {**columns, WEIGHT: weights}


def _plain_manifest(dataset: NodeDataset) -> JsonObject:
    """The manifest of a dataset with the details that JSON holds, and a note about the others."""
    manifest = manifest_of(dataset)
    details, others = split_json(dataset.provenance.details)
    notes = [
        *dataset.provenance.notes,
        *([f"details that JSON cannot hold left out: {', '.join(others)}"] if others else []),
    ]
    return {**manifest, "provenance": {**manifest["provenance"], "notes": notes, "details": details}}


def _refuse_infinity(dataset: NodeDataset) -> None:
    """JSON has no infinity, and no NaN outside features and labels, where it stands for a gap."""
    for what, tensor in (("features", dataset.x), ("labels", dataset.y)):
        values = tensor if tensor is None or tensor.layout == torch.strided else tensor.values()
        if values is not None and values.is_floating_point() and bool(values.isinf().any()):
            raise DataError(f"HIF holds no infinite {what}.", remedy="Mend them, or write a dataset folder instead.")
    need_finite_attributes(dataset, "HIF")


def _present(records: list[JsonObject]) -> dict[int, JsonObject]:
    return {place: record for place, record in enumerate(records) if record}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _column(weights: Tensor | None) -> WeightColumn | None:
    if weights is None:
        return None
    column = WeightColumn()
    column.append(weights.tolist())
    return column
