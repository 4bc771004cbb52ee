"""NetworkX: the bipartite (star) graph of a hypergraph, to and from a `NodeDataset`.

NetworkX marks the sides with the node attribute ``bipartite``: here 0 is a node and 1 a hyperedge. A graph has one set
of keys, but a node and a hyperedge may share an id, so `to_networkx` makes the keys ``("node", id)`` and
``("hyperedge", id)`` and stores the plain id as the attribute ``id``. The weight of a membership is the graph edge's
``weight``. The star graph can hold all of a dataset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.manifest import MANIFEST, WEIGHT, edge_records, manifest_of, node_records
from edhnn.errors import DataError, UsageError
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

_SIDES = ("node", "hyperedge")
_SIDE, _ID = "bipartite", "id"


def from_networkx(
    graph: Any,
    *,
    nodes: Iterable[Any] | None = None,
    label: str | Sequence[str] | None = None,
    features: str | Sequence[str] = (),
    task: Task | None = None,
    ignore: Collection[str] = (),
) -> NodeDataset:
    """Make a dataset from a bipartite graph: one side is the nodes, the other the hyperedges.

    Keys like those of `to_networkx` become plain ids again; other keys are ids themselves. Graph edges are memberships,
    and their attribute ``weight`` is the membership's weight, 1 where only some have one. Parallel edges of a
    multigraph are one membership, with the largest weight.

    Args:
        graph: An undirected `networkx.Graph` or `MultiGraph`.
        nodes: The keys that are nodes; the others are hyperedges. By default the attribute ``bipartite`` decides.
        label: The node attribute that holds the label; several for multi-label. By default as `to_networkx` wrote them.
        features: The node attributes that are features. By default as `to_networkx` wrote them.
        task: The kind of labels; by default inferred from them.
        ignore: Attributes of graph edges to leave out; a dataset cannot hold any but ``weight``.

    Raises:
        UsageError: if ``graph`` is directed or not a `networkx.Graph`, or ``nodes`` has a key that is not in it.
        DataError: if a key has no side, a graph edge joins two keys of one side, an id is neither text nor integer, or
            graph edges have attributes other than ``weight``.

    Example:
        >>> import networkx
        >>> from edhnn.interop import from_networkx
        >>> women = from_networkx(networkx.davis_southern_women_graph())
        >>> women.hypergraph.num_nodes, women.hypergraph.num_edges, women.edge_ids[0]
        (18, 14, 'E1')
    """
    networkx = import_library("networkx", "from_networkx")
    if not isinstance(graph, networkx.Graph):
        raise wrong_type("from_networkx", "an undirected networkx.Graph", graph)
    if graph.is_directed():
        hint = " A NodeDataset has no directions: drop them with graph.to_undirected()."
        raise wrong_type("from_networkx", "an undirected networkx.Graph", graph, hint)
    side = _sides(graph, nodes)
    keys = tuple([key for key in graph if side[key] == number] for number in (0, 1))
    number = {key: index for side_keys in keys for index, key in enumerate(side_keys)}
    pairs, weights = [], []
    for a, b, attributes in graph.edges(data=True):
        if side[a] == side[b]:
            raise DataError(
                f"Every graph edge must join a node and a hyperedge. {a!r} and {b!r} are both {_SIDES[side[a]]}s.",
                remedy="Remove it, or correct the attribute 'bipartite'.",
            )
        other = next((name for name in attributes if name != WEIGHT and name not in ignore), None)
        if other is not None:
            raise DataError(
                f"A dataset cannot hold the attribute {other!r} of the graph edge ({a!r}, {b!r}).",
                remedy=f"Leave it out with `ignore=({other!r},)`, or move it to the node or the hyperedge.",
            )
        pairs.append((a, b) if side[a] == 0 else (b, a))
        weights.append(attributes.get(WEIGHT) if WEIGHT not in ignore else None)
    remedy = "Rename it first, for example with networkx.relabel_nodes."
    weighted = any(weight is not None for weight in weights)
    attributes_of_graph = dict(graph.graph)
    return dataset_from_records(
        "networkx",
        column_request(label, features, task),
        node_ids=checked_ids("node", (_plain_id(key, 0) for key in keys[0]), remedy),
        edge_ids=checked_ids("hyperedge", (_plain_id(key, 1) for key in keys[1]), remedy),
        nodes=[_attributes(graph, key, 0) for key in keys[0]],
        edges=[_attributes(graph, key, 1) for key in keys[1]],
        node_index=np.array([number[node] for node, _ in pairs], dtype=np.int64),
        edge_index=np.array([number[edge] for _, edge in pairs], dtype=np.int64),
        incidence_weight=weights_from(weights, pairs, "the graph edge") if weighted else None,
        manifest=attributes_of_graph.pop(MANIFEST, None),
        name=attributes_of_graph.get("name"),
        notes=ignored_note(ignore),
        attributes=attributes_of_graph,
    )


def to_networkx(dataset: NodeDataset) -> Any:
    """Make the bipartite (star) graph of a dataset; nothing is dropped.

    Keys are ``("node", id)`` and ``("hyperedge", id)``; each also has ``bipartite`` (0 or 1) and ``id``. Nodes have
    their attributes, ``label`` and ``features``, hyperedges their attributes and ``weight``; the graph attribute
    ``edhnn`` lets `from_networkx` restore the dataset.

    Returns:
        A `networkx.Graph`.

    Raises:
        DataError: if an attribute has one of the names above.

    Example:
        >>> from edhnn import Hypergraph, NodeDataset
        >>> from edhnn.interop import to_networkx
        >>> graph = to_networkx(NodeDataset(name="pair", hypergraph=Hypergraph.from_hyperedges([[0, 1]])))
        >>> sorted(graph["hyperedge", 0])
        [('node', 0), ('node', 1)]
    """
    networkx = import_library("networkx", "to_networkx")
    hypergraph, weight = dataset.hypergraph, dataset.hypergraph.incidence_weight
    nodes, edges = (
        [(kind, name) for name in ids.to_list()]
        for kind, ids in zip(_SIDES, (dataset.node_ids, dataset.edge_ids), strict=True)
    )
    graph = networkx.Graph(name=dataset.name, **{MANIFEST: manifest_of(dataset)})
    records = (node_records(dataset, (_SIDE, _ID)), edge_records(dataset, (_SIDE, _ID)))
    for side, (keys, side_records) in enumerate(zip((nodes, edges), records, strict=True)):
        for key, record in zip(keys, side_records, strict=True):
            graph.add_node(key)  # attributes follow as a dictionary, because add_node reserves some keywords
            graph.nodes[key].update({_SIDE: side, _ID: key[1], **record})
    node_keys = (nodes[node] for node in hypergraph.node_index.tolist())
    edge_keys = (edges[edge] for edge in hypergraph.edge_index.tolist())
    if weight is None:
        graph.add_edges_from(zip(node_keys, edge_keys, strict=True))
    else:
        graph.add_weighted_edges_from(zip(node_keys, edge_keys, weight.tolist(), strict=True))
    return graph


def _sides(graph: Any, nodes: Iterable[Any] | None) -> dict[Any, int]:
    if nodes is not None:
        chosen = set(nodes)
        unknown = next((key for key in chosen if key not in graph), None)
        if unknown is not None:
            raise UsageError(f"`nodes=` must name keys of the graph. Got {unknown!r}, which is not in it.")
        return {key: 0 if key in chosen else 1 for key in graph}
    side = dict(graph.nodes(data=_SIDE))
    wrong = next((key for key, value in side.items() if isinstance(value, bool) or value not in (0, 1)), None)
    if wrong is not None:
        raise DataError(
            f"Every key must have the attribute 'bipartite', 0 for a node and 1 for a hyperedge. "
            f"Got {side[wrong]!r} at {wrong!r}.",
            remedy="Set it, or name the keys that are nodes with `nodes=`.",
        )
    return side


def _plain_id(key: Any, side: int) -> Any:
    return key[1] if isinstance(key, tuple) and len(key) == 2 and key[0] == _SIDES[side] else key


def _attributes(graph: Any, key: Any, side: int) -> ForeignRecord:
    record = {name: value for name, value in graph.nodes[key].items() if name != _SIDE}
    name = _plain_id(key, side)
    if name is not key and record.get(_ID) == name:
        del record[_ID]
    return record
