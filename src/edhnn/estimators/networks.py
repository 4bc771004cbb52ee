r"""Networks as scikit-learn estimators: any model of the registry, with the default settings of `edhnn train`.

A sample is a node. ``fit(hypergraph, y, X=features)`` takes the labels of some nodes (-1, or NaN for real values, means
unlabelled), and `predict` returns predictions for all. A `NodeSamples` in place of the hypergraph holds the features
and a selection of nodes, which `GridSearchCV` and similar tools need. With ``table="features"`` a plain table holds the
features of nodes without hyperedges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from edhnn.configuration import configure
from edhnn.data.dataset import UNLABELLED, NodeDataset, Task
from edhnn.data.fingerprints import node_hashes
from edhnn.data.splits import Split
from edhnn.errors import DataError, UsageError
from edhnn.estimators.samples import NodeSamples, check_table
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.registry import MODELS, make_config
from edhnn.seeding import derive_seed
from edhnn.training.beliefs import added_columns
from edhnn.training.config import TrainConfig
from edhnn.training.defaults import choose_defaults
from edhnn.training.inputs import find_device, make_inputs, measure_range
from edhnn.training.loop import fit_inputs
from edhnn.training.objective import check_features, check_targets, make_objective
from edhnn.training.pretrained import Pretrained
from edhnn.training.structural_features import with_features
from edhnn.typing import BoolArray, FloatArray, IntArray

_TUNED = ("num_iterations", "hidden", "restart", "dropout")


class NetworkEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Base class of the classifier and the regressor."""

    _task: Task

    def __init__(
        self,
        model: str = "ed-hnn",
        *,
        num_iterations: int | None = None,
        hidden: int | None = None,
        restart: float | None = None,
        dropout: float | None = None,
        options: dict[str, Any] | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 0.0,
        patience: int | None = None,
        validation_fraction: float = 0.25,
        feature_scaling: str = "auto",
        table: str | None = None,
        device: str = "cpu",
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.num_iterations = num_iterations
        self.hidden = hidden
        self.restart = restart
        self.dropout = dropout
        self.options = options
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.feature_scaling = feature_scaling
        self.table = table
        self.device = device
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Declare that features may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, hypergraph: object, y: object = None, X: object = None) -> Any:  # noqa: N803
        """Train, and keep the parameters of the epoch with the best validation score.

        Args:
            hypergraph: A `Hypergraph` (then ``X`` holds the features), a `NodeSamples`, or a `NodeDataset` with
                features. With ``table="features"`` also a plain table: features of nodes without hyperedges.
            y: A label per sample; -1 (classes) or NaN (values) if unknown.
            X: The features, a row per node of the hypergraph. Without features, some are made from the hypergraph
                (`edhnn.training.with_features`), here and in predictions.

        Returns:
            The fitted estimator.

        Raises:
            DataError: if labels or features are invalid.
            UsageError: if a parameter is invalid, features are given twice, or a plain table is given without
                ``table``.
        """
        samples = self._samples(hypergraph, X, y, reset=True)
        labels, known = self._labels(y, len(samples))
        nodes = samples.nodes[known]
        if len(np.unique(nodes)) != len(nodes):
            raise DataError("Each node must be labelled once. The selection contains a node twice.")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        dataset = with_features(self._dataset(samples, nodes, labels[known]))
        assert dataset.x is not None
        check_features(dataset)
        split = self._split(nodes, dataset, seed)
        config, train = self._settings(dataset, held_out=split.valid is not split.train)
        check_targets(dataset, split.train, "the training nodes")
        objective = make_objective(dataset, split.train, train.regression_loss)
        inputs = make_inputs(dataset, train).to(find_device(self.device))
        model, outputs = MODELS[self.model].model, objective.num_outputs
        columns = dataset.num_features + added_columns(model, outputs, train)
        self.model_ = model(config, in_features=columns, num_classes=outputs, seed=seed)
        result = fit_inputs(self.model_, inputs, dataset, split, objective, train, seed=derive_seed(seed, "fit"))
        knowledge = result.knowledge
        if knowledge is not None:
            knowledge = replace(knowledge, hashes=node_hashes(dataset)[split.train.numpy()])
        self.model_.cpu()  # so that a fitted estimator can be unpickled on a machine without this device
        self.pretrained_ = Pretrained(
            name=self.model,
            model=self.model_,
            objective=objective,
            config=train,
            class_names=dataset.class_names,
            scaling=inputs.scaling,
            feature_range=measure_range(dataset.x),
            reading=dataset.reading,
            knowledge=knowledge,
        )
        self.best_epoch_, self.n_iter_, self.n_features_in_ = result.best_epoch, result.epochs, samples.shape[1]
        return self

    def _answers(self, hypergraph: object, X: object) -> FloatArray:  # noqa: N803
        """Predict probabilities or values of the samples."""
        check_is_fitted(self, "pretrained_")
        samples = self._samples(hypergraph, X, None, reset=False)
        if not samples.shape[1] and self.pretrained_.reading:  # its features are made from the hypergraph
            dataset = NodeDataset(name="samples", hypergraph=samples.hypergraph)
            return self._answers_of(dataset, samples)
        if samples.shape[1] != self.n_features_in_:
            raise DataError(f"X must have {self.n_features_in_} features, as in training. Got {samples.shape[1]}.")
        dataset = NodeDataset(
            name="samples", hypergraph=samples.hypergraph, x=samples.x, feature_names=samples.feature_names
        )
        return self._answers_of(dataset, samples)

    def _answers_of(self, dataset: NodeDataset, samples: NodeSamples) -> FloatArray:
        answers: FloatArray = self.pretrained_.answers(dataset, device=self.device).double().numpy()
        return answers[samples.nodes]

    def _samples(self, data: object, features: object, y: object, *, reset: bool) -> NodeSamples:
        if isinstance(data, NodeSamples) and features is not None:
            raise UsageError("A NodeSamples already holds features. Leave out `X=`, or pass its Hypergraph.")
        if isinstance(data, NodeSamples | Hypergraph | NodeDataset):
            samples = data if isinstance(data, NodeSamples) else NodeSamples(data, features)
            self._check_names(samples.feature_names, reset=reset)
            return samples
        if features is not None:
            raise UsageError("With `X=` the first argument must be a Hypergraph. Got a table.")
        check_table(self, "features")
        options: dict[str, Any] = {"accept_sparse": "csr", "reset": reset, "dtype": [np.float64, np.float32]}
        if reset and self._task == "classification":
            table, _ = validate_data(self, data, y, multi_output=True, y_numeric=False, **options)
        else:
            table = validate_data(self, data, **options)
        if reset and self._task == "regression" and y is not None:  # NaN means unknown
            check_array(y, ensure_2d=False, dtype=None, ensure_all_finite="allow-nan", input_name="y")
        return NodeSamples(Hypergraph.from_hyperedges([], num_nodes=table.shape[0]), table)

    def _check_names(self, names: tuple[str, ...] | None, *, reset: bool) -> None:
        """Store the names of the columns when fitting, and compare them when predicting, as scikit-learn does."""
        if reset:
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return
        fitted = tuple(getattr(self, "feature_names_in_", ()))
        if fitted and names is not None and fitted != names:
            raise DataError(
                f"The columns of X must be those of the fit, in their order: {_shown(fitted)}. Got {_shown(names)}.",
                remedy="Select them by name: X[model.feature_names_in_].",
            )

    def _settings(self, dataset: NodeDataset, *, held_out: bool) -> tuple[Any, TrainConfig]:
        """Return the configurations of model and training: the parameters, and for the others the rule's.

        Without validation nodes the loss of the training nodes does not select the epoch, because it always falls.
        """
        heads = (self.options or {}).get("heads")
        chosen = choose_defaults(dataset, self.model, heads if isinstance(heads, int) and heads > 0 else None)
        tuned = {name: getattr(self, name) for name in _TUNED if getattr(self, name) is not None}
        train: dict[str, Any] = {**chosen.train, "weight_decay": self.weight_decay}
        for name in ("epochs", "learning_rate", "patience"):
            if getattr(self, name) is not None:
                train[name] = getattr(self, name)
        if self.feature_scaling != "auto":
            train["feature_scaling"] = self.feature_scaling
        if not held_out:
            train["select"] = "metric"
        config = make_config(self.model, **{**chosen.options, **(self.options or {}), **tuned})
        return config, configure(TrainConfig, train).for_model(self.model)

    def _split(self, nodes: IntArray, dataset: NodeDataset, seed: int) -> Split:
        """Take a share of the labelled nodes of each class for validation, or the training nodes if that is none."""
        if not 0 <= self.validation_fraction < 1:
            raise UsageError(f"The validation fraction must be in [0, 1). Got {self.validation_fraction}.")
        order = nodes[np.random.default_rng(derive_seed(seed, "validation")).permutation(len(nodes))]
        assert dataset.y is not None
        group = dataset.y[order].numpy() if self._task == "classification" else np.zeros(len(order), dtype=int)
        valid = np.zeros(len(order), dtype=bool)
        for value in np.unique(group):
            members = np.flatnonzero(group == value)
            valid[members[: int(self.validation_fraction * len(members))]] = True
        train = torch.from_numpy(order[~valid])
        validation = torch.from_numpy(order[valid]) if valid.any() else train
        return Split(train, validation, validation)

    def _labels(self, y: object, count: int) -> tuple[Any, Any]:
        raise NotImplementedError

    def _dataset(self, samples: NodeSamples, nodes: IntArray, labels: Any) -> NodeDataset:
        raise NotImplementedError


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def sample_targets(y: object, count: int) -> Any:
    """Return the targets as an array, a row per sample."""
    if y is None:
        raise DataError("Fitting requires y to be passed, but the target y is None: give a label per sample.")
    labels = np.asarray(y)
    if labels.shape[:1] != (count,):
        raise DataError(f"'y' must have a label per sample, {count}. Got shape {labels.shape}.")
    return labels


