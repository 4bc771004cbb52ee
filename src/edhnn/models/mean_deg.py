r"""MeanDeg: the released code's other convolution, with means and the logarithms of counts.

$$ m_e = [\mathrm{mean}_{u \in e} \hat\phi(h_u) ; \ln |e|], \qquad s_v = \mathrm{mean}_{e \ni v} \hat\rho([h_v ; m_e]),
   \qquad h_v \leftarrow \hat\varphi([s_v ; h_v ; x_v ; \ln d_v]). $$

A mean and a logarithm of a count say what a sum and a count say: the released form that is closest to Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.models.contract import HypergraphLike, as_hypergraph
from edhnn.models.encoded import EncodedConfig, EncodedModel
from edhnn.nn.equivariant import EquivariantOperator
from edhnn.nn.update import log_count


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDegConfig(EncodedConfig):
    r"""MeanDeg's choices; the perceptrons inside have neither norm nor dropout.

    Attributes:
        phi_layers: Layers of $\hat\phi$; 0 for the identity.
        rho_layers: Layers of $\hat\rho$.
        update_layers: Layers of $\hat\varphi$.
    """

    phi_layers: int = 1
    rho_layers: int = 1
    update_layers: int = 2


class MeanDeg(EncodedModel):
    r"""MeanDeg. Paper: Algorithm 1, in the released code's variant.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: MeanDegConfig

    def __init__(
        self, config: MeanDegConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        config = config or MeanDegConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        wide = config.hidden
        phi = self._plain(wide, config.phi_layers) if config.phi_layers else nn.Identity()
        self.operator = EquivariantOperator(phi, self._plain(2 * wide + 1, config.rho_layers), aggregate="mean")
        self.update = self._plain(3 * wide + 1, config.update_layers)
        self._finish()

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined = as_hypergraph(hypergraph, x)
        x_v = self.encode(x)
        h = self.dropout(x_v)
        log_size, log_degree = log_count(joined.edge_size, h), log_count(joined.degree, h)
        shared = self.operator.prepared(h.shape[1])
        for _ in range(self.num_iterations):
            s = self.operator.sum_to_nodes(h, joined, log_size, prepared=shared)
            h = self.advance(self.update(torch.cat([s, h, x_v, log_degree], dim=1)))
        out: Tensor = self.classifier(h)
        return out
