"""Labels and features requested by name from a HIF file with a manifest."""

from dataclasses import replace

import pytest
import scipy.sparse as sp
import torch

from edhnn import DataError, Hypergraph, NodeDataset, Provenance, UsageError, read_dataset, write_dataset
from edhnn.data.dataset import sparse_features


def written(tmp_path, **parts):
    """Write a dataset with two features, a class called 'kind' and an attribute to HIF; return the file."""
    dataset = NodeDataset(
        name="baskets",
        hypergraph=Hypergraph.from_hyperedges([[0, 1], [1, 2]]),
        x=torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0]], dtype=torch.float64),
        feature_names=("price", "size"),
        y=torch.tensor([1, 0, -1]),
        task="classification",
        class_names=("z", "a", "unused"),
        node_attributes={"year": [2000, 2001, 2002]},
        provenance=Provenance("b.csv", "csv", (), {"label_columns": ["kind"]}),
    )
    write_dataset(replace(dataset, **parts), tmp_path / "b.hif.json", overwrite=True)
    return tmp_path / "b.hif.json"


SAME_AS_WRITTEN = [
    dict(label="kind"),
    dict(label="label"),
    dict(task="classification"),
    dict(features=["price", "size"]),
    dict(label="kind", task="classification"),
]


@pytest.mark.parametrize("request_", SAME_AS_WRITTEN)
def test_a_request_for_the_written_columns_changes_nothing(tmp_path, request_):
    file = written(tmp_path)
    plain, dataset = read_dataset(file), read_dataset(file, **request_)
    assert torch.equal(dataset.x, plain.x)
    assert (dataset.x.dtype, dataset.feature_names) == (torch.float64, ("price", "size"))
    assert (dataset.y.tolist(), dataset.class_names) == ([1, 0, -1], ("z", "a", "unused"))
    assert (dataset.node_attributes, dataset.reading) == (plain.node_attributes, {"label_columns": ["kind"]})


def test_a_label_and_a_feature_with_the_same_name_are_distinguished(tmp_path):
    file = written(tmp_path, feature_names=("kind", "size"))
    assert read_dataset(file).feature_names == ("kind", "size")
    file = written(tmp_path, feature_names=("label", "size"))
    assert read_dataset(file, label="label").feature_names == ("size",)
    with pytest.raises(UsageError, match="'kind' is named as both"):
        read_dataset(written(tmp_path), label="label", features=["kind"])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_request_selects_among_the_written_columns(tmp_path, sparse):
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0]])
    file = written(tmp_path, x=sparse_features(sp.csr_array(x.numpy())) if sparse else x)
    dataset = read_dataset(file, features=["size"])
    assert (dataset.x.to_dense().tolist(), dataset.feature_names, dataset.class_names) == (
        [[0.0], [2.0], [3.0]],
        ("size",),
        ("z", "a", "unused"),
    )
    dropped = {} if sparse else {"price": [1.0, 0.0, 0.0]}
    assert dataset.node_attributes == {"year": [2000, 2001, 2002], **dropped}
    assert ("sparse features that were not requested were left out: 1 columns" in dataset.provenance.notes) == sparse
    assert read_dataset(file, features=[]).x is None
    dataset = read_dataset(file, label="price", task="regression")
    assert (dataset.y.tolist(), dataset.feature_names, dataset.reading) == (
        [1, 0, 0],
        ("size",),
        {"label_columns": ["price"]},
    )
    assert dataset.node_attributes == {"year": [2000, 2001, 2002], "kind": ["a", "z", None]}
    dataset = read_dataset(file, label="year", features=["size", "price"])
    assert (dataset.class_names, dataset.x.to_dense().tolist()) == ((2000, 2001, 2002), [[0, 1], [2, 0], [3, 0]])
    dataset = read_dataset(file, features=["year", "size"])
    assert dataset.x.tolist() == [[2000, 0], [2001, 2], [2002, 3]]
    with pytest.raises(UsageError, match="The `features=` column must be one of kind, price, size, year. Got 'prize'"):
        read_dataset(file, features=["prize"])
    with pytest.raises(DataError, match="Labels for regression must be numbers"):
        read_dataset(file, task="regression")


@pytest.mark.parametrize(("task", "y"), [("regression", [[0.5, 7.0], [1.5, 8.0], [2.5, float("nan")]]),
                                         ("multilabel", [[0.0, 1.0], [1.0, 1.0], [1.0, float("nan")]])])  # fmt: skip
def test_several_labels_are_selected_by_name(tmp_path, task, y):
    names = ("low", "high") if task == "multilabel" else None
    provenance = Provenance("b.csv", "csv", (), {} if names else {"label_columns": ["low", "high"]})
    file = written(tmp_path, y=torch.tensor(y), task=task, class_names=names, provenance=provenance)
    dataset = read_dataset(file, label=["high", "low"], task=task)
    assert torch.equal(dataset.y.nan_to_num(), torch.tensor(y).flip(1).nan_to_num())
    assert dataset.x.shape == (3, 2)
    assert read_dataset(file, label=["low", "high"], features=["size"]).num_features == 1
