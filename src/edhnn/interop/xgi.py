"""XGI: `xgi.Hypergraph` to and from a `NodeDataset`.

XGI holds everything a dataset has: ids, isolated nodes, empty and repeated hyperedges, attributes. Hyperedge weights
are the hyperedge attribute ``weight``, as in XGI itself. XGI knows no weights of memberships: they are kept as the
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
    Found,
    checked_ids,
    dataset_from,
    import_library,
    request,
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
        label: The node attribute that holds the label; several for multi-label. By default what `to_xgi` wrote.
        features: The node attributes that are features. By default what `to_xgi` wrote.
        task: What the labels are; by default inferred from them.

    Returns:
        The dataset.

    Raises:
        UsageError: if ``network`` is directed, or not of XGI at all.
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
    node_ids = checked_ids("node", network.nodes, remedy)
    edge_ids = checked_ids("hyperedge", network.edges, remedy)
    number = {name: place for place, name in enumerate(network.nodes)}
    members = [list(nodes) for nodes in network.edges.members()]
    edges: list[ForeignRecord] = [dict(network.edges[edge]) for edge in network.edges]
    own = dict(vars(network).get("_net_attr", {}))  # XGI reads its attributes by name only, and lists them nowhere
    is_complex = isinstance(network, xgi.SimplicialComplex)
    found = Found(
        library="xgi",
        node_ids=node_ids,
        edge_ids=edge_ids,
        nodes=[dict(network.nodes[node]) for node in network.nodes],
        incidence_weight=_take_incidence_weights(edges, members),
        edges=edges,
        node_index=np.array([number[node] for node in chain.from_iterable(members)], dtype=np.int64),
        edge_index=np.repeat(np.arange(len(members)), [len(nodes) for nodes in members]),
        manifest=own.pop(MANIFEST, None),
        name=own.get("name"),
        notes=("a simplicial complex was read as its simplices, a hyperedge each",) if is_complex else (),
        details={"attributes": own} if own else {},
    )
    return dataset_from(found, request(label, features, task))


def to_xgi(dataset: NodeDataset) -> Any:
    """Make an XGI hypergraph from a dataset; nothing is dropped.

    Node attributes, and beside them ``label`` (the class as its owner wrote it) and ``features``, are node attributes;
    ``weight`` and ``incidence_weight`` are hyperedge attributes; the network attribute ``edhnn`` lets `from_xgi`
    restore the dataset.

    Args:
        dataset: The dataset.

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
    # As a dictionary: given triples, XGI 0.10 heeds the last id only, and may later number a new hyperedge like an old.
    network.add_edges_from(dict(zip(edges, members, strict=True)))
    network.set_edge_attributes(dict(zip(edges, records, strict=True)))
    network["name"] = dataset.name
    network[MANIFEST] = manifest_of(dataset)
    return network


def _take_incidence_weights(edges: list[ForeignRecord], members: list[list[Any]]) -> FloatArray | None:
    """The weights of memberships, taken out of the records; ``None`` if there are none, or the name means another."""
    found = [record.get(_INCIDENCE_WEIGHT) for record in edges]
    if not any(isinstance(weights, Mapping) for weights in found):
        return None
    if any(weights is not None and not isinstance(weights, Mapping) for weights in found):
        return None
    for record in edges:
        record.pop(_INCIDENCE_WEIGHT, None)
    pairs = [(node, (weights or {}).get(node)) for weights, nodes in zip(found, members, strict=True) for node in nodes]
    return weights_from([weight for _, weight in pairs], [node for node, _ in pairs], "the membership of node")
