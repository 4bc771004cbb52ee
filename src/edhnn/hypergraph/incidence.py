r"""The four maps of the bipartite form, $v \to (v,e) \to e \to (v,e) \to v$, and the protocol of hyperedge operators.

A tensor has a row per node ``[N, D]``, per hyperedge ``[E, D]`` or per incidence ``[I, D]``, sorted by hyperedge. A
diffusion solver needs one map per hyperedge, the gradient or the proximal operator of its potential. A network may
replace it. Both are a `HyperedgeOperator`.
Paper: Definition 2 ($H$, $H_e$) and Section 3.1 (hyperedge diffusion operators).
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from edhnn.hypergraph.hypergraph import Hypergraph


@runtime_checkable
class HyperedgeOperator(Protocol):
    r"""A map on the values of each hyperedge's members: $H_e \mapsto \psi(H_e)$, for all hyperedges at once."""

    def __call__(self, z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "I D2"]:
        """Apply the map to every hyperedge."""


def node_to_incidence(h: Float[Tensor, "N D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
    r"""Return $H_e$ for all hyperedges: each node's value at each of its memberships. Paper: Definition 2."""
    return h.index_select(0, hypergraph.node_index)


def edge_to_incidence(m_e: Float[Tensor, "E D"], hypergraph: Hypergraph) -> Float[Tensor, "I D"]:
    r"""Return each hyperedge's value at each of its memberships."""
    return m_e.index_select(0, hypergraph.edge_index)


def incidence_to_edge(z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "E D"]:
    r"""Return $\sum_{v \in e} z_{ev}$; zero for an empty hyperedge."""
    return z_ev.new_zeros(hypergraph.num_edges, z_ev.shape[1]).index_add(0, hypergraph.edge_index, z_ev)


def incidence_to_node(z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph) -> Float[Tensor, "N D"]:
    r"""Return $\sum_{e \ni v} z_{ev}$; zero for an isolated node."""
    return z_ev.new_zeros(hypergraph.num_nodes, z_ev.shape[1]).index_add(0, hypergraph.node_index, z_ev)
