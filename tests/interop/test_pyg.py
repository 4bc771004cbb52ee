import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.nn import HypergraphConv

from edhnn import DataError, Hypergraph, NodeDataset, UsageError
from edhnn.interop.pyg import from_pyg, to_pyg
from tests.interop.cases import assert_same, assert_same_tensor, build, cases

INDEX = torch.tensor([[0, 1, 2, 1], [0, 0, 1, 1]])


@given(cases())
def test_datasets_round_trip(case):
    dataset = build(case)
    data = to_pyg(dataset)
    assert data.validate()
    assert data.num_nodes == dataset.hypergraph.num_nodes
    back = from_pyg(data)
    assert_same(back, dataset)
    assert back.name == "drawn"
    assert back.provenance.details["origin"]["source"] == "a file"


@given(cases(features=("float64",), labels=(None,)))
@settings(max_examples=40)
def test_hypergraph_convolution_equals_its_formula(case):
    dataset = build(case)
    data, hypergraph = to_pyg(dataset), dataset.hypergraph
    layer = HypergraphConv(3, 2).double()
    out = layer(data.x, data.hyperedge_index, data.get("hyperedge_weight"), num_edges=data.num_hyperedges)
    h = torch.zeros(hypergraph.num_nodes, hypergraph.num_edges, dtype=torch.float64)
    h[hypergraph.node_index, hypergraph.edge_index] = 1.0
    w = torch.ones(hypergraph.num_edges).double() if hypergraph.edge_weight is None else hypergraph.edge_weight
    d, b = (h @ w).pow(-1).nan_to_num(posinf=0.0), h.sum(0).pow(-1).nan_to_num(posinf=0.0)
    dense = d[:, None] * (h @ (b[:, None] * (h.T @ layer.lin(data.x)))) + layer.bias
    torch.testing.assert_close(out, dense)


def test_counts_round_trip_although_hypergraphdata_loses_them():
    hypergraph = Hypergraph.from_hyperedges([[0, 1], []], num_nodes=4)
    back = from_pyg(to_pyg(NodeDataset(name="n", hypergraph=hypergraph))).hypergraph
    assert (back.num_nodes, back.num_edges) == (4, 2)
    lossy = HyperGraphData(edge_index=torch.stack([hypergraph.node_index, hypergraph.edge_index]), num_nodes=4)
    assert int(lossy.num_edges) == 1


def test_reading_hypergraphdata():
    data = HyperGraphData(edge_index=INDEX, edge_attr=torch.eye(2), x=torch.ones(5, 1), y=torch.tensor([0, 1, 1, 0, 0]))
    dataset = from_pyg(data)
    assert (dataset.hypergraph.num_nodes, dataset.hypergraph.num_edges) == (5, 2)
    assert dataset.edge_attributes == {"attr": [[1.0, 0.0], [0.0, 1.0]]}
    assert dataset.task == "classification"
    assert dataset.provenance.notes == ()


def test_data_with_masks_and_other_entries():
    mask = torch.tensor([True, False, False, True])
    data = Data(
        hyperedge_index=INDEX,
        hyperedge_weight=torch.tensor([1, 2, 3]),
        train_mask=mask,
        train_idx=torch.tensor([0, 3]),
        source="here",
    )
    dataset = from_pyg(data)
    assert (dataset.hypergraph.num_nodes, dataset.hypergraph.num_edges) == (4, 3)
    assert dataset.hypergraph.edge_weight.tolist() == [1.0, 2.0, 3.0]
    assert dataset.node_attributes == {"train_mask": mask.tolist()}
    assert dataset.provenance.details == {"attributes": {"train_idx": [0, 3], "source": "here"}}
    assert_same_tensor(to_pyg(dataset).train_mask, mask)


def test_reading_the_edge_index_of_a_plain_data_is_noted():
    dataset = from_pyg(Data(edge_index=INDEX, edge_weight=torch.tensor([0.5, 2.0]), num_edges=2))
    assert dataset.hypergraph.edge_weight.tolist() == [0.5, 2.0]
    assert "'edge_index' was read" in dataset.provenance.notes[0]


@pytest.mark.parametrize(
    ("stored", "nodes", "edges"),
    [
        ({}, 3, 2),
        ({"num_nodes": 7, "num_hyperedges": 9}, 7, 9),
        ({"num_edges": 4}, 3, 4),
        ({"x": torch.ones(6, 1)}, 6, 2),
        ({"y": torch.ones(5)}, 5, 2),
        ({"node_id": ["a", "b", "c", "d"], "hyperedge_id": torch.tensor([4, 8, 6])}, 4, 3),
        ({"hyperedge_attr": torch.ones(4, 2)}, 3, 4),
    ],
)
def test_counts(stored, nodes, edges):
    hypergraph = from_pyg(Data(hyperedge_index=INDEX, **stored)).hypergraph
    assert (hypergraph.num_nodes, hypergraph.num_edges) == (nodes, edges)


