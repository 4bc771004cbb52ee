r"""ED-HNN: the paper's Algorithm 1, its invariant ablation, and the released code's form of it.

For $t = 0, \dots, L-1$, with the same $\hat\phi, \hat\rho, \hat\varphi$ every time,

1. $m_{u \to e} = \hat\phi(h_u)$ on every node,
2. $m_e = \sum_{u \in e} m_{u \to e}$ on every hyperedge,
3. $m_{e \to v} = \hat\rho([h_v ; m_e])$ on every incidence, summed at the nodes: $s_v$,
4. $h_v \leftarrow \hat\varphi([h_v ; s_v ; x_v ; d_v])$, or as released $\hat\varphi((1 - \alpha) s_v + \alpha x_v)$.

$x$ is the encoded input, $h$ starts from it, and a classifier reads the last state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from jaxtyping import Float
from torch import Tensor, nn

from edhnn.errors import UsageError
from edhnn.hypergraph import Hypergraph
from edhnn.models.contract import HypergraphLike, as_hypergraph
from edhnn.models.encoded import EncodedConfig, EncodedModel
from edhnn.models.option_checks import check_choices
from edhnn.nn.aggregate import Aggregate
from edhnn.nn.equivariant import EquivariantOperator, InvariantOperator, prepare, sum_to_nodes
from edhnn.nn.update import ConcatUpdate, DegreeFeature, RestartUpdate

Update = Literal["restart", "concat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EDHNNConfig(EncodedConfig):
    r"""ED-HNN's choices; the defaults are the released code's.

    Attributes:
        phi_layers: Layers of $\hat\phi$; 0 for the identity.
        rho_layers: Layers of $\hat\rho$.
        update_layers: Layers of $\hat\varphi$; 0 for the identity, with ``update="restart"`` only.
        aggregate: ``sum`` as printed, ``mean`` as released.
        update: ``concat`` as printed, ``restart`` as released.
        restart: $\alpha$ of the restart.
        degree: How ``concat`` hears of $d_v$: ``log``, ``count`` or ``none``.
        tied: Whether the iterations share their weights, as in the paper.
        edge_features: Columns of features of hyperedges, handed to $\hat\rho$ beside $m_e$.
    """

    phi_layers: int = 2
    rho_layers: int = 2
    update_layers: int = 2
    aggregate: Aggregate = "mean"
    update: Update = "restart"
    restart: float = 0.5
    degree: DegreeFeature = "log"
    tied: bool = True
    edge_features: int = 0

    def __post_init__(self) -> None:
        super(EDHNNConfig, self).__post_init__()
        check_choices(self, aggregate=Aggregate, update=Update, degree=DegreeFeature)
        if min(self.phi_layers, self.update_layers) < 0:
            raise UsageError(
                f"Layers must be 0 or more. Got {self.phi_layers} of phi, {self.update_layers} of the update."
            )


class UpdatedModel(EncodedModel):
    """What ED-HNN and ED-HNN II share beyond the encoder: step 4."""

    def _update(self, config: EDHNNConfig) -> nn.Module:
        if config.update == "restart":
            return RestartUpdate(self._mlp_or_identity(config.hidden, config.update_layers), config.restart)
        if config.update_layers < 1:
            raise UsageError(f"The update 'concat' must have at least 1 layer. Got {config.update_layers}.")
        extra = 0 if config.degree == "none" else 1
        return ConcatUpdate(self._mlp(3 * config.hidden + extra, config.update_layers), config.degree)


class EDHNN(UpdatedModel):
    r"""ED-HNN. Paper: Algorithm 1; Appendix C.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.

    Example:
        >>> import torch
        >>> from edhnn import EDHNN, Hypergraph
        >>> trios = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3]])
        >>> model = EDHNN(in_features=5, num_classes=3)
        >>> model(torch.ones(4, 5), trios).shape
        torch.Size([4, 3])
    """

    def __init__(self, config: EDHNNConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0) -> None:
        config = config or EDHNNConfig()
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        times = 1 if config.tied else config.num_iterations
        self.operators = nn.ModuleList(self._operator(config) for _ in range(times))
        self.updates = nn.ModuleList(self._update(config) for _ in range(times))
        self._finish()

    def _operator(self, config: EDHNNConfig) -> nn.Module:
        phi = self._mlp_or_identity(config.hidden, config.phi_layers)
        rho = self._mlp(2 * config.hidden + config.edge_features, config.rho_layers)
        return EquivariantOperator(phi, rho, aggregate=config.aggregate)

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
        check_edge_features(self.config.edge_features, x_e, joined)  # type: ignore[attr-defined]
        x_v = self.encode(x)
        h = self.dropout(x_v)
        shared = [prepare(operator, h.shape[1]) for operator in self.operators]
        for t in range(self.num_iterations):
            place = t % len(self.operators)
            s = sum_to_nodes(self.operators[place], h, joined, x_e, shared[place])  # steps 1 to 3
            h = self.advance(self.updates[place](h, s, x_v, joined))  # step 4
        out: Tensor = self.classifier(h)
        return out


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InvariantConfig(EDHNNConfig):
    r"""The invariant ablation's choices: ED-HNN's, where $\hat\rho$ may have 0 layers (released for four datasets)."""


class Invariant(EDHNN):
    r"""ED-HNN with the same message to every member, $\hat\rho(m_e)$. Paper: Appendix D.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    def __init__(
        self, config: InvariantConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        super().__init__(config or InvariantConfig(), in_features=in_features, num_classes=num_classes, seed=seed)

    def _operator(self, config: EDHNNConfig) -> nn.Module:
        phi = self._mlp_or_identity(config.hidden, config.phi_layers)
        if config.rho_layers == 0 and config.edge_features:
            raise UsageError("Features of hyperedges need a rho of at least 1 layer. Got 0.")
        wide = config.hidden + config.edge_features
        rho = self._mlp(wide, config.rho_layers) if config.rho_layers else nn.Identity()
        return InvariantOperator(phi, rho, aggregate=config.aggregate)


def check_edge_features(wanted: int, x_e: Tensor | None, hypergraph: Hypergraph) -> None:
    """Features of hyperedges are there if and only if the model has a place for them."""
    given = None if x_e is None else list(x_e.shape)
    if given != ([hypergraph.num_edges, wanted] if wanted else None):
        place = f"of shape [{hypergraph.num_edges}, {wanted}]" if wanted else "absent"
        raise UsageError(f"Features of hyperedges must be {place} (edge_features={wanted}). Got {given}.")
