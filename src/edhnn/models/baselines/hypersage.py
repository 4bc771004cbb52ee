r"""HyperSAGE: each node adds the power means of its neighbours, hyperedge by hyperedge, to its own signal.

$$ T_v = S_v + \sum_{e \ni v} w_e \Big(\frac{1}{|e| - 1} \sum_{u \in e,\, u \ne v} S_u^p\Big)^{1/p}, \qquad
   x_v \leftarrow \frac{T_v}{\sum_c T_{vc}} W + b, \qquad S = \mathrm{clamp}(x, 10^{-7}, 10). $$

The authors loop over hyperedges and members. Here the sum over the others is the hyperedge's total less the node's own
share, and for $p = 1$ no table of a row per membership is made. The first layer's $T$ learns nothing and is made once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.configuration import Configuration, Count, Natural, Positive
from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence, node_to_incidence
from edhnn.kernels import Links
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph, refuse_weights
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import aggregate_at_nodes, to_edges, to_nodes
from edhnn.nn.cache import cached_per_features
from edhnn.nn.features import Projection, dense_features, layer_widths

LOWEST, HIGHEST = 1e-7, 10.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HyperSAGEConfig(Configuration):
    r"""HyperSAGE's choices; the defaults are the authors' code, with every neighbour heard.

    Attributes:
        layers: Layers.
        hidden: Width between them; 16 is written into the released code.
        mean_power: $p$.
        sample: Neighbours drawn from each hyperedge of each node, at most; 0 for all. The released code draws 100, and
            still divides by $|e| - 1$.
        dropout: Rate after each hidden layer.
    """

    layers: Count = 2
    hidden: Count = 16
    mean_power: Positive = 1.0
    sample: Natural = 0
    dropout: float = 0.5


@register_model("hypersage", "power means of neighbours, by hyperedge", singletons=False)
class HyperSAGE(HypergraphModel[HyperSAGEConfig]):
    r"""HyperSAGE. Paper: Table 8 (HyperSAGE). Source: Arya et al., 2020, and their code as ED-HNN's runs it.

    Differs: the gradient flows through the row sums $\sum_c T_{vc}$ too, as the true derivative does; the released code
    detaches them. Hyperedges of one member, which have no neighbours and gave 0/0, are skipped; features are not
    overwritten; outputs are logits, not their log-softmax. A hyperedge of weight w counts w times; weights of
    memberships are refused.
    """

    config_class = HyperSAGEConfig

    def build(self, config: HyperSAGEConfig) -> None:
        """Make the layers."""
        widths = layer_widths(self.in_features, config.hidden, self.num_classes, config.layers)
        self.projections = nn.ModuleList(
            Projection(*ends, init="outputs", generator=self.generator) for ends in pairwise(widths)
        )
        self.dropout = self.make_dropout(config.dropout)
        self.register_buffer("sample_seed", torch.randint(2**62, (), generator=self.generator))

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph, (first, *later) = as_hypergraph(hypergraph, x), self.projections
        assert isinstance(first, Projection)
        if x.dim() != 2 or x.shape[1] != self.in_features:
            raise DataError(f"Features must have shape [N, {self.in_features}]. Got {list(x.shape)}.")
        refuse_weights(hypergraph, "HyperSAGE", "a neighbour is one or not", "incidence_weight")
        weight, config = first.weight.detach(), self.config

        def make(features: Tensor) -> Tensor:
            return self._heard(dense_features(features, weight), hypergraph)

        key = weight.dtype, config.mean_power
        h: Tensor = first(make(x) if config.sample else cached_per_features(hypergraph, x, "HyperSAGE", key, make))
        for projection in later:
            h = projection(self._heard(self.dropout(h.relu()), hypergraph))
        return h

    def _heard(self, x: Tensor, hypergraph: Hypergraph) -> Tensor:
        signal, count, drawn = x.clamp(LOWEST, HIGHEST), self.config.sample, None
        if count:
            seed = self.seeds() if self.training else int(self.get_buffer("sample_seed"))
            drawn = draw_neighbours(hypergraph, count, torch.Generator().manual_seed(seed))
        out = signal + neighbour_means(signal, hypergraph, self.config.mean_power, drawn)
        return out / out.sum(dim=1, keepdim=True)


def neighbour_means(
    s: Float[Tensor, "N D"], hypergraph: Hypergraph, p: float, drawn: tuple[Tensor, Links] | None = None
) -> Float[Tensor, "N D"]:
    """The power means of the other members, summed over the hyperedges of each node.

    Args:
        s: Signal, positive.
        hypergraph: The hypergraph; one member has no others and hears nothing.
        p: The power.
        drawn: Incidences that hear some of the others only, and whom (`draw_neighbours`).

    Returns:
        The sums.
    """
    others = (hypergraph.edge_size - 1).clamp(min=0)
    if p == 1 and drawn is None:
        share = torch.where(others > 0, 1 / others.clamp(min=1), 0).to(s)[:, None]
        heard = to_nodes(share * to_edges(s, hypergraph, "sum"), hypergraph, "sum")
        return (heard - to_nodes(share, hypergraph, "sum") * s).clamp(min=0)  # rounding may leave less than nothing
    raised = s.double() ** p  # a small sum is left of large ones, and the root makes it matter
    left = edge_to_incidence(to_edges(raised, hypergraph, "sum"), hypergraph) - node_to_incidence(raised, hypergraph)
    count = others.index_select(0, hypergraph.edge_index)[:, None]
    left = torch.maximum(left, count.clamp(min=1) * LOWEST**p)
    if drawn is not None:
        left = left.index_copy(0, drawn[0], kernels.gather_sum(raised, drawn[1]))
    means = (left / count.clamp(min=1)) ** (1 / p) * (count > 0)
    return aggregate_at_nodes(means, hypergraph, "sum").to(s)


def draw_neighbours(hypergraph: Hypergraph, count: int, generator: torch.Generator) -> tuple[Tensor, Links] | None:
    """Other members for each incidence whose hyperedge has more than so many of them.

    Args:
        hypergraph: The hypergraph.
        count: How many to draw, without putting back.
        generator: Where the draw comes from.

    Returns:
        The incidences and their links to the drawn nodes; ``None`` if there is no such incidence.
    """
    size = hypergraph.edge_size.index_select(0, hypergraph.edge_index)
    large = (size - 1 > count).nonzero()[:, 0]
    if not len(large):
        return None
    owner = torch.repeat_interleave(size[large])
    start = torch.cumsum(size[large], 0) - size[large]
    place = hypergraph.edge_ptr[hypergraph.edge_index[large]][owner] + _numbers(owner) - start[owner]
    other = place != large[owner]
    owner, place = owner[other], place[other]
    shuffled = torch.rand(len(owner), generator=generator).argsort().to(owner.device)
    order = shuffled[torch.sort(owner[shuffled], stable=True).indices]
    first = torch.cumsum(size[large] - 1, 0) - (size[large] - 1)
    kept = order[_numbers(owner) - first[owner[order]] < count]
    row_ptr, column = torch.arange(len(large) + 1, device=large.device) * count, hypergraph.node_index[place[kept]]
    return large, kernels.row_links(row_ptr, column, hypergraph.num_nodes)


def _numbers(index: Tensor) -> Tensor:
    return torch.arange(len(index), device=index.device)
