r"""Lovász extensions of cardinality-based cuts: a hyperedge penalises a weighted sum of its sorted values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence, incidence_to_edge
from edhnn.kernels import prox_cardinality, segment_sort
from edhnn.potentials.base import average_over_ties, degree_scale, edge_scale, one_or_two, positive_degree_scale

CutWeights = Callable[[int], Sequence[float]]
"""A function from the size of a hyperedge to $y$: one number per rank, that of the largest value first."""


def balanced_cut(size: int) -> list[float]:
    r"""Return the paper's $y$: $\pm 2/|e|$ for the upper and lower half; for odd sizes $\pm 2/(|e|-1)$ and 0 between.

    Paper: Appendix F.5.    Differs: the odd case is misprinted there ("$y_0$"); 0 for a single node.
    """
    half = size // 2
    return [1 / half] * half + [0.0] * (size % 2) + [-1 / half] * half if half else [0.0] * size


def total_variation_cut(size: int) -> list[float]:
    r"""Return $y = (1, 0, \dots, 0, -1)$, with which LEC is TV. Paper: Example 1."""
    return [1.0] + [0.0] * (size - 2) + [-1.0] if size > 1 else [0.0] * size


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LovaszCardinality:
    r"""$g(z) = \langle y, \varsigma(x) \rangle^p$, where $\varsigma$ sorts in decreasing order.

    Here $x = z$, or $x_v = z_v / \sqrt{d_v}$ if degree-normalised. Paper: Example 1 (LEC), $p \in \{1, 2\}$.

    Args:
        power: 1 or 2.
        cut_weights: $y$ as a function of the size of the hyperedge.
        degree_normalised: Use $g(D_e^{-1/2} H_e)$; `prox` then requires a convex potential.

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph, LovaszCardinality
        >>> trio = Hypergraph.from_hyperedges([[0, 1, 2]])
        >>> paper = LovaszCardinality(power=2, cut_weights=lambda size: (1.0, -1.0, 0.0))
        >>> paper.grad(torch.tensor([[0.7], [0.5], [0.3]], dtype=torch.float64), trio)[:, 0].round(decimals=6)
        tensor([ 0.4000, -0.4000,  0.0000], dtype=torch.float64)
    """

    smooth: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False
    has_prox: ClassVar[bool] = True

    power: Literal[1, 2] = 2
    cut_weights: CutWeights = balanced_cut
    degree_normalised: bool = False

    @classmethod
    def from_power(cls, power: int) -> LovaszCardinality:
        """Make the potential for power 1 or 2."""
        return cls(power=one_or_two("lec", power))

    def __post_init__(self) -> None:
        one_or_two("LovaszCardinality", self.power)

    def convex_on(self, hypergraph: Hypergraph) -> bool:
        r"""Return whether $y$ is non-increasing and, for $p = 2$, sums to 0, for every size that occurs."""
        for size in torch.unique(hypergraph.edge_size).tolist():
            y = list(self.cut_weights(size))
            non_increasing = all(a >= b for a, b in pairwise(y))
            if not non_increasing or (self.power == 2 and abs(sum(y)) > 1e-9):
                return False
        return True

    def value(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
        r"""Return $w_e \langle y, \varsigma(x_e) \rangle^p$."""
        x_ev = self._scaled(h_ev, hypergraph)
        sorted_ev = x_ev.gather(0, segment_sort(x_ev, hypergraph.edge_ptr))
        cut = incidence_to_edge(self.rank_weights(hypergraph, h_ev) * sorted_ev, hypergraph)
        return edge_scale(hypergraph, h_ev) * cut**self.power

    def grad(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
        r"""Return $p\, t^{p-1} y_{\mathrm{rank}(v)}$, $t = \langle y, \varsigma(x_e) \rangle$; tied ranks share $y$."""
        x_ev = self._scaled(h_ev, hypergraph)
        order = segment_sort(x_ev, hypergraph.edge_ptr)
        sorted_ev = x_ev.gather(0, order)
        y_ev = self.rank_weights(hypergraph, h_ev).expand_as(h_ev)
        cut = incidence_to_edge(y_ev * sorted_ev, hypergraph)
        slope = self.power * edge_scale(hypergraph, h_ev) * cut ** (self.power - 1)
        shared = average_over_ties(y_ev, sorted_ev, hypergraph)
        pull = torch.zeros_like(h_ev).scatter(0, order, edge_to_incidence(slope, hypergraph) * shared)
        return pull * degree_scale(hypergraph, h_ev) if self.degree_normalised else pull

    def prox(self, a_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, *, step_size: float) -> Float[Tensor, "I D"]:
        r"""Pool adjacent violators of the sorted values; exact, see `edhnn.kernels.prox_cardinality`. Paper: Eq. 3.

        If degree-normalised, $x = D_e^{-1/2} z$ turns the quadratic into $\tfrac12 \sum_v d_v (x_v - b_v)^2$, which may
        change the order. Values are then split at thresholds, which is exact for convex potentials; others raise
        `DataError`.
        """
        step = (step_size * edge_scale(hypergraph, a_ev))[:, 0]
        y = self.rank_weights(hypergraph, a_ev)[:, 0]
        if not self.degree_normalised:
            return prox_cardinality(a_ev, hypergraph.edge_ptr, step, self.power, y)
        s_ev = positive_degree_scale(hypergraph, a_ev)
        x_ev = prox_cardinality(s_ev * a_ev, hypergraph.edge_ptr, step, self.power, y, weight=s_ev[:, 0] ** -2)
        return x_ev / s_ev

    def rank_weights(self, hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I 1"]:
        """Return $y$ over incidences: the r-th row of a hyperedge holds $y_r$."""
        sizes, size_index = torch.unique(hypergraph.edge_size, return_inverse=True)
        tables = []
        for size in sizes.tolist():
            y = list(self.cut_weights(size))
            if len(y) != size:
                raise DataError(
                    f"The cut weights for a hyperedge of {size} nodes must be {size} numbers. Got {len(y)}."
                )
            tables.append(torch.tensor(y, dtype=like.dtype, device=like.device))
        table = torch.cat([*tables, like.new_zeros(0)])
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])[size_index]
        rank = torch.arange(hypergraph.num_incidences, device=like.device) - hypergraph.edge_ptr[hypergraph.edge_index]
        return table[starts[hypergraph.edge_index] + rank][:, None]

    def _scaled(self, h_ev: Tensor, hypergraph: Hypergraph) -> Tensor:
        return degree_scale(hypergraph, h_ev) * h_ev if self.degree_normalised else h_ev
