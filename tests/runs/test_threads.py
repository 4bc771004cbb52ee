"""The number of threads changes the time of a training but not its results."""

import pytest
import torch

from edhnn import TrainConfig, contextual_sbm, fit, make_model, random_splits
from edhnn.hypergraph.transforms import add_singletons
from edhnn.models.registry import MODELS


@pytest.fixture(scope="module")
def data():
    return contextual_sbm(2, nodes_per_class=1500, num_hyperedges=800)


def with_threads(count, work):
    torch.set_num_threads(count)
    return work()


@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_are_the_same_bits_for_any_number_of_threads(name, data):
    hypergraph = add_singletons(data.hypergraph) if MODELS[name].singletons else data.hypergraph

    def work():
        model = make_model(name, in_features=data.num_features, num_classes=2).train()
        out = model(data.x, hypergraph)
        torch.nn.functional.cross_entropy(out, data.y).backward()
        return [out, *(parameter.grad for parameter in model.parameters() if parameter.grad is not None)]

    alone = with_threads(1, work)
    for count in (2, 4):
        for one, several in zip(alone, with_threads(count, work), strict=True):
            assert torch.equal(one, several)


def test_a_training_gives_the_same_results_with_any_number_of_threads(data):
    split = random_splits(data.hypergraph.num_nodes, 1)[0]

    def work():
        model = make_model("ed-hnn", in_features=data.num_features, num_classes=2, num_iterations=2, hidden=16)
        return fit(model, data, split, TrainConfig(epochs=8, learning_rate=0.01))

    one, two = with_threads(1, work), with_threads(2, work)
    assert (one.best_epoch, one.test, one.valid) == (two.best_epoch, two.test, two.valid)
    assert torch.equal(one.outputs, two.outputs)
