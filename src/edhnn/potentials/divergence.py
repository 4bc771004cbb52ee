r"""Divergence to the mean: a hyperedge penalises the squared distances of its nodes from their mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence, incidence_to_edge
from edhnn.potentials.base import edge_scale

Mean = Literal["literal", "power"]
_MOST_ROOT_STEPS = 256  # two for each bisection that double precision can need; Newton's method needs about six


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceToMean:
    r"""$g(z) = \sum_{v \in e} (z_v - M)^2$ with $M = \kappa \|z\|_p$.

    Paper: Example 1 (divergence to the mean).    Differs: the paper prints $\| |e|^{-1} H_e \|_p$, that is
    $\kappa = 1/|e|$ (``literal``). The works it cites use the power mean, $\kappa = |e|^{-1/p}$ (``power``). The two
    agree only for $p = 1$.

    Args:
        power: $p \geq 1$.
        mean: ``literal`` or ``power``.
    """

    smooth: ClassVar[bool] = True
    quadratic: ClassVar[bool] = False

    power: float = 2.0
    mean: Mean = "literal"

    @classmethod
    def from_power(cls, power: int) -> DivergenceToMean:
        """Make the potential for a power of at least 1."""
        return cls(power=float(power))

    @property
    def has_prox(self) -> bool:
        """Whether the power is 2."""
        return self.power == 2

    def __post_init__(self) -> None:
        if not self.power >= 1:
            raise UsageError(f"The power of DivergenceToMean must be at least 1. Got {self.power}.")
        if self.mean not in ("literal", "power"):
            raise unknown_name("mean", self.mean, ("literal", "power"))

    def convex_on(self, hypergraph: Hypergraph) -> bool:
        r"""Return True for the power mean, and for the literal mean if $p = 1$ or $2 \leq p \leq 4$.

        The literal mean has $\sum_u (z_u - M) > 0$ near constants, where the curvature of $M$ is subtracted. It is
        unbounded at $z_v = 0$ for $1 < p < 2$, and too large from about $p = 4.6$ on, as at $(0.7, 0.7, 1, 1)$ for
        $p = 5$.
        """
        del hypergraph
        return self.mean == "power" or self.power == 1 or 2 <= self.power <= 4

    def value(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
        r"""Return $w_e \sum_{v \in e} (z_v - M)^2$."""
        mean_ev = edge_to_incidence(self._kappa(h_ev, hypergraph) * self._norm(h_ev, hypergraph), hypergraph)
        return edge_scale(hypergraph, h_ev) * incidence_to_edge((h_ev - mean_ev) ** 2, hypergraph)

    def grad(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
        r"""Return $2(z_v - M) - 2 \big(\sum_u (z_u - M)\big) \frac{\partial M}{\partial z_v}$.

        $\partial M / \partial z_v = \kappa\, \mathrm{sign}(z_v) |z_v|^{p-1} / \|z\|_p^{p-1}$, and 0 at $z = 0$.
        """
        kappa, norm = self._kappa(h_ev, hypergraph), self._norm(h_ev, hypergraph)
        off_ev = h_ev - edge_to_incidence(kappa * norm, hypergraph)
        relative = h_ev.abs() / edge_to_incidence(torch.where(norm > 0, norm, torch.inf), hypergraph)
        slope = edge_to_incidence(kappa, hypergraph) * h_ev.sign() * relative ** (self.power - 1)
        total = edge_to_incidence(incidence_to_edge(off_ev, hypergraph), hypergraph)
        return edge_to_incidence(2 * edge_scale(hypergraph, h_ev), hypergraph) * (off_ev - total * slope)

    def prox(self, a_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, *, step_size: float) -> Float[Tensor, "I D"]:
        r"""Return, for $p = 2$, $z = (a + 2\eta\kappa n 1)/\gamma$, where $n = \|z\|$ is the root of a scalar equation.

        $\gamma(n) = \|a + 2\eta\kappa n 1\| / n$, and the root of $\gamma - 1 - 2\eta + 2\eta\kappa S/n$ with
        $S = 1^\top z - |e|\kappa n$ lies in $(0, \|a\|]$, because the operator shrinks. Newton's method finds it in a
        few steps; a step that leaves the bracket or is not half as long as the one before is replaced by a bisection.
        """
        if self.power != 2:
            raise UsageError(
                "DivergenceToMean has a proximal operator for power 2 only. "
                f"Got power {self.power}. Use gradient descent."
            )
        kappa, size = self._kappa(a_ev, hypergraph), hypergraph.edge_size.to(a_ev)[:, None]
        eta = step_size * edge_scale(hypergraph, a_ev)
        lift = 2 * eta * kappa
        square, total = incidence_to_edge(a_ev**2, hypergraph), incidence_to_edge(a_ev, hypergraph)

        def gamma_times_n(n: Tensor) -> Tensor:
            return (square + 2 * lift * n * total + (lift * n) ** 2 * size).clamp(min=0).sqrt()

        low, high = torch.zeros_like(square), square.sqrt()
        n, last = high, high - low
        close = 4 * torch.finfo(a_ev.dtype).eps * high
        for _ in range(_MOST_ROOT_STEPS):
            norm = gamma_times_n(n)
            safe = torch.where(norm > 0, norm, 1)
            cosine = (total + lift * n * size) / safe
            excess = norm - (1 + 2 * eta) * n + lift * (cosine * n - size * kappa * n)  # n times the equation
            slope = lift * (2 * cosine + n * lift * (size - cosine**2) / safe - size * kappa) - (1 + 2 * eta)
            low, high = torch.where(excess > 0, n, low), torch.where(excess > 0, high, n)
            newton = n - excess / torch.where(slope == 0, 1, slope)
            inside = (newton >= low - close) & (newton <= high + close)  # rounding may leave the bracket at the root
            short = 2 * (newton - n).abs() <= torch.maximum(last, close)
            following = torch.where((slope != 0) & inside & short, newton.clamp(low, high), (low + high) / 2)
            last, n = (following - n).abs(), following
            if bool((last <= close).all()):
                break
        norm = gamma_times_n(n)
        ratio = torch.where(norm > 0, n / torch.where(norm > 0, norm, 1), 0)
        return edge_to_incidence(ratio, hypergraph) * (a_ev + edge_to_incidence(lift * n, hypergraph))

    def _kappa(self, like: Tensor, hypergraph: Hypergraph) -> Float[Tensor, "E 1"]:
        size = hypergraph.edge_size.to(like).clamp(min=1)[:, None]
        return size ** (-1.0 if self.mean == "literal" else -1.0 / self.power)

    def _norm(self, h_ev: Tensor, hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
        largest = h_ev.new_zeros(hypergraph.num_edges, h_ev.shape[1]).scatter_reduce(
            0, hypergraph.edge_index[:, None].expand_as(h_ev), h_ev.detach().abs(), "amax"
        )
        largest = torch.where(largest > 0, largest, 1)
        scaled = (h_ev / edge_to_incidence(largest, hypergraph)).abs() ** self.power
        return largest * incidence_to_edge(scaled, hypergraph) ** (1 / self.power)
