"""The ceiling: exact without cycles, and above the features alone."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch

from edhnn import contextual_sbm, random_splits
from edhnn.experiments.kinds.bounds import belief_propagation, beliefs, count_others, degree_and_class_means
from edhnn.training.floors import class_means


def enumerated(members, evidence, minority):
    """Compute the log-odds by summation over all labellings."""
    weights = np.zeros((len(evidence), 2))
    for labels in product((0, 1), repeat=len(evidence)):
        counts = np.array(labels)[members].sum(axis=1)
        if np.isin(counts, (minority, members.shape[1] - minority)).all():
            weights[range(len(labels)), labels] += np.exp(evidence @ np.array(labels))
    return np.log(weights[:, 1]) - np.log(weights[:, 0])


@pytest.mark.parametrize("minority", [1, 2])
def test_belief_propagation_is_exact_without_cycles(minority):
    members = np.array([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [8, 9, 10, 11, 12]])
    evidence = np.random.default_rng(minority).normal(0, 1.5, 13)
    *_, last = beliefs(members, evidence, minority)
    np.testing.assert_allclose(last, enumerated(members, evidence, minority), atol=1e-9)


def test_other_members_are_counted_without_the_member_itself():
    p = np.random.default_rng(0).random((3, 4))
    distribution = count_others(p)
    for edge, member in np.ndindex(3, 4):
        rest = np.delete(p[edge], member)
        expected = np.zeros(4)
        for labels in product((0, 1), repeat=3):
            expected[sum(labels)] += np.prod(np.where(labels, rest, 1 - rest))
        np.testing.assert_allclose(distribution[edge, member], expected, atol=1e-12)


def test_belief_propagation_is_above_the_features_alone():
    data = contextual_sbm(2, nodes_per_class=400, num_hyperedges=160)
    split = random_splits(800, 1)[0]
    result = belief_propagation(data, split)
    assert result["value"] > class_means(data, split)["value"] + 10
    assert 1 <= result["iterations"] <= 40
    assert belief_propagation(data, split, labels=True)["value"] >= result["value"]


def test_a_fixed_minority_class_has_its_own_bounds():
    """Every hyperedge has alpha nodes of class 0; degrees help, the hypergraph more, training labels most."""
    data = contextual_sbm(2, minority_class="fixed", nodes_per_class=300, num_hyperedges=240, edge_size=6)
    of_class_0 = torch.zeros(240, dtype=torch.int64).index_add(
        0, data.hypergraph.edge_index, (data.y == 0)[data.hypergraph.node_index].long()
    )
    assert of_class_0.unique().tolist() == [2] and data.name == "csbm-fixed-2"
    split = random_splits(600, 1)[0]
    measures = (class_means, degree_and_class_means, belief_propagation, partial(belief_propagation, labels=True))
    accuracy = [measure(data, split)["value"] for measure in measures]
    assert accuracy == sorted(accuracy) and accuracy[-1] > accuracy[0] + 10
