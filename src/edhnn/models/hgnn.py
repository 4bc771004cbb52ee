r"""HGNN: convolution with the normalised hypergraph Laplacian.

$$ x \leftarrow \sigma(\Theta x W + b), \qquad \Theta = D_v^{-1/2} H W_e D_e^{-1} H^\top D_v^{-1/2}. $$
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, final

import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_choices, check_counts
from edhnn.nn.mlp import Dropout
from edhnn.nn.projection import Projection, layer_widths
from edhnn.nn.smoothing import symmetric_smoothing

Variant = Literal["allset", "original"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HGNNConfig:
    r"""HGNN's choices; the defaults are AllSet's script, the source of the published numbers.

    Attributes:
        layers: Convolutions.
        hidden: Width between them.
        dropout: Rate after each hidden layer; the features are not dropped.
        variant: ``allset``: ELU, bias after the propagation and 0 at first, Glorot weights. ``original`` (Feng et al.'s
            code): ReLU, bias before the propagation, both from $U(\pm 1/\sqrt{\text{out}})$.
    """

    layers: int = 2
    hidden: int = 64
    dropout: float = 0.5
    variant: Variant = "allset"

    def __post_init__(self) -> None:
        check_counts(self, "layers", "hidden")
        check_choices(self, variant=Variant)


class HGNN(HypergraphModel):
    """HGNN. Paper: Table 2 (HGNN). Source: Feng et al., AAAI 2019, Eq. 11.

    Differs: dropout ends with training also in the ``original`` variant, whose code leaves it on.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: HGNNConfig

    def __init__(self, config: HGNNConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0) -> None:
        config = config or HGNNConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        widths = layer_widths(in_features, config.hidden, num_classes, config.layers)
        self.convolutions = nn.ModuleList(
            Projection(*ends, init="glorot" if config.variant == "allset" else "outputs", generator=self.generator)
            for ends in pairwise(widths)
        )
        self.dropout = Dropout(config.dropout, self.seeds)
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        smooth = partial(symmetric_smoothing, hypergraph=as_hypergraph(hypergraph, x))
        released = self.config.variant == "allset"
        for layer, convolution in enumerate(self.convolutions):
            assert isinstance(convolution, Projection)
            x = convolution.propagated(x, smooth) if released else smooth(convolution(x))
            if layer < len(self.convolutions) - 1:
                x = self.dropout(F.elu(x) if released else x.relu())
        return x
