"""HyperNetX: `hypernetx.Hypergraph` to and from a `NodeDataset`.

In HyperNetX a node or hyperedge exists only if it has incidences: HyperNetX cannot hold isolated nodes and empty
hyperedges, and `to_hypernetx` raises an error for them. Cell weights are weights of memberships. Every node, hyperedge
and cell of HyperNetX has a weight, by default 1, so weights that are all 1 are read as no weights.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.manifest import MANIFEST, WEIGHT, edge_records, manifest_of, node_records
from edhnn.errors import DataError
from edhnn.interop.records import (
    ForeignRecord,
    checked_ids,
    column_request,
    dataset_from_records,
    ignored_note,
    import_library,
    weights_from,
    wrong_type,
)

_MISC = "misc_properties"
_LEVEL = "_level"  # HyperNetX 2.4 adds it to the properties of every item that is accessed, such as H.nodes["milk"]


def from_hypernetx(
    hypergraph: Any,
    *,
    label: str | Sequence[str] | None = None,
    features: str | Sequence[str] = (),
    task: Task | None = None,
    ignore: Collection[str] = (),
) -> NodeDataset:
    """Make a dataset from a HyperNetX hypergraph.

    Nodes and hyperedges are in the order of their property tables; those without properties follow in the order of
    their first incidence. Items of a property table that are in no incidence are not part of the hypergraph, and a note
    in the provenance counts them.

    Args:
        hypergraph: A `hypernetx.Hypergraph`.
        label: The node property that holds the label; several for multi-label. By default as `to_hypernetx` wrote them.
        features: The node properties that are features. By default as `to_hypernetx` wrote them.
        task: The kind of labels; by default inferred from them.
        ignore: Cell properties to leave out; a dataset cannot hold any but the weight.

    Raises:
        UsageError: if ``hypergraph`` is not a `hypernetx.Hypergraph`.
        DataError: if an id is neither text nor integer, a weight is not a number of 0 or more, or cells have
            properties other than the weight.

    Example:
        >>> import hypernetx
        >>> from edhnn.interop import from_hypernetx
        >>> dataset = from_hypernetx(hypernetx.Hypergraph({"monday": ["milk", "bread"], "tuesday": ["milk"]}))
        >>> list(dataset.node_ids), dataset.hypergraph.degree.tolist()
        (['milk', 'bread'], [2, 1])
    """
    hnx = import_library("hypernetx", "from_hypernetx")
    if not isinstance(hypergraph, hnx.Hypergraph):
        raise wrong_type("from_hypernetx", "a hypernetx.Hypergraph", hypergraph)
    cells = hypergraph.dataframe
    _check_cell_properties(cells, ignore)
    nodes, hidden_nodes = _ordered(hypergraph.nodes, hypergraph.edges)
    edges, hidden_edges = _ordered(hypergraph.edges, hypergraph.nodes)
    weights = [] if WEIGHT in ignore else cells[WEIGHT].tolist()
    pairs = list(zip(cells["edges"], cells["nodes"], strict=True))
    weighted = any(weight != 1 for weight in weights)
    remedy = "Rename it first, for example by rebuilding the hypergraph from a renamed dataframe."
    manifest = vars(hypergraph).get(MANIFEST)
    hidden = {"nodes": hidden_nodes, "hyperedges": hidden_edges}
    node_weights = isinstance(manifest, dict) and WEIGHT in manifest.get("node_attributes", ())
    return dataset_from_records(
        "hypernetx",
        column_request(label, features, task),
        node_ids=checked_ids("node", nodes, remedy),
        edge_ids=checked_ids("hyperedge", edges, remedy),
        nodes=_records(hypergraph.nodes, nodes, keep_weights=node_weights),
        edges=_records(hypergraph.edges, edges),
        node_index=cells["nodes"].map({name: index for index, name in enumerate(nodes)}).to_numpy(dtype=np.int64),
        edge_index=cells["edges"].map({name: index for index, name in enumerate(edges)}).to_numpy(dtype=np.int64),
        incidence_weight=weights_from(weights, pairs, "the cell") if weighted else None,
        manifest=manifest,
        name=hypergraph.name,
        notes=(
            *(f"{n} {kind} have properties but no incidence and were left out" for kind, n in hidden.items() if n),
            *ignored_note(ignore),
        ),
    )


def to_hypernetx(dataset: NodeDataset) -> Any:
    """Make a HyperNetX hypergraph from a dataset without isolated nodes and empty hyperedges.

    Node attributes, ``label`` (the original class name) and ``features`` are node properties; hyperedge weights and
    attributes are edge properties; the weights of memberships are cell weights. The Python attribute ``edhnn`` of the
    result lets `from_hypernetx` restore the dataset; HyperNetX's own operations do not copy it.

    Returns:
        A `hypernetx.Hypergraph`.

    Raises:
        DataError: if there are isolated nodes or empty hyperedges, or an attribute has a name with another meaning in
            HyperNetX.

    Example:
        >>> from edhnn import Hypergraph, NodeDataset
        >>> from edhnn.interop import to_hypernetx
        >>> to_hypernetx(NodeDataset(name="pair", hypergraph=Hypergraph.from_hyperedges([[0, 1], [1]]))).shape
        (2, 2)
    """
    hnx = import_library("hypernetx", "to_hypernetx")
    pandas = import_library("pandas", "to_hypernetx")
    hypergraph = dataset.hypergraph
    isolated, empty = int((hypergraph.degree == 0).sum()), int((hypergraph.edge_size == 0).sum())
    if isolated or empty:
        raise DataError(
            f"HyperNetX cannot hold isolated nodes or empty hyperedges. Got {isolated} and {empty} of them.",
            remedy="Remove them from the dataset first, or use XGI or NetworkX, which hold both.",
        )
    nodes, edges = dataset.node_ids.to_list(), dataset.edge_ids.to_list()
    weights = dataset.node_attributes.get(WEIGHT, ())
    if any(isinstance(weight, bool) or not isinstance(weight, int | float) for weight in weights):
        raise DataError(
            "The node attribute 'weight' must be a number at every node, as HyperNetX gives each node a weight.",
            remedy="Rename the attribute first.",
        )
    frame = pandas.DataFrame(
        {
            "edges": pandas.Series(edges, dtype=_kind(edges)).take(hypergraph.edge_index.cpu().numpy()).to_numpy(),
            "nodes": pandas.Series(nodes, dtype=_kind(nodes)).take(hypergraph.node_index.cpu().numpy()).to_numpy(),
        }
    )
    if hypergraph.incidence_weight is not None:
        frame[WEIGHT] = hypergraph.incidence_weight.cpu().numpy()
    network = hnx.Hypergraph(
        frame,
        edge_col="edges",
        node_col="nodes",
        node_properties=dict(zip(nodes, node_records(dataset, (_MISC, _LEVEL)), strict=True)),
        edge_properties=dict(zip(edges, edge_records(dataset, (_MISC, _LEVEL)), strict=True)),
        name=dataset.name,
    )
    setattr(network, MANIFEST, manifest_of(dataset))
    return network


def _kind(names: Sequence[object]) -> str:
    return "int64" if all(isinstance(name, int) and abs(name) < 2**63 for name in names) else "object"


def _check_cell_properties(cells: Any, ignore: Collection[str]) -> None:
    named = [name for name in cells.columns if name not in ("edges", "nodes", WEIGHT, _MISC)]
    further = [name for properties in cells[_MISC] if isinstance(properties, dict) for name in properties]
    ignore = {*ignore, _LEVEL}
    other = next((name for name in (*named, *further) if name not in ignore), None)
    if other is not None:
        raise DataError(
            f"A dataset cannot hold the cell property {other!r}.",
            remedy=f"Leave it out with `ignore=({other!r},)`, or move it to the node or the hyperedge.",
        )


def _ordered(view: Any, other: Any) -> tuple[list[Any], int]:
    """Return a view's items in the order of its property table, and the number of table rows without an incidence."""
    visible, listed = dict.fromkeys(view), list(view.property_store.properties.index)
    first = [name for name in listed if name in visible]
    shared = set(other) if other.property_store is view.property_store else set()
    hidden = sum(name not in visible and name not in shared for name in listed)
    return list(dict.fromkeys([*first, *visible])), hidden


def _records(view: Any, names: Sequence[Any], *, keep_weights: bool = False) -> list[ForeignRecord]:
    pandas = import_library("pandas", "from_hypernetx")
    table = view.property_store.properties
    rows = dict(zip(table.index, table.to_dict("records"), strict=True))
    records = []
    for name in names:
        row = dict(rows.get(name, {WEIGHT: view.default_weight}))
        row.update(row.pop(_MISC, None) or {})
        absent = {key for key, value in row.items() if pandas.api.types.is_scalar(value) and pandas.isna(value)}
        absent.add(_LEVEL)
        records.append({key: value for key, value in row.items() if key not in absent})
    if not keep_weights and all(record.get(WEIGHT, 1) == 1 for record in records):
        for record in records:
            record.pop(WEIGHT, None)
    return records
