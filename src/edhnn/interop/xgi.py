"""XGI: `xgi.Hypergraph` to and from a `NodeDataset`.

XGI can hold all of a dataset: ids, isolated nodes, empty and duplicate hyperedges, attributes. Hyperedge weights are
the hyperedge attribute ``weight``, as in XGI itself. XGI has no weights of memberships. They are stored as the
hyperedge attribute ``incidence_weight``, a dictionary from node id to weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.manifest import MANIFEST, edge_records, manifest_of, node_records
from edhnn.interop.records import (
    ForeignRecord,
    checked_ids,
    column_request,
    dataset_from_records,
    import_library,
    weights_from,
    wrong_type,
)
from edhnn.typing import FloatArray

_INCIDENCE_WEIGHT = "incidence_weight"


def from_xgi(
    network: Any,
    *,
    label: str | Sequence[str] | None = None,
    features: str | Sequence[str] = (),
    task: Task | None = None,
) -> NodeDataset:
    """Make a dataset from an XGI hypergraph.

    Nodes and hyperedges keep their ids, their order and their attributes. The hyperedge attribute ``weight`` is the
    weight, 1 where it is absent. A simplicial complex is read as its simplices, a hyperedge each.

    Args:
        network: An `xgi.Hypergraph` or `xgi.SimplicialComplex`.
        label: The node attribute that holds the label; several for multi-label. By default as `to_xgi` wrote them.
        features: The node attributes that are features. By default as `to_xgi` wrote them.
        task: The kind of labels; by default inferred from them.

    Raises:
        UsageError: if ``network`` is directed or not an `xgi.Hypergraph`.
        DataError: if an id is neither text nor integer, or a weight is not a number of 0 or more.

    Example:
        >>> import xgi
        >>> from edhnn.interop import from_xgi
        >>> baskets = xgi.Hypergraph({"monday": ["milk", "bread"], "tuesday": ["milk"]})
        >>> dataset = from_xgi(baskets)
        >>> list(dataset.edge_ids), dataset.hypergraph.edge_size.tolist()
        (['monday', 'tuesday'], [2, 1])
    """
    xgi = import_library("xgi", "from_xgi")
    if isinstance(network, xgi.DiHypergraph):
        hint = " A NodeDataset has no directions: convert it first with xgi.to_hypergraph."
        raise wrong_type("from_xgi", "an undirected xgi.Hypergraph", network, hint)
    if not isinstance(network, xgi.Hypergraph):
        raise wrong_type("from_xgi", "an xgi.Hypergraph", network)
    remedy = "Rename it first: xgi.convert_labels_to_integers(H) keeps the old name as an attribute."
    number = {name: index for index, name in enumerate(network.nodes)}
    members = [list(nodes) for nodes in network.edges.members()]
    edges: list[ForeignRecord] = [dict(network.edges[edge]) for edge in network.edges]
    attributes = dict(vars(network).get("_net_attr", {}))  # XGI has no function that lists them
    is_complex = isinstance(network, xgi.SimplicialComplex)
    return dataset_from_records(
        "xgi",
        column_request(label, features, task),
        node_ids=checked_ids("node", network.nodes, remedy),
        edge_ids=checked_ids("hyperedge", network.edges, remedy),
        nodes=[dict(network.nodes[node]) for node in network.nodes],
        incidence_weight=_take_incidence_weights(edges, members),
        edges=edges,
        node_index=np.array([number[node] for node in chain.from_iterable(members)], dtype=np.int64),
        edge_index=np.repeat(np.arange(len(members)), [len(nodes) for nodes in members]),
        manifest=attributes.pop(MANIFEST, None),
        name=attributes.get("name"),
        notes=("a simplicial complex was read as its simplices, a hyperedge each",) if is_complex else (),
        attributes=attributes,
    )


def to_xgi(dataset: NodeDataset) -> Any:
    """Make an XGI hypergraph from a dataset; nothing is dropped.

    Node attributes, ``label`` (the original class name) and ``features`` are node attributes; ``weight`` and
    ``incidence_weight`` are hyperedge attributes; the network attribute ``edhnn`` lets `from_xgi` restore the dataset.

    Returns:
        An `xgi.Hypergraph`.

    Raises:
        DataError: if an attribute has one of the names above.

    Example:
        >>> from edhnn import Hypergraph, NodeDataset
        >>> from edhnn.interop import to_xgi
        >>> network = to_xgi(NodeDataset(name="pair", hypergraph=Hypergraph.from_hyperedges([[0, 1]], num_nodes=3)))
        >>> network.num_nodes, network.nodes.degree.asdict()
        (3, {0: 1, 1: 1, 2: 0})
    """
    xgi = import_library("xgi", "to_xgi")
    nodes, edges = dataset.node_ids.to_list(), dataset.edge_ids.to_list()
    hypergraph, weight = dataset.hypergraph, dataset.hypergraph.incidence_weight
    members = [[nodes[node] for node in hyperedge] for hyperedge in hypergraph.hyperedges()]
    records = edge_records(dataset, reserved=(_INCIDENCE_WEIGHT,))
    if weight is not None:
        weights = weight.tolist()
        for record, names, (start, stop) in zip(records, members, pairwise(hypergraph.edge_ptr.tolist()), strict=True):
            record[_INCIDENCE_WEIGHT] = dict(zip(names, weights[start:stop], strict=True))
    network = xgi.Hypergraph()
    network.add_nodes_from(zip(nodes, node_records(dataset), strict=True))
    # Pass a dictionary: from triples, XGI 0.10 uses only the last id to choose the id of the next hyperedge, which can
    # then overwrite an old one.
    network.add_edges_from(dict(zip(edges, members, strict=True)))
    network.set_edge_attributes(dict(zip(edges, records, strict=True)))
    network["name"] = dataset.name
    network[MANIFEST] = manifest_of(dataset)
    return network


def _take_incidence_weights(edges: list[ForeignRecord], members: list[list[Any]]) -> FloatArray | None:
    """Remove the weights of memberships from the records and return them; ``None`` unless all are dictionaries."""
    by_edge = [record.get(_INCIDENCE_WEIGHT) for record in edges]
    if {isinstance(weights, Mapping) for weights in by_edge if weights is not None} != {True}:
        return None
    for record in edges:
        record.pop(_INCIDENCE_WEIGHT, None)
    weights = [(weights or {}).get(node) for weights, nodes in zip(by_edge, members, strict=True) for node in nodes]
    return weights_from(weights, list(chain.from_iterable(members)), "the membership of node")
