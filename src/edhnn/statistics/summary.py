"""All counts of a hypergraph in one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from edhnn.expansions import clique_pairs
from edhnn.hypergraph import Hypergraph
from edhnn.statistics.homophily import Homophily, homophilies
from edhnn.statistics.structure import component_sizes, first_equal_hyperedge


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Mean and quartiles of degrees or sizes."""

    mean: float
    minimum: int
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: int

    @classmethod
    def of(cls, values: Int[Tensor, " K"]) -> Distribution | None:
        """The distribution of some counts; ``None`` of nothing."""
        if not len(values):
            return None
        quartiles = np.quantile(values.cpu().numpy(), [0, 0.25, 0.5, 0.75, 1]).tolist()
        low, lower, median, upper, high = quartiles
        return cls(
            mean=float(values.double().mean()),
            minimum=int(low),
            lower_quartile=lower,
            median=median,
            upper_quartile=upper,
            maximum=int(high),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What `describe` counts.

    Attributes:
        num_nodes: Nodes, isolated ones included.
        num_hyperedges: Hyperedges, empty and singleton ones included.
        num_incidences: Memberships.
        degree: Hyperedges per node; ``None`` without nodes.
        edge_size: Nodes per hyperedge; ``None`` without hyperedges.
        isolated_nodes: Nodes in no hyperedge.
        empty_hyperedges: Hyperedges of size 0.
        singleton_hyperedges: Hyperedges of size 1.
        repeated_hyperedges: Hyperedges equal, as sets, to an earlier one.
        merged_memberships: Duplicate memberships that were merged.
        components: Connected components; an isolated node is one, an empty hyperedge is none.
        largest_component: Nodes in the largest.
        clique_pairs: What expanding cliques costs.
        class_counts: Nodes per class; ``None`` without class labels.
        homophily: By its four names; those left out are ``None``.
    """

    num_nodes: int
    num_hyperedges: int
    num_incidences: int
    degree: Distribution | None
    edge_size: Distribution | None
    isolated_nodes: int
    empty_hyperedges: int
    singleton_hyperedges: int
    repeated_hyperedges: int
    merged_memberships: int
    components: int
    largest_component: int
    clique_pairs: int
    class_counts: tuple[int, ...] | None
    homophily: Homophily

    @property
    def num_hyperedges_without_singletons(self) -> int:
        """Hyperedges of size 2 and more, which is what the paper's Tables 1 and 5 count."""
        return self.num_hyperedges - self.singleton_hyperedges - self.empty_hyperedges


def describe(
    hypergraph: Hypergraph, labels: Int[Tensor, " N"] | None = None, *, max_clique_pairs: int | None = None
) -> Statistics:
    """All counts of a hypergraph, and its homophily when nodes have class labels.

    Args:
        hypergraph: The hypergraph.
        labels: A class per node, -1 where unknown.
        max_clique_pairs: Leave out the homophilies that expand cliques where that costs more pairs than this.

    Returns:
        The statistics. Paper: Tables 1 and 5.
    """
    degree, size, pairs = hypergraph.degree, hypergraph.edge_size, clique_pairs(hypergraph)
    components = component_sizes(hypergraph)
    affordable = max_clique_pairs is None or pairs <= max_clique_pairs
    return Statistics(
        num_nodes=hypergraph.num_nodes,
        num_hyperedges=hypergraph.num_edges,
        num_incidences=hypergraph.num_incidences,
        degree=Distribution.of(degree),
        edge_size=Distribution.of(size),
        isolated_nodes=int((degree == 0).sum()),
        empty_hyperedges=int((size == 0).sum()),
        singleton_hyperedges=int((size == 1).sum()),
        repeated_hyperedges=int((first_equal_hyperedge(hypergraph) != np.arange(hypergraph.num_edges)).sum()),
        merged_memberships=hypergraph.merged_memberships,
        components=len(components),
        largest_component=int(components.max(initial=0)),
        clique_pairs=pairs,
        class_counts=None if labels is None else tuple(torch.bincount(labels[labels >= 0]).tolist()),
        homophily=Homophily() if labels is None else homophilies(hypergraph, labels, expand=affordable),
    )
