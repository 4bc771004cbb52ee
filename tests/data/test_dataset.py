"""`NodeDataset`: its checks, its counts, and its two kinds of features."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from edhnn import DataError, Hypergraph, Ids, NodeDataset
from edhnn.data.dataset import features_to_scipy, sparse_features
from edhnn.data.fingerprints import content_digests
from edhnn.doctor.diagnose import examine


def trios():
    return Hypergraph.from_hyperedges([[0, 1, 2], [1, 2]])


def dataset(**parts):
    return NodeDataset(name="trios", hypergraph=trios(), **parts)


NAN = math.nan


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (dict(node_ids=Ids(["a", "b"])), "'node_ids' must hold 3 ids. Got 2"),
        (dict(edge_ids=Ids(["a", "b", "c"])), "'edge_ids' must hold 2 ids. Got 3"),
        (dict(node_ids=Ids(["a", "b", "a"])), "Node ids must be unique. 'a' occurs twice"),
        (dict(node_ids=Ids(np.array([3, 1, 3]))), "Node ids must be unique. 3 occurs twice"),
        (dict(edge_ids=Ids([7, 7])), "Hyperedge ids must be unique. 7 occurs twice"),
        (dict(node_attributes={"size": [1, 2]}), "node attribute 'size' must have 3 entries. Got 2"),
        (dict(edge_attributes={"year": [1]}), "hyperedge attribute 'year' must have 2 entries. Got 1"),
        (dict(x=torch.ones(2, 4)), r"shape \[3, D\].*Got torch.float32 of shape \[2, 4\]"),
        (dict(x=torch.ones(3)), r"shape \[3\]"),
        (dict(x=torch.ones(3, 4, dtype=torch.int64)), "floating point.*Got torch.int64"),
        (dict(x=torch.eye(3).to_sparse_coo()), "dense or sparse CSR. Got layout torch.sparse_coo"),
        (dict(x=torch.ones(3, 2), feature_names=("a",)), "must name 2 columns. Got 1 names"),
        (dict(y=torch.tensor([0, 1, 0])), "must be given together"),
        (dict(task="classification"), "must be given together"),
        (dict(y=torch.tensor([0, 1]), task="classification"), r"row per node, 3. Got shape \[2\]"),
        (dict(y=torch.tensor([0.0, 1.0, 0.0]), task="classification"), "int64 vector. Got torch.float32"),
        (dict(y=torch.tensor([[0], [1], [0]]), task="classification"), "with 2 dimensions"),
        (dict(y=torch.tensor([0, -2, 0]), task="classification"), r"-1 \(unlabelled\) or more. Got -2..0"),
        (dict(y=torch.tensor([0, 2, 0]), task="classification", class_names=("a", "b")), "less than 2.*Got 0..2"),
        (dict(y=torch.tensor([0, 1, 0]), task="regression"), "regression must be floating point"),
        (dict(y=torch.ones(3, 1, 1), task="regression"), "3-d"),
        (dict(y=torch.ones(3, 2), task="multilabel", class_names=("a",)), "must name 2 label columns. Got 1"),
        (dict(y=torch.ones(3, 2), task="regression", class_names=("a", "b", "c")), "name 2 label columns. Got 3"),
        (
            dict(y=torch.zeros(3).long(), task="classification", class_names=("a", "a")),
            "must be unique. 'a' occurs twice",
        ),
        (dict(y=torch.ones(3), task="multilabel"), "multilabel must be floating point, a row per node"),
        (dict(y=torch.tensor([[0.0], [0.5], [1.0]]), task="multilabel"), r"0, 1 or NaN"),
    ],
)
def test_invalid_parts_raise(parts, message):
    with pytest.raises(DataError, match=message):
        dataset(**parts)


@pytest.mark.parametrize(
    ("y", "task", "names", "classes"),
    [
        (None, None, None, None),
        ([0, 2, -1], "classification", None, 3),
        ([0, 2, -1], "classification", ("a", "b", "c", "unused"), 4),
        ([-1, -1, -1], "classification", None, 0),
        ([-1, -1, -1], "classification", (), 0),
        ([[0.0, 1.0], [1.0, 1.0], [NAN, 0.0]], "multilabel", None, 2),
        ([0.5, NAN, 2.0], "regression", None, None),
        ([[0.5, 1.0], [NAN, 2.0], [0.0, 0.0]], "regression", None, None),
    ],
)
def test_classes_are_counted_by_their_names_or_their_numbers(y, task, names, classes):
    labels = None if y is None else torch.tensor(y)
    made = dataset(y=labels, task=task, class_names=names)
    assert made.num_classes == classes
    shown = f"classes={classes}" if classes is not None else f"task={task}"
    assert repr(made) == f"NodeDataset('trios', nodes=3, hyperedges=2, features=0, {shown})"


def test_a_dataset_without_nodes_has_no_classes():
    nothing = Hypergraph.from_hyperedges([], num_nodes=0)
    empty = NodeDataset(name="", hypergraph=nothing, y=torch.zeros(0, dtype=torch.int64), task="classification")
    assert (empty.num_classes, empty.num_features) == (0, 0)


@pytest.mark.usefixtures("without_shape_checks")
def test_ids_of_another_type_raise():
    with pytest.raises(DataError, match=r"'node_ids' must be edhnn.Ids\(\[...\]\). Got a tuple"):
        NodeDataset(name="d", hypergraph=Hypergraph.from_hyperedges([[0, 1]], num_nodes=2), node_ids=("a", "b"))


def test_ids_default_to_the_numbers():
    made = dataset(edge_ids=Ids(["first", "second"]))
    assert made.node_ids.are_numbers
    assert made.node_ids.to_list() == [0, 1, 2]
    assert made.edge_ids.to_list() == ["first", "second"]


def test_a_dataset_is_frozen_and_has_its_own_mutable_defaults():
    made, other = dataset(), dataset()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "else"
    assert made.node_attributes is not other.node_attributes
    assert made.provenance.details is not other.provenance.details


@pytest.mark.parametrize("sparse", [False, True])
def test_to_moves_every_tensor_and_keeps_the_rest(sparse):
    x = sparse_features(sp.csr_array(np.eye(3))) if sparse else torch.eye(3)
    made = dataset(x=x, y=torch.tensor([0, 1, 1]), task="classification", node_attributes={"a": [1, 2, 3]})
    same = made.to("cpu")
    assert same is not made
    assert same.hypergraph.same_as(made.hypergraph)
    assert same.y is not None and same.x is not None
    assert torch.equal(same.y, made.y)
    assert torch.equal(same.x.to_dense(), torch.eye(3))
    assert same.node_attributes == {"a": [1, 2, 3]}


def test_to_another_device_moves_every_tensor():
    away = dataset(x=torch.eye(3), y=torch.ones(3), task="regression").to("meta")
    assert away.x is not None and away.y is not None
    assert {away.hypergraph.device.type, away.x.device.type, away.y.device.type} == {"meta"}


@given(st.integers(0, 5), st.integers(1, 5), st.data())
def test_features_round_trip_through_scipy(rows, columns, data):
    numbers = st.sampled_from([0.0, 0.0, 1.0, -2.5])
    table = data.draw(st.lists(st.lists(numbers, min_size=columns, max_size=columns), min_size=rows, max_size=rows))
    dense = np.array(table, dtype=np.float32).reshape(rows, columns)
    x = sparse_features(sp.coo_array(dense))
    assert (x.layout, x.dtype, tuple(x.shape)) == (torch.sparse_csr, torch.float32, (rows, columns))
    np.testing.assert_array_equal(x.to_dense().numpy(), dense)
    np.testing.assert_array_equal(features_to_scipy(x).toarray(), dense)
    np.testing.assert_array_equal(features_to_scipy(torch.from_numpy(dense)).toarray(), dense)


def test_sparse_features_are_canonical():
    twice = sp.csr_array((np.array([1.0, 5.0, 2.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    x = sparse_features(twice)
    assert x.col_indices().tolist() == [0, 2]
    assert x.values().tolist() == [5.0, 3.0]
    assert sparse_features(sp.eye_array(2), torch.float64).dtype == torch.float64
    assert sparse_features(sp.csr_array(np.array([[1, 2]]))).values().tolist() == [1.0, 2.0]


def test_the_width_of_features():
    assert dataset().num_features == 0
    assert dataset(x=torch.ones(3, 4)).num_features == 4
    assert dataset(x=sparse_features(sp.csr_array((3, 7)))).num_features == 7


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("sparse", [False, True])
def test_16_bit_features_work_like_32_bit_ones(kind, sparse):
    wide = torch.tensor([[0.0, 0.5], [1.5, 0.0], [0.0, 0.0]])
    x = sparse_features(sp.csr_array(wide.numpy()), kind) if sparse else wide.to(kind)
    np.testing.assert_array_equal(features_to_scipy(x).toarray(), wide.numpy())
    narrow = dataset(x=x)
    assert content_digests(narrow) == content_digests(dataset(x=wide))
    assert {finding.code for finding in examine(narrow).findings} >= {"zero-features"}
