r"""CE-GCN and CE-GAT: graph networks on the clique expansion.

An edge has the total weight of the hyperedges that contain both nodes, $A_{uv} = \sum_e w_e w_{eu} w_{ev}$.

- GCN: $x \leftarrow \hat A x W + b$ with $\hat A = D^{-1/2} (A + I) D^{-1/2}$, $D$ the sums of incoming weights.
- GAT: $x_v \leftarrow \sum_u \alpha_{vu} W x_u + b$ over the node and its in-neighbours,
  $\alpha_{vu} = \mathrm{softmax}_u\, \mathrm{LeakyReLU}_{0.2}(a_s \cdot W x_u + a_t \cdot W x_v)$, head by head.

Between layers there are ReLU, norm and dropout. AllSet kept each pair in one direction only, from the smaller node
number to the larger (``direction="upwards"``). That reveals the number of a node, and its class where nodes are sorted
by class, so it is not the default (docs/adr/0012).
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
from edhnn.configuration import Configuration, Depth, Width
from edhnn.hypergraph.expansions import clique_multiplicity
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph, refuse_weights
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
    """Options of CE-GCN. The defaults are those of AllSet's script, except the direction.

    Attributes:
        layers: Convolutions.
        hidden: Width between them.
        norm: After each hidden layer: ``batch`` or ``none`` (AllSet's ``ln`` means none here).
        dropout: Dropout rate after each hidden layer.
        direction: ``both`` for the clique expansion; ``upwards`` for edges from smaller to larger node number only, as
            in AllSet.
    """

    layers: Depth = 2
    hidden: Width = 64
    norm: BatchOrNone = "none"
    dropout: float = 0.5
    direction: Direction = "both"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CEGATConfig(CEGCNConfig):
    """Options of CE-GAT. The defaults are those of AllSet's script, except the direction.

    Attributes:
        heads: Heads of each hidden layer, ``hidden`` columns each.
        output_heads: Heads of the last layer, averaged.
    """

    heads: Width = 1
    output_heads: Width = 1


@register_model("ce-gcn", "GCN on the clique expansion", singletons=False)
class CEGCN(HypergraphModel[CEGCNConfig]):
    """GCN on the clique expansion. Paper: Table 2 (CE-GCN). Sources: Kipf and Welling, ICLR 2017; AllSet's setting."""

    config_class = CEGCNConfig
    needs_values = "it makes a graph of the members of hyperedges"

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

    Weights are not supported, because its graph is unweighted.
    """

    config_class = CEGATConfig
    needs_values = "it makes a graph of the members of hyperedges"

    def build(self, config: CEGATConfig) -> None:
        """Make the layers."""
        wide, generator = config.heads * config.hidden, self.generator
        *inputs, last = [self.in_features, *[wide] * (config.layers - 1)]
        self.layers = nn.ModuleList(
            GATLayer(width, config.hidden, heads=config.heads, generator=generator) for width in inputs
        )
        heads = config.output_heads
        self.layers.append(GATLayer(last, self.num_classes, heads=heads, average=True, generator=generator))
        self.norms = hidden_norms(config.norm, wide, config.layers)
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        refuse_weights(hypergraph, "CE-GAT", "its graph is unweighted", "edge_weight", "incidence_weight")
        graph = gcn_operator(hypergraph, self.config.direction)
        *hidden, last = self.layers
        for layer, norm in zip(hidden, self.norms, strict=True):
            x = self.dropout(norm(layer(x, graph).relu()))
        out: Tensor = last(x, graph)
        return out


class GATLayer(nn.Module):
    r"""$\sum_u \alpha_{vu} W x_u + b$, with heads of ``out_features`` columns, concatenated or averaged."""

    def __init__(
        self, in_features: int, out_features: int, *, heads: int, average: bool = False, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.heads, self.average = heads, average
        self.projection = Projection(in_features, heads * out_features, bias=False, generator=generator)
        self.source, self.target = (glorot_heads(heads, out_features, generator) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(out_features if average else heads * out_features))

    def forward(self, x: Tensor, graph: GraphOperator) -> Float[Tensor, "N D"]:
        """Apply the layer. It uses the positions of the graph's entries, not their values."""
        z, links = self.projection.project(x), graph.links
        scores = head_scores(z, self.target).index_select(0, links.row_index)
        scores = F.leaky_relu(scores + head_scores(z, self.source).index_select(0, links.row_column), 0.2)
        out = attend(z, links, link_softmax(scores, links))
        if self.average:
            out = out.view(len(out), self.heads, out.shape[1] // self.heads).mean(dim=1)
        return kernels.add_bias(out, self.bias)


def hidden_norms(norm: BatchOrNone, width: int, layers: int) -> nn.ModuleList:
    """Make a norm for each hidden layer."""
    return nn.ModuleList(BatchNorm(width) if norm == "batch" else nn.Identity() for _ in range(layers - 1))


def gcn_operator(hypergraph: Hypergraph, direction: Direction) -> GraphOperator:
    """Return the normalised clique expansion with loops, cached per hypergraph; row $v$ holds the edges into $v$."""

    def make() -> GraphOperator:
        adjacency = _clique_adjacency(hypergraph)
        if direction == "upwards":
            adjacency = sp.csr_array(sp.tril(adjacency, k=-1))
        return GraphOperator.from_scipy(normalised_with_loops(adjacency), hypergraph.device)

    return cached_per_hypergraph(hypergraph, ("clique graph", direction), make)


def _clique_adjacency(hypergraph: Hypergraph) -> sp.csr_array:
    r"""Return $A$ without its diagonal."""
    if hypergraph.edge_weight is None and hypergraph.incidence_weight is None:
        return clique_multiplicity(hypergraph)
    incidence = hypergraph.to_scipy()
    weight = hypergraph.edge_weight
    scaled = incidence if weight is None else incidence @ sp.diags_array(weight.double().cpu().numpy())
    shared = sp.csr_array(scaled @ incidence.T)
    shared.setdiag(0)
    shared.eliminate_zeros()
    return shared
