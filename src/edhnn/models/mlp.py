r"""A perceptron on the features alone: what the hypergraph adds is measured against it.

$$ \mathrm{logits}_v = \mathrm{MLP}(x_v). $$

With one layer, the published setting, it is multinomial logistic regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor

from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_counts
from edhnn.nn.feature_mlp import FeatureMLP
from edhnn.nn.mlp import MLP, Dropout, NormName


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MLPModelConfig:
    """The perceptron's choices; the defaults are AllSet's script.

    Attributes:
        layers: Linear layers.
        hidden: Width between them.
        norm: Norm of the hidden layers: ``layer``, ``batch`` or ``none``.
        dropout: Rate after each hidden layer; the features are not dropped.
    """

    layers: int = 1
    hidden: int = 64
    norm: NormName = "layer"
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_counts(self, "layers", "hidden")


class MLPModel(HypergraphModel):
    """The perceptron. Paper: Table 2 (MLP); defined by AllSet (Chien et al., ICLR 2022). Weights change nothing.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: MLPModelConfig

    def __init__(
        self, config: MLPModelConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or MLPModelConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        mlp = MLP(
            in_features,
            config.hidden,
            num_classes,
            config.layers,
            norm=config.norm,
            input_norm=False,
            dropout=config.dropout,
            seeds=self.seeds,
            generator=self.generator,
        )
        self.classifier = FeatureMLP(mlp, Dropout(0.0, self.seeds))
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node; of the hypergraph only the number of nodes is looked at."""
        as_hypergraph(hypergraph, x)
        out: Tensor = self.classifier(x)
        return out
