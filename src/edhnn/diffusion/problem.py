r"""The diffusion problem: $\min_H \sum_v f(h_v; x_v) + \sum_e g(H_e)$, each feature column on its own.

Paper: Definition 3, Eq. 1.

**The certificate.** Let $r_e \in \partial g(p_e)$ for some points $p_e$: a gradient at $p_e$, or the remainder of a
proximal step, $r_e = (a_e - p_e)/\eta$ with $p_e = \mathrm{prox}_{\eta g}(a_e)$. For convex $g$ the Fenchel inequality
$g(H_e) \geq \langle r_e, H_e \rangle - g^*(r_e)$ holds with $g^*(r_e) = \langle r_e, p_e \rangle - g(p_e)$, so with
$R_v = \sum_{e \ni v} r_{ev}$ no $H$ has an objective below

$$ D = -\sum_v f^*(-R_v; x_v) - \sum_e \big( \langle r_e, p_e \rangle - g(p_e) \big). $$

The gap between the current objective and $D$ bounds the distance to the minimum for any solver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import incidence_to_node, node_to_incidence
from edhnn.potentials.base import HyperedgePotential, NodePotential
from edhnn.potentials.node import SquaredDistance


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DiffusionProblem:
    r"""$\min_H \sum_v f(h_v; x_v) + \lambda \sum_e w_e\, g(H_e)$. Paper: Definition 3, Eq. 1.

    Args:
        hypergraph: The hypergraph; its hyperedge weights are $w_e$.
        x: The observed values of the nodes, floating point.
        hyperedge_potential: $g$.
        node_potential: $f$; the squared distance if not given.
        strength: $\lambda$. It is not part of $w_e$, because some potentials divide by degrees, which sum $w_e$.
    """

    hypergraph: Hypergraph
    x: Float[Tensor, "N D"]
    hyperedge_potential: HyperedgePotential
    node_potential: NodePotential = field(default_factory=SquaredDistance)
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.strength < float("inf"):
            raise UsageError(f"The strength must be finite and 0 or more. Got {self.strength}.")
        if not isinstance(self.x, Tensor):
            raise DataError(f"'x' must be a tensor. Got {type(self.x).__name__}.", remedy="Use torch.as_tensor(...).")
        if self.x.dim() != 2 or self.x.shape[0] != self.hypergraph.num_nodes or not self.x.is_floating_point():
            raise DataError(
                f"'x' must be floating point of shape [{self.hypergraph.num_nodes}, D], with a row per node. "
                f"Got {self.x.dtype} of shape {list(self.x.shape)}."
            )
        invalid = (~self.x.isfinite()).nonzero()
        if len(invalid):
            node = int(invalid[0, 0])
            raise DataError(f"Every entry of 'x' must be finite. Got {self.x[node].tolist()} at node {node}.")

    def objective(self, h: Float[Tensor, "N D"]) -> Float[Tensor, " D"]:
        r"""Return $\sum_v f(h_v; x_v) + \lambda \sum_e w_e\, g(H_e)$ for each column."""
        on_edges = self.hyperedge_potential.value(node_to_incidence(h, self.hypergraph), self.hypergraph)
        return self.node_potential.value(h, self.x).sum(0) + self.strength * on_edges.sum(0)

    def grad(self, h: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $\nabla f(h_v; x_v) + \lambda \sum_{e \ni v} [\nabla g(H_e)]_v$. Paper: Eq. 2."""
        g_ev = self.edge_grad(node_to_incidence(h, self.hypergraph))
        return self.node_potential.grad(h, self.x) + incidence_to_node(g_ev, self.hypergraph)

    def edge_grad(self, h_ev: Float[Tensor, "I D"]) -> Float[Tensor, "I D"]:
        r"""Return $\lambda w_e [\nabla g(H_e)]_v$."""
        return self.strength * self.hyperedge_potential.grad(h_ev, self.hypergraph)

    def subgradient(self, h: Float[Tensor, "N D"]) -> tuple[Float[Tensor, "I D"], Float[Tensor, " D"]]:
        r"""Return $r_e \in \partial g(H_e)$ (with $\lambda$) and its `conjugate_value`."""
        h_ev = node_to_incidence(h, self.hypergraph)
        r_ev = self.edge_grad(h_ev)
        return r_ev, self.conjugate_value(r_ev, h_ev)

    def conjugate_value(self, r_ev: Float[Tensor, "I D"], p_ev: Float[Tensor, "I D"]) -> Float[Tensor, " D"]:
        r"""Return $\sum_e g^*(r_e) = \sum_e \langle r_e, p_e \rangle - g(p_e)$, where $g$ includes $\lambda w_e$.

        This requires $r_e \in \partial g(p_e)$.
        """
        on_edges = self.hyperedge_potential.value(p_ev, self.hypergraph).sum(0)
        return (r_ev * p_ev).sum(0) - self.strength * on_edges

    def lower_bound(self, r_ev: Float[Tensor, "I D"], conjugate_value: Float[Tensor, " D"]) -> Float[Tensor, " D"]:
        r"""Return $D = -\sum_v f^*(-R_v; x_v) - \sum_e g^*(r_e)$; minus infinity if $g$ is not convex."""
        if not self.hyperedge_potential.convex_on(self.hypergraph):
            return torch.full_like(conjugate_value, -torch.inf)
        total = incidence_to_node(r_ev, self.hypergraph)
        return -self.node_potential.conjugate(-total, self.x).sum(0) - conjugate_value