@pytest.mark.parametrize(
    ("y", "task", "shape"),
    [
        (torch.tensor([0, 1, -1]), "classification", (3,)),
        (torch.tensor([[0], [1], [1]], dtype=torch.int32), "classification", (3,)),
        (torch.tensor([True, False, True]), "classification", (3,)),
        (torch.tensor([[0, 1], [1, 1], [0, 0]]), "multilabel", (3, 2)),
        (torch.tensor([[0.0, float("nan")], [1.0, 1.0], [0.0, 0.0]]), "multilabel", (3, 2)),
        (torch.tensor([0.0, 1.0, 0.5]), "regression", (3,)),
        (torch.tensor([[0.0, 3.0], [1.0, 1.0], [0.0, 0.0]]), "regression", (3, 2)),
    ],
)
def test_the_type_of_labels_decides_the_task(y, task, shape):
    dataset = from_pyg(Data(hyperedge_index=INDEX, y=y))
    assert (dataset.task, dataset.y.shape) == (task, shape)


def test_attributes_that_a_tensor_would_change_stay_lists():
    columns = {
        "big": [2**70, 1],
        "ragged": [[1], [1, 2]],
        "text": ["a", "b"],
        "gap": [1, None],
        "real": [0.1, float("inf")],
        "mixed": [[1, 2.5], [True, 3]],
        "truth": [[1, True], [0, 2]],
        "pairs": [(1.5, 2.5), (3.5, 4.5)],
    }
    dataset = NodeDataset(name="n", hypergraph=Hypergraph.from_hyperedges([[0, 1]]), node_attributes=columns)
    data = to_pyg(dataset)
    assert isinstance(data.real, torch.Tensor)
    assert not any(
        isinstance(data[name], torch.Tensor) for name in ("big", "ragged", "text", "gap", "mixed", "truth", "pairs")
    )
    assert repr(from_pyg(data).node_attributes) == repr(columns)


def test_sparse_coo_features_become_csr():
    data = Data(hyperedge_index=INDEX, x=torch.eye(3).to_sparse_coo())
    assert from_pyg(data).x.layout == torch.sparse_csr


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"num_nodes": 3}, r"must have a tensor 'hyperedge_index' or 'edge_index'"),
        ({"hyperedge_index": INDEX, "edge_index": INDEX}, r"one hypergraph.*Remove one of them"),
        ({"hyperedge_index": INDEX.float()}, r"integers of shape \[2, I\]"),
        ({"hyperedge_index": INDEX[0]}, r"integers of shape \[2, I\]"),
        ({"hyperedge_index": INDEX, "num_nodes": 2}, r"node number must lie in 0\.\.1"),
        ({"hyperedge_index": INDEX, "x": torch.ones(3, 1).long()}, r"floating-point.*data\.x\.float\(\)"),
        ({"hyperedge_index": INDEX, "x": "words"}, r"floating-point tensor. Got str"),
        ({"hyperedge_index": INDEX, "y": torch.ones(1)}, r"'y' must have a row per node, 3. Got \[1\]"),
        ({"hyperedge_index": INDEX, "y": torch.tensor([[2, 3]] * 3)}, r"must hold 0 and 1 only"),
        (
            {"hyperedge_index": INDEX, "hyperedge_type": torch.ones(4)},
            r"'hyperedge_type' must have an entry per hyperedge, 2",
        ),
        ({"hyperedge_index": INDEX, "hyperedge_kind": "odd"}, r"entry per hyperedge, 2. Got str"),
        ({"hyperedge_index": INDEX, "node_id": ["a"], "num_nodes": 3}, r"'node_id' must be a list or vector of 3 ids"),
        ({"hyperedge_index": INDEX, "node_id": [0.5, 1.5, 2.5]}, r"node id must be text or an integer. Got 0\.5"),
    ],
)
def test_invalid_entries_raise(entries, message):
    with pytest.raises(DataError, match=message):
        from_pyg(Data.from_dict(entries))


def test_other_objects_raise():
    with pytest.raises(UsageError, match=r"takes a torch_geometric\.data\.Data"):
        from_pyg(HeteroData())


@pytest.mark.parametrize("name", ["y", "node_id", "edge_attr", "hyperedge_attr", "edhnn", "_private"])
def test_reserved_node_attribute_names_raise(name):
    dataset = NodeDataset(name="n", hypergraph=Hypergraph.from_hyperedges([[0]]), node_attributes={name: [1]})
    with pytest.raises(DataError, match=rf"No node attribute may be called '{name}'.*Rename"):
        to_pyg(dataset)


@pytest.mark.parametrize("name", ["index", "weight", "id"])
def test_reserved_hyperedge_attribute_names_raise(name):
    dataset = NodeDataset(name="n", hypergraph=Hypergraph.from_hyperedges([[0]]), edge_attributes={name: [1]})
    with pytest.raises(DataError, match=rf"No hyperedge attribute may be called '{name}'.*Rename"):
        to_pyg(dataset)


def test_duplicate_ids_raise():
    data = Data(hyperedge_index=torch.tensor([[0, 1], [0, 0]]), num_nodes=2, node_id=["a", "a"], y=torch.tensor([0, 1]))
    with pytest.raises(DataError, match="Node ids must be unique. 'a' occurs twice. Rename one"):
        from_pyg(data)