def labelled(labels: Any) -> BoolArray:
    """Mark the entries that are not -1, and, among strings and objects, not "-1"."""
    if labels.dtype.kind in "biuf":
        return np.asarray(labels != UNLABELLED)
    return np.array([label not in (UNLABELLED, str(UNLABELLED)) for label in labels.tolist()], dtype=bool)


def accuracy_where_labelled(y: object, answers: Any, sample_weight: Any = None) -> float:
    """Return the accuracy over the samples with a known class; raise if there are none."""
    labels = np.asarray(y)
    labels = labels.ravel() if labels.ndim == 2 and labels.shape[1] == 1 else labels
    true, answered, weight = _known(labels, answers, sample_weight, labelled(labels))
    return float(accuracy_score(true, answered, sample_weight=weight))


def _known(y: Any, answers: Any, weight: Any, known: BoolArray) -> tuple[Any, Any, Any]:
    if not known.any():
        raise DataError(f"A score needs samples with known labels. All {len(known)} entries of 'y' are unknown.")
    return y[known], np.asarray(answers)[known], None if weight is None else np.asarray(weight)[known]


class EDHNNClassifier(ClassifierMixin, NetworkEstimator):  # type: ignore[misc]
    """A network that classifies nodes. Paper: Algorithm 1, Section 4.1 (the protocol).

    Args:
        model: A name in `edhnn.models.MODELS`.
        num_iterations: Iterations of the model; ``None``, here and in the next three, for the default: the choice of
            the rule in `edhnn.training.defaults`, which the command uses too, or else the model's.
        hidden: Width.
        restart: Share of the encoded input in every step.
        dropout: Dropout rate of the layers; the rate of the input features is the separate option ``input_dropout``.
        options: Further fields of the model's configuration.
        epochs: Largest number of steps of Adam; ``None``, here and in the next two, for that of the rule.
        learning_rate: Learning rate of Adam.
        patience: Number of epochs without a better validation score after which training stops.
        weight_decay: Weight decay of Adam.
        validation_fraction: Share of the labelled nodes of each class that selects the epoch and is not trained on.
        feature_scaling: ``standard``, ``none``, or ``auto`` for the choice of the rule.
        table: ``features`` to accept a plain table as first argument: features of nodes without hyperedges. By default
            a table raises an error, because it could be an incidence matrix.
        device: Device for training and prediction: ``cpu``, ``cuda``, ``mps``, ... or ``auto``.
        random_state: Seed of weights, dropout and validation nodes.

    Attributes:
        classes_: The classes, sorted.
        model_: The trained network.
        pretrained_: The network with its objective and scaling; it can be saved as a folder.
        best_epoch_: The selected epoch.
        n_iter_: Epochs trained.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, if they have names.

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
            num_unlabelled = int((~known).sum())
            note = f", and {num_unlabelled} samples with {UNLABELLED}, which means unlabelled" if num_unlabelled else ""
            raise DataError(
                f"Training needs nodes of at least 2 classes. Got 1 class, '{self.classes_[0]}'{note}.",
                remedy=f"Rename a class that is called {UNLABELLED}." if num_unlabelled else None,
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
        """Predict probabilities, samples x classes, on a hypergraph with the same features; arguments as for `fit`."""
        return self._answers(hypergraph, X)

    def predict(self, hypergraph: object, X: object = None) -> Any:  # noqa: N803
        """Predict the most probable class of each sample."""
        probabilities = self.predict_proba(hypergraph, X)  # raises if the classifier is not fitted
        return self.classes_[probabilities.argmax(axis=1)]

    def score(self, hypergraph: object, y: object, sample_weight: object = None, X: object = None) -> float:  # noqa: N803
        """Return the accuracy over the samples that have a label; -1 means none."""
        return accuracy_where_labelled(y, self.predict(hypergraph, X), sample_weight)


class EDHNNRegressor(RegressorMixin, NetworkEstimator):  # type: ignore[misc]
    """A network that predicts real values of nodes, one or several; NaN means unknown. See `EDHNNClassifier`."""

    _task = "regression"

    def __sklearn_tags__(self) -> Any:
        """Declare that a sample may have several values."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _labels(self, y: object, count: int) -> tuple[Any, Any]:
        labels = np.asarray(sample_targets(y, count), dtype=float)
        self._flat = labels.ndim == 1
        table = labels[:, None] if self._flat else labels
        largest = float(np.finfo(np.float32).max)  # larger values have squares that overflow even 64 bits
        if (np.abs(table) > largest).any():
            raise DataError(
                f"'y' must be finite and at most {largest:.2g}, or NaN if unknown. Input contains infinity "
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
        """Predict the value of each sample on a hypergraph with the same features; arguments as for `fit`."""
        answers = self._answers(hypergraph, X)
        return answers[:, 0] if self._flat else answers

    def score(self, hypergraph: object, y: object, sample_weight: object = None, X: object = None) -> float:  # noqa: N803
        """Return the coefficient of determination over the samples without NaN, which means unknown."""
        values = np.asarray(y, dtype=float)
        known = ~np.isnan(values.reshape(len(values), -1)).any(axis=1)
        true, answers, weight = _known(values, self.predict(hypergraph, X), sample_weight, known)
        return float(r2_score(true, answers, sample_weight=weight))
