r"""LEGCN: a GCN on the line expansion, whose vertices are the memberships $(v, e)$.

Two memberships are neighbours when they share the node or the hyperedge. With $P_v, P_e$ the matrices that select a
membership's node and hyperedge, the adjacency with loops is $P_v P_v^\top + P_e P_e^\top - I$, and

$$ z \leftarrow \mathrm{ReLU}(\hat A z W + b), \qquad z^0 = P_v x, \qquad
   \mathrm{logits}_v = \mathrm{mean}_{e \ni v} z_{ve}. $$

The expansion has $\sum_v d_v^2 + \sum_e |e|^2$ entries and is never made: its product is two sums along memberships.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, final

from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.hypergraph import Hypergraph
from edhnn.incidence import edge_to_incidence, node_to_incidence
from edhnn.kernels import Links
from edhnn.kernels.links import from_parts
from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_choices, check_counts, refuse_weights
from edhnn.nn.mlp import Dropout
from edhnn.nn.projection import Projection, layer_widths
from edhnn.nn.remembered import per_hypergraph

Normalisation = Literal["symmetric", "row"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LEGCNConfig:
    r"""LEGCN's choices; the defaults are ED-HNN's code, with the expansion made right.

    Attributes:
        layers: Convolutions.
        hidden: Width between them.
        normalisation: ``symmetric`` with loops of 1, ED-HNN's code; ``row`` with loops of 2, the authors'.
        dropout: Rate after each hidden layer: none in ED-HNN's code, 0.5 in the authors'.
    """

    layers: int = 2
    hidden: int = 64
    normalisation: Normalisation = "symmetric"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_counts(self, "layers", "hidden")
        check_choices(self, normalisation=Normalisation)


class LEGCN(HypergraphModel):
    """LEGCN. Paper: Table 8 (LEGCN). Source: Yang et al., CIKM 2022 (line expansion).

    Weights are refused: the expansion joins memberships that share something, or does not.

    Differs: the whole expansion is used; the authors sample at most 30 neighbours on each side, and ED-HNN's code
    builds another, almost empty graph by mistake.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: LEGCNConfig

    def __init__(self, config: LEGCNConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0) -> None:
        config = config or LEGCNConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        widths = layer_widths(in_features, config.hidden, num_classes, config.layers)
        self.convolutions = nn.ModuleList(Projection(*ends, generator=self.generator) for ends in pairwise(widths))
        self.dropout = Dropout(config.dropout, self.seeds)
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined = as_hypergraph(hypergraph, x)
        why = "memberships share a node or a hyperedge, or do not"
        refuse_weights(joined, "LEGCN", why, "edge_weight", "incidence_weight")
        first, *later = self.convolutions
        assert isinstance(first, Projection)
        z_ev = self._propagate(node_to_incidence(first.project(x), joined), joined, first)
        for convolution in later:
            assert isinstance(convolution, Projection)
            z_ev = self._propagate(convolution.project(self.dropout(z_ev.relu())), joined, convolution)
        return kernels.gather_sum(z_ev, membership_links(joined)[0], mean=True)

    def _propagate(self, z_ev: Tensor, hypergraph: Hypergraph, convolution: Projection) -> Tensor:
        return convolution.shift(line_product(z_ev, hypergraph, self.config.normalisation))


def line_product(
    z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, normalisation: Normalisation
) -> Float[Tensor, "I D"]:
    """The normalised adjacency of the line expansion, times a table of a row per membership."""
    by_node, by_edge = membership_links(hypergraph)
    reach = hypergraph.degree[hypergraph.node_index] + hypergraph.edge_size[hypergraph.edge_index]

    def shared(values: Tensor) -> Tensor:
        at_node = node_to_incidence(kernels.gather_sum(values, by_node), hypergraph)
        return at_node + edge_to_incidence(kernels.gather_sum(values, by_edge), hypergraph)

    if normalisation == "row":
        return shared(z_ev) / reach.to(z_ev)[:, None]
    scale = (reach - 1).to(z_ev).rsqrt()[:, None]
    scaled = scale * z_ev
    return scale * (shared(scaled) - scaled)


def membership_links(hypergraph: Hypergraph) -> tuple[Links, Links]:
    """Links from nodes to their memberships, and from hyperedges to theirs; found once per hypergraph."""

    def make() -> tuple[Links, Links]:
        nodes, edges = kernels.node_links(hypergraph), kernels.edge_links(hypergraph)
        numbers = edges.row_place
        column_ptr = numbers.new_zeros(len(numbers) + 1)
        column_ptr[1:] = numbers + 1
        order = hypergraph.node_order
        by_node = from_parts(nodes.row_ptr, order, order, column_ptr, hypergraph.node_index, None)
        by_edge = from_parts(edges.row_ptr, numbers, None, column_ptr, hypergraph.edge_index, None)
        return by_node, by_edge

    return per_hypergraph(hypergraph, "memberships", make)
