r"""Two more convolutions of the released code: MeanDeg and JumpLink.

MeanDeg uses means and the logarithms of counts:

$$ m_e = [\mathrm{mean}_{u \in e} \hat\phi(h_u) ; \ln |e|], \qquad s_v = \mathrm{mean}_{e \ni v} \hat\rho([h_v ; m_e]),
   \qquad h_v \leftarrow \hat\varphi([s_v ; h_v ; x_v ; \ln d_v]). $$

A mean and the logarithm of a count carry the same information as a sum and a count, so this is the released form that
is closest to Algorithm 1.

JumpLink averages twice, adds the encoded input, and applies one learned map:

$$ s_v = \mathrm{agg}_{e \ni v} \mathrm{agg}_{u \in e} h_u, \qquad h_v \leftarrow W((1 - \alpha) s_v + \alpha x_v). $$
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.configuration import Depth, Layers
from edhnn.models.base import HypergraphLike, as_hypergraph
from edhnn.models.edhnn import EncoderClassifierConfig, EncoderClassifierModel
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import Aggregate, to_edges, to_nodes
from edhnn.nn.operators import EquivariantOperator
from edhnn.nn.update import RestartUpdate, log_count


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDegConfig(EncoderClassifierConfig):
    r"""Options of MeanDeg. The perceptrons of the iterations have neither norm nor dropout.

    Differs: the defaults are 1, 1 and 2 layers; the released command sets 2, 2 and 2.

    Attributes:
        phi_layers: Layers of $\hat\phi$; 0 for the identity.
        rho_layers: Layers of $\hat\rho$.
        update_layers: Layers of $\hat\varphi$.
    """

    phi_layers: Layers = 1
    rho_layers: Depth = 1
    update_layers: Depth = 2


@register_model("mean-deg", "means and logarithms of counts, from the released code")
class MeanDeg(EncoderClassifierModel[MeanDegConfig]):
    r"""MeanDeg. Paper: Algorithm 1, in the released code's variant."""

    config_class = MeanDegConfig

    def build_iterations(self, config: MeanDegConfig) -> None:
        """Make the operator and the update."""
        wide = config.hidden
        phi = self.make_inner(wide, config.phi_layers, plain=True) if config.phi_layers else nn.Identity()
        rho = self.make_inner(2 * wide + 1, config.rho_layers, plain=True)
        self.operator = EquivariantOperator(phi, rho, aggregate="mean")
        self.update = self.make_inner(3 * wide + 1, config.update_layers, plain=True)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        x_v = self.encode(x)
        h = self.dropout(x_v)
        log_size, log_degree = log_count(hypergraph.edge_size, h), log_count(hypergraph.degree, h)
        shared = self.operator.prepared(h.shape[1])
        for _ in range(self.num_iterations):
            s = self.operator.sum_to_nodes(h, hypergraph, log_size, prepared=shared)
            h = self.advance(self.update(torch.cat([s, h, x_v, log_degree], dim=1)))
        out: Tensor = self.classifier(h)
        return out


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JumpLinkConfig(EncoderClassifierConfig):
    r"""Options of JumpLink. The perceptron of the iterations has neither norm nor dropout.

    Attributes:
        layers: Layers of $W$.
        aggregate: ``sum`` or ``mean``.
        restart: $\alpha$.
    """

    layers: Depth = 2
    aggregate: Aggregate = "mean"
    restart: float = 0.5


@register_model("jump-link", "averages and a link to the input, from the released code")
class JumpLink(EncoderClassifierModel[JumpLinkConfig]):
    r"""JumpLink. Paper: Table 3 (the jump link), in the released code's variant."""

    config_class = JumpLinkConfig

    def build_iterations(self, config: JumpLinkConfig) -> None:
        """Make the update."""
        self.update = RestartUpdate(self.make_inner(config.hidden, config.layers, plain=True), config.restart)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph, aggregate = as_hypergraph(hypergraph, x), self.config.aggregate
        x_v = self.encode(x)
        h = self.dropout(x_v)
        for _ in range(self.num_iterations):
            s = to_nodes(to_edges(h, hypergraph, aggregate), hypergraph, aggregate)
            h = self.advance(self.update(h, s, x_v, hypergraph))
        out: Tensor = self.classifier(h)
        return out
