"""Records (see `edhnn.data.interop.records`) back to a `NodeDataset`.

An object that carries our mark is restored to what was written. One from elsewhere gets the labels and features that
are asked for by name; every other attribute stays an attribute, and nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.columns import ColumnRequest, NodeColumns, sort_columns
from edhnn.data.dataset import UNLABELLED, NodeDataset, Provenance, Task, sparse_features
from edhnn.data.ids import Ids
from edhnn.data.interop.records import FEATURES, LABEL, WEIGHT, Mark, read_mark
from edhnn.data.labels import Labels
from edhnn.errors import DataError
from edhnn.hypergraph import Hypergraph
from edhnn.typing import FloatArray, IntArray, JsonObject, NodeOrEdgeId

ForeignRecord = dict[Any, Any]
"""Attributes as found; names that are not text are refused later."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a bridge found in a foreign object.

    Attributes:
        library: The library's name.
        node_ids: Node ids; they number the nodes.
        edge_ids: Hyperedge ids.
        nodes: A record per node.
        edges: A record per hyperedge.
        node_index: The node of each incidence.
        edge_index: The hyperedge of each incidence.
        incidence_weight: A weight per incidence.
        mark: The value of the attribute ``edhnn``, if there is one.
        name: A name for the dataset, if the object has one.
        notes: Lines a person should see.
        details: The object's own attributes.
    """

    library: str
    node_ids: Ids
    edge_ids: Ids
    nodes: Sequence[ForeignRecord]
    edges: Sequence[ForeignRecord]
    node_index: IntArray
    edge_index: IntArray
    incidence_weight: FloatArray | None = None
    mark: object = None
    name: object = None
    notes: tuple[str, ...] = ()
    details: JsonObject = field(default_factory=dict)


def request(label: str | Sequence[str] | None, features: Sequence[str], task: Task | None) -> ColumnRequest:
    """What the caller of a bridge asked for; nothing is guessed."""
    labels = () if label is None else (label,) if isinstance(label, str) else tuple(label)
    return ColumnRequest(label=labels, features=tuple(features), task=task)


def dataset_from(found: Found, asked: ColumnRequest) -> NodeDataset:
    """The dataset in a foreign object.

    Args:
        found: What is there.
        asked: Which attributes are labels and features. If nothing is asked and a mark is there, the mark decides.

    Returns:
        The dataset.
    """
    mark = read_mark(found.mark, found.library)
    edge_columns = columns_of(found.edges, "hyperedge", mark.edge_attributes if mark else ())
    weight = edge_columns.pop(WEIGHT, None)
    hypergraph = Hypergraph(
        torch.from_numpy(found.node_index),
        torch.from_numpy(found.edge_index),
        len(found.node_ids),
        len(found.edge_ids),
        edge_weight=None if weight is None else torch.from_numpy(weights_from(weight, found.edge_ids)),
        incidence_weight=None if found.incidence_weight is None else torch.from_numpy(found.incidence_weight),
    )
    columns = columns_of(found.nodes, "node", mark.node_attributes if mark else ())
    if mark is not None and asked == request(None, (), None):
        nodes = _as_marked(columns, mark, found.node_ids)
    else:
        nodes = sort_columns(
            columns, asked, hypergraph.num_nodes, lambda place: f"node {found.node_ids[place]!r} of the {found.library}"
        )
    return NodeDataset(
        name=mark.name if mark else found.name if isinstance(found.name, str) and found.name else found.library,
        hypergraph=hypergraph,
        x=nodes.x,
        y=None if nodes.labels is None else nodes.labels.y,
        task=None if nodes.labels is None else nodes.labels.task,
        class_names=None if nodes.labels is None else nodes.labels.class_names,
        feature_names=nodes.feature_names,
        node_ids=found.node_ids,
        edge_ids=found.edge_ids,
        node_attributes=nodes.attributes,
        edge_attributes=edge_columns,
        provenance=provenance(found.library, hypergraph, (*found.notes, *nodes.notes), found.details, mark),
    )


def provenance(
    library: str, hypergraph: Hypergraph, notes: Iterable[str], details: JsonObject, mark: Mark | None
) -> Provenance:
    """Where a dataset came from; what was known before the foreign library held it is kept as ``origin``."""
    merged = hypergraph.merged_memberships
    lines = (*notes, *([f"{merged} memberships given more than once were merged"] if merged else []))
    return Provenance(library, library, lines, {**details, **({"origin": mark.provenance} if mark else {})})


def ignored_note(ignore: Collection[str]) -> tuple[str, ...]:
    """The note about attributes of memberships that the caller chose to leave out."""
    return (f"attributes of memberships left out as asked: {', '.join(ignore)}",) if ignore else ()


def checked_ids(kind: str, found: Iterable[object], remedy: str) -> Ids:
    """Foreign ids as `Ids`: text and integers only."""
    names: list[NodeOrEdgeId] = []
    for value in found:
        if isinstance(value, str):
            names.append(str(value))
        elif isinstance(value, int | np.integer) and not isinstance(value, bool):
            names.append(int(value))
        else:
            raise DataError(
                f"Every {kind} id must be text or an integer. Got {value!r} of type {type(value).__name__}.",
                remedy=remedy,
            )
    return Ids(range(len(names)) if names == list(range(len(names))) else names)


def columns_of(records: Sequence[ForeignRecord], kind: str, names: Iterable[str] = ()) -> dict[str, Sequence[Any]]:
    """Records as columns, ``None`` where a record lacks the name; ``names`` come first, and even if nobody has them."""
    found: dict[Any, None] = dict.fromkeys([*names, *(name for record in records for name in record)])
    wrong = next((name for name in found if not isinstance(name, str)), None)
    if wrong is not None:
        raise DataError(f"Names of {kind} attributes must be text. Got {wrong!r}.", remedy="Rename the attribute.")
    return {name: [_plain(record.get(name)) for record in records] for name in found}


def weights_from(values: Sequence[Any], ids: Sequence[object], kind: str = "hyperedge") -> FloatArray:
    """Weights as numbers, 1 where there is none."""
    for place, value in enumerate(values):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if value is not None and not (number and 0 <= value < math.inf):
            raise DataError(
                f"Every weight must be a finite number, 0 or more. Got {value!r} at {kind} {ids[place]!r}.",
                remedy="Correct it, or rename the attribute if it is not a weight.",
            )
    return np.array([1.0 if value is None else value for value in values], dtype=np.float64)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as_marked(columns: dict[str, Sequence[Any]], mark: Mark, ids: Ids) -> NodeColumns:
    result = NodeColumns()
    if mark.num_features is not None:
        rows = columns.pop(FEATURES, [None] * len(ids))
        result.x = _features(rows, mark, mark.num_features, ids)
        result.feature_names = mark.feature_names
    if mark.task is not None:
        values = columns.pop(LABEL, [None] * len(ids))
        y = _classes(values, mark, ids) if mark.task == "classification" else _numbers(values, mark, ids)
        result.labels = Labels(y, mark.task, mark.class_names)
    result.attributes = columns
    return result


def _features(rows: Sequence[Any], mark: Mark, width: int, ids: Ids) -> Tensor:
    kind = dict if mark.sparse else Sequence
    for row, name in zip(rows, ids, strict=True):
        if not isinstance(row, kind) or isinstance(row, str) or (not mark.sparse and len(row) != width):
            shape = f"a dictionary from column to value, {width} columns wide" if mark.sparse else f"{width} numbers"
            raise DataError(f"'{FEATURES}' must be {shape}. Got {row!r} at node {name!r}.", remedy=_UNMARK)
    try:
        if not mark.sparse:
            return _tensor([value for row in rows for value in row], mark.features_type).reshape(len(ids), width)
        keys = np.array([int(key) for row in rows for key in row], dtype=np.int64)
        values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        bounds = np.cumsum([0, *(len(row) for row in rows)])
        matrix = sp.csr_array((values, keys, bounds), shape=(len(ids), width))
        matrix.check_format(full_check=True)
        return sparse_features(matrix, getattr(torch, mark.features_type))
    except (TypeError, ValueError) as error:
        raise DataError(f"'{FEATURES}' must hold numbers, in {width} columns: {error}.", remedy=_UNMARK) from error


def _classes(values: Sequence[Any], mark: Mark, ids: Ids) -> Tensor:
    names = mark.class_names
    number = {} if names is None else {name: place for place, name in enumerate(names)}
    y = []
    for value, name in zip(values, ids, strict=True):
        fits = isinstance(value, str | int) and (
            value in number or (names is None and isinstance(value, int) and value >= 0)
        )
        if value is not None and not fits:
            allowed = "a class number" if names is None else "one of the class names of the mark"
            raise DataError(f"'{LABEL}' must be {allowed}. Got {value!r} at node {name!r}.", remedy=_UNMARK)
        y.append(UNLABELLED if value is None else number[value] if names is not None else value)
    return torch.tensor(y, dtype=torch.int64)


def _numbers(values: Sequence[Any], mark: Mark, ids: Ids) -> Tensor:
    width = mark.label_width
    try:
        if width is None:
            return _tensor(values, mark.label_type)
        flat = [number for value in values for number in ([None] * width if value is None else value)]
        return _tensor(flat, mark.label_type).reshape(len(ids), width)
    except (TypeError, ValueError, RuntimeError) as error:
        shape = "a number" if width is None else f"{width} numbers"
        raise DataError(f"'{LABEL}' must be {shape} at every node: {error}.", remedy=_UNMARK) from error


def _tensor(values: Sequence[Any], kind: str) -> Tensor:
    numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    return torch.from_numpy(numbers).to(getattr(torch, kind))


_UNMARK = "Correct it, or remove the attribute 'edhnn' and ask for labels and features by name."
