r"""ED-HNN II: messages to a hyperedge depend on its previous state.

The paper defines it twice, and the definitions differ. With $h_u$ the state and $b$ one learned vector,

- main text: $m_{u \to e}^t = \hat\phi([h_u^t ; m_e^{t-1}])$, $m_e^t = \sum_u m_{u \to e}^t$, from $m_e^{-1} = b$;
- Algorithm 2: $m_{u \to e}^t = \hat\phi([m_{u \to e}^{t-1} ; h_u^t])$, from $m_{u \to e}^{-1} = b$.

In the second form the message does not depend on $e$ (by induction), so it is stored as a state of the node. Steps 3
and 4 are ED-HNN's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.errors import UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import HypergraphLike, as_hypergraph
from edhnn.models.edhnn import EDHNNConfig, UpdatedModel, check_edge_features
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import to_edges, weighing_at_edges
from edhnn.nn.mlp import MLP
from edhnn.nn.operators import messages_to_nodes
from edhnn.nn.pairwise import SplitLayer, pairwise_mlp_sum, split_first_layer

Form = Literal["main-text", "appendix"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EDHNNIIConfig(EDHNNConfig):
    r"""Options of ED-HNN II: ED-HNN's and the form. $\hat\phi$ has at least one layer.

    Attributes:
        form: ``main-text`` or ``appendix``.
    """

    form: Form = "main-text"


@register_model("ed-hnn-ii", "messages that depend on the hyperedge's last state, Algorithm 2")
class EDHNNII(UpdatedModel[EDHNNIIConfig]):
    r"""ED-HNN II. Paper: Section 3.2 (main text), Algorithm 2.

    Differs: with ``form="appendix"`` dropout masks in $\hat\phi$ are drawn per node, not per incidence.
    """

    config_class = EDHNNIIConfig

    def build(self, config: EDHNNIIConfig) -> None:
        """Check the options of the messages, then make the layers."""
        if config.phi_layers < 1:
            raise UsageError(f"The phi of ED-HNN II must have at least 1 layer. Got {config.phi_layers}.")
        if config.norm == "batch":
            raise UsageError(
                "ED-HNN II does not support batch norm, because phi runs on incidences. Use norm 'layer' or 'none'."
            )
        super().build(config)

    def build_iterations(self, config: EDHNNIIConfig) -> None:
        """Make the initial message, the perceptrons and the updates."""
        width, times = config.hidden, 1 if config.tied else config.num_iterations
        self.initial = nn.Parameter(torch.empty(width).uniform_(-(width**-0.5), width**-0.5, generator=self.generator))
        self.phis = nn.ModuleList(self.make_inner(2 * width, config.phi_layers) for _ in range(times))
        wide = 2 * width + config.edge_features
        self.rhos = nn.ModuleList(self.make_inner(wide, config.rho_layers) for _ in range(times))
        self.updates = nn.ModuleList(self._update(config) for _ in range(times))

    def forward(
        self, x: Tensor, hypergraph: HypergraphLike, x_e: Float[Tensor, "E F"] | None = None
    ) -> Float[Tensor, "N C"]:
        """Return the outputs for every node; the arguments are those of `EDHNN.forward`."""
        hypergraph = as_hypergraph(hypergraph, x)
        check_edge_features(self.config.edge_features, x_e, hypergraph)
        x_v = self.encode(x)
        h = self.dropout(x_v)
        by_edge = self.config.form == "main-text"
        rows = hypergraph.num_edges if by_edge else hypergraph.num_nodes
        state = kernels.add_bias(h.new_zeros(rows, h.shape[1]), self.initial)
        width, phis, rhos = h.shape[1], _mlps(self.phis), _mlps(self.rhos)
        phi_layers = [split_first_layer(phi, width, row_first=False) for phi in phis] if by_edge else []
        rho_layers = [split_first_layer(rho, width) for rho in rhos]
        aggregate = self.config.aggregate
        for t in range(self.num_iterations):
            k = t % len(phis)
            if by_edge:  # steps 1 and 2
                state = m_e = self._messages_to_edges(phis[k], phi_layers[k], h, state, hypergraph)
            else:
                state = phis[k](torch.cat([state, h], dim=1))
                m_e = to_edges(state, hypergraph, aggregate)
            s = messages_to_nodes(rhos[k], rho_layers[k], h, m_e, hypergraph, x_e, aggregate=aggregate)  # step 3
            h = self.advance(self.updates[k](h, s, x_v, hypergraph))  # step 4
        out: Tensor = self.classifier(h)
        return out

    def _messages_to_edges(self, phi: MLP, layer: SplitLayer, h: Tensor, m_e: Tensor, hypergraph: Hypergraph) -> Tensor:
        r"""Return the next messages of hyperedges, $\sum_u \hat\phi([h_u ; m_e])$."""
        weighing = weighing_at_edges(hypergraph, h, self.config.aggregate)
        return pairwise_mlp_sum(phi, layer, m_e, h, kernels.edge_links(hypergraph), weighing)


def _mlps(modules: nn.ModuleList) -> list[MLP]:
    return [module for module in modules if isinstance(module, MLP)]
