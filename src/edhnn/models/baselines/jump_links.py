r"""HGNN and AllDeepSets with a jump link, which combines the messages at a node with an earlier state.

Both have an encoder, $z = h^0 = \mathrm{ReLU}(W_{in} x + b_{in})$. Each layer has messages $s$ and a map $g$,
and the link is

- ``mix``: $h \leftarrow g((1 - \alpha) s + \alpha z)$, as in the released JumpLink convolution, or
- ``join``: $h \leftarrow g([h ; s])$, which for a linear $g$ is $W s + W' h + b$.

The paper names the two models and does not define them. These are the two possible readings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.configuration import Configuration, Depth, Fraction, Width
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.baselines.allset import AllDeepSetsConfig, half_sum, set_mlp
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import row_smoothing, symmetric_smoothing
from edhnn.nn.features import FeatureLayer, Projection
from edhnn.nn.mlp import make_linear

Jump = Literal["mix", "join"]
Smoothing = Literal["symmetric", "row"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HGNNJumpLinkConfig(Configuration):
    r"""Options of HGNN with a jump link.

    Attributes:
        layers: Convolutions between the encoder and the linear classifier.
        hidden: Width of the states.
        jump: ``mix`` or ``join``.
        restart: $\alpha$ of ``mix``.
        smoothing: ``symmetric`` as in HGNN; ``row`` for means of means as in the released JumpLink.
        dropout: Dropout rate before each convolution and the classifier.
        input_dropout: Dropout rate on the features.
    """

    layers: Depth = 1
    hidden: Width = 64
    jump: Jump = "mix"
    restart: Fraction = 0.5
    smoothing: Smoothing = "symmetric"
    dropout: float = 0.5
    input_dropout: float = 0.5


@register_model("hgnn-jumplink", "HGNN with a link to the input, Table 3")
class HGNNJumpLink(HypergraphModel[HGNNJumpLinkConfig]):
    """HGNN with a jump link. Paper: Table 3 (HGNN + JumpLink)."""

    config_class = HGNNJumpLinkConfig

    def build(self, config: HGNNJumpLinkConfig) -> None:
        """Make the layers."""
        width, generator = config.hidden, self.generator
        self.encoder = _encoder(self, width, config.input_dropout)
        wide = width if config.jump == "mix" else 2 * width
        self.convolutions = nn.ModuleList(Projection(wide, width, generator=generator) for _ in range(config.layers))
        self.classifier = make_linear(width, self.num_classes, generator)
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph, config = as_hypergraph(hypergraph, x), self.config
        smooth = symmetric_smoothing if config.smoothing == "symmetric" else row_smoothing
        h = first = self.encoder(x).relu()
        for convolution in self.convolutions:
            h = self.dropout(h)
            h = F.elu(convolution(_jump(smooth(h, hypergraph), h, first, config.jump, config.restart)))
        out: Tensor = self.classifier(self.dropout(h))
        return out


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllDeepSetsJumpLinkConfig(AllDeepSetsConfig):
    r"""Options of AllDeepSets with a jump link.

    Attributes:
        jump: ``mix`` or ``join``, before $g_2$.
        restart: $\alpha$ of ``mix``.
    """

    jump: Jump = "mix"
    restart: Fraction = 0.5


@register_model("alldeepsets-jumplink", "AllDeepSets with a link to the input, Table 3")
class AllDeepSetsJumpLink(HypergraphModel[AllDeepSetsJumpLinkConfig]):
    """AllDeepSets with a jump link. Paper: Table 3 (AllDeepSets + JumpLink)."""

    config_class = AllDeepSetsJumpLinkConfig

    def build(self, config: AllDeepSetsJumpLinkConfig) -> None:
        """Make the layers."""
        width = config.hidden
        self.encoder = _encoder(self, width, config.input_dropout)
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        for half in range(2 * config.layers):
            wide = 2 * width if half % 2 and config.jump == "join" else width
            self.encoders.append(set_mlp(self, config, width))
            self.decoders.append(set_mlp(self, config, wide))
        self.classifier = self.make_classifier(config.hidden)
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph, config = as_hypergraph(hypergraph, x), self.config
        h = first = self.encoder(x).relu()
        halves = [*zip(self.encoders, self.decoders, strict=True)]
        for (f_1, g_1), (f_2, g_2) in zip(halves[::2], halves[1::2], strict=True):
            h = self.dropout(h)
            u = self.dropout(f_1(h).relu())
            y_e = self.dropout(g_1(half_sum(u, hypergraph, True, config.degree_scaled)).relu())
            s = half_sum(self.dropout(f_2(y_e).relu()), hypergraph, False, config.degree_scaled)
            h = g_2(_jump(s, h, first, config.jump, config.restart)).relu()
        out: Tensor = self.classifier(self.dropout(h))
        return out


def _encoder(model: HypergraphModel[Any], width: int, dropout: float) -> FeatureLayer:
    return FeatureLayer(model.in_features, width, dropout=dropout, seeds=model.seeds, generator=model.generator)


def _jump(s: Tensor, h: Tensor, first: Tensor, jump: Jump, restart: float) -> Tensor:
    return torch.lerp(s, first, restart) if jump == "mix" else torch.cat([h, s], dim=1)
