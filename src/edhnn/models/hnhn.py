r"""HNHN: nodes and hyperedges as neurons of alternating layers, with degree-weighted means between them.

$$ E = \mathrm{ReLU}(\mathrm{mean}^\beta_{u \in e} (W_e x_u + b_e)), \qquad
   V = \mathrm{mean}^\alpha_{e \ni v} (W_v E_e + b_v), $$

where the mean in a hyperedge weighs its members by $d_u^\beta$ and the mean at a node weighs its hyperedges by
$k_e^\alpha$. Between layers ReLU and dropout.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, final

from jaxtyping import Float
from torch import Tensor, nn

from edhnn.hypergraph import Hypergraph
from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_choices, check_counts
from edhnn.nn.aggregate import to_edges, to_nodes
from edhnn.nn.mlp import Dropout
from edhnn.nn.projection import Projection, layer_widths
from edhnn.nn.smoothing import listen, membership_weights, power, speak, totals

Denominator = Literal["powered", "plain"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HNHNConfig:
    r"""HNHN's choices; the defaults are AllSet's script.

    Attributes:
        layers: Rounds from nodes to hyperedges and back.
        hidden: Width of the hyperedges' states, and of the nodes' between rounds.
        edge_power: $\alpha$, on the size of a hyperedge.
        node_power: $\beta$, on the degree of a node.
        denominator: ``powered``, AllSet's: weighted means; ``plain``, ED-HNN's code: the same sums over
            $\sum_{u \in e} d_u$ and $\sum_{e \ni v} k_e$ without the powers.
        dropout: Rate after each round but the last.
    """

    layers: int = 1
    hidden: int = 64
    edge_power: float = -1.5
    node_power: float = -0.5
    denominator: Denominator = "powered"
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_counts(self, "layers", "hidden")
        check_choices(self, denominator=Denominator)


class HNHN(HypergraphModel):
    """HNHN. Paper: Table 2 (HNHN). Source: Dong, Sawin and Bengio, GRL+ 2020, in AllSet's form.

    Differs: from the authors' code, which adds a scaled residual of the nodes' states, rectifies before the mean at
    nodes, leaves dropout on and trains only part of its weights; no published number here rests on it.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: HNHNConfig

    def __init__(self, config: HNHNConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0) -> None:
        config = config or HNHNConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        self.to_edges, self.to_nodes = nn.ModuleList(), nn.ModuleList()
        for wide, next_wide in pairwise(layer_widths(in_features, config.hidden, num_classes, config.layers)):
            self.to_edges.append(Projection(wide, config.hidden, init="linear", generator=self.generator))
            self.to_nodes.append(Projection(config.hidden, next_wide, init="linear", generator=self.generator))
        self.dropout = Dropout(config.dropout, self.seeds)
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined = as_hypergraph(hypergraph, x)
        inward, outward = self._weights(joined)
        rounds = list(zip(self.to_edges, self.to_nodes, strict=True))
        for layer, (inwards, outwards) in enumerate(rounds):
            m_e = listen(inwards(x), joined, inward).relu()
            x = speak(outwards(m_e), joined, outward)
            if layer < len(rounds) - 1:
                x = self.dropout(x.relu())
        return x

    def _weights(self, hypergraph: Hypergraph) -> tuple[Tensor, Tensor]:
        """The weights of both means, found once per hypergraph."""
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
