r"""HyperGCN: each hyperedge becomes edges between its two most different members and the other members.

Nodes are projected on a random direction, $p_v = s_v \cdot r$. In each hyperedge an edge joins $i = \arg\max p$ and
$j = \arg\min p$; with mediators, edges also join every other member to both. Each of these $2|e| - 3$ edges has weight
$w_e / (2|e| - 3)$. Without mediators the one edge has weight $w_e / |e|$. A GCN runs on that graph with loops,

$$ x \leftarrow \mathrm{ReLU}(\hat A x W + b), $$

and its last layer has a ReLU too. Fast: $s$ are the features, and the graph is made once. Slow: $s = x W$ in each
layer, and the graph is made at every pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, final

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Tensor, nn

from edhnn.configuration import Configuration, Depth
from edhnn.errors import UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph, refuse_weights
from edhnn.models.registry import register_model
from edhnn.nn.cache import cached_per_features
from edhnn.nn.features import Projection, feature_product
from edhnn.nn.graph import GraphOperator, normalised_with_loops

Singletons = Literal["skip", "released"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HyperGCNConfig(Configuration):
    r"""Options of HyperGCN. The defaults are those of AllSet's script.

    Attributes:
        layers: Convolutions. Layer $i$ of $l$, from 0, has width $2^{l - i + \text{exponent}}$. The width of the last
            layer is the number of outputs.
        exponent: The exponent; the released code uses 4 for Citeseer.
        mediators: Whether edges join all members to the two extremes, or only the extremes.
        fast: Make the graph once, from the features; otherwise at every layer and pass.
        singletons: ``skip`` skips hyperedges of one member. ``released`` gives them the weight -2 on the diagonal, by
            the formula $1/(2 \cdot 1 - 3)$, which leads to NaN on House and Congress.
        dropout: Dropout rate after each layer except the last.
    """

    layers: Depth = 1
    exponent: Annotated[int, Meta(ge=0, le=16)] = 2
    mediators: bool = True
    fast: bool = True
    singletons: Singletons = "skip"
    dropout: float = 0.5

    def check(self) -> None:
        """Check the width of the first layer."""
        if self.layers > 1 and self.layers + self.exponent > 16:
            raise UsageError(f"'layers' + 'exponent' must be at most 16. Got {self.layers} + {self.exponent}.")


@register_model("hypergcn", "GCN between each hyperedge's extremes", singletons=False)
class HyperGCN(HypergraphModel[HyperGCNConfig]):
    """HyperGCN. Paper: Table 2 (HyperGCN). Source: Yadati et al., NeurIPS 2019, in AllSet's setting.

    Weights of hyperedges multiply their edges. Weights of memberships are not supported.

    Differs: the random direction of each layer is drawn once per model and stored with its weights; the released code
    draws a new one at every pass of the slow form. Hyperedges of one member are skipped (see ``singletons``).
    """

    config_class = HyperGCNConfig
    needs_values = "its graph depends on the features"

    def build(self, config: HyperGCNConfig) -> None:
        """Make the layers."""
        depth, generator = config.layers, self.generator
        between = (2 ** (depth - layer + config.exponent) for layer in range(depth - 1))
        widths = [self.in_features, *between, self.num_classes]
        self.convolutions = nn.ModuleList(
            Projection(*ends, init="outputs", generator=generator) for ends in pairwise(widths)
        )
        signals = [self.in_features] if config.fast else widths[1:]
        for layer, width in enumerate(signals):
            self.register_buffer(f"direction_{layer}", torch.rand(1, width, generator=generator))
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        refuse_weights(hypergraph, "HyperGCN", "a node is either a member or not", "incidence_weight")
        graph = self._graph_of_features(x, hypergraph) if self.config.fast else None
        for layer, convolution in enumerate(self.convolutions):
            assert isinstance(convolution, Projection)
            z = convolution.project(x)
            propagate = graph or self._graph(z.detach() @ self.get_buffer(f"direction_{layer}").t(), hypergraph)
            x = convolution.shift(propagate(z)).relu()
            if layer < len(self.convolutions) - 1:
                x = self.dropout(x)
        return x

    def _graph_of_features(self, x: Tensor, hypergraph: Hypergraph) -> GraphOperator:
        direction = self.get_buffer("direction_0")

        def make(features: Tensor) -> GraphOperator:
            return self._graph(feature_product(features.detach(), direction), hypergraph)

        key = self.config.mediators, self.config.singletons
        return cached_per_features(hypergraph, x, "HyperGCN graph", key, make, direction)

    def _graph(self, projected: Float[Tensor, "N 1"], hypergraph: Hypergraph) -> GraphOperator:
        keep = self.config.singletons == "released"
        adjacency = extremes_graph(projected[:, 0], hypergraph, mediators=self.config.mediators, keep_singletons=keep)
        return GraphOperator.from_scipy(normalised_with_loops(adjacency), hypergraph.device)


def extremes_graph(
    projected: Float[Tensor, " N"], hypergraph: Hypergraph, *, mediators: bool, keep_singletons: bool = False
) -> sp.csr_array:
    """Return the symmetric adjacency between extremes and mediators, without loops; the first member wins a tie.

    A member whose projection is NaN is an extreme only if all members are NaN. Hyperedges of one member are skipped, or
    follow the formula with ``keep_singletons``.
    """
    edge, node = hypergraph.edge_index, hypergraph.node_index
    value, size = projected.double().index_select(0, node), hypergraph.edge_size
    high, low = (_first_extreme(sign * value, hypergraph) for sign in (1, -1))
    edge_weight = torch.ones(hypergraph.num_edges) if hypergraph.edge_weight is None else hypergraph.edge_weight.cpu()
    count = (2 * size - 3 if mediators else size).cpu()
    weight = edge_weight.double() / count.where(count != 0, 1)
    used = (size > (0 if keep_singletons else 1)).nonzero()[:, 0]
    ends = [(high[used], low[used], used)]
    if mediators:
        other = (size.index_select(0, edge) > 1) & (node != high[edge]) & (node != low[edge])
        ends += [(extreme[edge[other]], node[other], edge[other]) for extreme in (high, low)]
    first, second, owner = (torch.cat(parts).cpu().numpy() for parts in zip(*ends, strict=True))
    entries = np.tile(weight.numpy()[owner], 2)
    both = np.concatenate([first, second]), np.concatenate([second, first])
    return sp.csr_array(sp.coo_array((entries, both), shape=(hypergraph.num_nodes, hypergraph.num_nodes)))


def _first_extreme(value: Tensor, hypergraph: Hypergraph) -> Tensor:
    """Find the member with the largest value in each hyperedge, the first of equals; 0 for an empty hyperedge.

    NaN is smaller than every number. If all members are NaN, the first is the extreme.
    """
    edge, value = hypergraph.edge_index, value.nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    highest = value.new_full((hypergraph.num_edges,), -torch.inf).scatter_reduce(0, edge, value, "amax")
    position = torch.arange(len(edge), device=edge.device).where(value == highest.index_select(0, edge), len(edge))
    first = edge.new_full((hypergraph.num_edges,), len(edge)).scatter_reduce(0, edge, position, "amin")
    return torch.cat([hypergraph.node_index, edge.new_zeros(1)])[first]
