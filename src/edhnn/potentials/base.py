r"""The protocols of potentials, and the helpers that potentials share.

One object has `value`, `grad` and, where it exists, `prox`, so that an objective is written once.

Hyperedge potentials act on incidences, $H_e \mapsto g(H_e)$, each feature column on its own. Hyperedge weights are part
of the hypergraph and scale every potential: $w_e\, g(H_e)$. Incidence weights have no meaning here and raise an error.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import edge_to_incidence, incidence_to_edge, incidence_to_node, node_to_incidence


@runtime_checkable
class HyperedgePotential(Protocol):
    r"""A permutation-invariant function of a hyperedge's values. Paper: Definition 3 and Example 1.

    A class may declare traits for the solvers (`traits_of`): ``smooth`` if $g$ has a gradient everywhere, ``has_prox``
    if `Proximable.prox` works for this object, ``quadratic`` if $g$ is a quadratic form (`Quadratic`).
    """

    def convex_on(self, hypergraph: Hypergraph) -> bool:
        """Return whether $g$ is convex for every hyperedge of a hypergraph, which a duality gap requires."""

    def value(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
        r"""Return $w_e\, g(H_e)$ for each hyperedge and column."""

    def grad(self, h_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
        r"""Return $w_e\, [\nabla g(H_e)]_v$, or a subgradient that treats tied values alike."""


@runtime_checkable
class Proximable(HyperedgePotential, Protocol):
    """A hyperedge potential whose proximal operator is known exactly."""

    def prox(self, a_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, *, step_size: float) -> Float[Tensor, "I D"]:
        r"""Return $\arg\min_z \eta\, w_e\, g(z) + \tfrac12 \|z - a_e\|^2$ for each hyperedge and column."""


@runtime_checkable
class Quadratic(HyperedgePotential, Protocol):
    """A hyperedge potential that is a quadratic form, so that conjugate gradients apply."""

    def curvature(self, hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I 1"]:
        r"""Return the diagonal of the second derivative at each incidence."""


class Traits(NamedTuple):
    """The properties of a potential by which a solver is chosen."""

    smooth: bool
    quadratic: bool
    has_prox: bool


def traits_of(potential: HyperedgePotential) -> Traits:
    """Return the traits that a potential declares; by default it is smooth and its methods decide the rest."""
    return Traits(
        smooth=getattr(potential, "smooth", True),
        quadratic=getattr(potential, "quadratic", isinstance(potential, Quadratic)),
        has_prox=getattr(potential, "has_prox", isinstance(potential, Proximable)),
    )


def one_or_two(name: str, power: int) -> Literal[1, 2]:
    """Return the power of the potential ``name``; raise `UsageError` unless it is 1 or 2."""
    if power not in (1, 2):
        raise UsageError(f"The power of '{name}' must be 1 or 2. Got {power}.")
    return 1 if power == 1 else 2


@runtime_checkable
class NodePotential(Protocol):
    r"""$f(h_v; x_v)$, each column on its own. Paper: Definition 3."""

    def value(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $f(h_v; x_v)$."""

    def grad(self, h: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $\nabla f(h_v; x_v)$."""

    def prox(
        self, a: Float[Tensor, "N D"], x: Float[Tensor, "N D"], step_size: Float[Tensor, "N 1"]
    ) -> Float[Tensor, "N D"]:
        r"""Return $\arg\min_z \eta_v f(z; x_v) + \tfrac12 \|z - a_v\|^2$, with a step size per node."""

    def conjugate(self, r: Float[Tensor, "N D"], x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        r"""Return $f^*(r) = \sup_h\, r h - f(h; x_v)$, infinite outside its domain, for the duality gap."""


def edge_scale(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "E 1"]:
    """Return the hyperedge weights as a column, 1 without weights; raise `DataError` for incidence weights."""
    if hypergraph.incidence_weight is not None:
        raise DataError(
            "Hyperedge potentials do not support incidence weights, and this hypergraph has them.",
            remedy="Use a hypergraph without incidence weights. Hyperedge weights are supported.",
        )
    if hypergraph.edge_weight is None:
        return like.new_ones(hypergraph.num_edges, 1)
    return hypergraph.edge_weight.to(like)[:, None]


def degree_scale(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I 1"]:
    r"""Return $d_v^{-1/2}$ at each incidence, 0 if $d_v = \sum_{e \ni v} w_e$ is 0. Paper: Example 1, $D_e^{-1/2}$."""
    weight = edge_to_incidence(edge_scale(hypergraph, like), hypergraph)
    degree = incidence_to_node(weight, hypergraph)
    return node_to_incidence(torch.where(degree > 0, degree, torch.inf).rsqrt(), hypergraph)


def positive_degree_scale(hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I 1"]:
    """Return `degree_scale` with 1 in place of 0.

    A node of degree 0 is only in hyperedges of weight 0, whose proximal operators do not move it.
    """
    scale = degree_scale(hypergraph, like)
    return scale.where(scale > 0, scale.new_ones(()))


def edge_extremes(
    z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph
) -> tuple[Float[Tensor, "E D"], Float[Tensor, "E D"]]:
    """Return the largest and the smallest value of each hyperedge; 0 and 0 for an empty one."""
    index = hypergraph.edge_index[:, None].expand_as(z_ev)
    zeros = z_ev.new_zeros(hypergraph.num_edges, z_ev.shape[1])
    largest = zeros.scatter_reduce(0, index, z_ev, "amax", include_self=False)
    smallest = zeros.scatter_reduce(0, index, z_ev, "amin", include_self=False)
    return largest, smallest


def share_of(chosen: Bool[Tensor, "I D"], hypergraph: Hypergraph, like: Tensor) -> Float[Tensor, "I D"]:
    """Return 1 over the number of chosen members of a hyperedge for each of them, 0 for the others."""
    indicator = chosen.to(like)
    count = incidence_to_edge(indicator, hypergraph)
    return indicator / edge_to_incidence(count.clamp(min=1), hypergraph)


def average_over_ties(
    y_ev: Float[Tensor, "I D"], sorted_ev: Float[Tensor, "I D"], hypergraph: Hypergraph
) -> Float[Tensor, "I D"]:
    """Average values in rank order over ranks whose sorted values are equal, which keeps subgradients equivariant."""
    if not len(y_ev):
        return y_ev
    starts_group = torch.ones_like(sorted_ev, dtype=torch.bool)  # a group is a run of equal values in a hyperedge
    starts_group[1:] = sorted_ev[1:] != sorted_ev[:-1]
    starts_group[hypergraph.edge_ptr[:-1][hypergraph.edge_size > 0]] = True
    group = starts_group.cumsum(0) - 1
    sums = torch.zeros_like(y_ev).scatter_add(0, group, y_ev)
    counts = torch.zeros_like(y_ev).scatter_add(0, group, torch.ones_like(y_ev))
    return (sums / counts.clamp(min=1)).gather(0, group)
