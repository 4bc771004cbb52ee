"""Datasets of every kind for the conversions: a strategy draws plain choices, `build` makes the dataset from them."""

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch
from hypothesis import strategies as st

from edhnn import Hypergraph, Ids, NodeDataset, Provenance
from edhnn.data.dataset import sparse_features
from tests.strategies import hyperedge_lists

IDS = ("numbers", "integers", "text", "mixed")
FEATURES = (None, "float32", "float64", "sparse", "named")
LABELS = (None, "numbered", "named", "multilabel", "real", "targets")


def cases(*, ids=IDS, features=FEATURES, labels=LABELS, incidences_only=False):
    shape = hyperedge_lists(max_nodes=6, max_edges=6)
    return st.fixed_dictionaries(
        {
            "shape": shape.map(_without_isolated_nodes_and_empty_hyperedges) if incidences_only else shape,
            "ids": st.sampled_from(ids),
            "features": st.sampled_from(features),
            "labels": st.sampled_from(labels),
            "edge_weight": st.booleans(),
            "incidence_weight": st.booleans(),
            "attributes": st.booleans(),
            "seed": st.integers(0, 3),
        }
    )


def build(case) -> NodeDataset:
    (num_nodes, hyperedges), random = case["shape"], np.random.default_rng(case["seed"])
    plain = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    num_edges = plain.num_edges
    hypergraph = Hypergraph(
        plain.node_index,
        plain.edge_index,
        num_nodes,
        num_edges,
        torch.from_numpy(random.random(num_edges)) if case["edge_weight"] else None,
        torch.from_numpy(random.random(plain.num_incidences)) if case["incidence_weight"] else None,
    )
    attributes = {
        "colour": [None if node % 3 == 0 else f"c{node}" for node in range(num_nodes)],
        "train_mask": [node % 2 == 0 for node in range(num_nodes)],
        "all_missing": [None] * num_nodes,
        "size": [node / 3 for node in range(num_nodes)],
    }
    return NodeDataset(
        name="drawn",
        hypergraph=hypergraph,
        node_ids=_ids(case["ids"], num_nodes, "n"),
        edge_ids=_ids(case["ids"], num_edges, "e"),
        node_attributes=attributes if case["attributes"] else {},
        edge_attributes={"year": [2000 + edge for edge in range(num_edges)]} if case["attributes"] else {},
        provenance=Provenance("a file", "csv", ("a note",), {"sha256": "0f"}),
        **_features(case["features"], num_nodes, random),
        **_labels(case["labels"], num_nodes, random),
    )


def assert_same(one: NodeDataset, other: NodeDataset) -> None:
    assert one.hypergraph.same_as(other.hypergraph)
    assert one.node_ids == other.node_ids
    assert one.edge_ids == other.edge_ids
    assert (one.task, one.class_names, one.feature_names) == (other.task, other.class_names, other.feature_names)
    assert_same_tensor(one.x, other.x)
    assert_same_tensor(one.y, other.y)
    for attributes in ("node_attributes", "edge_attributes"):
        assert dict(getattr(one, attributes)) == dict(getattr(other, attributes))


def assert_same_tensor(one, other) -> None:
    if one is None or other is None:
        assert one is other
        return
    assert (one.dtype, one.layout, one.shape) == (other.dtype, other.layout, other.shape)
    if one.layout == torch.sparse_csr:
        for part in ("crow_indices", "col_indices", "values"):
            assert torch.equal(getattr(one, part)(), getattr(other, part)())
    else:
        assert torch.equal(one.nan_to_num(nan=-7.0), other.nan_to_num(nan=-7.0))


def without_empty_weights(dataset: NodeDataset) -> NodeDataset:
    """Replace weights of length 0 by None: records cannot distinguish the two."""
    hypergraph = dataset.hypergraph
    weights = (w if w is not None and len(w) else None for w in (hypergraph.edge_weight, hypergraph.incidence_weight))
    counts = (hypergraph.num_nodes, hypergraph.num_edges)
    return replace(dataset, hypergraph=Hypergraph(hypergraph.node_index, hypergraph.edge_index, *counts, *weights))


def _without_isolated_nodes_and_empty_hyperedges(shape):
    """Keep only nodes and hyperedges that are in an incidence, with new numbers."""
    hyperedges = [hyperedge for hyperedge in shape[1] if hyperedge]
    number = {node: index for index, node in enumerate(sorted({v for hyperedge in hyperedges for v in hyperedge}))}
    return len(number), [[number[v] for v in hyperedge] for hyperedge in hyperedges]


def _ids(kind: str, count: int, letter: str) -> Ids:
    if kind == "numbers":
        return Ids(range(count))
    if kind == "integers":
        return Ids(np.arange(count)[::-1] * 7 - 3)
    return Ids([number if kind == "mixed" and number % 2 else f"{letter}{count - number}" for number in range(count)])


def _features(kind, count, random):
    if kind is None:
        return {}
    dense = random.random((count, 3))
    if kind == "sparse":
        return {"x": sparse_features(sp.csr_array(np.where(dense > 0.5, dense, 0)), torch.float64)}
    names = {"feature_names": ("a", "b", "c")} if kind == "named" else {}
    return {"x": torch.from_numpy(dense).to(torch.float64 if kind == "float64" else torch.float32), **names}


def _labels(kind, count, random):
    if kind is None:
        return {}
    if kind in ("numbered", "named"):
        names = {"class_names": ("tall", "small", "unseen", 4)[:3]} if kind == "named" else {}
        return {"y": torch.from_numpy(random.integers(-1, 2, count)), "task": "classification", **names}
    if kind == "real":
        y = torch.from_numpy(random.random(count))
        y[::3] = math.nan
        return {"y": y, "task": "regression"}
    y = torch.from_numpy(random.integers(0, 2, (count, 2)).astype(np.float32))
    y[::3, 1] = math.nan
    return {"y": y, "task": "multilabel" if kind == "multilabel" else "regression"}
