r"""ED-HNN II: messages to hyperedges know what the hyperedge held before.

The paper defines it twice, and the definitions differ. With $h_u$ the state and $b$ one learned vector,

- main text: $m_{u \to e}^t = \hat\phi([h_u^t ; m_e^{t-1}])$, $m_e^t = \sum_u m_{u \to e}^t$, from $m_e^{-1} = b$;
- Algorithm 2: $m_{u \to e}^t = \hat\phi([m_{u \to e}^{t-1} ; h_u^t])$, from $m_{u \to e}^{-1} = b$.

In the second the message never hears of $e$, by induction: it is a state of the node, and is kept as one. Steps 3 and 4
are ED-HNN's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph import Hypergraph
from edhnn.models.contract import HypergraphLike, as_hypergraph
from edhnn.models.edhnn import EDHNNConfig, UpdatedModel, check_edge_features
from edhnn.nn.aggregate import edge_total, edge_weights, to_edges
from edhnn.nn.equivariant import answer_nodes
from edhnn.nn.mlp import MLP
from edhnn.nn.pairs import SplitLayer, split_first, sum_over_links

Form = Literal["main-text", "appendix"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EDHNNIIConfig(EDHNNConfig):
    r"""ED-HNN II's choices: ED-HNN's and the form; $\hat\phi$ has at least one layer.

    Attributes:
        form: ``main-text`` or ``appendix``.
    """

    form: Form = "main-text"


class EDHNNII(UpdatedModel):
    r"""ED-HNN II. Paper: Section 3.2 (main text), Algorithm 2.

    Differs: with ``form="appendix"`` dropout masks in $\hat\phi$ are drawn per node, not per incidence.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: EDHNNIIConfig

    def __init__(
        self, config: EDHNNIIConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or EDHNNIIConfig()
        if config.form not in get_args(Form):
            raise unknown_name("form", config.form, get_args(Form))
        if config.phi_layers < 1:
            raise UsageError(f"The phi of ED-HNN II must have at least 1 layer. Got {config.phi_layers}.")
        if config.norm == "batch":
            raise UsageError("ED-HNN II has no batch norm: phi runs on incidences. Use norm 'layer' or 'none'.")
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        width, times = config.hidden, 1 if config.tied else config.num_iterations
        self.initial = nn.Parameter(torch.empty(width).uniform_(-(width**-0.5), width**-0.5, generator=self.generator))
        self.phis = nn.ModuleList(self._mlp(2 * width, config.phi_layers) for _ in range(times))
        self.rhos = nn.ModuleList(self._mlp(2 * width + config.edge_features, config.rho_layers) for _ in range(times))
        self.updates = nn.ModuleList(self._update(config) for _ in range(times))
        self._finish()

    def forward(
        self, x: Tensor, hypergraph: HypergraphLike, x_e: Float[Tensor, "E F"] | None = None
    ) -> Float[Tensor, "N C"]:
        """Outputs for every node.

        Args:
            x: Features, dense or sparse CSR.
            hypergraph: The hypergraph, or pairs of nodes and hyperedges.
            x_e: Features of hyperedges, if the configuration has a place for them.

        Returns:
            A row per node.
        """
        joined = as_hypergraph(hypergraph, x)
        check_edge_features(self.config.edge_features, x_e, joined)
        x_v = self.encode(x)
        h = self.dropout(x_v)
        held = joined.num_edges if self.config.form == "main-text" else joined.num_nodes
        state = self.initial.expand(held, -1)
        width, phis, rhos = h.shape[1], _perceptrons(self.phis), _perceptrons(self.rhos)
        speaking = [split_first(phi, width, row_first=False) for phi in phis] if self.config.form == "main-text" else []
        answering = [split_first(rho, width) for rho in rhos]
        for t in range(self.num_iterations):
            place = t % len(phis)
            if self.config.form == "main-text":  # steps 1 and 2
                state = m_e = self._speak(phis[place], speaking[place], h, state, joined)
            else:
                state = phis[place](torch.cat([state, h], dim=1))
                m_e = to_edges(state, joined, self.config.aggregate)
            s = answer_nodes(
                rhos[place], answering[place], h, m_e, joined, x_e, aggregate=self.config.aggregate
            )  # step 3
            h = self.advance(self.updates[place](h, s, x_v, joined))  # step 4
        out: Tensor = self.classifier(h)
        return out

    def _speak(self, phi: MLP, layer: SplitLayer, h: Tensor, m_e: Tensor, hypergraph: Hypergraph) -> Tensor:
        r"""The next messages of hyperedges, $\sum_u \hat\phi([h_u ; m_e])$."""
        return sum_over_links(
            phi,
            layer,
            m_e,
            h,
            kernels.edge_links(hypergraph),
            edge_total(hypergraph, h),
            weight=edge_weights(hypergraph, h),
            mean=self.config.aggregate == "mean",
        )


def _perceptrons(modules: nn.ModuleList) -> list[MLP]:
    return [module for module in modules if isinstance(module, MLP)]
