r"""LEGCN: a GCN on the line expansion, whose vertices are the memberships $(v, e)$.

Two memberships are neighbours if they share the node or the hyperedge. With $P_v, P_e$ the matrices that select a
membership's node and hyperedge, the adjacency with loops is $P_v P_v^\top + P_e P_e^\top - I$, and

$$ z \leftarrow \mathrm{ReLU}(\hat A z W + b), \qquad z^0 = P_v x, \qquad
   \mathrm{logits}_v = \mathrm{mean}_{e \ni v} z_{ve}. $$

The expansion has $\sum_v d_v^2 + \sum_e |e|^2$ entries and is never built. With $P = [P_v, P_e]$, a product with it is
one with $P^\top$ and one with $P$, which have two entries per membership.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.configuration import Configuration, Depth, Width
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.kernels import Links
from edhnn.kernels.links import from_parts
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph, refuse_weights
from edhnn.models.registry import register_model
from edhnn.nn.cache import cached_per_hypergraph
from edhnn.nn.features import Projection, layer_widths

Normalisation = Literal["symmetric", "row"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LEGCNConfig(Configuration):
    r"""Options of LEGCN. The defaults are those of ED-HNN's code, but with the correct expansion.

    Attributes:
        layers: Convolutions.
        hidden: Width between them.
        normalisation: ``symmetric`` with loops of 1 (ED-HNN) or ``row`` with loops of 2 (the authors).
        dropout: Dropout rate after each hidden layer: 0 in ED-HNN's code, 0.5 in the authors'.
    """

    layers: Depth = 2
    hidden: Width = 64
    normalisation: Normalisation = "symmetric"
    dropout: float = 0.0


@register_model("legcn", "GCN on the line expansion, never built")
class LEGCN(HypergraphModel[LEGCNConfig]):
    """LEGCN. Paper: Table 8 (LEGCN). Source: Yang et al., CIKM 2022 (line expansion).

    Weights are not supported, because the expansion is unweighted.

    Differs: the whole expansion is used. The authors sample at most 30 neighbours on each side, and ED-HNN's code
    builds another, almost empty graph by mistake.
    """

    config_class = LEGCNConfig

    def build(self, config: LEGCNConfig) -> None:
        """Make the layers."""
        widths = layer_widths(self.in_features, config.hidden, self.num_classes, config.layers)
        self.convolutions = nn.ModuleList(Projection(*ends, generator=self.generator) for ends in pairwise(widths))
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        refuse_weights(hypergraph, "LEGCN", "the line expansion is unweighted", "edge_weight", "incidence_weight")
        first, *later = self.convolutions
        assert isinstance(first, Projection)
        by_node = line_links(hypergraph)[1]
        z_ev = kernels.gather_sum(first.project(x), by_node.transposed())
        z_ev = self._propagate(z_ev, hypergraph, first)
        for convolution in later:
            assert isinstance(convolution, Projection)
            z_ev = self._propagate(convolution.project(self.dropout(z_ev.relu())), hypergraph, convolution)
        return kernels.gather_sum(z_ev, by_node, mean=True)

    def _propagate(self, z_ev: Tensor, hypergraph: Hypergraph, convolution: Projection) -> Tensor:
        return convolution.shift(line_product(z_ev, hypergraph, self.config.normalisation))


def line_product(
    z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, normalisation: Normalisation
) -> Float[Tensor, "I D"]:
    """Multiply the normalised adjacency of the line expansion with a row per membership."""
    owners, weights = line_links(hypergraph)[0], line_weights(hypergraph, z_ev)
    if normalisation == "row":
        return kernels.gather_sum(kernels.gather_sum(z_ev, owners.transposed()), owners, weights.row)
    shared = kernels.gather_sum(z_ev, owners.transposed(), weights.root)
    return torch.addcmul(kernels.gather_sum(shared, owners, weights.root), z_ev, weights.loop, value=-1)


class LineWeights(NamedTuple):
    """Factors of the normalisation: ``row`` and ``root`` by link, for loops of 2 and 1, and the loops of the latter."""

    row: Float[Tensor, " J"]
    root: Float[Tensor, " J"]
    loop: Float[Tensor, "I 1"]


def line_weights(hypergraph: Hypergraph, like: Tensor) -> LineWeights:
    """Return the factors in the type of ``like``, cached per hypergraph."""

    def make() -> LineWeights:
        reach = (hypergraph.degree[hypergraph.node_index] + hypergraph.edge_size[hypergraph.edge_index]).to(like)
        both = reach.repeat_interleave(2)
        return LineWeights(1 / both, (both - 1).rsqrt(), 1 / (reach - 1)[:, None])

    return cached_per_hypergraph(hypergraph, ("line weights", like.dtype), make)


def line_links(hypergraph: Hypergraph) -> tuple[Links, Links]:
    """Return links from memberships to their node and hyperedge (index N + e), and from nodes to their memberships."""

    def make() -> tuple[Links, Links]:
        node, edge, order = hypergraph.node_index, hypergraph.edge_index, hypergraph.node_order
        count, nodes = len(node), hypergraph.num_nodes
        number = torch.arange(count + 1, device=node.device)
        owners = from_parts(
            2 * number,
            torch.stack([node, nodes + edge], dim=1).flatten(),
            None,
            torch.cat([hypergraph.node_ptr, count + hypergraph.edge_ptr[1:]]),
            torch.cat([order, number[:-1]]),
            torch.cat([2 * order, 2 * number[:-1] + 1]),
        )
        by_node = from_parts(hypergraph.node_ptr, order, order, number, node, None)
        return owners, by_node

    return cached_per_hypergraph(hypergraph, "line expansion", make)
