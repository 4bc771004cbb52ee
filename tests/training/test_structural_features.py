"""Features made from the hypergraph: deterministic, in the same space for a grown hypergraph, and useful."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from edhnn import EDHNNClassifier, Hypergraph, Ids, NodeDataset
from edhnn.datasets.suite import load_suite_dataset
from edhnn.runs.evaluate import evaluate_run
from edhnn.runs.plan import make_plan
from edhnn.runs.predict import load_models
from edhnn.runs.run import train
from edhnn.training import with_features

EDGES = [[0, 1, 2], [2, 3], [3, 4, 5, 6], [0, 6], [1, 5]]
NAMES = [f"n{k}" for k in range(8)]  # n7 is alone


def named(edges=EDGES, names=NAMES, **more):
    hypergraph = Hypergraph.from_hyperedges(edges, num_nodes=len(names))
    return NodeDataset(name="named", hypergraph=hypergraph, node_ids=Ids(names), **more)


def test_own_features_are_kept():
    dataset = named(x=torch.ones(8, 1))
    assert with_features(dataset) is dataset


def test_statistics_are_right_and_an_isolated_node_has_zeros():
    made = with_features(named())
    x = dict(zip(made.feature_names, made.x.T.double().tolist(), strict=True))
    assert x["degree"][2] == pytest.approx(np.log(3))
    assert x["mean size"][2] == pytest.approx((np.log(3) + np.log(2)) / 2)
    assert (x["smallest size"][2], x["largest size"][2]) == pytest.approx((np.log(2), np.log(3)))
    assert not made.x[7].any()
    assert "made from the hypergraph" in made.provenance.notes[0]
    assert with_features(made) is made


def test_features_follow_the_ids_not_the_order():
    order = [3, 1, 7, 0, 2, 6, 5, 4]
    place = {node: k for k, node in enumerate(order)}
    mixed = named([[place[node] for node in edge] for edge in EDGES], [NAMES[node] for node in order])
    torch.testing.assert_close(with_features(mixed).x, with_features(named()).x[order])


def test_a_new_node_has_the_features_of_a_known_one_with_the_same_neighbours():
    grown = named([*EDGES, [8, 2]], [*NAMES, "new"])
    like = with_features(named()).reading
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = with_features(grown, like)
    similarity = torch.cosine_similarity(made.x[8, 6:70], made.x[:, 6:70])
    assert similarity[:8].argmax() in (2, 3)
    with pytest.warns(UserWarning, match="None of 8 nodes of the training is in 'named'"):
        with_features(named(names=[f"m{k}" for k in range(8)]), like)


def test_features_of_the_data_are_not_taken_for_those_of_the_model():
    like = with_features(named()).reading
    assert with_features(named(x=torch.ones(8, 1)), like).num_features == with_features(named()).num_features


def test_a_run_without_features_trains_predicts_and_evaluates(tmp_path):
    dataset = load_suite_dataset("suite-communities")
    plan = make_plan(dataset, splits=1, settings={"hidden": 16, "classifier_hidden": 16, "epochs": 40})
    summary = train(dataset, plan, out=tmp_path / "run", jobs=1)
    assert summary.test_mean > 60  # four classes
    models = load_models(tmp_path / "run")
    assert models.answers(dataset).shape == (600, 4)
    scores = evaluate_run(tmp_path / "run", dataset)
    assert scores["same_data"]
    assert 100 * scores["mean"]["accuracy"] == pytest.approx(summary.test_mean)
    members = [
        part.tolist() for part in torch.split(dataset.hypergraph.node_index, dataset.hypergraph.edge_size.tolist())
    ]
    more = Hypergraph.from_hyperedges([*members, [0, 600]], num_nodes=601)
    y = torch.cat([dataset.y, dataset.y[:1]])
    grown = replace(dataset, hypergraph=more, y=y, node_ids=None, edge_ids=None)
    assert not evaluate_run(tmp_path / "run", grown)["same_data"]  # the labels of the training are still recognised
    assert evaluate_run(tmp_path / "run", grown)["seen"] > 400


def test_an_estimator_without_features_uses_the_hypergraph():
    dataset = load_suite_dataset("suite-communities")
    y = dataset.y.numpy().copy()
    y[::2] = -1
    model = EDHNNClassifier(hidden=16, epochs=40).fit(dataset.hypergraph, y)
    assert (model.predict(dataset.hypergraph)[::2] == dataset.y.numpy()[::2]).mean() > 0.6
