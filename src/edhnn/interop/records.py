"""Make a `NodeDataset` from records of another library (see `edhnn.data.manifest`).

An object with our manifest is restored exactly. For any other object, labels and features are the attributes that the
caller names; every other attribute stays an attribute, and nothing is guessed.

Optional libraries are imported when a function needs them, not before.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch

from edhnn.data.columns import ColumnRequest, label_fields, names_in, sort_columns
from edhnn.data.dataset import NodeDataset, Provenance, Task, merged_note
from edhnn.data.ids import Ids
from edhnn.data.manifest import WEIGHT, Manifest, read_manifest, restore_columns
from edhnn.errors import DataError, MissingDependencyError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.typing import FloatArray, IntArray, JsonObject, NodeOrEdgeId

ForeignRecord = dict[Any, Any]
"""Attributes of a node or hyperedge; `columns_of` checks that their names are text."""


def column_request(
    label: str | Sequence[str] | None, features: str | Sequence[str], task: Task | None
) -> ColumnRequest:
    """Return a request for the named columns; without names nothing is guessed."""
    return ColumnRequest(label=() if label is None else names_in(label), features=names_in(features), task=task)


def dataset_from_records(
    library: str,
    request: ColumnRequest,
    *,
    node_ids: Ids,
    edge_ids: Ids,
    nodes: Sequence[ForeignRecord],
    edges: Sequence[ForeignRecord],
    node_index: IntArray,
    edge_index: IntArray,
    incidence_weight: FloatArray | None = None,
    manifest: object = None,
    name: object = None,
    notes: tuple[str, ...] = (),
    attributes: JsonObject | None = None,
) -> NodeDataset:
    """Make a dataset from the contents of a foreign object.

    Args:
        library: The library's name.
        request: The attributes that are labels and features. The manifest decides if the request is empty.
        node_ids: Node ids, in the order of the node numbers.
        edge_ids: Hyperedge ids, in the order of the hyperedge numbers.
        nodes: A record per node.
        edges: A record per hyperedge.
        node_index: The node of each incidence.
        edge_index: The hyperedge of each incidence.
        incidence_weight: A weight per incidence.
        manifest: The value of the attribute ``edhnn``, if it exists.
        name: A name for the dataset, if the object has one.
        notes: Messages for the user.
        attributes: The attributes of the object itself, for the provenance.
    """
    known = read_manifest(manifest, library)
    edge_columns = columns_of(edges, "hyperedge", known.edge_attributes if known else ())
    weight = edge_columns.pop(WEIGHT, None)
    hypergraph = Hypergraph(
        torch.from_numpy(node_index),
        torch.from_numpy(edge_index),
        len(node_ids),
        len(edge_ids),
        edge_weight=None if weight is None else torch.from_numpy(weights_from(weight, edge_ids)),
        incidence_weight=None if incidence_weight is None else torch.from_numpy(incidence_weight),
    )
    node_columns = columns_of(nodes, "node", known.node_attributes if known else ())
    if known is not None and request == column_request(None, (), None):
        columns = restore_columns(node_columns, known, node_ids)
    else:
        columns = sort_columns(
            node_columns, request, len(node_ids), lambda node: f"node {node_ids[node]!r} of the {library}"
        )
    return NodeDataset(
        name=known.name if known else name if isinstance(name, str) and name else library,
        hypergraph=hypergraph,
        x=columns.x,
        **label_fields(columns.labels),
        feature_names=columns.feature_names,
        node_ids=node_ids,
        edge_ids=edge_ids,
        node_attributes=columns.attributes,
        edge_attributes=edge_columns,
        provenance=provenance(library, hypergraph, (*notes, *columns.notes), attributes, columns.details, known),
    )


def provenance(
    library: str,
    hypergraph: Hypergraph,
    notes: Iterable[str],
    attributes: JsonObject | None,
    details: JsonObject,
    manifest: Manifest | None,
) -> Provenance:
    """Return the provenance of a converted object; the manifest's own provenance becomes ``origin``."""
    details = {
        **({"attributes": attributes} if attributes else {}),
        **details,
        **({"origin": manifest.provenance} if manifest else {}),
    }
    return Provenance(library, library, (*notes, *merged_note(hypergraph)), details)


def ignored_note(ignore: Collection[str]) -> tuple[str, ...]:
    """Return the note about membership attributes that the caller ignores."""
    return (f"attributes of memberships ignored on request: {', '.join(ignore)}",) if ignore else ()


def checked_ids(kind: str, names: Iterable[object], remedy: str) -> Ids:
    """Return foreign ids as `Ids`; raise `DataError` if one is neither text nor an integer."""
    ids: list[NodeOrEdgeId] = []
    for name in names:
        if isinstance(name, str):
            ids.append(str(name))
        elif isinstance(name, int | np.integer) and not isinstance(name, bool):
            ids.append(int(name))
        else:
            raise DataError(
                f"Every {kind} id must be text or an integer. Got {name!r} of type {type(name).__name__}.",
                remedy=remedy,
            )
    return Ids(range(len(ids)) if ids == list(range(len(ids))) else ids)


def columns_of(records: Sequence[ForeignRecord], kind: str, names: Iterable[str] = ()) -> dict[str, Sequence[Any]]:
    """Return records as columns, ``None`` where a record lacks a name; ``names`` come first, even if all lack them."""
    keys: dict[Any, None] = dict.fromkeys([*names, *(name for record in records for name in record)])
    wrong = next((key for key in keys if not isinstance(key, str)), None)
    if wrong is not None:
        raise DataError(f"Names of {kind} attributes must be text. Got {wrong!r}.", remedy="Rename the attribute.")
    return {key: [_plain(record.get(key)) for record in records] for key in keys}


def weights_from(values: Sequence[Any], ids: Sequence[object], kind: str = "hyperedge") -> FloatArray:
    """Return weights as numbers, 1 for ``None``; raise `DataError` if one is not a finite number of 0 or more."""
    for value, name in zip(values, ids, strict=True):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if value is not None and not (number and 0 <= value < math.inf):
            raise DataError(
                f"Every weight must be a finite number, 0 or more. Got {value!r} at {kind} {name!r}.",
                remedy="Correct it, or rename the attribute if it is not a weight.",
            )
    return np.array([1.0 if value is None else value for value in values], dtype=np.float64)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def import_library(module: str, purpose: str) -> Any:
    """Import an optional library.

    Args:
        module: The module to import; a submodule of the library is fine.
        purpose: The function that needs it, for the error: ``to_xgi``.

    Raises:
        MissingDependencyError: if the library is not installed. A library that is installed but broken raises its
            own error.
    """
    library = module.partition(".")[0]
    try:
        with warnings.catch_warnings():  # HyperNetX 2.4 changes the warning filters of the whole process
            import_module(library)
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise MissingDependencyError(library, purpose, "bridges") from error


def wrong_type(function: str, expected: str, got: object, hint: str = "") -> UsageError:
    """Return the error for an object of a type that a function does not accept."""
    kind = type(got)
    return UsageError(f"'{function}' takes {expected}. Got {kind.__module__}.{kind.__qualname__}.{hint}")
