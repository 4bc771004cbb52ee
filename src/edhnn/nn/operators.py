r"""Learned operators on hyperedges: the equivariant one, and the invariant one it is compared with.

$$ [\hat\psi(H_e)]_v = \hat\rho\Big(h_v, \sum_{u \in e} \hat\phi(h_u)\Big) \qquad \text{Paper: Theorem 1, Eq. 5.} $$

Each has the definition, on incidences (`forward`, a `HyperedgeOperator`), and the fast path `sum_to_nodes`, which gives
$\sum_{e \ni v} [\hat\psi(H_e)]_v$ without a row per incidence. Tests hold them equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeGuard, runtime_checkable

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.incidence import HyperedgeOperator, edge_to_incidence, incidence_to_node, node_to_incidence
from edhnn.nn.aggregation import (
    Aggregate,
    aggregate_at_edges,
    aggregate_at_nodes,
    to_edges,
    to_nodes,
    weighing_at_nodes,
)
from edhnn.nn.mlp import MLP
from edhnn.nn.pairwise import SplitLayer, pairwise_mlp_sum, split_first_layer


@runtime_checkable
class SummedOperator(Protocol):
    """A hyperedge operator with a fast path to the sums at the nodes."""

    def prepared(self, width: int) -> SplitLayer | None:
        """Return what iterations with the same weights share, for states of a width; computed once before them."""

    def sum_to_nodes(
        self,
        h: Float[Tensor, "N D"],
        hypergraph: Hypergraph,
        x_e: Float[Tensor, "E F"] | None = None,
        *,
        prepared: SplitLayer | None = None,
    ) -> Float[Tensor, "N D2"]:
        """Return the operator at every hyperedge, summed (or averaged) at every node."""


def prepare(operator: nn.Module | HyperedgeOperator, width: int) -> SplitLayer | None:
    """Return what an operator's iterations share, for states of a width."""
    return operator.prepared(width) if _has_fast_path(operator) else None


def sum_to_nodes(
    operator: nn.Module | HyperedgeOperator,
    h: Float[Tensor, "N D"],
    hypergraph: Hypergraph,
    x_e: Float[Tensor, "E F"] | None = None,
    prepared: SplitLayer | None = None,
) -> Float[Tensor, "N D2"]:
    r"""Return $\sum_{e \ni v} [\psi(H_e)]_v$ for any operator: by its fast path if it has one, else by the definition.

    A fast path uses the hypergraph's weights, $w_e w_{ev}$. An operator without one applies the weights itself, as the
    gradient of a potential does, so an exact gradient in a network is the solver's step.
    """
    if _has_fast_path(operator):
        return operator.sum_to_nodes(h, hypergraph, x_e, prepared=prepared)
    return incidence_to_node(operator(node_to_incidence(h, hypergraph), hypergraph), hypergraph)


def _has_fast_path(operator: object) -> TypeGuard[SummedOperator]:
    return hasattr(operator, "sum_to_nodes")  # isinstance() with a protocol takes as long as a small kernel


class EquivariantOperator(nn.Module):
    r"""$[\hat\psi(H_e)]_v = \hat\rho([h_v ; m_e])$, $m_e = \sum_{u \in e} \hat\phi(h_u)$. Paper: Theorem 1, Eq. 5.

    Args:
        phi: $\hat\phi$, a map of rows; ``nn.Identity()`` for none.
        rho: $\hat\rho$, a perceptron on $[h_v ; m_e]$, or on $[h_v ; m_e ; x_e]$ with features of hyperedges.
        aggregate: ``sum`` as printed, or ``mean`` as in the released code; at the hyperedges and at the nodes.
    """

    def __init__(self, phi: nn.Module, rho: MLP, *, aggregate: Aggregate = "sum") -> None:
        super().__init__()
        self.phi, self.rho, self.aggregate = phi, rho, aggregate

    def forward(
        self, z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, x_e: Float[Tensor, "E F"] | None = None
    ) -> Float[Tensor, "I D2"]:
        """Apply the operator at every incidence, by its definition."""
        m_e = aggregate_at_edges(self.phi(z_ev), hypergraph, self.aggregate)
        m_ev = edge_to_incidence(_with_features(m_e, x_e), hypergraph)
        out: Tensor = self.rho(torch.cat([z_ev, m_ev], dim=1))
        return out

    def prepared(self, width: int) -> SplitLayer | None:
        """Return the first layer of rho, split; nothing where the definition runs."""
        return None if self.rho.norm == "batch" else split_first_layer(self.rho, width)

    def sum_to_nodes(
        self,
        h: Float[Tensor, "N D"],
        hypergraph: Hypergraph,
        x_e: Float[Tensor, "E F"] | None = None,
        *,
        prepared: SplitLayer | None = None,
    ) -> Float[Tensor, "N D2"]:
        """Return the sums by the fast path: no row per incidence, no product on incidences."""
        messages: Tensor = self.phi(h)
        m_e = to_edges(messages, hypergraph, self.aggregate)
        if self.rho.norm == "batch":  # batch norm needs statistics over incidences, so one row per incidence
            m_ev = edge_to_incidence(_with_features(m_e, x_e), hypergraph)
            z_ev = self.rho(torch.cat([node_to_incidence(h, hypergraph), m_ev], dim=1))
            return aggregate_at_nodes(z_ev, hypergraph, self.aggregate)

        def product(matrix: Tensor) -> Tensor:
            """Apply the hyperedges' half of the first layer before the aggregation, where nodes are fewer."""
            mixed = to_edges(F.linear(messages, matrix[:, : messages.shape[1]]), hypergraph, self.aggregate)
            return mixed if x_e is None else mixed + F.linear(x_e.to(messages), matrix[:, messages.shape[1] :])

        shorter = product if hypergraph.num_nodes < hypergraph.num_edges else None
        layer = prepared or split_first_layer(self.rho, h.shape[1])
        return messages_to_nodes(self.rho, layer, h, m_e, hypergraph, x_e, aggregate=self.aggregate, product=shorter)


