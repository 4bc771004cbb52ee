r"""HNHN: nodes and hyperedges as neurons of alternating layers, with degree-weighted means between them.

$$ E = \mathrm{ReLU}(\mathrm{mean}^\beta_{u \in e} (W_e x_u + b_e)), \qquad
   V = \mathrm{mean}^\alpha_{e \ni v} (W_v E_e + b_v), $$

where the mean in a hyperedge weights its members by $d_u^\beta$ and the mean at a node weights its hyperedges by
$k_e^\alpha$. Between layers there are ReLU and dropout.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, final

from jaxtyping import Float
from torch import Tensor, nn

from edhnn.configuration import Configuration, Depth, Width
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import membership_weights, power, to_edges, to_nodes, totals
from edhnn.nn.features import Projection, layer_widths

Denominator = Literal["powered", "plain"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HNHNConfig(Configuration):
    r"""Options of HNHN. The defaults are those of AllSet's script.

    Attributes:
        layers: Rounds from nodes to hyperedges and back.
        hidden: Width of the hyperedges' states, and of the nodes' states between rounds.
        edge_power: $\alpha$, the power of the size of a hyperedge.
        node_power: $\beta$, the power of the degree of a node.
        denominator: ``powered`` (AllSet) for weighted means; ``plain`` (ED-HNN's code) divides the same sums by
            $\sum_{u \in e} d_u$ and $\sum_{e \ni v} k_e$, without the powers.
        dropout: Dropout rate after each round except the last.
    """

    layers: Depth = 1
    hidden: Width = 64
    edge_power: float = -1.5
    node_power: float = -0.5
    denominator: Denominator = "powered"
    dropout: float = 0.5


@register_model("hnhn", "nodes and hyperedges as neurons, degree-weighted means")
class HNHN(HypergraphModel[HNHNConfig]):
    """HNHN. Paper: Table 2 (HNHN). Source: Dong, Sawin and Bengio, GRL+ 2020, in AllSet's form.

    Differs: the authors' code adds a scaled residual of the nodes' states, rectifies before the mean at nodes, leaves
    dropout on and trains only part of its weights. No published number here was computed with it.
    """

    config_class = HNHNConfig

    def build(self, config: HNHNConfig) -> None:
        """Make the layers."""
        self.to_edges, self.to_nodes = nn.ModuleList(), nn.ModuleList()
        for wide, next_wide in pairwise(layer_widths(self.in_features, config.hidden, self.num_classes, config.layers)):
            self.to_edges.append(Projection(wide, config.hidden, init="linear", generator=self.generator))
            self.to_nodes.append(Projection(config.hidden, next_wide, init="linear", generator=self.generator))
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        inward, outward = self._weights(hypergraph)
        rounds = list(zip(self.to_edges, self.to_nodes, strict=True))
        for layer, (inwards, outwards) in enumerate(rounds):
            m_e = to_edges(inwards(x), hypergraph, weight=inward).relu()
            x = to_nodes(outwards(m_e), hypergraph, weight=outward)
            if layer < len(rounds) - 1:
                x = self.dropout(x.relu())
        return x

    def _weights(self, hypergraph: Hypergraph) -> tuple[Tensor, Tensor]:
        """Return the weights of both means, cached per hypergraph."""
        config, powered = self.config, self.config.denominator == "powered"

        def factors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
            degree, size = totals(hypergraph)
            by_degree, by_size = power(degree, config.node_power), power(size, config.edge_power)
            in_edge = to_edges(by_degree if powered else degree, hypergraph, "sum")
            at_node = to_nodes(by_size if powered else size, hypergraph, "sum")
            return by_degree, power(in_edge, -1.0), by_size, power(at_node, -1.0)

        key = "HNHN", config.node_power, config.edge_power, powered
        first = self.to_edges[0]
        assert isinstance(first, Projection)
        return membership_weights(first.weight, hypergraph, key, factors)
