r"""What a potential is. One object owns `value`, `grad` and, where it exists, `prox`; an objective is written once.

Hyperedge potentials act on incidences, $H_e \mapsto g(H_e)$, each feature column on its own. Hyperedge weights are part
of the hypergraph and scale every potential: $w_e\, g(H_e)$. Incidence weights have no meaning here and are refused.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.errors import DataError
from edhnn.hypergraph import Hypergraph
from edhnn.incidence import incidence_to_node


@runtime_checkable
class HyperedgePotential(Protocol):
    r"""A permutation-invariant function of a hyperedge's values. Paper: Definition 3 and Example 1."""

    def convex_on(self, hypergraph: Hypergraph) -> bool:
        """Whether $g$ is convex for every hyperedge of a hypergraph: then, and only then, there is a duality gap."""

    def value(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
        r"""$w_e\, g(H_e)$ for each hyperedge and column."""

    def grad(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
        r"""$w_e\, [\nabla g(H_e)]_v$, or a subgradient that treats tied values alike."""


@runtime_checkable
class Proximable(HyperedgePotential, Protocol):
    """A hyperedge potential whose proximal operator is known exactly."""

    def prox(self, a_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, *, step_size: float) -> Float[Tensor, "I D"]:
        r"""$\arg\min_z \eta\, w_e\, g(z) + \tfrac12 \|z - a_e\|^2$ for each hyperedge and column."""


@runtime_checkable
class NodePotential(Protocol):
    r"""$f(h_v; x_v)$, each column on its own. Paper: Definition 3."""

    def value(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""$f(h_v; x_v)$."""

    def grad(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""$\nabla f(h_v; x_v)$."""

    def prox(
        self, a: Float[Tensor, "N D"], x: Float[Tensor, "N D"], step_size: Float[Tensor, "N 1"]
    ) -> Float[Tensor, "N D"]:
        r"""$\arg\min_z \eta_v f(z; x_v) + \tfrac12 \|z - a_v\|^2$, with a step size per node."""

    def conjugate(self, r: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""$f^*(r) = \sup_h\, r h - f(h; x_v)$; infinite outside its domain. It makes the duality gap."""


def edge_scale(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "E 1"]:
    """Hyperedge weights as a column, 1 without weights; incidence weights are refused."""
    if hypergraph.incidence_weight is not None:
        raise DataError(
            "A hyperedge potential has no place for incidence weights, and this hypergraph has them.",
            remedy="Use a hypergraph without them: hyperedge weights are honoured.",
        )
    if hypergraph.edge_weight is None:
        return like.new_ones(hypergraph.num_edges, 1)
    return hypergraph.edge_weight.to(like)[:, None]


def degree_scale(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I 1"]:
    r"""$d_v^{-1/2}$ at each incidence, $d_v = \sum_{e \ni v} w_e$; 0 where $d_v$ is. Paper: Example 1, $D_e^{-1/2}$."""
    weight = edge_scale(hypergraph, like).index_select(0, hypergraph.edge_index)
    degree = incidence_to_node(weight, hypergraph)
    scale = torch.where(degree > 0, degree, torch.inf).rsqrt()
    return scale.index_select(0, hypergraph.node_index)
