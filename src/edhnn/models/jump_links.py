r"""HGNN and AllDeepSets with a jump link: a node's earlier state beside what it heard.

Both get an encoder, $z = h^0 = \mathrm{ReLU}(W_{in} x + b_{in})$. A layer hears $s$ and maps it by $g$; with a link,

- ``mix``: $h \leftarrow g((1 - \alpha) s + \alpha z)$, as the released JumpLink convolution has it,
- ``join``: $h \leftarrow g([h ; s])$, which for a linear $g$ is $W s + W' h + b$.

The paper names the two models and defines neither; these are the two readings it allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.models.alldeepsets import AllDeepSetsConfig, half_sum, set_mlp
from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_choices, check_counts, check_fraction
from edhnn.nn.features import FeatureLayer
from edhnn.nn.mlp import Dropout, make_linear
from edhnn.nn.projection import Projection
from edhnn.nn.smoothing import row_smoothing, symmetric_smoothing

Jump = Literal["mix", "join"]
Smoothing = Literal["symmetric", "row"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HGNNJumpLinkConfig:
    r"""Choices of HGNN with a jump link.

    Attributes:
        layers: Convolutions between the encoder and the linear classifier.
        hidden: Width of the states.
        jump: ``mix`` or ``join``.
        restart: $\alpha$ of ``mix``.
        smoothing: ``symmetric``, HGNN's; ``row``, means of means as in the released JumpLink.
        dropout: Rate before each convolution and the classifier.
        input_dropout: Rate on the features.
    """

    layers: int = 1
    hidden: int = 64
    jump: Jump = "mix"
    restart: float = 0.5
    smoothing: Smoothing = "symmetric"
    dropout: float = 0.5
    input_dropout: float = 0.5

    def __post_init__(self) -> None:
        check_counts(self, "layers", "hidden")
        check_choices(self, jump=Jump, smoothing=Smoothing)
        check_fraction(self, "restart")


class HGNNJumpLink(HypergraphModel):
    """HGNN with a jump link. Paper: Table 3 (HGNN + JumpLink).

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: HGNNJumpLinkConfig

    def __init__(
        self, config: HGNNJumpLinkConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or HGNNJumpLinkConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        width, generator = config.hidden, self.generator
        self.encoder = _encoder(self, width, config.input_dropout)
        wide = width if config.jump == "mix" else 2 * width
        self.convolutions = nn.ModuleList(Projection(wide, width, generator=generator) for _ in range(config.layers))
        self.classifier = make_linear(width, num_classes, generator)
        self.dropout = Dropout(config.dropout, self.seeds)
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined, config = as_hypergraph(hypergraph, x), self.config
        smooth = symmetric_smoothing if config.smoothing == "symmetric" else row_smoothing
        h = first = self.encoder(x).relu()
        for convolution in self.convolutions:
            h = self.dropout(h)
            h = F.elu(convolution(_jump(smooth(h, joined), h, first, config.jump, config.restart)))
        out: Tensor = self.classifier(self.dropout(h))
        return out


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllDeepSetsJumpLinkConfig(AllDeepSetsConfig):
    r"""Choices of AllDeepSets with a jump link.

    Attributes:
        jump: ``mix`` or ``join``, before $g_2$.
        restart: $\alpha$ of ``mix``.
    """

    jump: Jump = "mix"
    restart: float = 0.5

    def __post_init__(self) -> None:
        super(AllDeepSetsJumpLinkConfig, self).__post_init__()
        check_choices(self, jump=Jump)
        check_fraction(self, "restart")


class AllDeepSetsJumpLink(HypergraphModel):
    """AllDeepSets with a jump link. Paper: Table 3 (AllDeepSets + JumpLink).

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: AllDeepSetsJumpLinkConfig

    def __init__(
        self, config: AllDeepSetsJumpLinkConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or AllDeepSetsJumpLinkConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        width = config.hidden
        self.encoder = _encoder(self, width, config.input_dropout)
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        for half in range(2 * config.layers):
            wide = 2 * width if half % 2 and config.jump == "join" else width
            self.encoders.append(set_mlp(self, config, width))
            self.decoders.append(set_mlp(self, config, wide))
        self.classifier = self._classifier(config.hidden, config)
        self.dropout = Dropout(config.dropout, self.seeds)
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined, config = as_hypergraph(hypergraph, x), self.config
        h = first = self.encoder(x).relu()
        halves = [*zip(self.encoders, self.decoders, strict=True)]
        for (f_1, g_1), (f_2, g_2) in zip(halves[::2], halves[1::2], strict=True):
            h = self.dropout(h)
            u = self.dropout(f_1(h).relu())
            y_e = self.dropout(g_1(half_sum(u, joined, True, config.degree_scaled)).relu())
            s = half_sum(self.dropout(f_2(y_e).relu()), joined, False, config.degree_scaled)
            h = g_2(_jump(s, h, first, config.jump, config.restart)).relu()
        out: Tensor = self.classifier(self.dropout(h))
        return out


def _encoder(model: HypergraphModel, width: int, dropout: float) -> FeatureLayer:
    return FeatureLayer(model.in_features, width, dropout=dropout, seeds=model.seeds, generator=model.generator)


def _jump(s: Tensor, h: Tensor, first: Tensor, jump: Jump, restart: float) -> Tensor:
    return torch.lerp(s, first, restart) if jump == "mix" else torch.cat([h, s], dim=1)
