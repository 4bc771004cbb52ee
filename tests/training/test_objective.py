"""Metrics of the tasks, compared with those of scikit-learn."""

import math

import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, mean_absolute_error, r2_score, root_mean_squared_error

from edhnn.training.objective import classification_metrics, multilabel_metrics, regression_metrics

NAN = float("nan")


def test_accuracy_is_over_labelled_nodes():
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0], [1.0, 0.0]])
    y = torch.tensor([0, 1, 1, -1])
    assert classification_metrics(logits, y)["accuracy"] == accuracy_score([0, 1, 1], [0, 1, 0])


def test_metrics_without_known_labels_are_nan():
    assert math.isnan(classification_metrics(torch.zeros(2, 2), torch.tensor([-1, -1]))["accuracy"])
    assert math.isnan(regression_metrics(torch.zeros(1, 1), torch.tensor([[NAN]]))["rmse"])
    assert math.isnan(multilabel_metrics(torch.zeros(1, 1), torch.tensor([[NAN]]))["micro_f1"])


def test_several_labels_agree_with_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    logits, y = torch.randn(30, 4, generator=generator), (torch.rand(30, 4, generator=generator) > 0.6).float()
    metrics = multilabel_metrics(logits, y)
    assert metrics["micro_f1"] == pytest.approx(f1_score(y.numpy(), (logits > 0).numpy(), average="micro"))
    assert metrics["accuracy"] == pytest.approx(accuracy_score(y.numpy().ravel(), (logits > 0).numpy().ravel()))
    y[3, 1] = NAN
    known = ~y.isnan()
    assert multilabel_metrics(logits, y)["micro_f1"] == pytest.approx(f1_score(y[known], (logits > 0)[known]))


def test_errors_agree_with_scikit_learn():
    generator = torch.Generator().manual_seed(1)
    predicted, true = torch.randn(20, 1, generator=generator), torch.randn(20, 1, generator=generator)
    metrics = regression_metrics(predicted, true)
    assert metrics["rmse"] == pytest.approx(root_mean_squared_error(true, predicted))
    assert metrics["mae"] == pytest.approx(mean_absolute_error(true, predicted))
    assert metrics["r2"] == pytest.approx(r2_score(true, predicted))
