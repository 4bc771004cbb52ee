r"""CE-GCN and CE-GAT: graph networks on the clique expansion.

The graph joins two nodes with the weight of the hyperedges that hold both, $A_{uv} = \sum_e w_e w_{eu} w_{ev}$.

- GCN: $x \leftarrow \hat A x W + b$ with $\hat A = D^{-1/2} (A + I) D^{-1/2}$, $D$ the weights that arrive at a node.
- GAT: $x_v \leftarrow \sum_u \alpha_{vu} W x_u + b$ over the node itself and what arrives at it,
  $\alpha_{vu} = \mathrm{softmax}_u\, \mathrm{LeakyReLU}_{0.2}(a_s \cdot W x_u + a_t \cdot W x_v)$, head by head.

Between layers ReLU, norm and dropout. AllSet kept each pair in one direction only, from the smaller node number to the
larger (``direction="upwards"``). That tells a node's number, and where nodes are sorted by class its class: so it is
not the default (docs/adr/0012).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, final

import scipy.sparse as sp
import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.configuration import Configuration, Count
from edhnn.hypergraph.expansions import clique_multiplicity
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import (
    HypergraphLike,
    HypergraphModel,
    as_hypergraph,
    refuse_weights,
)
from edhnn.models.registry import register_model
from edhnn.nn.attention import attend, glorot_heads, head_scores, link_softmax
from edhnn.nn.cache import cached_per_hypergraph
from edhnn.nn.features import Projection, layer_widths
from edhnn.nn.graph import GraphOperator, normalised_with_loops
from edhnn.nn.mlp import BatchNorm

Direction = Literal["upwards", "both"]
BatchOrNone = Literal["batch", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CEGCNConfig(Configuration):
    """CE-GCN's choices; the defaults are AllSet's script, but for the direction.

    Attributes:
        layers: Convolutions.
        hidden: Width between them.
        norm: After each hidden layer: ``batch`` or ``none`` (AllSet's ``ln`` means none here).
        dropout: Rate after each hidden layer.
        direction: ``both``, the clique expansion; ``upwards``, from smaller to larger node number, as AllSet has it.
    """

    layers: Count = 2
    hidden: Count = 64
    norm: BatchOrNone = "none"
    dropout: float = 0.5
    direction: Direction = "both"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CEGATConfig(CEGCNConfig):
    """CE-GAT's choices; the defaults are AllSet's script, but for the direction.

    Attributes:
        heads: Heads of each hidden layer, ``hidden`` columns each.
        output_heads: Heads of the last layer, averaged.
    """

    heads: Count = 1
    output_heads: Count = 1


@register_model("ce-gcn", "GCN on the clique expansion", singletons=False)
class CEGCN(HypergraphModel[CEGCNConfig]):
    """GCN on the clique expansion. Paper: Table 2 (CE-GCN). Sources: Kipf and Welling, ICLR 2017; AllSet's setting."""

    config_class = CEGCNConfig

    def build(self, config: CEGCNConfig) -> None:
        """Make the layers."""
        widths = layer_widths(self.in_features, config.hidden, self.num_classes, config.layers)
        self.convolutions = nn.ModuleList(Projection(*ends, generator=self.generator) for ends in pairwise(widths))
        self.norms = hidden_norms(config.norm, config.hidden, config.layers)
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        propagate = gcn_operator(as_hypergraph(hypergraph, x), self.config.direction)
        *hidden, last = self.convolutions
        for convolution, norm in zip(hidden, self.norms, strict=True):
            x = self.dropout(norm(convolution.propagated(x, propagate).relu()))  # type: ignore[operator]
        out: Tensor = last.propagated(x, propagate)  # type: ignore[operator]
        return out


@register_model("ce-gat", "GAT on the clique expansion", singletons=False)
class CEGAT(HypergraphModel[CEGATConfig]):
    """GAT on the clique expansion. Paper: Table 2 (CE-GAT). Sources: Veličković et al., ICLR 2018; AllSet's setting.

    Weights are refused: its graph has none.
    """

    config_class = CEGATConfig

    def build(self, config: CEGATConfig) -> None:
        """Make the layers."""
        wide, generator = config.heads * config.hidden, self.generator
        self.layers = nn.ModuleList(
            GATLayer(self.in_features if layer == 0 else wide, config.hidden, heads=config.heads, generator=generator)
            for layer in range(config.layers - 1)
        )
        last_in = wide if config.layers > 1 else self.in_features
        heads = config.output_heads
        self.layers.append(GATLayer(last_in, self.num_classes, heads=heads, average=True, generator=generator))
        self.norms = hidden_norms(config.norm, wide, config.layers)
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        why = "attention runs on who shares a hyperedge"
        refuse_weights(hypergraph, "CE-GAT", why, "edge_weight", "incidence_weight")
        graph = gcn_operator(hypergraph, self.config.direction)
        *hidden, last = self.layers
        for layer, norm in zip(hidden, self.norms, strict=True):
            x = self.dropout(norm(layer(x, graph).relu()))
        out: Tensor = last(x, graph)
        return out


class GATLayer(nn.Module):
    r"""$\sum_u \alpha_{vu} W x_u + b$, heads side by side or averaged.

    Args:
        in_features: Width of the input.
        out_features: Width of a head.
        heads: Number of heads.
        average: Average the heads instead of joining them.
        generator: Where the initial weights come from.
    """

    def __init__(
        self, in_features: int, out_features: int, *, heads: int, average: bool = False, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.heads, self.average = heads, average
        self.projection = Projection(in_features, heads * out_features, bias=False, generator=generator)
        self.source, self.target = (glorot_heads(heads, out_features, generator) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(out_features if average else heads * out_features))

    def forward(self, x: Tensor, graph: GraphOperator) -> Float[Tensor, "N D"]:
        """Apply the layer; only where the graph's entries are matters."""
        z, links = self.projection.project(x), graph.links
        scores = head_scores(z, self.target).index_select(0, links.row_index)
        scores = F.leaky_relu(scores + head_scores(z, self.source).index_select(0, links.row_column), 0.2)
        out = attend(z, links, link_softmax(scores, links))
        if self.average:
            out = out.view(len(out), self.heads, out.shape[1] // self.heads).mean(dim=1)
        return kernels.add_bias(out, self.bias)


def hidden_norms(norm: BatchOrNone, width: int, layers: int) -> nn.ModuleList:
    """A norm for each hidden layer."""
    return nn.ModuleList(BatchNorm(width) if norm == "batch" else nn.Identity() for _ in range(layers - 1))


def gcn_operator(hypergraph: Hypergraph, direction: Direction) -> GraphOperator:
    """The normalised clique expansion with loops, made once per hypergraph; a row holds what arrives at a node."""

    def make() -> GraphOperator:
        shared = _shared_weight(hypergraph)
        kept = shared if direction == "both" else sp.csr_array(sp.tril(shared, k=-1))
        return GraphOperator.from_scipy(normalised_with_loops(kept), hypergraph.device)

    return cached_per_hypergraph(hypergraph, ("clique graph", direction), make)


def _shared_weight(hypergraph: Hypergraph) -> sp.csr_array:
    """The weight two different nodes share."""
    if hypergraph.edge_weight is None and hypergraph.incidence_weight is None:
        return clique_multiplicity(hypergraph)
    incidence = hypergraph.to_scipy()
    weight = hypergraph.edge_weight
    scaled = incidence if weight is None else incidence @ sp.diags_array(weight.double().cpu().numpy())
    shared = sp.csr_array(scaled @ incidence.T)
    shared.setdiag(0)
    shared.eliminate_zeros()
    return shared