def messages_to_nodes(
    rho: MLP,
    layer: SplitLayer,
    h: Float[Tensor, "N D"],
    m_e: Float[Tensor, "E D2"],
    hypergraph: Hypergraph,
    x_e: Float[Tensor, "E F"] | None = None,
    *,
    aggregate: Aggregate,
    product: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "N D3"]:
    r"""Return $\sum_{e \ni v} w_e w_{ev}\, \hat\rho([h_v ; m_e ; x_e])$ or the mean. Paper: Algorithm 1, step 3."""
    return pairwise_mlp_sum(
        rho,
        layer,
        h,
        _with_features(m_e, x_e),
        kernels.node_links(hypergraph),
        weighing_at_nodes(hypergraph, h, aggregate),
        column_product=product,
    )


class InvariantOperator(nn.Module):
    r"""$[\hat\psi(H_e)]_v = \hat\rho(m_e)$: every member gets the same message. Paper: Appendix D.

    Args:
        phi: $\hat\phi$, a map of rows; ``nn.Identity()`` for none.
        rho: $\hat\rho$ on $m_e$ (and the features of hyperedges, if any); ``nn.Identity()`` for none.
        aggregate: ``sum`` or ``mean``.
    """

    def __init__(self, phi: nn.Module, rho: nn.Module, *, aggregate: Aggregate = "sum") -> None:
        super().__init__()
        self.phi, self.rho, self.aggregate = phi, rho, aggregate

    def forward(
        self, z_ev: Float[Tensor, "I D"], hypergraph: Hypergraph, x_e: Float[Tensor, "E F"] | None = None
    ) -> Float[Tensor, "I D2"]:
        """Apply the operator at every incidence, by its definition."""
        m_e = aggregate_at_edges(self.phi(z_ev), hypergraph, self.aggregate)
        return edge_to_incidence(self.rho(_with_features(m_e, x_e)), hypergraph)

    def prepared(self, width: int) -> SplitLayer | None:
        """Return nothing: rho runs on hyperedges."""
        del width
        return None

    def sum_to_nodes(
        self,
        h: Float[Tensor, "N D"],
        hypergraph: Hypergraph,
        x_e: Float[Tensor, "E F"] | None = None,
        *,
        prepared: SplitLayer | None = None,
    ) -> Float[Tensor, "N D2"]:
        """Return the sums by the fast path: rows per node and hyperedge, the last layer on the shorter side."""
        del prepared
        m_e = _with_features(to_edges(self.phi(h), hypergraph, self.aggregate), x_e)
        if not isinstance(self.rho, MLP) or hypergraph.num_edges <= hypergraph.num_nodes:
            return to_nodes(self.rho(m_e), hypergraph, self.aggregate)
        summed = to_nodes(self.rho.hidden(m_e), hypergraph, self.aggregate)
        last, total = self.rho.last, weighing_at_nodes(hypergraph, h, self.aggregate).total
        return kernels.linear(summed, last.weight, last.bias, total)


def _with_features(m_e: Tensor, x_e: Tensor | None) -> Tensor:
    return m_e if x_e is None else torch.cat([m_e, x_e.to(m_e)], dim=1)
