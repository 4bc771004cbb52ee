r"""Clique expansion: every pair of a hyperedge's nodes pulls together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from jaxtyping import Float
from torch import Tensor

from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence, incidence_to_edge
from edhnn.potentials.base import degree_scale, edge_scale

Normalisation = Literal["none", "degree", "laplacian"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CliqueExpansion:
    r"""$g(z) = c_e \sum_{u,v \in e} (x_u - x_v)^2 = 2 c_e (|e| \sum_v x_v^2 - (\sum_v x_v)^2)$, $x = s \circ z$.

    The sum runs over ordered pairs, so each pair counts twice.
    Paper: Example 1 (CE).    Differs: nothing; the ordered-pair convention is ADR 0006.

    Args:
        normalisation: ``none``: $s = 1$, $c_e = 1$. ``degree``: $s_v = d_v^{-1/2}$, $c_e = 1$ (the paper's degree
            normalisation). ``laplacian``: $s_v = d_v^{-1/2}$, $c_e = 1/(4|e|)$, so that the summed gradient is
            $(I - \Theta) h$ with $\Theta = D^{-1/2} H W B^{-1} H^\top D^{-1/2}$, HGNN's operator.

    Example:
        >>> import torch
        >>> from edhnn import CliqueExpansion, Hypergraph
        >>> pair = Hypergraph.from_hyperedges([[0, 1]])
        >>> CliqueExpansion().value(torch.tensor([[1.0], [3.0]]), pair)
        tensor([[8.]])
    """

    smooth: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True
    has_prox: ClassVar[bool] = True

    normalisation: Normalisation = "none"

    @classmethod
    def from_power(cls, power: int) -> CliqueExpansion:
        """Make it for power 2, the only one."""
        if power != 2:
            raise UsageError(f"The clique expansion has power 2. Got {power}.")
        return cls()

    def __post_init__(self) -> None:
        if self.normalisation not in ("none", "degree", "laplacian"):
            raise unknown_name("normalisation", self.normalisation, ("none", "degree", "laplacian"))

    def convex_on(self, hypergraph: Hypergraph) -> bool:
        """Always: it is a sum of squares."""
        del hypergraph
        return True

    def value(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
        r"""$2 c_e (|e| \sum x_v^2 - (\sum x_v)^2)$, computed around the mean so that nothing cancels."""
        x_ev, size, scale = self._parts(h_ev, hypergraph)
        mean_e = incidence_to_edge(x_ev, hypergraph) / size.clamp(min=1)
        spread = incidence_to_edge((x_ev - edge_to_incidence(mean_e, hypergraph)) ** 2, hypergraph)
        return 2 * scale * size * spread

    def grad(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
        r"""$4 c_e\, s_v (|e|\, x_v - \sum_u x_u)$. Paper: Eq. 2."""
        x_ev, size, scale = self._parts(h_ev, hypergraph)
        mean_e = incidence_to_edge(x_ev, hypergraph) / size.clamp(min=1)
        pull = edge_to_incidence(4 * scale * size, hypergraph) * (x_ev - edge_to_incidence(mean_e, hypergraph))
        return pull if self.normalisation == "none" else pull * degree_scale(hypergraph, h_ev)

    def prox(self, a_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, *, step_size: float) -> Float[Tensor, "I D"]:
        r"""Solves $(I + 4 \eta c_e (|e| S^2 - s s^\top)) z = a$ by the Sherman-Morrison formula.

        With $A_v = 1 + 4 \eta c_e |e| s_v^2$, $u = a / A$ and $t = s / A$:
        $z = u + \frac{4 \eta c_e \langle s, u \rangle}{1 - 4 \eta c_e \langle s, t \rangle}\, t$. Paper: Eq. 3.
        The denominator is written as $\sum_v 1 / (|e| A_v)$, which does not cancel.
        """
        s_ev = self._scale(a_ev, hypergraph)
        _, size, scale = self._parts(a_ev, hypergraph)
        strength_e = 4 * step_size * scale
        a_diagonal = 1 + edge_to_incidence(strength_e * size, hypergraph) * s_ev**2
        u_ev, t_ev = a_ev / a_diagonal, s_ev / a_diagonal
        top = strength_e * incidence_to_edge(s_ev * u_ev, hypergraph)
        bottom = incidence_to_edge(1 / a_diagonal, hypergraph) / size.clamp(min=1) + (size == 0)
        return u_ev + edge_to_incidence(top / bottom, hypergraph) * t_ev

    def curvature(self, hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I 1"]:
        r"""The diagonal of the second derivative at each incidence, $4 c_e (|e| - 1) s_v^2$."""
        _, size, scale = self._parts(like.new_zeros(hypergraph.num_incidences, 1), hypergraph)
        return edge_to_incidence(4 * scale * (size - 1), hypergraph) * self._scale(like, hypergraph) ** 2

    def _scale(self, like: Tensor, hypergraph: Hypergraph) -> Float[Tensor, "I 1"]:
        if self.normalisation == "none":
            return like.new_ones(hypergraph.num_incidences, 1)
        return degree_scale(hypergraph, like)

    def _parts(self, h_ev: Tensor, hypergraph: Hypergraph) -> tuple[Tensor, Tensor, Tensor]:
        size = hypergraph.edge_size.to(h_ev)[:, None]
        scale = edge_scale(hypergraph, h_ev)
        if self.normalisation == "laplacian":
            scale = scale / (4 * size.clamp(min=1))
        return self._scale(h_ev, hypergraph) * h_ev, size, scale
