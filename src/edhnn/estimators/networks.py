r"""Networks as scikit-learn estimators: any model of the registry, trained by the paper's protocol.

A sample is a node. ``fit(hypergraph, y, X=features)`` takes labels of some nodes (-1, or NaN for real values, means
unlabelled) and `predict` answers for all; a `NodeSamples` in place of the hypergraph carries the features and a
selection of nodes, so that `GridSearchCV` and its kin work. A plain table without a hypergraph is nodes without
company.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from edhnn.data.dataset import NodeDataset
from edhnn.errors import DataError
from edhnn.estimators.network_base import NetworkEstimator, sample_targets
from edhnn.estimators.partial_labels import UNLABELLED, accuracy_where_labelled, labelled, r2_where_known
from edhnn.estimators.samples import NodeSamples
from edhnn.typing import FloatArray, IntArray


class EDHNNClassifier(ClassifierMixin, NetworkEstimator):  # type: ignore[misc]
    """A network that classifies nodes. Paper: Algorithm 1, Section 4.1 (the protocol).

    Args:
        model: A name of the registry (`edhnn models`), ``ed-hnn`` if not given.
        num_iterations: Of models that iterate; the model's default if ``None``, as all of the next three.
        hidden: Width.
        restart: Share of the encoded input in every step.
        dropout: Dropout rate of the layers; that of the input features is an option of its own, ``input_dropout``.
        options: Further fields of the model's configuration.
        epochs: Steps of Adam.
        learning_rate: Adam's.
        weight_decay: Adam's.
        patience: Stop after so many epochs without a better validation score.
        validation_fraction: Share of the labelled nodes of each class that selects the epoch and does not train.
        feature_scaling: ``standard``, ``none``, or ``auto``: standard for dense features.
        random_state: Seed of weights, dropout and validation nodes.

    Attributes:
        classes_: The classes, sorted.
        model_: The trained network.
        best_epoch_: The selected epoch.
        n_iter_: Epochs trained.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, where they came with names.

    Example:
        >>> from edhnn import EDHNNClassifier, contextual_sbm
        >>> data = contextual_sbm(1, nodes_per_class=100, num_hyperedges=200)
        >>> y = data.y.numpy().copy()
        >>> y[::2] = -1  # unlabelled
        >>> model = EDHNNClassifier(hidden=16, epochs=30, dropout=0.1).fit(data.hypergraph, y, X=data.x)
        >>> bool((model.predict(data)[::2] == data.y.numpy()[::2]).mean() > 0.8)
        True
    """

    _task = "classification"

    def _labels(self, y: object, count: int) -> tuple[Any, Any]:
        labels = sample_targets(y, count)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = column_or_1d(labels, warn=True)
        if labels.ndim != 1:
            raise DataError(f"'y' must have one class per sample. Got an array of shape {labels.shape}.")
        known = labelled(labels)
        check_classification_targets(labels[known])
        if not known.any():
            raise DataError(f"At least one node must be labelled. All {count} entries of 'y' are {UNLABELLED}.")
        self.classes_ = np.unique(labels[known])
        if len(self.classes_) < 2:
            hidden = int((~known).sum())
            unlabelled = f", and {hidden} samples with {UNLABELLED}, which means unlabelled" if hidden else ""
            raise DataError(
                f"Training needs nodes of at least 2 classes. Got 1 class, '{self.classes_[0]}'{unlabelled}.",
                remedy=f"Give a class that is called {UNLABELLED} another name." if hidden else None,
            )
        return labels, known

    def _dataset(self, samples: NodeSamples, nodes: IntArray, labels: Any) -> NodeDataset:
        y = torch.full((samples.hypergraph.num_nodes,), UNLABELLED)
        y[torch.from_numpy(nodes)] = torch.from_numpy(np.searchsorted(self.classes_, labels))
        names = tuple(str(name) for name in self.classes_)
        return NodeDataset(
            name="samples", hypergraph=samples.hypergraph, x=samples.x, y=y, task="classification", class_names=names
        )

    def predict_proba(self, hypergraph: object, X: object = None) -> FloatArray:  # noqa: N803
        """Probabilities, samples x classes; arguments as for `fit`, any hypergraph with the same features."""
        return self._answers(hypergraph, X)

    def predict(self, hypergraph: object, X: object = None) -> Any:  # noqa: N803
        """The most probable class of each sample."""
        probabilities = self.predict_proba(hypergraph, X)  # refuses a classifier that is not fitted
        return self.classes_[probabilities.argmax(axis=1)]

    def score(self, hypergraph: object, y: object, sample_weight: object = None, X: object = None) -> float:  # noqa: N803
        """Accuracy over the samples that have a label; -1 is none."""
        return accuracy_where_labelled(y, self.predict(hypergraph, X), sample_weight)


class EDHNNRegressor(RegressorMixin, NetworkEstimator):  # type: ignore[misc]
    """A network that predicts real values of nodes, one or several; NaN where unknown. See `EDHNNClassifier`."""

    _task = "regression"

    def __sklearn_tags__(self) -> Any:
        """Several values per sample are allowed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _labels(self, y: object, count: int) -> tuple[Any, Any]:
        labels = np.asarray(sample_targets(y, count), dtype=float)
        self._flat = labels.ndim == 1
        table = labels[:, None] if self._flat else labels
        largest = float(np.finfo(np.float32).max)  # squares of what is larger overflow 64 bits, too
        if (np.abs(table) > largest).any():
            raise DataError(
                f"'y' must be finite and at most {largest:.2g}, or NaN where unknown. Input contains infinity "
                "or a value too large."
            )
        known = ~np.isnan(table).all(axis=1)
        if not known.any():
            raise DataError(f"At least one node must have a value. All {count} entries of 'y' are NaN.")
        return table, known

    def _dataset(self, samples: NodeSamples, nodes: IntArray, labels: Any) -> NodeDataset:
        y = torch.full((samples.hypergraph.num_nodes, labels.shape[1]), torch.nan, dtype=torch.float64)
        y[torch.from_numpy(nodes)] = torch.from_numpy(labels).to(y)
        return NodeDataset(name="samples", hypergraph=samples.hypergraph, x=samples.x, y=y, task="regression")

    def predict(self, hypergraph: object, X: object = None) -> FloatArray:  # noqa: N803
        """The value of each sample; arguments as for `fit`, any hypergraph with the same features."""
        answers = self._answers(hypergraph, X)
        return answers[:, 0] if self._flat else answers

    def score(self, hypergraph: object, y: object, sample_weight: object = None, X: object = None) -> float:  # noqa: N803
        """The coefficient of determination over the samples whose values are known; NaN is unknown."""
        return r2_where_known(y, self.predict(hypergraph, X), sample_weight)
