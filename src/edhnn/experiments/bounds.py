r"""Bounds on what a network can show.

Floors are what the features alone give, without the hypergraph:

- ``l1-logistic``: scikit-learn's logistic regression with an L1 penalty on standardised features (bags of words as they
  are), its strength chosen on the validation nodes.
- ``class-means``: the feature-only oracle where features were drawn as $x_v = \mathrm{onehot}(y_v) + s\,\epsilon$: the
  class whose true mean is nearest. No classifier of the features alone does better but for classes of unequal size.

A network below them does no better than the features alone allow. A ceiling exists where it is known how data
were made:

- ``belief-propagation``, ``belief-propagation-labels``: of the contextual SBM (`edhnn.experiments.ceiling`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse
import torch

from edhnn.data.catalog import catalog
from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.experiments.ceiling import belief_propagation, belief_propagation_with_labels
from edhnn.typing import JsonObject

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """A floor or a ceiling: how it is measured, what it is, for the page, and where it exists."""

    measure: Callable[[NodeDataset, Split], JsonObject]
    source: str
    applies: Callable[[str], bool] = lambda _: True


def l1_logistic(dataset: NodeDataset, split: Split) -> JsonObject:
    """Logistic regression with an L1 penalty; C by validation accuracy, the smallest of the best."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import StandardScaler

    assert dataset.y is not None
    x, y = _features(dataset), dataset.y.numpy()
    train, valid, test = (part.numpy() for part in (split.train, split.valid, split.test))
    if not scipy.sparse.issparse(x):
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
    """The class whose true mean is nearest: the largest of the first coordinates, a class each."""
    assert dataset.x is not None
    assert dataset.y is not None
    classes = int(dataset.y.max()) + 1
    said = dataset.x[split.test, :classes].argmax(dim=1)
    return {"value": 100 * float((said == dataset.y[split.test]).double().mean())}


def _features(dataset: NodeDataset) -> Any:
    x = dataset.x
    assert x is not None
    if x.layout != torch.sparse_csr:
        return x.double().numpy()
    parts = (x.values().double().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_matrix(parts, shape=tuple(x.shape))


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
        belief_propagation_with_labels,
        "features, hypergraph and training labels; the generator is known",
        _is_contextual_sbm,
    ),
}
BOUNDS = {**FLOORS, **CEILINGS}
