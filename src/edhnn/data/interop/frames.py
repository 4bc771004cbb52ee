"""Data frames to a `NodeDataset`: pandas, polars, and Arrow tables.

The incidence frame has a row per membership: a node column, a hyperedge column, perhaps a weight. A node frame and a
hyperedge frame may stand beside it; they number the nodes and hyperedges, hold their columns, and are the only place
for isolated nodes and empty hyperedges. All go through Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from edhnn.data.columns import ColumnRequest, names_in, sort_columns
from edhnn.data.dataset import NodeDataset, Provenance, Task, merged_note
from edhnn.data.encode import encode_ids
from edhnn.data.ids import IdColumn, Ids
from edhnn.data.interop.arrow import arrow_table, class_column, column_names, id_column, library_of, number_column
from edhnn.data.labels import label_fields
from edhnn.errors import DataError, UsageError
from edhnn.hypergraph import Hypergraph
from edhnn.typing import IndexArray


def from_frame(
    frame: Any,
    *,
    node: str = "node",
    edge: str = "hyperedge",
    weight: str | None = None,
    nodes: Any = None,
    hyperedges: Any = None,
    edge_weight: str | None = None,
    label: str | Sequence[str] | None = None,
    features: str | Sequence[str] = (),
    task: Task | None = None,
    name: str = "frame",
) -> NodeDataset:
    """A dataset from data frames of pandas, polars or Arrow.

    Ids are text or integers. With a node frame, nodes are numbered in its order, and every node of ``frame`` must be in
    it; without one, integers in ascending order and text by first mention. The same holds for hyperedges. Columns that
    are neither labels nor features are attributes. A categorical label column (pandas Categorical, polars Enum) keeps
    its order of classes. Features and real labels become float32.

    Args:
        frame: The incidence frame, a row per membership. Columns that are not named here are left out, and a note in
            the provenance says so.
        node: The node column, in ``frame`` and in ``nodes``.
        edge: The hyperedge column, in ``frame`` and in ``hyperedges``.
        weight: The column of ``frame`` with the weights of memberships.
        nodes: The node frame, a row per node.
        hyperedges: The hyperedge frame, a row per hyperedge.
        edge_weight: The column of ``hyperedges`` with their weights.
        label: The column of ``nodes`` with the label, empty where unknown; several for multi-label or several targets.
        features: The column of ``nodes`` that is the feature, or several.
        task: What the labels are; by default inferred from them.
        name: Name of the dataset.

    Returns:
        The dataset.

    Raises:
        UsageError: if a frame is of another library, or a column is not there.
        DataError: if an id is missing, real-valued, mentioned twice where it is defined, or not defined at all.

    Example:
        >>> import pandas
        >>> from edhnn.data.interop import from_frame
        >>> baskets = pandas.DataFrame({"item": ["milk", "bread", "milk"], "basket": [7, 7, 9]})
        >>> from_frame(baskets, node="item", edge="basket")
        NodeDataset('frame', nodes=2, hyperedges=2, features=0, task=None)
    """
    if nodes is None and (label is not None or features):
        raise UsageError("'label' and 'features' are columns of the node frame: give it as 'nodes'.")
    if hyperedges is None and edge_weight is not None:
        raise UsageError("'edge_weight' is a column of the hyperedge frame: give it as 'hyperedges'.")
    wanted = [node, edge] if weight is None else [node, edge, weight]
    if len(set(wanted)) < len(wanted):
        raise UsageError(f"Node, hyperedge and weight must be columns of their own. Got {', '.join(wanted)}.")
    asked = ColumnRequest(label=() if label is None else names_in(label), features=names_in(features), task=task)
    incidences = arrow_table(frame, wanted, "incidence frame")
    node_table, node_ids, node_index = _numbered("node", incidences, nodes, node)
    edge_table, edge_ids, edge_index = _numbered("hyperedge", incidences, hyperedges, edge)
    weights = None if weight is None else torch.from_numpy(number_column(incidences, weight, "incidence frame"))
    edge_weights = None
    if edge_weight is not None:
        edge_weights = torch.from_numpy(number_column(edge_table, edge_weight, "hyperedge frame"))
        edge_table = edge_table.drop_columns([edge_weight])
    hypergraph = Hypergraph(
        torch.from_numpy(node_index), torch.from_numpy(edge_index), len(node_ids), len(edge_ids), edge_weights, weights
    )
    columns = {column: node_table[column] for column in node_table.column_names}
    labels = class_column(columns, label) if isinstance(label, str) and task in (None, "classification") else None
    asked = asked if labels is None else replace(asked, label=())
    found = sort_columns(columns, asked, len(node_ids), lambda row: f"row {row} (node {node_ids[row]!r})")
    labels = labels or found.labels
    unused = [column for column in column_names(frame) if column not in wanted]
    notes = [f"columns of the incidence frame left out: {', '.join(unused)}"] if unused else []
    notes += merged_note(hypergraph)
    return NodeDataset(
        name=name,
        hypergraph=hypergraph,
        x=found.x,
        **label_fields(labels),
        feature_names=found.feature_names,
        node_ids=node_ids,
        edge_ids=edge_ids,
        node_attributes=found.attributes,
        edge_attributes={column: edge_table[column].to_pylist() for column in edge_table.column_names},
        provenance=Provenance(library_of(frame), "frame", (*notes, *found.notes)),
    )


def _numbered(kind: str, incidences: pa.Table, frame: Any, column: str) -> tuple[pa.Table, Ids, IndexArray]:
    """The table about nodes or hyperedges without its ids, the ids, and their numbers in the incidence frame."""
    mentioned = _id_column(incidences, column, "incidence frame")
    if frame is None:
        ids, _, numbers = encode_ids(IdColumn(), mentioned)
        return pa.table({}), ids, numbers
    table = arrow_table(frame, None, f"{kind} frame", needed=(column,))
    defined = _id_column(table, column, f"{kind} frame")
    ids, own, numbers = encode_ids(defined, mentioned)
    again = np.flatnonzero(own != np.arange(len(own)))
    if len(again):
        row = int(again[0])
        problem = f"Every {kind} must have one row in the {kind} frame. {ids[int(own[row])]!r} has several."
        raise DataError(problem, where=f"row {row}", remedy="Remove the row that is not meant.")
    unknown = np.flatnonzero(numbers >= len(own))
    if len(unknown):
        row = int(unknown[0])
        raise DataError(
            f"Every {kind} of the incidence frame must be in the {kind} frame. {ids[int(numbers[row])]!r} is not.",
            where=f"row {row}",
            remedy="Add it there; an integer and a text are never the same id.",
        )
    return table.drop_columns([column]), ids, numbers


def _id_column(table: pa.Table, name: str, what: str) -> IdColumn:
    column = IdColumn()
    for chunk in id_column(table, name, what).chunks:
        column.append_arrow(chunk)
    return column
