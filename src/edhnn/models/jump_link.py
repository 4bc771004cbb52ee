r"""JumpLink: two rounds of averages and a link back to the encoded input, with one learned map.

$$ s_v = \mathrm{agg}_{e \ni v} \mathrm{agg}_{u \in e} h_u, \qquad h_v \leftarrow W((1 - \alpha) s_v + \alpha x_v). $$
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor

from edhnn.models.contract import HypergraphLike, as_hypergraph
from edhnn.models.encoded import EncodedConfig, EncodedModel
from edhnn.models.option_checks import check_choices
from edhnn.nn.aggregate import Aggregate, to_edges, to_nodes
from edhnn.nn.update import RestartUpdate


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JumpLinkConfig(EncodedConfig):
    r"""JumpLink's choices; the perceptron inside has neither norm nor dropout.

    Attributes:
        layers: Layers of $W$.
        aggregate: ``sum`` or ``mean``.
        restart: $\alpha$.
    """

    layers: int = 2
    aggregate: Aggregate = "mean"
    restart: float = 0.5

    def __post_init__(self) -> None:
        super(JumpLinkConfig, self).__post_init__()
        check_choices(self, aggregate=Aggregate)


class JumpLink(EncodedModel):
    r"""JumpLink. Paper: Table 3 (the jump link), in the released code's variant.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: JumpLinkConfig

    def __init__(
        self, config: JumpLinkConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or JumpLinkConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        self.update = RestartUpdate(self._plain(config.hidden, config.layers), config.restart)
        self._finish()

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined, aggregate = as_hypergraph(hypergraph, x), self.config.aggregate
        x_v = self.encode(x)
        h = self.dropout(x_v)
        for _ in range(self.num_iterations):
            s = to_nodes(to_edges(h, joined, aggregate), joined, aggregate)
            h = self.advance(self.update(h, s, x_v, joined))
        out: Tensor = self.classifier(h)
        return out
