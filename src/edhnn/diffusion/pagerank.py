r"""Personalised PageRank, and sweep cuts: the prefix of a ranking with the smallest conductance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from edhnn.diffusion.problem import DiffusionProblem
from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence, incidence_to_node
from edhnn.potentials.base import HyperedgePotential, edge_scale
from edhnn.potentials.node import SquaredDistance
from edhnn.potentials.total_variation import TotalVariation


@final
@dataclass(frozen=True, slots=True, eq=False)
class SweepCut:
    """The result of a sweep.

    Attributes:
        members: The nodes of the best prefix, best first.
        conductance: Its conductance.
        profile: The conductance of every proper prefix: the i-th entry is that of the first i + 1 nodes.
        order: All nodes in the order of the sweep.
    """

    members: Int[Tensor, " K"]
    conductance: float
    profile: Float[Tensor, " prefixes"]
    order: Int[Tensor, " N"]


def sweep_cut(hypergraph: Hypergraph, scores: Float[Tensor, " N"], *, max_size: int | None = None) -> SweepCut:
    r"""Find the prefix of the ranking with the smallest conductance.

    $\phi(S) = \mathrm{cut}(S) / \min(\mathrm{vol}(S), \mathrm{vol}(V \setminus S))$, where the cut adds $w_e$ for every
    hyperedge with nodes on both sides and the volume adds degrees $\sum_{e \ni v} w_e$. A hyperedge is cut by the
    prefixes from its best-ranked node up to, not including, its worst-ranked, so one pass over incidences suffices.

    Args:
        hypergraph: The hypergraph; its hyperedge weights are used.
        scores: The score of each node. Nodes with equal scores are ranked by their numbers.
        max_size: The most nodes of a prefix.

    Raises:
        UsageError: if there are fewer than two nodes or ``max_size`` is below 1, or if ``scores`` has the wrong shape.
    """
    nodes = hypergraph.num_nodes
    if nodes < 2 or scores.shape != (nodes,):
        raise UsageError(
            "A sweep needs at least two nodes and one score for each. "
            f"Got {nodes} nodes and scores of shape {list(scores.shape)}."
        )
    if max_size is not None and max_size < 1:
        raise UsageError(f"'max_size' must be 1 or more. Got {max_size}.")
    order = torch.sort(scores, descending=True, stable=True).indices
    rank = torch.empty_like(order)
    rank[order] = torch.arange(nodes, device=order.device)
    ones = torch.ones(hypergraph.num_edges, dtype=torch.float64, device=scores.device)
    weight = ones if hypergraph.edge_weight is None else hypergraph.edge_weight.to(ones)
    rank_ev = rank[hypergraph.node_index]
    first = rank.new_full((hypergraph.num_edges,), nodes).scatter_reduce(0, hypergraph.edge_index, rank_ev, "amin")
    last = rank.new_full((hypergraph.num_edges,), -1).scatter_reduce(0, hypergraph.edge_index, rank_ev, "amax")
    full = last >= 0  # empty hyperedges are never cut
    change = weight.new_zeros(nodes + 1).index_add(0, first[full], weight[full]).index_add(0, last[full], -weight[full])
    cut = change.cumsum(0)[: nodes - 1].clamp(min=0)
    degree = weight.new_zeros(nodes).index_add(0, hypergraph.node_index, weight[hypergraph.edge_index])
    volume = degree[order].cumsum(0)
    smaller = torch.minimum(volume[:-1], volume[-1] - volume[:-1])
    profile = torch.where(smaller > 0, cut / torch.where(smaller > 0, smaller, 1), torch.inf)
    best = int(profile[: max_size or nodes].argmin())
    return SweepCut(order[: best + 1], float(profile[best]), profile, order)


def pagerank_problem(
    hypergraph: Hypergraph,
    seeds: Float[Tensor, "N D"],
    *,
    restart: float = 0.15,
    potential: HyperedgePotential | None = None,
) -> DiffusionProblem:
    r"""Pose PageRank for `solve`: $\min_h \alpha \sum_v d_v (h_v - s_v/d_v)^2 + (1 - \alpha) \sum_e w_e\, g(H_e)$.

    With hyperedges of two nodes and $g = (h_u - h_v)^2$ (total variation, $p = 2$) the vector $d_v h_v$ is the
    personalised PageRank of the graph with restart probability $\alpha$. Paper: Definition 3 (hypergraph PageRank).

    Args:
        hypergraph: The hypergraph, without isolated nodes among the seeds.
        seeds: $s$, a distribution over nodes in each column.
        restart: $\alpha$ in (0, 1).
        potential: $g$; total variation with $p = 2$ if not given.
    """
    if not 0 < restart < 1:
        raise UsageError(f"The restart probability must lie between 0 and 1. Got {restart}.")
    if seeds.dim() != 2 or len(seeds) != hypergraph.num_nodes or not seeds.is_floating_point():
        raise DataError(
            f"The seeds must be floating point of shape [{hypergraph.num_nodes}, D], with a row per node. "
            f"Got {seeds.dtype} of shape {list(seeds.shape)}.",
            remedy="Make a vector a column with seeds[:, None].",
        )
    degree = incidence_to_node(edge_to_incidence(edge_scale(hypergraph, seeds), hypergraph), hypergraph)[:, 0]
    isolated = ((degree == 0)[:, None] & (seeds != 0)).nonzero()
    if len(isolated):
        raise UsageError(f"A seed must be in a hyperedge of positive weight. Node {int(isolated[0, 0])} is not.")
    safe = torch.where(degree > 0, degree, 1)[:, None]
    return DiffusionProblem(
        hypergraph=hypergraph,
        x=seeds / safe,
        hyperedge_potential=potential or TotalVariation(power=2),
        node_potential=SquaredDistance(weight=restart * safe),
        strength=1 - restart,
    )
