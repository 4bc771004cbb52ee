"""What the ED-HNN family shares: an encoder before the iterations and a classifier after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.errors import UsageError, unknown_name
from edhnn.models.contract import HypergraphModel
from edhnn.nn.features import FeatureLayer, check_features, dense_features
from edhnn.nn.mlp import MLP, Dropout, NormName

ActivationName = Literal["relu", "prelu", "identity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedConfig:
    """Choices around the iterations; the defaults are the released code's.

    Attributes:
        num_iterations: Diffusion iterations.
        hidden: Width of the states and of the perceptrons inside.
        classifier_layers: Layers of the classifier.
        classifier_hidden: Its width.
        norm: Norm of all perceptrons: ``layer``, ``batch`` or ``none``; inside also on their inputs.
        activation: After each iteration: ``relu``, ``prelu`` or ``identity``.
        dropout: Rate everywhere but on the features.
        input_dropout: Rate on the features.
        encoder: Encode the features by ReLU(Linear(x)); without it the states start as the features themselves.
    """

    num_iterations: int = 2
    hidden: int = 64
    classifier_layers: int = 2
    classifier_hidden: int = 64
    norm: NormName = "layer"
    activation: ActivationName = "relu"
    dropout: float = 0.5
    input_dropout: float = 0.5
    encoder: bool = True

    def __post_init__(self) -> None:
        for name in ("num_iterations", "hidden", "classifier_layers", "classifier_hidden"):
            if getattr(self, name) < 1:
                raise UsageError(f"The '{name}' of a model must be at least 1. Got {getattr(self, name)}.")
        if self.activation not in get_args(ActivationName):
            raise unknown_name("activation", self.activation, get_args(ActivationName))


class EncodedModel(HypergraphModel):
    """Encoder, iterations (the subclass's), classifier."""

    config: EncodedConfig

    def __init__(self, config: EncodedConfig, *, in_features: int, num_classes: int, seed: int) -> None:
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        self.num_iterations = config.num_iterations
        self.encoder: FeatureLayer | None = None
        if config.encoder:
            self.encoder = FeatureLayer(
                in_features,
                config.hidden,
                dropout=config.input_dropout,
                seeds=self.seeds,
                generator=self.generator,
            )
        elif in_features != config.hidden:
            raise UsageError(
                f"Without an encoder the states are the features: 'hidden' must be their number, {in_features}. "
                f"Got {config.hidden}."
            )
        self.input_dropout = Dropout(0.0 if config.encoder else config.input_dropout, self.seeds)
        self.dropout = Dropout(config.dropout, self.seeds)
        self.activation: nn.Module = {"relu": nn.ReLU, "prelu": nn.PReLU, "identity": nn.Identity}[config.activation]()

    def _finish(self) -> None:
        """The classifier; drawn last, so that weights come in the order of the forward pass."""
        self.classifier = self._classifier(self.config.hidden, self.config)
        del self.generator

    def _mlp(self, in_features: int, num_layers: int) -> MLP:
        """A perceptron inside the iterations."""
        return self._inner(in_features, num_layers, self.config.norm, self.config.dropout)

    def _mlp_or_identity(self, in_features: int, num_layers: int) -> nn.Module:
        return self._mlp(in_features, num_layers) if num_layers else nn.Identity()

    def _plain(self, in_features: int, num_layers: int) -> MLP:
        """A perceptron inside the iterations with neither norm nor dropout."""
        return self._inner(in_features, num_layers, "none", 0.0)

    def _inner(self, in_features: int, num_layers: int, norm: NormName, dropout: float) -> MLP:
        width = self.config.hidden
        return MLP(
            in_features,
            width,
            width,
            num_layers,
            norm=norm,
            dropout=dropout,
            seeds=self.seeds,
            generator=self.generator,
        )

    def encode(self, x: Tensor) -> Float[Tensor, "N D"]:
        """The first state."""
        if self.encoder is None:
            check_features(x, self.config.hidden)
            out: Tensor = self.input_dropout(dense_features(x, self.classifier.last.weight))
            return out
        encoded: Tensor = self.encoder(x).relu()
        return encoded

    def advance(self, z: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """The next state: the activation, and the dropout of whoever hears it, in one pass where that is ReLU."""
        if isinstance(self.activation, nn.ReLU):
            return kernels.row_activation(z, dropout=self.dropout.active_rate, seed=self.dropout.seed())
        out: Tensor = self.dropout(self.activation(z))
        return out
