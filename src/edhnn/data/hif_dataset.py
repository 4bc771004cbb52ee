"""Between a HIF document and a `NodeDataset`.

A dataset written to HIF keeps its features and labels in the attributes of the node records and says under
`metadata.edhnn` what they are (`edhnn.data.records`), so that reading restores it. A document from elsewhere has its
attributes sorted into labels and features as a node table has. Options of the reader choose among the columns in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edhnn.data.columns import ColumnRequest, sort_columns
from edhnn.data.dataset import NodeDataset, Provenance
from edhnn.data.files import Limits
from edhnn.data.hif import HifDocument, Records, WeightColumn, attribute_columns
from edhnn.data.json_values import need_finite_attributes, what_json_holds
from edhnn.data.labels import label_fields
from edhnn.data.marked import as_marked
from edhnn.data.marked_request import as_asked
from edhnn.data.records import MARK, WEIGHT, attribute_records, mark_of, node_records, read_mark
from edhnn.errors import DataError
from edhnn.typing import JsonObject


def dataset_from_document(
    document: HifDocument,
    *,
    name: str,
    source: str,
    request: ColumnRequest | None = None,
    limits: Limits | None = None,
) -> NodeDataset:
    """The dataset a HIF document holds; directions and metadata stay in the document.

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
        mark = read_mark((document.metadata or {}).get(MARK), "HIF")
        claimed = () if mark is None else [key for key in mark.node_attributes if key != WEIGHT]
        columns = attribute_columns("nodes", document.nodes, nodes, claimed, limits)
        edge_columns = attribute_columns(
            "edges", document.edges, edges, () if mark is None else mark.edge_attributes, limits
        )
        if mark is not None:
            found = as_asked(as_marked(columns, mark, document.node_ids, limits), request, document.node_ids)
        else:
            found = sort_columns(columns, request, nodes, lambda place: f"node {document.node_ids[place]!r}")
        hypergraph = document.hypergraph()
        left_behind = _left_behind(document, hypergraph.merged_memberships)
        details: JsonObject = {"left_behind": left_behind} if left_behind else {}
        return NodeDataset(
            name=mark.name if mark else name,
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
                (*found.notes, *(f"only in the document, not in the dataset: {part}" for part in left_behind)),
                {**details, **found.details, **({"origin": mark.provenance} if mark else {})},
            ),
        )
    except DataError as error:
        raise type(error)(error.problem, path=source, where=error.where, remedy=error.remedy) from error


def document_from_dataset(dataset: NodeDataset) -> HifDocument:
    """A HIF document that holds all of a dataset."""
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
        metadata={MARK: _plain_mark(dataset)},
    )


def details_left_behind(dataset: NodeDataset) -> list[str]:
    """What HIF and a folder cannot hold of a dataset, in words: details of where it came from that are not JSON."""
    return [f"the detail '{name}' of its provenance" for name in what_json_holds(dataset.provenance.details)[1]]


def _plain_mark(dataset: NodeDataset) -> JsonObject:
    """The mark of a dataset with the details that JSON holds, and a note about the others."""
    mark = mark_of(dataset)
    details, lost = what_json_holds(dataset.provenance.details)
    notes = [
        *dataset.provenance.notes,
        *([f"details that JSON cannot hold left out: {', '.join(lost)}"] if lost else []),
    ]
    return {**mark, "provenance": {**mark["provenance"], "notes": notes, "details": details}}


def _refuse_infinity(dataset: NodeDataset) -> None:
    """JSON has no infinity, and no NaN outside features and labels, where it stands for a gap."""
    for what, tensor in (("features", dataset.x), ("labels", dataset.y)):
        values = tensor if tensor is None or tensor.layout == torch.strided else tensor.values()
        if values is not None and values.is_floating_point() and bool(values.isinf().any()):
            raise DataError(f"HIF holds no infinite {what}.", remedy="Mend them, or write a dataset folder instead.")
    need_finite_attributes(dataset, "HIF")


def _left_behind(document: HifDocument, merged: int) -> list[str]:
    """What a `NodeDataset` cannot hold of this document, of whose memberships some were merged, in words."""
    lost = ["the directions"] if document.has_directions() else []
    if document.network_type in ("directed", "asc") and not lost:
        lost.append(f"the network type '{document.network_type}'")
    lost += ["the attributes of incidences"] if document.incidences.attrs else []
    lost += ["the metadata"] if set(document.metadata or ()) - {MARK} else []
    nodes = document.nodes
    if nodes is not None and nodes.weight is not None and any(WEIGHT in attrs for attrs in nodes.attrs.values()):
        lost.append("the weights of node records (an attribute is called 'weight' too)")
    return lost + _repeated(document, merged)


def _repeated(document: HifDocument, merged: int) -> list[str]:
    """The records about what an earlier record is about already, in words."""
    lost = [f"{merged} repeated records of incidences (merged, with the largest weight)"] if merged else []
    for name, records in (("nodes", document.nodes), ("edges", document.edges)):
        index = None if records is None else records.node if records.node is not None else records.edge
        again = 0 if index is None else len(index) - np.count_nonzero(np.bincount(index))
        if again:
            lost.append(f"{again} repeated records of {name} (merged; of one attribute the last counts)")
    return lost


def _with_weights(columns: Mapping[str, Sequence[Any]], document: HifDocument) -> Mapping[str, Sequence[Any]]:
    """The node attributes with the weights of the node records, unless the name is taken."""
    nodes = document.nodes
    if WEIGHT in columns or nodes is None or nodes.weight is None or nodes.node is None:
        return columns
    weights: list[Any] = [None] * len(document.node_ids)
    for node, weight in zip(nodes.node.tolist(), nodes.weight.numbers(0, len(nodes)), strict=True):
        weights[node] = weights[node] if weight is None else weight
    return {**columns, WEIGHT: weights}


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
