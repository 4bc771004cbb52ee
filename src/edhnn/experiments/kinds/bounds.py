r"""Lower and upper bounds on the accuracy of a network.

Floors use the features alone, without the hypergraph (`edhnn.training.floors`): ``l1-logistic`` and ``class-means``.
A network below a floor is no better than a classifier of the features alone. Ceilings are the best accuracy possible
when the generator of the data is known:

- ``belief-propagation``, ``belief-propagation-labels``: sum-product belief propagation on the contextual SBM, without
  and with the labels of the training nodes. A node's features, with noise 1, give the log-odds $x_{v1} - x_{v0}$. A
  hyperedge has $\alpha$ or $|e| - \alpha$ nodes of class 1, each with probability 1/2. Its message to a node compares
  the probabilities that the other members contain one node of class 1 less than that, and exactly that many. The
  result is exact if hyperedges form no cycles, and a close approximation on sparse random hypergraphs. The number of
  iterations is chosen on the validation nodes, like the epoch of a network. The variant without labels is the ceiling
  of a network that classifies by features and hypergraph. A network can also memorise the labels of its training nodes
  and pass them on, so the variant with labels is the ceiling of every learner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.datasets.registry import catalog
from edhnn.training.floors import class_means, l1_logistic
from edhnn.typing import FloatArray, IntArray, JsonObject

_ITERATIONS, _DAMPING, _SURE, _TINY = 40, 0.3, 30.0, 1e-300


def belief_propagation(dataset: NodeDataset, split: Split, *, labels: bool = False) -> JsonObject:
    """Measure the test accuracy of the likelier class after the first iteration with the best validation accuracy.

    Args:
        dataset: A contextual SBM.
        split: The split.
        labels: Whether to use the labels of the training nodes.
    """
    assert dataset.x is not None
    assert dataset.y is not None
    y, hypergraph = dataset.y.numpy(), dataset.hypergraph
    members = hypergraph.node_index.numpy().reshape(hypergraph.num_edges, -1)  # incidences are sorted by hyperedge
    ones = int(y[members[0]].sum())
    evidence = (dataset.x[:, 1] - dataset.x[:, 0]).double().numpy()
    train, valid, test = (part.numpy() for part in (split.train, split.valid, split.test))
    if labels:
        evidence[train] = np.where(y[train] == 1, _SURE, -_SURE)
    best, test_accuracy, iterations = -1.0, 0.0, 0
    for step, odds in enumerate(beliefs(members, evidence, min(ones, members.shape[1] - ones)), start=1):
        right = (odds > 0) == (y == 1)
        if right[valid].mean() > best:
            best, test_accuracy, iterations = float(right[valid].mean()), float(right[test].mean()), step
    return {"value": 100 * test_accuracy, "valid": 100 * best, "iterations": iterations}


def beliefs(members: IntArray, evidence: FloatArray, minority: int) -> Iterator[FloatArray]:
    """Yield the log-odds of class 1 of every node after each iteration.

    Args:
        members: Nodes of each hyperedge, [E, K]; all hyperedges have the same size.
        evidence: The log-odds of each node by its features or label, [N].
        minority: The number of nodes of the smaller class in a hyperedge, at least 1.
    """
    size, nodes = members.shape[1], len(evidence)
    message, odds = np.zeros(members.shape), evidence
    for _ in range(_ITERATIONS):
        p = 1 / (1 + np.exp(-np.clip(odds[members] - message, -_SURE, _SURE)))
        count = count_others(p)
        one = count[..., minority - 1] + count[..., size - minority - 1]
        none = count[..., minority] + count[..., size - minority]
        new = np.clip(np.log(one + _TINY) - np.log(none + _TINY), -_SURE, _SURE)
        message = _DAMPING * message + (1 - _DAMPING) * new
        odds = evidence + np.bincount(members.ravel(), message.ravel(), minlength=nodes)
        yield odds


def count_others(p: FloatArray) -> FloatArray:
    """Compute the distribution of the number of nodes of class 1 among the other members of a hyperedge.

    Args:
        p: Probability of class 1 of each member, [E, K].

    Returns:
        Probabilities for each member of the counts 0 to K - 1, [E, K, K].
    """
    size = p.shape[1]
    count = np.zeros((*p.shape, size))
    count[..., 0] = 1
    for member in range(size):
        one = p[:, None, member : member + 1]
        updated = (1 - one) * count
        updated[..., 1:] += one * count[..., :-1]
        count = np.where((np.arange(size) == member)[:, None], count, updated)  # a member is not among its others
    return count


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """A floor or a ceiling.

    Attributes:
        measure: Measures the accuracy on a split.
        source: A description for the report.
        applies: Whether the bound exists for a dataset.
    """

    measure: Callable[[NodeDataset, Split], JsonObject]
    source: str
    applies: Callable[[str], bool] = lambda _: True


def _is_contextual_sbm(dataset: str) -> bool:
    return dataset.startswith("csbm-")


FLOORS: Mapping[str, Bound] = {
    "l1-logistic": Bound(l1_logistic, "scikit-learn, features alone; C by validation"),
    "class-means": Bound(
        class_means,
        "features alone; the true class means are known",
        lambda dataset: catalog()[dataset].features == "gaussian",
    ),
}
CEILINGS: Mapping[str, Bound] = {
    "belief-propagation": Bound(
        belief_propagation, "features and hypergraph; the generator is known", _is_contextual_sbm
    ),
    "belief-propagation-labels": Bound(
        partial(belief_propagation, labels=True),
        "features, hypergraph and training labels; the generator is known",
        _is_contextual_sbm,
    ),
}
BOUNDS = {**FLOORS, **CEILINGS}
