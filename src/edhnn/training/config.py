"""How a model is trained: every choice that neither the model nor the data makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph import Hypergraph
from edhnn.models.written_values import plain
from edhnn.transforms import add_singletons

Schedule = Literal["none", "cosine"]
RegressionLoss = Literal["mse", "mae"]
FeatureScaling = Literal["none", "standard"]

TRANSFORMS: Mapping[str, Callable[[Hypergraph], Hypergraph]] = {"add_singletons": add_singletons}
"""Transforms by the name a run records them under."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Full-batch Adam and what surrounds it; the defaults are the paper's. Paper: Appendix F.3.

    Attributes:
        epochs: Steps.
        learning_rate: Adam's.
        weight_decay: Adam's (L2).
        schedule: ``none``, or ``cosine`` from the learning rate to 0 over the epochs.
        patience: Stop after this many epochs without a better validation score; ``None`` for never.
        regression_loss: ``mse`` or ``mae``, on standardised targets; for regression only.
        feature_scaling: ``standard`` gives each column of dense features mean 0 and deviation 1 over all nodes.
        transforms: Transforms of the hypergraph, applied once, in order.
    """

    epochs: int = 500
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Schedule = "none"
    patience: int | None = None
    regression_loss: RegressionLoss = "mse"
    feature_scaling: FeatureScaling = "none"
    transforms: tuple[str, ...] = ("add_singletons",)

    def __post_init__(self) -> None:
        for name in ("epochs", "learning_rate", "weight_decay", "patience"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        for name in ("epochs", "patience"):
            count = getattr(self, name)
            if not (count is None and name == "patience") and (not isinstance(count, int) or count < 1):
                raise UsageError(f"'{name}' must be a whole number of at least 1. Got {count!r}.")
        for name, least in (("learning_rate", "more than 0"), ("weight_decay", "at least 0")):
            rate = getattr(self, name)
            fits = isinstance(rate, int | float) and math.isfinite(rate) and (rate > 0 or (rate == 0 and "at" in least))
            if not fits:
                raise UsageError(f"'{name}' must be {least}. Got {rate!r}.")
        for name, choices in (
            ("schedule", get_args(Schedule)),
            ("regression_loss", get_args(RegressionLoss)),
            ("feature_scaling", get_args(FeatureScaling)),
        ):
            if getattr(self, name) not in choices:
                raise unknown_name(f"'{name}'", str(getattr(self, name)), choices)
        transforms: Any = self.transforms
        if not isinstance(transforms, tuple | list):
            raise UsageError(f"'transforms' must be a list of names, [\"add_singletons\"]. Got {transforms!r}.")
        for transform in transforms:
            if transform not in TRANSFORMS:
                raise unknown_name("transform", transform, TRANSFORMS)

    def learning_rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch; epochs count from 1."""
        if self.schedule == "none":
            return self.learning_rate
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (epoch - 1) / self.epochs))

    def transformed(self, hypergraph: Hypergraph) -> Hypergraph:
        """The hypergraph after the transforms."""
        for name in self.transforms:
            hypergraph = TRANSFORMS[name](hypergraph)
        return hypergraph
