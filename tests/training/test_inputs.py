"""Inputs of a model: the range of the training features, and features that are far outside it."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from edhnn import DataError, Hypergraph, NodeDataset, TrainConfig
from edhnn.data.dataset import sparse_features
from edhnn.data.ids import Ids
from edhnn.training import inputs
from edhnn.training.inputs import FeatureRange, make_inputs, measure_range

TABLE = np.array([[0.0, 1.0, 5.0], [0.0, -1.0, 5.0], [2.0, 0.0, 5.0], [1.0, 0.5, 5.0]])


def dataset_of(table, *, sparse=False):
    x = sparse_features(sp.csr_array(table)) if sparse else torch.tensor(table, dtype=torch.float32)
    return NodeDataset(
        name="new",
        hypergraph=Hypergraph.from_hyperedges([[0, 1]], num_nodes=len(table)),
        x=x,
        feature_names=tuple("abc"[: table.shape[1]]),
        node_ids=Ids([f"n{row}" for row in range(len(table))]),
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_the_range_of_each_column_is_measured(sparse):
    usual = measure_range(dataset_of(TABLE, sparse=sparse).x)
    assert usual == FeatureRange((0.0, -1.0, 5.0), (2.0, 1.0, 5.0))


def test_the_range_of_a_bag_of_words_is_two_numbers():
    assert measure_range(dataset_of(np.eye(3), sparse=True).x) == FeatureRange((0.0,), (1.0,))
    assert FeatureRange((0.0,), (1.0,)).note(dataset_of(np.eye(3), sparse=True)) is None
    assert "in 1 of 3 columns" in FeatureRange((0.0,), (1.0,)).note(dataset_of(5 * np.eye(3)[:, :1] @ [[1, 0, 0]]))


@pytest.mark.parametrize("sparse", [False, True])
def test_features_far_outside_the_range_are_counted(sparse, monkeypatch):
    monkeypatch.setattr(inputs, "_BLOCK", 4)  # two nodes at a time
    usual = measure_range(dataset_of(TABLE, sparse=sparse).x)
    assert usual.note(dataset_of(TABLE, sparse=sparse)) is None
    for column, inside, outside in ((0, (-6, 8), (-6.1, 8.1)), (1, (-7, 7), (-7.1, 7.1)), (2, (2, 8), (1.9, 8.1, 0))):
        for value in (*inside, *outside):
            other = TABLE.copy()
            other[3, column] = value
            note = usual.note(dataset_of(other, sparse=sparse))
            assert (note is None) == (value in inside)
            if value in outside:
                assert "1 of 4 nodes" in note
                assert f"in 1 of 3 columns. The first is column '{'abc'[column]}', with the value {value:g}" in note
    other = TABLE.copy()
    other[1:, 1:] = 100
    assert "3 of 4 nodes of 'new'" in usual.note(dataset_of(other, sparse=sparse))
    assert "in 2 of 3 columns. The first is column 'b', with the value 100 (training: -1 to 1)" in usual.note(
        dataset_of(other, sparse=sparse)
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_the_most_extreme_value_is_found(sparse):
    usual, other = measure_range(dataset_of(TABLE).x), TABLE.copy()
    other[2, 1], other[1, 0] = -1e30, 1e3
    data = dataset_of(other, sparse=sparse)
    assert usual.most_extreme(data, torch.arange(4)) == (2, 1, pytest.approx(-1e30))
    assert usual.most_extreme(data, torch.tensor([3, 1])) == (1, 0, 1e3)
    assert usual.most_extreme(data, torch.tensor([0, 3])) is None


def test_features_too_large_for_32_bits_raise():
    data = replace(dataset_of(TABLE), x=torch.tensor(TABLE))
    data.x[1, 2] = 1e39
    with pytest.raises(DataError, match=r"finite in 32 bits, after scaling. Column 'c' is 1e\+39 at node 'n1'"):
        make_inputs(data, TrainConfig(transforms=()))
    make_inputs(data, TrainConfig(transforms=(), feature_scaling="standard"))
