r"""A perceptron on the features alone, the baseline that shows what the hypergraph contributes.

$$ \mathrm{logits}_v = \mathrm{MLP}(x_v). $$

With one layer, as published, it is multinomial logistic regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor

from edhnn.configuration import Configuration, Depth, Width
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.registry import register_model
from edhnn.nn.features import FeatureMLP
from edhnn.nn.mlp import NormName


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MLPModelConfig(Configuration):
    """Options of the perceptron. The defaults are those of AllSet's script.

    Attributes:
        layers: Linear layers.
        hidden: Width between them.
        norm: Norm of the hidden layers: ``layer``, ``batch`` or ``none``.
        dropout: Dropout rate after each hidden layer; the features have no dropout.
    """

    layers: Depth = 1
    hidden: Width = 64
    norm: NormName = "layer"
    dropout: float = 0.5


@register_model("mlp", "a perceptron on the features alone", singletons=False)
class MLPModel(HypergraphModel[MLPModelConfig]):
    """The perceptron. Paper: Table 2 (MLP); defined by AllSet (Chien et al., ICLR 2022). It ignores weights."""

    config_class = MLPModelConfig

    def build(self, config: MLPModelConfig) -> None:
        """Make the layers."""
        mlp = self.make_mlp(
            self.in_features,
            config.hidden,
            self.num_classes,
            config.layers,
            norm=config.norm,
            input_norm=False,
            dropout=config.dropout,
        )
        self.classifier = FeatureMLP(mlp, self.make_dropout(0.0))

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node; only the number of nodes of the hypergraph is checked."""
        as_hypergraph(hypergraph, x)
        out: Tensor = self.classifier(x)
        return out
