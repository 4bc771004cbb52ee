"""The training configuration: every setting that belongs neither to the model nor to the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Final, Literal, final

from msgspec import Meta
from torch import nn

from edhnn.configuration import Configuration, Count, Natural, Positive
from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.transforms import add_singletons
from edhnn.models.registry import MODELS, entry_of
from edhnn.typing import JsonObject

Schedule = Literal["none", "cosine", "warmup-cosine"]
Selection = Literal["metric", "loss", "metric-then-loss"]
BaseName = Literal["none", "linear"]
RegressionLoss = Literal["mse", "mae"]
FeatureScaling = Literal["none", "standard"]
TRANSFORMS: Mapping[str, Callable[[Hypergraph], Hypergraph]] = {"add_singletons": add_singletons}
"""Transforms by the name that a run records."""
_ALWAYS_RECORDED: Final = (
    "epochs",
    "learning_rate",
    "weight_decay",
    "schedule",
    "patience",
    "regression_loss",
    "feature_scaling",
    "transforms",
)
"""The fields of the first version. Keys of experiments are hashes of a record, so other fields must not be in it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(Configuration):
    """Settings of full-batch training with Adam. The defaults are the paper's. Paper: Appendix F.3.

    Without a configuration the command, `fit` and the estimators use the rule of `edhnn.training.defaults` instead.

    Attributes:
        epochs: Number of epochs.
        learning_rate: Learning rate of Adam.
        weight_decay: Weight decay (L2) of Adam.
        schedule: ``none``, ``cosine`` from the learning rate to 0 over the epochs, or ``warmup-cosine``, which first
            rises from 0 over ``warmup`` epochs.
        patience: Stop after this many epochs without a better validation score; ``None`` for never.
        regression_loss: ``mse`` or ``mae``, on standardised targets; for regression only.
        feature_scaling: ``standard`` gives each column of dense features mean 0 and deviation 1 over all nodes.
        transforms: Transforms of the hypergraph, applied once, in order. ``None``: those of the model's authors
            (`for_model`); ``()``: none.
        warmup: Epochs of the rise of ``warmup-cosine``.
        clip: The largest norm of all gradients together; longer ones are shortened to it. ``None`` for no limit.
        select: What selects the epoch on the validation nodes: the ``metric`` of the task, the ``loss``, or
            ``metric-then-loss``, the smallest loss among epochs of the same metric. Regression uses the loss.
        label_inputs: The share of the training labels that each epoch gives to the model as inputs; the loss is on the
            other training nodes. Evaluation and prediction give all of them. 0 for no labels as inputs.
        base: The predictor on a node's own features whose answers are inputs, and are added to the outputs, so that the
            model learns a correction: ``linear`` (logistic or linear regression) or ``none``. See
            `edhnn.training.base_predictor`.
    """

    epochs: Annotated[int, Meta(ge=1, le=10**7)] = 500
    learning_rate: Positive = 1e-3
    weight_decay: Annotated[float, Meta(ge=0)] = 0.0
    schedule: Schedule = "none"
    patience: Count | None = None
    regression_loss: RegressionLoss = "mse"
    feature_scaling: FeatureScaling = "none"
    transforms: tuple[str, ...] | None = None
    warmup: Natural = 20
    clip: Positive | None = None
    select: Selection = "metric"
    label_inputs: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    base: BaseName = "none"

    def check(self) -> None:
        """Check that the transforms exist."""
        for transform in self.transforms or ():
            if transform not in TRANSFORMS:
                raise unknown_name("transform", transform, TRANSFORMS)

    def learning_rate_at(self, epoch: int) -> float:
        """Return the learning rate of an epoch. The first epoch is 1."""
        if self.schedule == "none":
            return self.learning_rate
        rise = min(self.warmup, self.epochs - 1) if self.schedule == "warmup-cosine" else 0
        if epoch <= rise:
            return self.learning_rate * epoch / rise
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (epoch - 1 - rise) / (self.epochs - rise)))

    def to_json(self) -> JsonObject:
        """Return the fields as a record has them: a field that old records lack is left out if it has its default."""
        record: JsonObject = asdict(self)
        for option in fields(self):
            if option.name not in _ALWAYS_RECORDED and record[option.name] == option.default:
                del record[option.name]
        return record

    def was_cut(self, best_epoch: int, epochs: int) -> bool:
        """Return whether the limit ended training while it was improving: the best epoch is one of the last fifth."""
        if self.patience is None or epochs < self.epochs:
            return False
        return epochs - best_epoch < max(1, min(self.patience, epochs // 5))

    def for_model(self, model: str | nn.Module) -> TrainConfig:
        """Set missing transforms to those of the model (`ModelEntry.singletons`).

        Args:
            model: A name of the registry, or a module. A module that is not in the registry gets singletons.
        """
        if self.transforms is not None:
            return self
        entry = MODELS[model] if isinstance(model, str) else entry_of(model)
        return replace(self, transforms=("add_singletons",) if entry is None or entry.singletons else ())

    def transformed(self, hypergraph: Hypergraph) -> Hypergraph:
        """Apply the transforms to a hypergraph.

        Raises:
            UsageError: if the transforms are not set; `for_model` sets them.
        """
        if self.transforms is None:
            raise UsageError("The transforms depend on the model: use config.for_model(model).transformed(hypergraph).")
        for name in self.transforms:
            hypergraph = TRANSFORMS[name](hypergraph)
        return hypergraph
