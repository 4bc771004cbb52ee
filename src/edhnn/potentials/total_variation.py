r"""Total variation: a hyperedge penalises the distance between its extreme values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from jaxtyping import Float
from torch import Tensor

from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence
from edhnn.kernels import prox_total_variation
from edhnn.potentials.base import (
    degree_scale,
    edge_extremes,
    edge_scale,
    one_or_two,
    positive_degree_scale,
    share_of,
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TotalVariation:
    r"""$g(z) = (\max_v x_v - \min_v x_v)^p$, with $x = z$, or $x_v = z_v / \sqrt{d_v}$ if degree-normalised.

    Paper: Example 1 (TV), $p \in \{1, 2\}$.

    Args:
        power: 1 or 2.
        degree_normalised: Use $g(D_e^{-1/2} H_e)$.

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph, TotalVariation
        >>> trio = Hypergraph.from_hyperedges([[0, 1, 2]])
        >>> TotalVariation(power=2).value(torch.tensor([[1.0], [3.0], [2.0]]), trio)
        tensor([[4.]])
    """

    smooth: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False
    has_prox: ClassVar[bool] = True

    power: Literal[1, 2] = 2
    degree_normalised: bool = False

    @classmethod
    def from_power(cls, power: int) -> TotalVariation:
        """Make the potential for power 1 or 2."""
        return cls(power=one_or_two("tv", power))

    def __post_init__(self) -> None:
        one_or_two("TotalVariation", self.power)

    def convex_on(self, hypergraph: Hypergraph) -> bool:
        """Return True: a power of a non-negative maximum of linear functions is convex."""
        del hypergraph
        return True

    def value(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
        r"""Return $w_e (\max_v x_v - \min_v x_v)^p$."""
        largest, smallest = edge_extremes(self._scaled(h_ev, hypergraph), hypergraph)
        return edge_scale(hypergraph, h_ev) * (largest - smallest) ** self.power

    def grad(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
        r"""Return $p (\max - \min)^{p-1} (u^{\max} - u^{\min})$, each $u$ uniform on the nodes that attain it."""
        x_ev = self._scaled(h_ev, hypergraph)
        largest, smallest = edge_extremes(x_ev, hypergraph)
        top = share_of(x_ev == edge_to_incidence(largest, hypergraph), hypergraph, h_ev)
        bottom = share_of(x_ev == edge_to_incidence(smallest, hypergraph), hypergraph, h_ev)
        slope = self.power * edge_scale(hypergraph, h_ev) * (largest - smallest) ** (self.power - 1)
        pull = edge_to_incidence(slope, hypergraph) * (top - bottom)
        return pull * degree_scale(hypergraph, h_ev) if self.degree_normalised else pull

    def prox(self, a_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, *, step_size: float) -> Float[Tensor, "I D"]:
        r"""Clip the values to water levels; exact, see `edhnn.kernels.prox_total_variation`. Paper: Eq. 3.

        If degree-normalised, $x = D_e^{-1/2} z$ turns the quadratic into $\tfrac12 \sum_v d_v (x_v - b_v)^2$, so that
        the degrees weight the levels.
        """
        step = (step_size * edge_scale(hypergraph, a_ev))[:, 0]
        if not self.degree_normalised:
            return prox_total_variation(a_ev, hypergraph.edge_ptr, step, self.power)
        s_ev = positive_degree_scale(hypergraph, a_ev)
        x_ev = prox_total_variation(s_ev * a_ev, hypergraph.edge_ptr, step, self.power, weight=s_ev[:, 0] ** -2)
        return x_ev / s_ev

    def _scaled(self, h_ev: Tensor, hypergraph: Hypergraph) -> Tensor:
        return degree_scale(hypergraph, h_ev) * h_ev if self.degree_normalised else h_ev
