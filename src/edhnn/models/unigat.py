r"""UniGAT: attention of nodes over their hyperedges.

$$ x_v \leftarrow \sum_{e \ni v} \alpha_{ve} y_e, \qquad y_e = \mathrm{agg}_{u \in e} W x_u, \qquad
   \alpha_{ve} = \mathrm{softmax}_{e \ni v}\, \mathrm{LeakyReLU}_{0.2}(a \cdot y_e), $$

head by head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from edhnn import kernels
from edhnn.hypergraph import Hypergraph
from edhnn.models.option_checks import check_choices
from edhnn.models.unignn import UniGNN, UniGNNConfig
from edhnn.nn.aggregate import node_weights, to_edges
from edhnn.nn.attention import attend, glorot_heads, head_scores, link_softmax
from edhnn.nn.mlp import Dropout
from edhnn.nn.projection import Projection
from edhnn.nn.smoothing import unit_rows

Scores = Literal["hyperedge", "pair"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniGATConfig(UniGNNConfig):
    r"""UniGAT's choices.

    Attributes:
        scores: ``hyperedge``, the code's, which declares a vector for the node and does not use it; ``pair``, the
            paper's formula: $\mathrm{LeakyReLU}(a \cdot y_e + a' \cdot W x_v)$.
        skip: Add $W x_v$.
        attention_dropout: Rate on the weights of the attention.
    """

    scores: Scores = "hyperedge"
    skip: bool = False
    attention_dropout: float = 0.6

    def __post_init__(self) -> None:
        super(UniGATConfig, self).__post_init__()
        check_choices(self, scores=Scores)


class UniGAT(UniGNN):
    """UniGAT. Source: UniGNN, Eq. 6. A weight of w counts as w memberships.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: UniGATConfig

    def __init__(
        self, config: UniGATConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or UniGATConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        self.attention_dropout = Dropout(config.attention_dropout, self.seeds)

    def _extra(self, heads: int, width: int) -> nn.Module:
        vectors = 2 if self.config.scores == "pair" else 1
        return nn.ParameterList(glorot_heads(heads, width, self.generator) for _ in range(vectors))

    def _mix(self, z: Tensor, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        assert isinstance(extra, nn.ParameterList)
        node, y_e = hypergraph.node_index, to_edges(z, hypergraph, self.config.aggregate)
        scores = head_scores(y_e, extra[0]).index_select(0, hypergraph.edge_index)
        if self.config.scores == "pair":
            scores = scores + head_scores(z, extra[1]).index_select(0, node)
        links = kernels.node_links(hypergraph)
        alpha = link_softmax(F.leaky_relu(scores, 0.2), links, node_weights(hypergraph, z))
        return attend(y_e, links, self.attention_dropout(alpha))

    def _layer(self, x: Tensor, projection: Projection, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        z = projection.project(x)
        mixed = self._mix(z, extra, hypergraph)
        mixed = unit_rows(mixed) if self.config.unit_rows else mixed
        return mixed + z if self.config.skip else mixed
