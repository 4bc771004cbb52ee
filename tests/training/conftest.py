"""Tiny data for training tests."""

from dataclasses import replace

import pytest

from edhnn import contextual_sbm, random_splits


@pytest.fixture(scope="session")
def tiny():
    dataset = contextual_sbm(1, nodes_per_class=20, num_hyperedges=16, edge_size=5)
    return replace(dataset, name="tiny", x=dataset.x[:, :6].contiguous(), class_names=("blue", "red"))


@pytest.fixture(scope="session")
def split(tiny):
    return random_splits(tiny.hypergraph.num_nodes, 1)[0]


@pytest.fixture
def plan():
    from edhnn import Plan, TrainConfig

    return Plan(options={"hidden": 8, "classifier_hidden": 8}, train=TrainConfig(epochs=6), num_splits=2)
