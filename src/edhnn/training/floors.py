r"""Floors: what is reached without a network, to be put beside every score.

- ``majority``: the largest class of the training nodes; the mean of the targets for regression.
- ``features``: scikit-learn's logistic regression (ridge regression for real values) on the features alone.
- ``neighbours``: a vote of the training nodes in the same hyperedges. In a hyperedge $e$ every other member has the
  weight $w_e / (|e| - 1)$. A node without such neighbours gets the majority.

All use the training nodes of a split only; validation nodes choose the penalty. Answers have the form of a network's:
probabilities of classes or of each label, or values.

The paper's tables have two floors of their own. ``l1-logistic`` is logistic regression with an L1 penalty; features are
standardised, except bags of words. ``class-means`` is the optimal classifier for features drawn as
$x_v = \mathrm{onehot}(y_v) + s\,\epsilon$: the class whose true mean is nearest. Only unequal class sizes would allow a
better classifier of the features alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, features_to_scipy
from edhnn.data.splits import Split
from edhnn.training.objective import Objective, labels_of
from edhnn.typing import FloatArray, JsonObject

STRENGTHS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_PENALTIES: Final = (100.0, 10.0, 1.0, 0.1, 0.01)  # the strongest first, which wins if scores are equal
_STEPS: Final = 100
_LARGEST_WORK: Final = 1e11
"""Largest number of multiplications of the features floor in a run: about a minute on one core."""


def features_work(dataset: NodeDataset, splits: Iterable[Split], num_outputs: int) -> float:
    """Estimate the multiplications of `features_alone` on all splits."""
    x = dataset.x
    if x is None:
        return 0.0
    entries = x.values().numel() if x.layout == torch.sparse_csr else x.numel()
    shares = sum(len(split.train) for split in splits) / max(len(x), 1)
    return 2.0 * entries * shares * num_outputs * len(_PENALTIES) * _STEPS


def features_fit_in_time(dataset: NodeDataset, splits: Iterable[Split], num_outputs: int) -> bool:
    """Return whether the floor of the features takes about a minute at most."""
    return features_work(dataset, splits, num_outputs) <= _LARGEST_WORK


def majority(dataset: NodeDataset, split: Split) -> Tensor:
    """Return for each test node the shares of the classes or labels among the training nodes, or the mean target."""
    return torch.from_numpy(_prior(_targets(dataset, _labelled(dataset, split.train)))).repeat(len(split.test), 1)


def neighbours_vote(dataset: NodeDataset, split: Split) -> Tensor:
    """Return the votes of the training nodes that share hyperedges with each test node; the majority without any."""
    hypergraph, train = dataset.hypergraph, _labelled(dataset, split.train)
    targets = _targets(dataset, train)
    nodes, edges = hypergraph.node_index.numpy(), hypergraph.edge_index.numpy()
    shape = hypergraph.num_nodes, hypergraph.num_edges
    sizes = np.bincount(edges, minlength=shape[1])
    weight = np.where(sizes > 1, 1.0 / np.maximum(sizes - 1, 1), 0.0)
    if hypergraph.edge_weight is not None:
        weight = weight * hypergraph.edge_weight.double().numpy()
    membership = sp.csr_array((np.ones(len(nodes)), (nodes, edges)), shape=shape)
    voters = membership[train.numpy()].T.tocsr()
    tested = membership[split.test.numpy()] * weight[None, :]
    known = ~np.isnan(targets)
    prior = _prior(targets)
    answers = np.empty((len(split.test), targets.shape[1]))
    total = None
    if bool(known.all()):  # all voters know every column, so the weights are summed once
        total = tested @ (voters @ np.ones(len(targets)))
    for column in range(targets.shape[1]):  # a class or a target at a time: the table of all would be dense
        votes = tested @ (voters @ np.where(known[:, column], targets[:, column], 0.0))
        weights = tested @ (voters @ known[:, column].astype(np.float64)) if total is None else total
        answers[:, column] = np.where(weights > 0, votes / np.where(weights > 0, weights, 1.0), prior[column])
    if dataset.task == "classification":  # equal votes go to the larger class
        answers += 1e-9 * prior
    return torch.from_numpy(answers)


def _targets(dataset: NodeDataset, nodes: Tensor) -> FloatArray:
    """Return a column per class, label or target for some nodes; NaN where unknown."""
    y = labels_of(dataset)[nodes]
    if dataset.task != "classification":
        return y.double().numpy()
    classes: FloatArray = np.eye(dataset.num_classes or 0)[y.numpy()]
    return classes


def _prior(targets: FloatArray) -> FloatArray:
    known = ~np.isnan(targets)
    prior: FloatArray = np.where(known, targets, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return prior


def features_alone(dataset: NodeDataset, split: Split, objective: Objective) -> Tensor:
    """Fit a linear model of the features to the training nodes; answer for the test nodes.

    The penalty is the strongest with the best validation metric. Dense features are standardised by the training nodes.
    """
    from sklearn.preprocessing import StandardScaler

    train, valid = (_labelled(dataset, part) for part in (split.train, split.valid))
    x, y = _matrix(dataset), labels_of(dataset)
    with _one_thread():
        if not sp.issparse(x):
            x = StandardScaler().fit(x[train.numpy()]).transform(x)
        best: tuple[float, Tensor] | None = None
        for penalty in _PENALTIES:
            predict = _fit_linear(dataset, x[train.numpy()], y[train].numpy(), penalty)
            metric = objective.answer_metrics(predict(x[valid.numpy()]), y[valid])[objective.metric]
            score = metric if objective.in_percent else -metric
            if best is None or score > best[0]:
                best = score, predict(x[split.test.numpy()])
    assert best is not None
    return best[1]


def _fit_linear(dataset: NodeDataset, x: Any, y: Any, penalty: float) -> Callable[[Any], Tensor]:
    """Fit one linear model; return its answers as a function of features."""
    from sklearn.linear_model import LogisticRegression, Ridge

    if dataset.task == "classification":
        width, classes = dataset.num_classes or 0, np.unique(y)
        if len(classes) == 1:
            return lambda rows: _spread(np.ones((rows.shape[0], 1)), classes, width)
        model = LogisticRegression(C=1.0 / penalty, max_iter=_STEPS).fit(x, y)
        return lambda rows: _spread(model.predict_proba(rows), classes, width)
    columns: list[Callable[[Any], FloatArray]] = []
    for column in y.T:
        known = ~np.isnan(column)
        values = column[known].astype(np.float64)
        if dataset.task == "regression":
            columns.append(Ridge(alpha=penalty).fit(x[known], values).predict)
        elif len(np.unique(values)) < 2:
            columns.append(partial(_constant, values.mean()))
        else:
            columns.append(
                partial(_positive, LogisticRegression(C=1.0 / penalty, max_iter=_STEPS).fit(x[known], values))
            )
    return lambda rows: torch.from_numpy(np.stack([predict(rows) for predict in columns], axis=1))


def _constant(value: float, rows: Any) -> FloatArray:
    return np.full(rows.shape[0], value)


def _positive(model: Any, rows: Any) -> FloatArray:
    share: FloatArray = model.predict_proba(rows)[:, 1]
    return share


def _spread(probabilities: FloatArray, classes: Any, width: int) -> Tensor:
    """Write the columns of the classes that occur into a table of all classes."""
    table = np.zeros((len(probabilities), width))
    table[:, classes] = probabilities
    return torch.from_numpy(table)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread, so that the bits do not depend on their number, and without warnings about accuracy."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _matrix(dataset: NodeDataset) -> Any:
    """Return the features in 64 bits: an array, or a matrix of scipy if they are sparse."""
    assert dataset.x is not None
    if dataset.x.layout == torch.sparse_csr:
        return sp.csr_matrix(features_to_scipy(dataset.x)).astype(np.float64)
    return dataset.x.double().numpy()


def _labelled(dataset: NodeDataset, nodes: Tensor) -> Tensor:
    return nodes[dataset.labelled[nodes]]


def l1_logistic(dataset: NodeDataset, split: Split) -> JsonObject:
    """Fit logistic regression with an L1 penalty; C is the smallest value with the best validation accuracy."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import StandardScaler

    assert dataset.y is not None
    x, y = _matrix(dataset), dataset.y.numpy()
    train, valid, test = (part.numpy() for part in (split.train, split.valid, split.test))
    if not sp.issparse(x):
        x = StandardScaler().fit(x[train]).transform(x)
    best: tuple[float, float, Any] | None = None
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, l1_ratio=1.0, solver="liblinear", random_state=0)
        if len(np.unique(y[train])) > 2:
            model = OneVsRestClassifier(model)
        model.fit(x[train], y[train])
        score = float(model.score(x[valid], y[valid]))
        if best is None or score > best[0]:
            best = score, strength, model
    assert best is not None
    return {"value": 100 * float(best[2].score(x[test], y[test])), "valid": 100 * best[0], "strength": best[1]}


def class_means(dataset: NodeDataset, split: Split) -> JsonObject:
    """Choose the class whose true mean is nearest: the largest of the first coordinates, one of each class."""
    assert dataset.x is not None
    assert dataset.y is not None
    classes = int(dataset.y.max()) + 1
    nearest = dataset.x[split.test, :classes].argmax(dim=1)
    return {"value": 100 * float((nearest == dataset.y[split.test]).double().mean())}
