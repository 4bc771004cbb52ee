r"""The ceiling of the contextual SBM: what could be said by one who knows how the data were made.

Sum-product belief propagation on the generator's own probability. A node's features, with noise 1, give it the
log-odds $x_{v1} - x_{v0}$. A hyperedge holds $\alpha$ or $|e| - \alpha$ nodes of class 1, either with probability 1/2:
its message to a node compares how likely it is that the companions count to one less, and to just that. Exact where
hyperedges form no cycles, close to it on sparse random ones. The number of iterations is chosen on the validation
nodes, as the epoch of a network is.

Without labels it is the ceiling of a network that tells classes by features and hypergraph. A network that has learned
its training nodes by heart may pass their labels on, so what no learner can exceed is the one with training labels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.typing import FloatArray, IntArray, JsonObject

_ITERATIONS, _DAMPING, _SURE, _TINY = 40, 0.3, 30.0, 1e-300


def belief_propagation(dataset: NodeDataset, split: Split) -> JsonObject:
    """Test accuracy by features and hypergraph."""
    return _accuracy(dataset, split, labels=False)


def belief_propagation_with_labels(dataset: NodeDataset, split: Split) -> JsonObject:
    """Test accuracy by features, hypergraph and the labels of the training nodes."""
    return _accuracy(dataset, split, labels=True)


def _accuracy(dataset: NodeDataset, split: Split, *, labels: bool) -> JsonObject:
    """Of the class found more likely, after the first iterations of the best validation accuracy."""
    assert dataset.x is not None
    assert dataset.y is not None
    y, hypergraph = dataset.y.numpy(), dataset.hypergraph
    members = hypergraph.node_index.numpy().reshape(hypergraph.num_edges, -1)  # incidences are in their order
    ones = int(y[members[0]].sum())
    evidence = (dataset.x[:, 1] - dataset.x[:, 0]).double().numpy()
    train, valid, test = (part.numpy() for part in (split.train, split.valid, split.test))
    if labels:
        evidence[train] = np.where(y[train] == 1, _SURE, -_SURE)
    best, found, iterations = -1.0, 0.0, 0
    for step, odds in enumerate(beliefs(members, evidence, min(ones, members.shape[1] - ones)), start=1):
        right = (odds > 0) == (y == 1)
        if right[valid].mean() > best:
            best, found, iterations = float(right[valid].mean()), float(right[test].mean()), step
    return {"value": 100 * found, "valid": 100 * best, "iterations": iterations}


def beliefs(members: IntArray, evidence: FloatArray, minority: int) -> Iterator[FloatArray]:
    """The log-odds of class 1 of every node, after each iteration.

    Args:
        members: Nodes of each hyperedge, all of one size, [E, K].
        evidence: What is known of a node by itself: its log-odds.
        minority: The smaller number of one class in a hyperedge, at least 1.
    """
    size, nodes = members.shape[1], len(evidence)
    message, odds = np.zeros(members.shape), evidence
    for _ in range(_ITERATIONS):
        likely = 1 / (1 + np.exp(-np.clip(odds[members] - message, -_SURE, _SURE)))
        count = others(likely)
        one = count[..., minority - 1] + count[..., size - minority - 1]
        none = count[..., minority] + count[..., size - minority]
        new = np.clip(np.log(one + _TINY) - np.log(none + _TINY), -_SURE, _SURE)
        message = _DAMPING * message + (1 - _DAMPING) * new
        odds = evidence + np.bincount(members.ravel(), message.ravel(), minlength=nodes)
        yield odds


def others(likely: FloatArray) -> FloatArray:
    """How likely it is that so many of a member's companions are of class 1.

    Args:
        likely: Probability of class 1 of each member, [E, K].

    Returns:
        [E, K, K]: the last axis counts from 0 to K - 1.
    """
    size = likely.shape[1]
    count = np.zeros((*likely.shape, size))
    count[..., 0] = 1
    for member in range(size):
        p = likely[:, None, member : member + 1]
        grown = (1 - p) * count
        grown[..., 1:] += p * count[..., :-1]
        count = np.where((np.arange(size) == member)[:, None], count, grown)  # nobody is among his own companions
    return count
