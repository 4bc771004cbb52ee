r"""Clique expansion: a hyperedge penalises the squared differences of all pairs of its nodes."""

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
    Paper: Example 1 (CE).    Differs: nothing. ADR 0006 records the ordered-pair convention.

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
        """Make the potential; raise `UsageError` unless the power is 2."""
        if power != 2:
            raise UsageError(f"The power of the clique expansion must be 2. Got {power}.")
        return cls()

    def __post_init__(self) -> None:
        if self.normalisation not in ("none", "degree", "laplacian"):
            raise unknown_name("normalisation", self.normalisation, ("none", "degree", "laplacian"))

    def convex_on(self, hypergraph: Hypergraph) -> bool:
        """Return True: a sum of squares is convex."""
        del hypergraph
        return True

    def value(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
        r"""Return $2 c_e (|e| \sum x_v^2 - (\sum x_v)^2)$, computed around the mean so that nothing cancels."""
        size, c_e = self._size_and_factor(h_ev, hypergraph)
        spread = incidence_to_edge(self._centred(h_ev, hypergraph) ** 2, hypergraph)
        return 2 * c_e * size * spread

    def grad(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
        r"""Return $4 c_e\, s_v (|e|\, x_v - \sum_u x_u)$. Paper: Eq. 2."""
        size, c_e = self._size_and_factor(h_ev, hypergraph)
        pull = edge_to_incidence(4 * c_e * size, hypergraph) * self._centred(h_ev, hypergraph)
        return pull if self.normalisation == "none" else pull * degree_scale(hypergraph, h_ev)

    def prox(self, a_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, *, step_size: float) -> Float[Tensor, "I D"]:
        r"""Solve $(I + 4 \eta c_e (|e| S^2 - s s^\top)) z = a$ by the Sherman-Morrison formula.

        With $A_v = 1 + 4 \eta c_e |e| s_v^2$, $u = a / A$ and $t = s / A$:
        $z = u + \frac{4 \eta c_e \langle s, u \rangle}{1 - 4 \eta c_e \langle s, t \rangle}\, t$. Paper: Eq. 3.
        The denominator is written as $\sum_v 1 / (|e| A_v)$, which does not cancel.
        """
        s_ev = self._scale(a_ev, hypergraph)
        size, c_e = self._size_and_factor(a_ev, hypergraph)
        strength_e = 4 * step_size * c_e
        a_diagonal = 1 + edge_to_incidence(strength_e * size, hypergraph) * s_ev**2
        u_ev, t_ev = a_ev / a_diagonal, s_ev / a_diagonal
        top = strength_e * incidence_to_edge(s_ev * u_ev, hypergraph)
        bottom = incidence_to_edge(1 / a_diagonal, hypergraph) / size.clamp(min=1) + (size == 0)
        return u_ev + edge_to_incidence(top / bottom, hypergraph) * t_ev

    def curvature(self, hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I 1"]:
        r"""Return the diagonal of the second derivative at each incidence, $4 c_e (|e| - 1) s_v^2$."""
        size, c_e = self._size_and_factor(like, hypergraph)
        return edge_to_incidence(4 * c_e * (size - 1), hypergraph) * self._scale(like, hypergraph) ** 2

    def _scale(self, like: Tensor, hypergraph: Hypergraph) -> Float[Tensor, "I 1"]:
        if self.normalisation == "none":
            return like.new_ones(hypergraph.num_incidences, 1)
        return degree_scale(hypergraph, like)

    def _size_and_factor(
        self, like: Tensor, hypergraph: Hypergraph
    ) -> tuple[Float[Tensor, "E 1"], Float[Tensor, "E 1"]]:
        """Return $|e|$ and $c_e$, the latter times the weight of the hyperedge."""
        size, factor = hypergraph.edge_size.to(like)[:, None], edge_scale(hypergraph, like)
        return size, factor / (4 * size.clamp(min=1)) if self.normalisation == "laplacian" else factor

    def _centred(self, h_ev: Tensor, hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
        """Return $x_v$ less the mean of its hyperedge."""
        x_ev = self._scale(h_ev, hypergraph) * h_ev
        mean_e = incidence_to_edge(x_ev, hypergraph) / hypergraph.edge_size.to(h_ev).clamp(min=1)[:, None]
        return x_ev - edge_to_incidence(mean_e, hypergraph)
