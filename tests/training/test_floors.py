"""Floors: the vote against a slow reference, the linear models on data that they fit, and what they may see."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import Hypergraph, NodeDataset, Split, contextual_sbm, random_splits
from edhnn.data.dataset import sparse_features
from edhnn.training.floors import features_alone, features_fit_in_time, majority, neighbours_vote
from edhnn.training.objective import make_objective
from tests.strategies import examples, hyperedge_lists


def halves(num_nodes):
    """Return a split: even nodes train, node 1 validates, odd nodes are tested."""
    even, odd = torch.arange(0, num_nodes, 2), torch.arange(1, num_nodes, 2)
    return Split(even, odd[:1], odd)


def slow_vote(hyperedges, weights, targets, split, prior):
    """Vote node by node over the sets of members."""
    answers = []
    for node in split.test.tolist():
        total, votes = np.zeros(len(prior)), np.zeros(len(prior))
        for members, weight in zip(hyperedges, weights, strict=True):
            for other in {*members} - {node} if node in members else ():
                if other in split.train.tolist():
                    known = ~np.isnan(targets[other])
                    share = weight / (len({*members}) - 1)
                    total += share * known
                    votes += share * np.nan_to_num(targets[other])
        answers.append(np.where(total > 0, votes / np.where(total > 0, total, 1), prior))
    return np.array(answers)


@settings(max_examples=examples(60))
@given(
    hyperedge_lists(),
    st.randoms(use_true_random=False),
    st.sampled_from(["classification", "regression", "multilabel"]),
)
def test_the_vote_is_that_of_the_other_members_of_the_same_hyperedges(drawn, chance, task):
    num_nodes, hyperedges = max(drawn[0], 4), drawn[1]
    weights = [chance.choice([0.5, 1.0, 3.0]) for _ in hyperedges]
    graph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes, edge_weight=torch.tensor(weights))
    split = halves(num_nodes)
    if task == "classification":
        y = torch.tensor([chance.randrange(3) for _ in range(num_nodes)])
        y[-1] = 2
        targets = np.eye(3)[y.numpy()]
    else:
        y = torch.tensor([[float(chance.choice([0, 1])), float(chance.choice([0, 1]))] for _ in range(num_nodes)])
        if num_nodes > 4:
            y[4, 0] = torch.nan
        targets = y.double().numpy()
    dataset = NodeDataset(name="d", hypergraph=graph, y=y, task=task)
    prior = np.nanmean(targets[::2], axis=0)
    answers = neighbours_vote(dataset, split).numpy()
    np.testing.assert_allclose(answers, slow_vote(hyperedges, weights, targets, split, prior), atol=1e-8)
    np.testing.assert_allclose(majority(dataset, split).numpy(), np.tile(prior, (len(split.test), 1)))


def test_equal_votes_go_to_the_larger_class():
    graph = Hypergraph.from_hyperedges([[0, 1], [1, 2]], num_nodes=6)
    dataset = NodeDataset(name="d", hypergraph=graph, y=torch.tensor([0, 0, 1, 1, 1, 1]), task="classification")
    assert neighbours_vote(dataset, halves(6))[0].argmax() == 1


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_the_features_floor_learns_what_is_linear(task, sparse):
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=chance) * torch.tensor([1.0, 100.0, 0.01])
    value = x[:, 0] + x[:, 1] / 100
    if task == "classification":
        y = (value > 0).long() + (value > 1)
    elif task == "multilabel":
        y = torch.stack([value > 0, x[:, 2] > 0], 1).float()
    else:
        y = torch.stack([value, 5 - value], 1)
    if task != "classification":
        y[::9, 0] = torch.nan
    used = sparse_features(sp.csr_array((x / torch.tensor([1.0, 100.0, 0.01])).numpy())) if sparse else x
    graph = Hypergraph.from_hyperedges([], num_nodes=200)
    dataset = NodeDataset(name="d", hypergraph=graph, x=used, y=y, task=task)
    split = random_splits(200, 1)[0]
    objective = make_objective(dataset, split.train)
    answers = features_alone(dataset, split, objective)
    metrics = objective.answer_metrics(answers, y[split.test])
    assert metrics[objective.metric] < 0.05 if task == "regression" else metrics[objective.metric] > 0.9


def test_floors_do_not_see_test_labels_and_survive_a_class_without_training_nodes(tiny):
    split = random_splits(40, 1)[0]
    y = tiny.y.clone()
    y[split.test] = 1 - y[split.test]
    other = replace(tiny, y=y)
    objective = make_objective(tiny, split.train)
    for floor in (majority, neighbours_vote, lambda data, parts: features_alone(data, parts, objective)):
        assert torch.equal(floor(tiny, split), floor(other, split))
    only = Split(split.train[tiny.y[split.train] == 0], split.valid, split.test)
    assert features_alone(tiny, only, objective).argmax(dim=1).tolist() == [0] * len(split.test)


def test_the_features_floor_is_skipped_on_large_data():
    data = contextual_sbm(1, nodes_per_class=100, num_hyperedges=10)
    assert features_fit_in_time(data, random_splits(200, 10), 2)
    wide = replace(data, x=torch.zeros(1, 1).expand(200, 10_000_000))
    assert not features_fit_in_time(wide, random_splits(200, 10), 2)
