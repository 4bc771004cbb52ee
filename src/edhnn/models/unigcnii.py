r"""UniGCNII: many layers of degree-scaled averages with a link to the first state and near-identity maps.

From $h^0 = \mathrm{ReLU}(W_{in} x + b_{in})$, layer $i = 1, 2, \dots$ is, with $y_e$ and $\bar d_e$ the means of $h$
and of the degrees in $e$,

$$ s_v = d_v^{-1/2} \sum_{e \ni v} \bar d_e^{-1/2} y_e, \qquad z = (1 - \alpha) s + \alpha h^0, \qquad
   h = \mathrm{ReLU}((1 - \beta_i) z + \beta_i W_i z), \quad \beta_i = \ln(\lambda / i + 1), $$

and a linear map reads the last state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.errors import UsageError
from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_choices, check_counts, check_fraction
from edhnn.nn.features import FeatureLayer
from edhnn.nn.mlp import Dropout, make_linear
from edhnn.nn.projection import Projection
from edhnn.nn.smoothing import degree_smoothing, row_smoothing, unit_rows

Smoothing = Literal["degree", "mean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniGCNIIConfig:
    r"""UniGCNII's choices; the defaults are AllSet's, the source of the published numbers.

    Attributes:
        layers: Layers.
        hidden: Width of a head.
        heads: The state is ``heads`` times ``hidden`` wide.
        smoothing: ``degree`` as above; ``mean``, ED-HNN's code: the mean of $y_e$, with restart 0.5 and one head.
        restart: $\alpha$.
        identity_scale: $\lambda$.
        unit_rows: Scale the rows of $s$ to length 1, as the authors' deep recipe does.
        dropout: Rate before each layer and on the features.
    """

    layers: int = 1
    hidden: int = 64
    heads: int = 1
    smoothing: Smoothing = "degree"
    restart: float = 0.1
    identity_scale: float = 0.5
    unit_rows: bool = False
    dropout: float = 0.2

    def __post_init__(self) -> None:
        check_counts(self, "layers", "hidden", "heads")
        check_choices(self, smoothing=Smoothing)
        check_fraction(self, "restart")
        if self.identity_scale <= 0:
            raise UsageError(f"The 'identity_scale' of UniGCNII must be positive. Got {self.identity_scale}.")


class UniGCNII(HypergraphModel):
    """UniGCNII. Paper: Table 2 (UniGCNII). Source: Huang and Yang, IJCAI 2021, Eq. 9, in AllSet's setting.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: UniGCNIIConfig

    def __init__(
        self, config: UniGCNIIConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or UniGCNIIConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        width, generator = config.hidden * config.heads, self.generator
        self.encoder = FeatureLayer(
            in_features, width, dropout=config.dropout, seeds=self.seeds, generator=self.generator
        )
        self.maps = nn.ModuleList(
            Projection(width, width, init="linear", bias=False, generator=generator) for _ in range(config.layers)
        )
        self.classifier = make_linear(width, num_classes, generator)
        self.dropout = Dropout(config.dropout, self.seeds)
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined, config = as_hypergraph(hypergraph, x), self.config
        h = first = self.encoder(x).relu()
        for layer, linear in enumerate(self.maps, start=1):
            h = self.dropout(h)
            s = degree_smoothing(h, joined, "mean") if config.smoothing == "degree" else row_smoothing(h, joined)
            z = torch.lerp(unit_rows(s) if config.unit_rows else s, first, config.restart)
            h = torch.lerp(z, linear(z), math.log(config.identity_scale / layer + 1)).relu()
        out: Tensor = self.classifier(self.dropout(h))
        return out

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameters with the weight decays of AllSet and the authors: 0.01 inside, 0.0005 at both ends."""
        ends = [*self.encoder.parameters(), *self.classifier.parameters()]
        return [{"params": list(self.maps.parameters()), "weight_decay": 0.01}, {"params": ends, "weight_decay": 5e-4}]
