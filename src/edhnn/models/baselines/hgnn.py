r"""HGNN and HCHA: convolutions on hypergraphs.

HGNN propagates with the normalised hypergraph Laplacian:

$$ x \leftarrow \sigma(\Theta x W + b), \qquad \Theta = D_v^{-1/2} H W_e D_e^{-1} H^\top D_v^{-1/2}. $$

HCHA propagates with means of means:

$$ x \leftarrow \mathrm{ELU}(D_v^{-1} H W_e D_e^{-1} H^\top x W + b). $$

With attention, each membership has a weight in both steps,
$\alpha_{ve} = \mathrm{softmax}_{e \ni v}\, \mathrm{LeakyReLU}_{0.2}(a_v \cdot W x_v + a_e \cdot W x_e)$, head by head,
where the features $x_e$ of a hyperedge are the mean of its members' features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.configuration import Configuration, Depth, Width
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import (
    divided,
    edge_total,
    node_total,
    node_weights,
    row_smoothing,
    symmetric_smoothing,
    to_edges,
)
from edhnn.nn.attention import attend, glorot_heads, head_scores, link_softmax
from edhnn.nn.features import Projection, layer_widths

Variant = Literal["allset", "original"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HGNNConfig(Configuration):
    r"""Options of HGNN. The defaults are those of AllSet's script, the source of the published numbers.

    Attributes:
        layers: Convolutions.
        hidden: Width between them.
        dropout: Dropout rate after each hidden layer; the features have no dropout.
        variant: ``allset``: ELU, bias after the propagation and initially 0, Glorot weights. ``original`` (Feng et
            al.'s code): ReLU, bias before the propagation, bias and weights from $U(\pm 1/\sqrt{\text{out}})$.
    """

    layers: Depth = 2
    hidden: Width = 64
    dropout: float = 0.5
    variant: Variant = "allset"


@register_model("hgnn", "convolution with the symmetric hypergraph Laplacian")
class HGNN(HypergraphModel[HGNNConfig]):
    """HGNN. Paper: Table 2 (HGNN). Source: Feng et al., AAAI 2019, Eq. 11.

    Differs: dropout is off in evaluation also in the ``original`` variant, whose code leaves it on.
    """

    config_class = HGNNConfig

    def build(self, config: HGNNConfig) -> None:
        """Make the layers."""
        widths = layer_widths(self.in_features, config.hidden, self.num_classes, config.layers)
        self.convolutions = nn.ModuleList(
            Projection(*ends, init="glorot" if config.variant == "allset" else "outputs", generator=self.generator)
            for ends in pairwise(widths)
        )
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        smooth = partial(symmetric_smoothing, hypergraph=as_hypergraph(hypergraph, x))
        released = self.config.variant == "allset"
        for layer, convolution in enumerate(self.convolutions):
            assert isinstance(convolution, Projection)
            x = convolution.propagated(x, smooth) if released else smooth(convolution(x))
            if layer < len(self.convolutions) - 1:
                x = self.dropout(F.elu(x) if released else x.relu())
        return x


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HCHAConfig(Configuration):
    """Options of HCHA. The defaults are those of AllSet's script, which has attention off.

    Attributes:
        layers: Convolutions.
        hidden: Width of each head between them.
        dropout: Dropout rate after each hidden layer; the features have no dropout.
        attention: Weight memberships by attention.
        heads: Heads of the attention, concatenated in hidden layers and averaged in the last.
    """

    layers: Depth = 2
    hidden: Width = 64
    dropout: float = 0.5
    attention: bool = False
    heads: Width = 1


@register_model("hcha", "convolution by means of means, with or without attention")
class HCHA(HypergraphModel[HCHAConfig]):
    r"""HCHA. Paper: Table 2 (HCHA). Source: Bai, Zhang and Torr, Pattern Recognition 2021, Eq. 5 and 8.

    Differs: hyperedges have no features here, so attention uses the mean of their members' features. The two attention
    vectors are drawn from $U(\pm\sqrt{6/(\text{heads} + \text{width})})$; PyG's ``HypergraphConv`` draws one
    vector of twice the width, from $U(\pm\sqrt{6/(\text{heads} + 2\,\text{width})})$.
    """

    config_class = HCHAConfig

    def build(self, config: HCHAConfig) -> None:
        """Make the layers."""
        heads = config.heads if config.attention else 1
        self.convolutions = nn.ModuleList()
        for layer in range(config.layers):
            last = layer == config.layers - 1
            self.convolutions.append(
                HypergraphConvolution(
                    heads * config.hidden if layer else self.in_features,
                    self.num_classes if last else config.hidden,
                    heads=heads,
                    attention=config.attention,
                    average=last,
                    generator=self.generator,
                )
            )
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        for layer, convolution in enumerate(self.convolutions):
            x = convolution(x, hypergraph)
            if layer < len(self.convolutions) - 1:
                x = self.dropout(F.elu(x))
        return x


class HypergraphConvolution(nn.Module):
    """A convolution of HCHA, with heads of ``out_features`` columns, concatenated or averaged."""

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
            smoothed = self.projection.propagated(x, partial(row_smoothing, hypergraph=hypergraph))
            return kernels.add_bias(smoothed, self.bias)
        z = self.projection.project(x)
        node, edge = hypergraph.node_index, hypergraph.edge_index
        scores = head_scores(z, self.node_vector).index_select(0, node)
        z_e = to_edges(z, hypergraph, "mean")
        scores = F.leaky_relu(scores + head_scores(z_e, self.edge_vector).index_select(0, edge), 0.2)
        links = kernels.node_links(hypergraph)
        alpha = link_softmax(scores, links, node_weights(hypergraph, z))
        inward = alpha
        if hypergraph.edge_weight is not None:  # alpha sums over w copies; each copy averages with alpha / w
            edge_weight = hypergraph.edge_weight.to(z).index_select(0, edge)[:, None]
            inward = alpha / torch.where(edge_weight > 0, edge_weight, 1)
        m_e = divided(attend(z, kernels.edge_links(hypergraph), inward), edge_total(hypergraph, z))
        out = divided(attend(m_e, links, alpha), node_total(hypergraph, z))
        if self.average:
            out = out.view(len(out), self.heads, out.shape[1] // self.heads).mean(dim=1)
        return kernels.add_bias(out, self.bias)
