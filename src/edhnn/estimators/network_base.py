"""Fitting a network to samples and asking it for answers: what the classifier and the regressor share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from edhnn.data.dataset import NodeDataset, Task
from edhnn.data.splits import Split
from edhnn.errors import DataError, UsageError
from edhnn.estimators.samples import NodeSamples
from edhnn.hypergraph import Hypergraph
from edhnn.models.registry import MODELS, make_config, make_model
from edhnn.seeding import derive_seed
from edhnn.training.checks import check_features
from edhnn.training.config import TrainConfig
from edhnn.training.fit import FitResult, fit_inputs
from edhnn.training.inputs import Inputs, Scaling, make_inputs
from edhnn.typing import FloatArray, IntArray

_TUNED = ("num_iterations", "hidden", "restart", "dropout")


class NetworkEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """What the classifier and the regressor share."""

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
        epochs: int = 200,
        learning_rate: float = 0.01,
        weight_decay: float = 0.0,
        patience: int | None = None,
        validation_fraction: float = 0.25,
        feature_scaling: str = "auto",
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
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Sparse or dense; what is drawn at random is drawn from ``random_state``."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, hypergraph: object, y: object = None, X: object = None) -> Any:  # noqa: N803
        """Train, and keep the epoch with the best validation score.

        Args:
            hypergraph: A `Hypergraph` (then ``X`` holds the features), a `NodeSamples`, a `NodeDataset` with features,
                or a plain table of features: nodes that share no hyperedge.
            y: A label per sample; -1 (classes) or NaN (values) where unknown.
            X: The features, a row per node of the hypergraph.

        Returns:
            Itself.

        Raises:
            DataError: if labels or features cannot be learned from.
            UsageError: if a parameter is not among its choices, or features are given twice.
        """
        options = self._options()
        samples = self._samples(hypergraph, X, y, reset=True)
        labels, known = self._labels(y, len(samples))
        nodes = samples.nodes[known]
        if len(np.unique(nodes)) != len(nodes):
            raise DataError("A node must be labelled once. The selection holds a node twice.")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        dataset = self._dataset(samples, nodes, labels[known])
        check_features(dataset)
        split = self._split(nodes, dataset, seed)
        config = self._train_config(samples)
        inputs = make_inputs(dataset, config)
        outputs = dataset.num_classes if self._task == "classification" else labels.shape[1]
        self.model_ = make_model(
            self.model, in_features=samples.shape[1], num_classes=int(outputs or 0), seed=seed, **options
        )
        self.result_: FitResult = fit_inputs(
            self.model_, inputs, dataset, split, config, seed=derive_seed(seed, "fit"), watch=None, state=None
        )
        self.scaling_: Scaling | None = inputs.scaling
        self.train_config_, self.best_epoch_, self.n_iter_ = config, self.result_.best_epoch, self.result_.epochs
        self.n_features_in_ = samples.shape[1]
        return self

    def _answers(self, hypergraph: object, X: object) -> FloatArray:  # noqa: N803
        """Probabilities or values of the samples."""
        check_is_fitted(self, "model_")
        samples = self._samples(hypergraph, X, None, reset=False)
        if samples.shape[1] != self.n_features_in_:
            raise DataError(f"X must have {self.n_features_in_} features, as in training. Got {samples.shape[1]}.")
        dataset = NodeDataset(name="samples", hypergraph=samples.hypergraph, x=samples.x)
        check_features(dataset)
        inputs: Inputs = make_inputs(dataset, self.train_config_, self.scaling_)
        self.model_.eval()
        with torch.no_grad():
            outputs = self.model_(inputs.x, inputs.hypergraph)
        answers: FloatArray = self.result_.objective.answers(outputs).double().numpy()
        return answers[samples.nodes]

    def _samples(self, data: object, features: object, y: object, *, reset: bool) -> NodeSamples:
        if isinstance(data, NodeSamples) and features is not None:
            raise UsageError("A NodeSamples holds its features already: leave X out, or give the Hypergraph.")
        if isinstance(data, NodeSamples | Hypergraph | NodeDataset):
            samples = data if isinstance(data, NodeSamples) else NodeSamples(data, features)
            self._check_names(samples.feature_names, reset=reset)
            return samples
        if features is not None:
            raise UsageError("With X beside it, the first argument must be a Hypergraph. Got a table.")
        options: dict[str, Any] = {"accept_sparse": "csr", "reset": reset, "dtype": [np.float64, np.float32]}
        if reset and self._task == "classification":
            table, _ = validate_data(self, data, y, multi_output=True, y_numeric=False, **options)
        else:
            table = validate_data(self, data, **options)
        if reset and self._task == "regression" and y is not None:  # NaN is unknown
            check_array(y, ensure_2d=False, dtype=None, ensure_all_finite="allow-nan", input_name="y")
        alone = torch.empty(0, dtype=torch.int64)
        return NodeSamples(Hypergraph(alone, alone, table.shape[0], 0), table)

    def _check_names(self, names: tuple[str, ...] | None, *, reset: bool) -> None:
        """Keep the names of the columns when fitting, and compare them afterwards, as scikit-learn does with tables."""
        if reset:
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return
        known = tuple(getattr(self, "feature_names_in_", ()))
        if known and names is not None and known != names:
            raise DataError(
                f"The columns of X must be those of the fit, in their order: {_shown(known)}. Got {_shown(names)}.",
                remedy="Select them by name: X[model.feature_names_in_].",
            )

    def _options(self) -> dict[str, Any]:
        chosen = {name: getattr(self, name) for name in _TUNED if getattr(self, name) is not None}
        options = {**(self.options or {}), **chosen}
        config = make_config(self.model, **options)  # refuses names and values that do not exist
        return {name: getattr(config, name) for name in options}

    def _train_config(self, samples: NodeSamples) -> TrainConfig:
        scaling = self.feature_scaling
        if scaling == "auto":
            scaling = "none" if samples.x.layout == torch.sparse_csr else "standard"
        transforms = ("add_singletons",) if MODELS[self.model].singletons else ()
        return TrainConfig(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            patience=self.patience,
            feature_scaling=scaling,  # type: ignore[arg-type]  # checked there
            transforms=transforms,
        )

    def _split(self, nodes: IntArray, dataset: NodeDataset, seed: int) -> Split:
        """A share of the labelled nodes validates, of each class alike; the training nodes do if there are too few."""
        if not 0 <= self.validation_fraction < 1:
            raise UsageError(f"The validation fraction must be in [0, 1). Got {self.validation_fraction}.")
        order = nodes[np.random.default_rng(derive_seed(seed, "validation")).permutation(len(nodes))]
        assert dataset.y is not None
        group = dataset.y[order].numpy() if self._task == "classification" else np.zeros(len(order), dtype=int)
        valid = np.zeros(len(order), dtype=bool)
        for value in np.unique(group):
            own = np.flatnonzero(group == value)
            valid[own[: int(self.validation_fraction * len(own))]] = True
        train, held = torch.from_numpy(order[~valid]), torch.from_numpy(order[valid])
        held = held if len(held) else train
        return Split(train, held, held)

    def _labels(self, y: object, count: int) -> tuple[Any, Any]:
        raise NotImplementedError

    def _dataset(self, samples: NodeSamples, nodes: IntArray, labels: Any) -> NodeDataset:
        raise NotImplementedError


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def sample_targets(y: object, count: int) -> Any:
    """The targets as an array, a row per sample."""
    if y is None:
        raise DataError("Fitting requires y to be passed, but the target y is None: give a label per sample.")
    labels = np.asarray(y)
    if labels.shape[:1] != (count,):
        raise DataError(f"'y' must have a label per sample, {count}. Got shape {labels.shape}.")
    return labels
