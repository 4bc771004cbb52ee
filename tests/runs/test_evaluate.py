"""Evaluation of a run: it recognises its own data in another order, and classes in another type."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from edhnn import DataError, Hypergraph, NodeDataset, Plan, TrainConfig, train
from edhnn.data.dataset import Provenance
from edhnn.data.ids import Ids
from edhnn.runs.evaluate import evaluate_run
from edhnn.runs.folder import RunFolder
from edhnn.runs.predict import load_models, with_classes

PLAN = Plan(options={"hidden": 8, "classifier_hidden": 8}, train=TrainConfig(epochs=2), num_splits=2)


@pytest.fixture(scope="module")
def named(tiny):
    return replace(tiny, feature_names=tuple("abcdef"))


@pytest.fixture(scope="module")
def run(named, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate") / "run"
    train(named, PLAN, out=folder, jobs=1)
    return folder


def columns(dataset, names):
    indices = [dataset.feature_names.index(name) for name in names]
    return replace(dataset, x=dataset.x[:, indices].contiguous(), feature_names=tuple(names))


def test_own_data_with_reordered_or_additional_columns_are_recognised(named, run):
    expected = evaluate_run(run, named)
    assert expected["same_data"]
    more = replace(named, x=torch.cat([torch.ones(40, 1), named.x], dim=1), feature_names=("new", *"abcdef"))
    for other in (columns(named, "fedcba"), more):
        assert evaluate_run(run, other) == expected


def test_own_data_with_reordered_labels_are_recognised(named, tmp_path):
    y = torch.stack([torch.arange(40) % 2, torch.arange(40) // 20], dim=1).float()
    data = replace(named, y=y, task="multilabel", class_names=("a", "b"))
    train(data, PLAN, out=tmp_path / "run", jobs=1)
    swapped = replace(data, y=y.flip(1), class_names=("b", "a"))
    assert evaluate_run(tmp_path / "run", swapped)["same_data"]
    targets = [Provenance("f", "csv", details={"label_columns": names}) for names in (["a", "b"], ["b", "a"])]
    values = replace(data, y=y + 0.5, task="regression", class_names=None, provenance=targets[0])
    train(values, PLAN, out=tmp_path / "values", jobs=1)
    assert evaluate_run(tmp_path / "values", replace(values, y=(y + 0.5).flip(1), provenance=targets[1]))["same_data"]


def test_a_run_without_its_splits_raises_for_its_own_data(named, run, tmp_path):
    (run / "splits.npz").rename(tmp_path / "backup")
    try:
        with pytest.raises(DataError, match=r"splits.npz: The file must hold the node numbers.*Resume the run"):
            evaluate_run(run, named)
        other = replace(named, x=named.x + 1)
        assert not evaluate_run(run, other)["same_data"]
        train(named, PLAN, out=run, resume=True, jobs=1)
        assert evaluate_run(run, named)["same_data"]
    finally:
        (tmp_path / "backup").rename(run / "splits.npz")


def test_a_model_in_its_run_is_evaluated_like_its_split(named, run, tmp_path):
    expected = evaluate_run(run, named, 1)
    assert evaluate_run(run / "splits/01/model", named) == expected
    assert expected["num_nodes"] == 10
    away = shutil.copytree(run / "splits/01/model", tmp_path / "model")
    assert (evaluate_run(away, named)["same_data"], evaluate_run(away, named)["num_nodes"]) == (False, 40)


def reordered(dataset, order):
    """Return the same data with its nodes in another order."""
    position = torch.empty_like(order)
    position[order] = torch.arange(len(order))
    graph = dataset.hypergraph
    moved = Hypergraph.from_incidence(
        torch.stack([position[graph.node_index], graph.edge_index]), num_nodes=len(order), num_edges=graph.num_edges
    )
    ids = Ids([dataset.node_ids[node] for node in order.tolist()])
    return replace(dataset, hypergraph=moved, x=dataset.x[order], y=dataset.y[order], node_ids=ids)


def test_training_labels_do_not_count_after_the_data_have_changed(named, run):
    expected = evaluate_run(run, named)
    backwards = evaluate_run(run, reordered(named, torch.arange(39, -1, -1)))
    assert not backwards["same_data"]
    assert backwards["seen"] == expected["seen"] > 20
    for ours, theirs in zip(backwards["each"], expected["each"], strict=True):
        assert ours == pytest.approx(theirs)
    in_text = replace(named, x=named.x.double(), node_ids=Ids([str(name) for name in named.node_ids]))
    assert evaluate_run(run, in_text)["mean"] == expected["mean"]


def test_new_nodes_count_for_all_models_and_together(named, run):
    graph = named.hypergraph
    larger = Hypergraph.from_incidence(
        torch.stack([graph.node_index, graph.edge_index]), num_nodes=42, num_edges=graph.num_edges
    )
    x, y = torch.cat([named.x, torch.ones(2, 6)]), torch.cat([named.y, torch.tensor([0, 1])])
    grown = replace(named, hypergraph=larger, x=x, y=y, node_ids=Ids(range(42)))
    result, before = evaluate_run(run, grown), evaluate_run(run, named)
    assert (result["num_nodes"], result["seen"]) == (before["num_nodes"] + 2, before["seen"])
    assert result["together"] is not None
    with pytest.raises(DataError, match="have not learned from. 'tiny' has none"):
        split = RunFolder(run).read_splits()[0]
        seen_only = torch.full_like(named.y, -1)
        seen_only[split.train] = named.y[split.train]
        evaluate_run(run, replace(named, y=seen_only), 0)


@pytest.mark.parametrize("damage", ["damaged", "short"])
def test_a_run_without_its_nodes_raises_for_other_data_until_it_is_resumed(named, run, tmp_path, damage):
    copy, other = shutil.copytree(run, tmp_path / "run"), reordered(named, torch.arange(39, -1, -1))
    if damage == "short":
        np.save(copy / "nodes.npy", np.load(copy / "nodes.npy")[:20])
    else:
        (copy / "nodes.npy").write_bytes(b"x")
    assert evaluate_run(copy, named)["same_data"]
    with pytest.raises(DataError, match=r"nodes.npy: The file must hold.*Resume the run"):
        evaluate_run(copy, other)
    train(named, PLAN, out=copy, resume=True, jobs=1)
    assert evaluate_run(copy, other) == evaluate_run(run, other)


def model_with(run, **facts):
    return replace(load_models(run).first, **facts)


def labels(named, classes):
    return replace(named, y=torch.arange(40) % len(classes), class_names=tuple(classes))


def test_classes_written_as_numbers_match_those_written_as_text(named, run):
    text, numbers = model_with(run, class_names=("2", "x")), model_with(run, class_names=(1, 2))
    assert with_classes(labels(named, (2,)), text).y.tolist() == [0] * 40
    assert with_classes(labels(named, ("2", "1")), numbers).y[:2].tolist() == [1, 0]
    with pytest.raises(DataError, match="those of the training: 2, x. Got '3'"):
        with_classes(labels(named, (2, 3)), text)
    for name in ("01", "+1", "x", "1.0"):
        with pytest.raises(DataError, match="must be among"):
            with_classes(labels(named, ("2", name)), numbers)


def test_a_single_target_may_have_another_name(named, run):
    values = replace(named, y=torch.arange(40.0), task="regression", class_names=None)
    called = [
        replace(values, provenance=Provenance("f", "csv", details={"label_columns": [name]})) for name in ("price", "y")
    ]
    objective = replace(load_models(run).first.objective, task="regression", num_outputs=1)
    model = model_with(run, objective=objective, class_names=None, reading=called[0].reading)
    assert isinstance(with_classes(called[1], model), NodeDataset)
    assert torch.equal(with_classes(called[1], model).y, values.y)
