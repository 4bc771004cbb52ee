"""The rule of the default settings: the same for the command, Python and the estimators, and never the paper's."""

from dataclasses import replace

import pytest
import torch

from edhnn import EDHNNClassifier, NodeDataset, contextual_sbm, fit, make_model, random_splits
from edhnn.data.dataset import features_to_scipy, sparse_features
from edhnn.models.registry import MODELS
from edhnn.runs.plan import make_plan
from edhnn.runs.run import train
from edhnn.training.config import TrainConfig
from edhnn.training.defaults import choose_defaults, default_training
from edhnn.training.objective import Objective


@pytest.fixture(scope="module")
def data():
    return contextual_sbm(1, nodes_per_class=40, num_hyperedges=60)


def sparse(dataset: NodeDataset) -> NodeDataset:
    return replace(dataset, x=sparse_features(features_to_scipy(dataset.x)))


@pytest.mark.parametrize("model", ["ed-hnn", "hgnn", "hypergcn", "belief-diffusion"])
def test_command_python_and_estimators_have_the_same_settings(data, model):
    plan = make_plan(data, model)
    estimator = EDHNNClassifier(model, epochs=1).fit(data, data.y.numpy())
    module = make_model(model, in_features=100, num_classes=2)
    assert estimator.pretrained_.model.config == plan.config
    assert replace(estimator.pretrained_.config, epochs=plan.train.epochs) == plan.train
    assert default_training(data, module).for_model(module) == plan.train


def test_dense_features_are_standardised_and_sparse_ones_are_not(data):
    assert choose_defaults(data, "ed-hnn").train["feature_scaling"] == "standard"
    assert "feature_scaling" not in choose_defaults(sparse(data), "ed-hnn").train


def test_options_exist_and_the_width_is_divided_among_heads(data):
    for model in MODELS:
        assert set(choose_defaults(data, model).options) <= set(MODELS[model].config.__dataclass_fields__)
    assert choose_defaults(data, "unigat").options["hidden"] == 4  # of eight heads
    assert choose_defaults(data, "unigat", heads=2).options["hidden"] == 16


def test_the_papers_configuration_is_unchanged():
    config = TrainConfig()
    assert (config.epochs, config.learning_rate, config.patience, config.select) == (500, 1e-3, None, "metric")
    assert set(config.to_json()) == {
        "epochs", "learning_rate", "weight_decay", "schedule", "patience", "regression_loss", "feature_scaling",
        "transforms",
    }  # fmt: skip


def test_the_loss_decides_between_epochs_of_equal_accuracy():
    task, y = Objective(task="classification", num_outputs=2), torch.tensor([0, 1, 1, 0])
    right = torch.nn.functional.one_hot(y).float()
    outputs = {"sure": 9 * right, "right": right, "one wrong": 9 * right, "all wrong": -99 * right}
    outputs["one wrong"] = torch.cat([9 * right[:3], -9 * right[3:]])
    scores = {
        name: task.score(task.metrics(out, y), out, y, select="metric-then-loss") for name, out in outputs.items()
    }
    assert sorted(scores, key=scores.get, reverse=True) == list(outputs)
    assert scores["right"] > 0.75 + 0.5 / 4  # less than half a node is taken away


def test_a_run_says_if_it_was_cut_while_it_was_improving(data, tmp_path):
    splits = random_splits(80, 1)
    settings = {"hidden": 8, "classifier_hidden": 8, "learning_rate": 1e-4}
    short = make_plan(data, splits=1, settings={**settings, "epochs": 3})
    assert train(data, short, out=tmp_path / "short", splits=splits).cut == 1
    ended = make_plan(data, splits=1, settings={**settings, "epochs": 400, "learning_rate": 0.05, "patience": 3})
    assert train(data, ended, out=tmp_path / "ended", splits=splits).cut == 0
    never = make_plan(data, splits=1, settings={**settings, "epochs": 3, "patience": 3})
    assert train(data, never, out=tmp_path / "never", splits=splits).cut == 1


def test_fit_without_a_configuration_uses_the_rule(data):
    model = make_model("ed-hnn", in_features=100, num_classes=2, hidden=8, classifier_hidden=8, dropout=0.2)
    result = fit(model, replace(data, x=1000 * data.x), random_splits(80, 1)[0])
    assert result.epochs - result.best_epoch == 100  # patience
    assert result.test["accuracy"] > 0.6
