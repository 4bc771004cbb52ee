"""The ceiling: exact where it must be, and above what features alone can say."""

from itertools import product

import numpy as np
import pytest

from edhnn import contextual_sbm, random_splits
from edhnn.experiments.kinds.bounds import (
    belief_propagation,
    belief_propagation_with_labels,
    beliefs,
    class_means,
    others,
)


def enumerated(members, evidence, minority):
    """Log-odds by summing over every labelling."""
    weights = np.zeros((len(evidence), 2))
    for labels in product((0, 1), repeat=len(evidence)):
        counts = np.array(labels)[members].sum(axis=1)
        if np.isin(counts, (minority, members.shape[1] - minority)).all():
            weights[range(len(labels)), labels] += np.exp(evidence @ np.array(labels))
    return np.log(weights[:, 1]) - np.log(weights[:, 0])


@pytest.mark.parametrize("minority", [1, 2])
def test_without_cycles_it_is_exact(minority):
    members = np.array([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [8, 9, 10, 11, 12]])
    evidence = np.random.default_rng(minority).normal(0, 1.5, 13)
    *_, last = beliefs(members, evidence, minority)
    np.testing.assert_allclose(last, enumerated(members, evidence, minority), atol=1e-9)


def test_companions_are_counted_without_oneself():
    likely = np.random.default_rng(0).random((3, 4))
    found = others(likely)
    for edge, member in np.ndindex(3, 4):
        rest = np.delete(likely[edge], member)
        expected = np.zeros(4)
        for labels in product((0, 1), repeat=3):
            expected[sum(labels)] += np.prod(np.where(labels, rest, 1 - rest))
        np.testing.assert_allclose(found[edge, member], expected, atol=1e-12)


def test_it_is_above_the_features_alone():
    data = contextual_sbm(2, nodes_per_class=400, num_hyperedges=160)
    split = random_splits(800, 1)[0]
    found = belief_propagation(data, split)
    assert found["value"] > class_means(data, split)["value"] + 10
    assert 1 <= found["iterations"] <= 40
    assert belief_propagation_with_labels(data, split)["value"] >= found["value"]
