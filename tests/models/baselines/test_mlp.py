"""The perceptron on features."""

import pytest
import torch

from tests.models.dense import agree, build, features, mlp, numbers, sample


@pytest.mark.parametrize("options", [{}, {"layers": 3, "hidden": 4}, {"layers": 2, "norm": "none"}])
def test_model_equals_the_perceptron(options):
    model, x = build("mlp", **options), features()
    agree(model, sample(), x, mlp(x.numpy(), numbers(model), "classifier.mlp"))


def test_one_layer_is_logistic_regression():
    model, x = build("mlp"), features()
    linear = model.classifier.mlp.first
    torch.testing.assert_close(model.train()(x, sample()), torch.nn.functional.linear(x, linear.weight, linear.bias))
