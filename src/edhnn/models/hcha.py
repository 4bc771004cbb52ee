r"""HCHA: hypergraph convolution by means of means, with or without attention.

$$ x \leftarrow \mathrm{ELU}(D_v^{-1} H W_e D_e^{-1} H^\top x W + b). $$

With attention every membership gets a weight of its own in both steps,
$\alpha_{ve} = \mathrm{softmax}_{e \ni v}\, \mathrm{LeakyReLU}_{0.2}(a_v \cdot W x_v + a_e \cdot W x_e)$, head by head,
where a hyperedge's features $x_e$ are the mean of its members'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.hypergraph import Hypergraph
from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_counts
from edhnn.nn.aggregate import divided, edge_total, node_total, node_weights, to_edges
from edhnn.nn.attention import attend, glorot_heads, head_scores, link_softmax
from edhnn.nn.mlp import Dropout
from edhnn.nn.projection import Projection
from edhnn.nn.smoothing import row_smoothing


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HCHAConfig:
    """HCHA's choices; the defaults are AllSet's script, which leaves attention off.

    Attributes:
        layers: Convolutions.
        hidden: Width between them, of each head.
        dropout: Rate after each hidden layer; the features are not dropped.
        attention: Weigh memberships by attention.
        heads: Heads of the attention: side by side in hidden layers, averaged in the last.
    """

    layers: int = 2
    hidden: int = 64
    dropout: float = 0.5
    attention: bool = False
    heads: int = 1

    def __post_init__(self) -> None:
        check_counts(self, "layers", "hidden", "heads")


class HCHA(HypergraphModel):
    """HCHA. Paper: Table 2 (HCHA). Source: Bai, Zhang and Torr, Pattern Recognition 2021, Eq. 5 and 8.

    Differs: hyperedges have no features of their own here, so attention takes the mean of their members'.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: HCHAConfig

    def __init__(self, config: HCHAConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0) -> None:
        config = config or HCHAConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        heads = config.heads if config.attention else 1
        self.convolutions = nn.ModuleList()
        for layer in range(config.layers):
            last = layer == config.layers - 1
            self.convolutions.append(
                HypergraphConvolution(
                    heads * config.hidden if layer else in_features,
                    num_classes if last else config.hidden,
                    heads=heads,
                    attention=config.attention,
                    average=last,
                    generator=self.generator,
                )
            )
        self.dropout = Dropout(config.dropout, self.seeds)
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined = as_hypergraph(hypergraph, x)
        for layer, convolution in enumerate(self.convolutions):
            x = convolution(x, joined)
            if layer < len(self.convolutions) - 1:
                x = self.dropout(F.elu(x))
        return x


class HypergraphConvolution(nn.Module):
    """One convolution.

    Args:
        in_features: Width of the input.
        out_features: Width of a head.
        heads: Number of heads.
        attention: Whether memberships are weighed by attention.
        average: Average the heads instead of joining them.
        generator: Where the initial weights come from.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        heads: int,
        attention: bool,
        average: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.heads, self.average, self.attention = heads, average, attention
        self.projection = Projection(in_features, heads * out_features, bias=False, generator=generator)
        if attention:
            self.node_vector, self.edge_vector = (glorot_heads(heads, out_features, generator) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(out_features if average else heads * out_features))

    def forward(self, x: Tensor, hypergraph: Hypergraph) -> Float[Tensor, "N D"]:
        """Apply the convolution."""
        if not self.attention:
            return self.projection.propagated(x, partial(row_smoothing, hypergraph=hypergraph)) + self.bias
        z = self.projection.project(x)
        node, edge = hypergraph.node_index, hypergraph.edge_index
        scores = head_scores(z, self.node_vector).index_select(0, node)
        z_e = to_edges(z, hypergraph, "mean")
        scores = F.leaky_relu(scores + head_scores(z_e, self.edge_vector).index_select(0, edge), 0.2)
        links = kernels.node_links(hypergraph)
        alpha = link_softmax(scores, links, node_weights(hypergraph, z))
        spoken = alpha  # a hyperedge of weight w is w hyperedges to its nodes, and one to itself
        if hypergraph.edge_weight is not None:
            own = hypergraph.edge_weight.to(z).index_select(0, edge)[:, None]
            spoken = alpha / torch.where(own > 0, own, 1)
        m_e = divided(attend(z, kernels.edge_links(hypergraph), spoken), edge_total(hypergraph, z))
        out = attend(m_e, links, alpha)
        out = divided(out, node_total(hypergraph, z))
        return (
            out.view(len(out), self.heads, out.shape[1] // self.heads).mean(dim=1) if self.average else out
        ) + self.bias
