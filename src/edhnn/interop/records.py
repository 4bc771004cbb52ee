"""Records (see `edhnn.data.manifest`) back to a `NodeDataset`.

An object with our manifest is restored to what was written. One from elsewhere gets the labels and features that are
asked for by name; every other attribute stays an attribute, and nothing is guessed.

Optional libraries are imported when a bridge is crossed, not before.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, final

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
        manifest: The value of the attribute ``edhnn``, if there is one.
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
    manifest: object = None
    name: object = None
    notes: tuple[str, ...] = ()
    details: JsonObject = field(default_factory=dict)


def request(label: str | Sequence[str] | None, features: str | Sequence[str], task: Task | None) -> ColumnRequest:
    """Return what the caller of a bridge asked for; nothing is guessed."""
    return ColumnRequest(label=() if label is None else names_in(label), features=names_in(features), task=task)


def dataset_from(found: Found, asked: ColumnRequest) -> NodeDataset:
    """Make the dataset that a foreign object holds.

    Args:
        found: What is there.
        asked: Which attributes are labels and features. A manifest decides if nothing is asked.

    Returns:
        The dataset.
    """
    manifest = read_manifest(found.manifest, found.library)
    edge_columns = columns_of(found.edges, "hyperedge", manifest.edge_attributes if manifest else ())
    weight = edge_columns.pop(WEIGHT, None)
    hypergraph = Hypergraph(
        torch.from_numpy(found.node_index),
        torch.from_numpy(found.edge_index),
        len(found.node_ids),
        len(found.edge_ids),
        edge_weight=None if weight is None else torch.from_numpy(weights_from(weight, found.edge_ids)),
        incidence_weight=None if found.incidence_weight is None else torch.from_numpy(found.incidence_weight),
    )
    columns = columns_of(found.nodes, "node", manifest.node_attributes if manifest else ())
    if manifest is not None and asked == request(None, (), None):
        nodes = restore_columns(columns, manifest, found.node_ids)
    else:
        nodes = sort_columns(
            columns, asked, hypergraph.num_nodes, lambda place: f"node {found.node_ids[place]!r} of the {found.library}"
        )
    return NodeDataset(
        name=manifest.name if manifest else found.name if isinstance(found.name, str) and found.name else found.library,
        hypergraph=hypergraph,
        x=nodes.x,
        **label_fields(nodes.labels),
        feature_names=nodes.feature_names,
        node_ids=found.node_ids,
        edge_ids=found.edge_ids,
        node_attributes=nodes.attributes,
        edge_attributes=edge_columns,
        provenance=provenance(
            found.library, hypergraph, (*found.notes, *nodes.notes), {**found.details, **nodes.details}, manifest
        ),
    )


def provenance(
    library: str, hypergraph: Hypergraph, notes: Iterable[str], details: JsonObject, manifest: Manifest | None
) -> Provenance:
    """Say where a dataset came from; what was known before the foreign library held it is kept as ``origin``."""
    lines = (*notes, *merged_note(hypergraph))
    return Provenance(library, library, lines, {**details, **({"origin": manifest.provenance} if manifest else {})})


def ignored_note(ignore: Collection[str]) -> tuple[str, ...]:
    """Return the note about attributes of memberships that the caller chose to leave out."""
    return (f"attributes of memberships left out as asked: {', '.join(ignore)}",) if ignore else ()


def checked_ids(kind: str, found: Iterable[object], remedy: str) -> Ids:
    """Return foreign ids as `Ids`: text and integers only."""
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
    """Return records as columns, ``None`` where one lacks the name; ``names`` come first, even if nobody has them."""
    found: dict[Any, None] = dict.fromkeys([*names, *(name for record in records for name in record)])
    wrong = next((name for name in found if not isinstance(name, str)), None)
    if wrong is not None:
        raise DataError(f"Names of {kind} attributes must be text. Got {wrong!r}.", remedy="Rename the attribute.")
    return {name: [_plain(record.get(name)) for record in records] for name in found}


def weights_from(values: Sequence[Any], ids: Sequence[object], kind: str = "hyperedge") -> FloatArray:
    """Return weights as numbers, 1 where there is none."""
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


def import_library(module: str, purpose: str) -> Any:
    """Import an optional library.

    Args:
        module: What to import; a submodule of the library is fine.
        purpose: Who asks, for the error: ``to_xgi``.

    Returns:
        The module.

    Raises:
        MissingDependencyError: if the library is not installed. A library that is installed but broken raises its
            own error.
    """
    library = module.partition(".")[0]
    try:
        with warnings.catch_warnings():  # HyperNetX 2.4 changes the filters of the whole process
            import_module(library)
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise MissingDependencyError(library, purpose, "bridges") from error


def wrong_type(function: str, wanted: str, got: object, hint: str = "") -> UsageError:
    """Make the error for an object that a bridge does not take."""
    kind = type(got)
    return UsageError(f"'{function}' takes {wanted}. Got {kind.__module__}.{kind.__qualname__}.{hint}")
