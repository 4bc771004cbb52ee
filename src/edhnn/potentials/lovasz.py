r"""Lovász extensions of cardinality-based cuts: a hyperedge pays by how its values are spread over their ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence, incidence_to_edge
from edhnn.kernels import prox_cardinality, segment_sort
from edhnn.potentials.base import average_over_ties, degree_scale, edge_scale, one_or_two

CutWeights = Callable[[int], Sequence[float]]
"""$y$ for a hyperedge of a given size: one number per rank, the largest value's first."""


def balanced_cut(size: int) -> list[float]:
    r"""The paper's $y$: $\pm 2/|e|$ for the upper and lower half; odd sizes leave the middle out with $\pm 2/(|e|-1)$.

    Paper: Appendix F.5.    Differs: the odd case is misprinted there ("$y_0$"); 0 for a single node.
    """
    half = size // 2
    return [1 / half] * half + [0.0] * (size % 2) + [-1 / half] * half if half else [0.0] * size


def total_variation_cut(size: int) -> list[float]:
    r"""$y = (1, 0, \dots, 0, -1)$, with which LEC is TV. Paper: Example 1."""
    return [1.0] + [0.0] * (size - 2) + [-1.0] if size > 1 else [0.0] * size


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LovaszCardinality:
    r"""$g(z) = \langle y, \varsigma(x) \rangle^p$, $\varsigma$ sorting in decreasing order.

    Here $x = z$, or $x_v = z_v / \sqrt{d_v}$ if degree-normalised. Paper: Example 1 (LEC), $p \in \{1, 2\}$.

    Args:
        power: 1 or 2.
        cut_weights: $y$ by the size of the hyperedge.
        degree_normalised: Use $g(D_e^{-1/2} H_e)$; `prox` then needs a convex potential.

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
        """Make it for power 1 or 2."""
        return cls(power=one_or_two("lec", power))

    def __post_init__(self) -> None:
        if self.power not in (1, 2):
            raise UsageError(f"The power of LovaszCardinality must be 1 or 2. Got {self.power} instead.")

    def convex_on(self, hypergraph: Hypergraph) -> bool:
        r"""Whether $y$ is non-increasing and, for $p = 2$, sums to 0, for the sizes that there are."""
        for size in torch.unique(hypergraph.edge_size).tolist():
            y = list(self.cut_weights(size))
            falls = all(a >= b for a, b in pairwise(y))
            if not falls or (self.power == 2 and abs(sum(y)) > 1e-9):
                return False
        return True

    def value(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
        r"""$w_e \langle y, \varsigma(x_e) \rangle^p$."""
        x_ev = self._scaled(h_ev, hypergraph)
        sorted_ev = x_ev.gather(0, segment_sort(x_ev, hypergraph.edge_ptr))
        cut = incidence_to_edge(self.rank_weights(hypergraph, h_ev) * sorted_ev, hypergraph)
        return edge_scale(hypergraph, h_ev) * cut**self.power

    def grad(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
        r"""$p\, t^{p-1} y_{\mathrm{rank}(v)}$, $t = \langle y, \varsigma(x_e) \rangle$; tied ranks share $y$."""
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
        r"""Pools adjacent violators of the sorted values: exact, see `edhnn.kernels.prox_cardinality`. Paper: Eq. 3.

        Degree-normalised, $x = D_e^{-1/2} z$ turns the quadratic into $\tfrac12 \sum_v d_v (x_v - b_v)^2$, which may
        change the order: splits at thresholds instead, exact for convex potentials, others are refused (`DataError`).
        """
        step = (step_size * edge_scale(hypergraph, a_ev))[:, 0]
        y = self.rank_weights(hypergraph, a_ev)[:, 0]
        if not self.degree_normalised:
            return prox_cardinality(a_ev, hypergraph.edge_ptr, step, self.power, y)
        s_ev = degree_scale(hypergraph, a_ev)
        active = s_ev > 0  # a node of degree 0 sits in hyperedges of weight 0 only, where nothing moves
        safe = s_ev.where(active, s_ev.new_ones(()))
        x_ev = prox_cardinality(safe * a_ev, hypergraph.edge_ptr, step, self.power, y, weight=safe[:, 0] ** -2)
        return x_ev / safe

    def rank_weights(self, hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I 1"]:
        """$y$ laid out over incidences: the r-th row of a hyperedge holds $y_r$."""
        sizes, kind = torch.unique(hypergraph.edge_size, return_inverse=True)
        tables = []
        for size in sizes.tolist():
            y = list(self.cut_weights(size))
            if len(y) != size:
                raise DataError(
                    f"The cut weights for a hyperedge of {size} nodes must be {size} numbers. Got {len(y)}."
                )
            tables.append(torch.tensor(y, dtype=like.dtype, device=like.device))
        table = torch.cat([*tables, like.new_zeros(0)])
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])[kind]
        rank = torch.arange(hypergraph.num_incidences, device=like.device) - hypergraph.edge_ptr[hypergraph.edge_index]
        return table[starts[hypergraph.edge_index] + rank][:, None]

    def _scaled(self, h_ev: Tensor, hypergraph: Hypergraph) -> Tensor:
        return degree_scale(hypergraph, h_ev) * h_ev if self.degree_normalised else h_ev
