r"""HyperSAGE: each node adds to its signal the power means of its neighbours, one per hyperedge.

$$ T_v = S_v + \sum_{e \ni v} w_e \Big(\frac{1}{|e| - 1} \sum_{u \in e,\, u \ne v} S_u^p\Big)^{1/p}, \qquad
   x_v \leftarrow \frac{T_v}{\sum_c T_{vc}} W + b, \qquad S = \mathrm{clamp}(x, 10^{-7}, 10). $$

The authors loop over hyperedges and members. Here the sum over the other members is the total of the hyperedge minus
the node's share, and for $p = 1$ no tensor has a row per membership. $T$ of the first layer has no parameters and is
computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.configuration import Configuration, Depth, Natural, Positive, Width
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence, node_to_incidence
from edhnn.kernels import Links
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph, refuse_weights
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import aggregate_at_nodes, to_edges, to_nodes
from edhnn.nn.cache import cached_per_features
from edhnn.nn.features import Projection, check_features, dense_features, layer_widths

LOWEST, HIGHEST = 1e-7, 10.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HyperSAGEConfig(Configuration):
    r"""Options of HyperSAGE. The defaults are those of the authors' code, but without sampling.

    Attributes:
        layers: Layers.
        hidden: Width between them; the released code fixes it at 16.
        mean_power: $p$.
        sample: The largest number of neighbours drawn from each hyperedge of each node; 0 for all. The released code
            draws 100 and still divides by $|e| - 1$.
        dropout: Dropout rate after each hidden layer.
    """

    layers: Depth = 2
    hidden: Width = 16
    mean_power: Positive = 1.0
    sample: Natural = 0
    dropout: float = 0.5


@register_model("hypersage", "power means of neighbours, by hyperedge", singletons=False)
class HyperSAGE(HypergraphModel[HyperSAGEConfig]):
    r"""HyperSAGE. Paper: Table 8 (HyperSAGE). Source: Arya et al., 2020, and their code in ED-HNN's setting.

    Differs: the gradient includes the row sums $\sum_c T_{vc}$; the released code detaches them. Hyperedges of one
    member, which have no neighbours and gave 0/0, are skipped. Features are not overwritten. Outputs are logits, not
    their log-softmax. A hyperedge of weight w counts w times. Weights of memberships are not supported.
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
        check_features(x, self.in_features)
        refuse_weights(hypergraph, "HyperSAGE", "a node is either a neighbour or not", "incidence_weight")
        weight, config = first.weight.detach(), self.config

        def make(features: Tensor) -> Tensor:
            return self._with_neighbours(dense_features(features, weight), hypergraph)

        key = weight.dtype, config.mean_power
        h: Tensor = first(make(x) if config.sample else cached_per_features(hypergraph, x, "HyperSAGE", key, make))
        for projection in later:
            h = projection(self._with_neighbours(self.dropout(h.relu()), hypergraph))
        return h

    def _with_neighbours(self, x: Tensor, hypergraph: Hypergraph) -> Tensor:
        r"""Return $T_v / \sum_c T_{vc}$."""
        signal, count, drawn = x.clamp(LOWEST, HIGHEST), self.config.sample, None
        if count:
            seed = self.seeds() if self.training else int(self.get_buffer("sample_seed"))
            drawn = draw_neighbours(hypergraph, count, torch.Generator().manual_seed(seed))
        out = signal + neighbour_means(signal, hypergraph, self.config.mean_power, drawn)
        return out / out.sum(dim=1, keepdim=True)


def neighbour_means(
    s: Float[Tensor, "N D"], hypergraph: Hypergraph, p: float, drawn: tuple[Tensor, Links] | None = None
) -> Float[Tensor, "N D"]:
    """Sum the power means of the other members over the hyperedges of each node.

    The signal ``s`` is positive. ``drawn`` (from `draw_neighbours`) restricts the members of some incidences.
    """
    others = (hypergraph.edge_size - 1).clamp(min=0)
    if p == 1 and drawn is None:
        share = torch.where(others > 0, 1 / others.clamp(min=1), 0).to(s)[:, None]
        total = to_nodes(share * to_edges(s, hypergraph, "sum"), hypergraph, "sum")
        return (total - to_nodes(share, hypergraph, "sum") * s).clamp(min=0)  # rounding can make it negative
    raised = s.double() ** p  # 64 bits: the difference of large sums can be small, and the root amplifies its error
    left = edge_to_incidence(to_edges(raised, hypergraph, "sum"), hypergraph) - node_to_incidence(raised, hypergraph)
    count = others.index_select(0, hypergraph.edge_index)[:, None]
    left = torch.maximum(left, count.clamp(min=1) * LOWEST**p)
    if drawn is not None:
        left = left.index_copy(0, drawn[0], kernels.gather_sum(raised, drawn[1]))
    means = (left / count.clamp(min=1)) ** (1 / p) * (count > 0)
    return aggregate_at_nodes(means, hypergraph, "sum").to(s)


def draw_neighbours(hypergraph: Hypergraph, count: int, generator: torch.Generator) -> tuple[Tensor, Links] | None:
    """Draw ``count`` other members, without replacement, for each incidence whose hyperedge has more than that.

    Returns:
        The incidences and their links to the drawn nodes; ``None`` if there is no such incidence.
    """
    size = hypergraph.edge_size.index_select(0, hypergraph.edge_index)
    large = (size - 1 > count).nonzero()[:, 0]
    if not len(large):
        return None
    owner = torch.repeat_interleave(size[large])
    start = torch.cumsum(size[large], 0) - size[large]
    member = hypergraph.edge_ptr[hypergraph.edge_index[large]][owner] + _numbers(owner) - start[owner]
    other = member != large[owner]
    owner, member = owner[other], member[other]
    shuffled = torch.rand(len(owner), generator=generator).argsort().to(owner.device)
    order = shuffled[torch.sort(owner[shuffled], stable=True).indices]
    first = torch.cumsum(size[large] - 1, 0) - (size[large] - 1)
    chosen = order[_numbers(owner) - first[owner[order]] < count]
    row_ptr, column = torch.arange(len(large) + 1, device=large.device) * count, hypergraph.node_index[member[chosen]]
    return large, kernels.row_links(row_ptr, column, hypergraph.num_nodes)


def _numbers(index: Tensor) -> Tensor:
    return torch.arange(len(index), device=index.device)
