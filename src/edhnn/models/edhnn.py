r"""ED-HNN: the paper's Algorithm 1, its form in the released code, and the invariant ablation.

For $t = 0, \dots, L-1$, with the same $\hat\phi, \hat\rho, \hat\varphi$ every time,

1. $m_{u \to e} = \hat\phi(h_u)$ on every node,
2. $m_e = \sum_{u \in e} m_{u \to e}$ on every hyperedge,
3. $m_{e \to v} = \hat\rho([h_v ; m_e])$ on every incidence, summed at the nodes: $s_v$,
4. $h_v \leftarrow \hat\varphi([h_v ; s_v ; x_v ; d_v])$, or as released $\hat\varphi((1 - \alpha) s_v + \alpha x_v)$.

$x$ is the encoded input and the first state $h$. A classifier maps the last state to the outputs. All models of the
family share the encoder and the classifier (`EncoderClassifierModel`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar, final

from jaxtyping import Float
from msgspec import Meta
from torch import Tensor, nn

from edhnn import kernels
from edhnn.configuration import Configuration, Depth, Layers, Width
from edhnn.errors import UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import Aggregate
from edhnn.nn.features import FeatureLayer, check_features, dense_features
from edhnn.nn.mlp import MLP, NormName, PReLU
from edhnn.nn.operators import EquivariantOperator, InvariantOperator, prepare, sum_to_nodes
from edhnn.nn.update import ConcatUpdate, DegreeFeature, RestartUpdate

ActivationName = Literal["relu", "prelu", "identity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderClassifierConfig(Configuration):
    """Options of the encoder, the iterations and the classifier. The defaults are the released code's.

    Attributes:
        num_iterations: Diffusion iterations.
        hidden: Width of the states and of the perceptrons of the iterations.
        classifier_layers: Layers of the classifier.
        classifier_hidden: Its width.
        norm: Norm of all perceptrons: ``layer``, ``batch`` or ``none``; also on the inputs of those in the iterations.
        activation: After each iteration: ``relu``, ``prelu`` or ``identity``.
        dropout: Dropout rate everywhere except on the features.
        input_dropout: Dropout rate on the features.
        encoder: Whether the first state is ReLU(Linear(x)); otherwise it is the features.
    """

    num_iterations: Depth = 2
    hidden: Width = 64
    classifier_layers: Depth = 2
    classifier_hidden: Width = 64
    norm: NormName = "layer"
    activation: ActivationName = "relu"
    dropout: float = 0.5
    input_dropout: float = 0.5
    encoder: bool = True


Config = TypeVar("Config", bound=EncoderClassifierConfig)


class EncoderClassifierModel(HypergraphModel[Config]):
    """An encoder, iterations that a subclass defines, and a classifier."""

    def build(self, config: Config) -> None:
        """Make the encoder, the iterations and the classifier; draw their weights in the order of the forward pass."""
        self.num_iterations = config.num_iterations
        self.encoder: FeatureLayer | None = None
        if config.encoder:
            self.encoder = FeatureLayer(
                self.in_features,
                config.hidden,
                dropout=config.input_dropout,
                seeds=self.seeds,
                generator=self.generator,
            )
        elif self.in_features != config.hidden:
            raise UsageError(
                f"Without an encoder 'hidden' must be the number of features, {self.in_features}. Got {config.hidden}."
            )
        self.input_dropout = self.make_dropout(0.0 if config.encoder else config.input_dropout)
        self.dropout = self.make_dropout(config.dropout)
        self.activation: nn.Module = {"relu": nn.ReLU, "prelu": PReLU, "identity": nn.Identity}[config.activation]()
        self.build_iterations(config)
        self.classifier = self.make_classifier(config.hidden)

    def build_iterations(self, config: Config) -> None:
        """Make the layers between the encoder and the classifier."""
        raise NotImplementedError

    def make_inner(self, in_features: int, num_layers: int, *, plain: bool = False) -> MLP:
        """Make a perceptron of the iterations; a plain one has neither norm nor dropout."""
        width, norm = self.config.hidden, "none" if plain else self.config.norm
        dropout = 0.0 if plain else self.config.dropout
        return self.make_mlp(in_features, width, width, num_layers, norm=norm, dropout=dropout)

    def make_inner_or_identity(self, in_features: int, num_layers: int) -> nn.Module:
        """Make a perceptron of the iterations, or the identity for 0 layers."""
        return self.make_inner(in_features, num_layers) if num_layers else nn.Identity()

    def encode(self, x: Tensor) -> Float[Tensor, "N D"]:
        """Return the first state."""
        if self.encoder is None:
            check_features(x, self.config.hidden)
            out: Tensor = self.input_dropout(dense_features(x, self.classifier.last.weight))
            return out
        encoded: Tensor = self.encoder(x).relu()
        return encoded

    def advance(self, z: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """Apply the activation, and the dropout before the next layer; one fused pass if the activation is ReLU."""
        if isinstance(self.activation, nn.ReLU):
            return kernels.row_activation(z, dropout=self.dropout.active_rate, seed=self.dropout.seed())
        out: Tensor = self.dropout(self.activation(z))
        return out


Update = Literal["restart", "concat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EDHNNConfig(EncoderClassifierConfig):
    r"""Options of ED-HNN. The defaults are the released code's.

    Attributes:
        phi_layers: Layers of $\hat\phi$; 0 for the identity.
        rho_layers: Layers of $\hat\rho$.
        update_layers: Layers of $\hat\varphi$; 0 for the identity, with ``update="restart"`` only.
        aggregate: ``sum`` as printed, ``mean`` as released.
        update: ``concat`` as printed, ``restart`` as released.
        restart: $\alpha$ of the restart.
        degree: How $d_v$ enters ``concat``: ``log``, ``count`` or ``none``.
        tied: Whether the iterations share their weights, as in the paper.
        edge_features: Columns of the hyperedge features, which are an input of $\hat\rho$ beside $m_e$.
    """

    phi_layers: Layers = 2
    rho_layers: Layers = 2
    update_layers: Layers = 2
    aggregate: Aggregate = "mean"
    update: Update = "restart"
    restart: float = 0.5
    degree: DegreeFeature = "log"
    tied: bool = True
    edge_features: Annotated[int, Meta(ge=0, le=2**16)] = 0


EDHNNFamilyConfig = TypeVar("EDHNNFamilyConfig", bound=EDHNNConfig)


class UpdatedModel(EncoderClassifierModel[EDHNNFamilyConfig]):
    """Base of ED-HNN and ED-HNN II, which share step 4."""

    def _update(self, config: EDHNNConfig) -> nn.Module:
        if config.update == "restart":
            return RestartUpdate(self.make_inner_or_identity(config.hidden, config.update_layers), config.restart)
        if config.update_layers < 1:
            raise UsageError(f"The update 'concat' must have at least 1 layer. Got {config.update_layers}.")
        extra = 0 if config.degree == "none" else 1
        return ConcatUpdate(self.make_inner(3 * config.hidden + extra, config.update_layers), config.degree)


@register_model("ed-hnn", "equivariant diffusion operators, Algorithm 1")
class EDHNN(UpdatedModel[EDHNNConfig]):
    r"""ED-HNN. Paper: Algorithm 1; Appendix C.

    Example:
        >>> import torch
        >>> from edhnn import EDHNN, Hypergraph
        >>> trios = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3]])
        >>> model = EDHNN(in_features=5, num_classes=3)
        >>> model(torch.ones(4, 5), trios).shape
        torch.Size([4, 3])
    """

    config_class = EDHNNConfig

    def build_iterations(self, config: EDHNNConfig) -> None:
        """Make the operators and the updates, one of each if the iterations share their weights."""
        times = 1 if config.tied else config.num_iterations
        self.operators = nn.ModuleList(self._operator(config) for _ in range(times))
        self.updates = nn.ModuleList(self._update(config) for _ in range(times))

    def _operator(self, config: EDHNNConfig) -> nn.Module:
        phi = self.make_inner_or_identity(config.hidden, config.phi_layers)
        rho = self.make_inner(2 * config.hidden + config.edge_features, config.rho_layers)
        return EquivariantOperator(phi, rho, aggregate=config.aggregate)

    def forward(
        self, x: Tensor, hypergraph: HypergraphLike, x_e: Float[Tensor, "E F"] | None = None
    ) -> Float[Tensor, "N C"]:
        """Return the outputs for every node.

        Args:
            x: Features, dense or sparse CSR.
            hypergraph: The hypergraph, or pairs of nodes and hyperedges.
            x_e: Features of hyperedges, required if ``edge_features`` is not 0.

        Returns:
            A row per node.
        """
        hypergraph = as_hypergraph(hypergraph, x)
        check_edge_features(self.config.edge_features, x_e, hypergraph)
        x_v = self.encode(x)
        h = self.dropout(x_v)
        shared = [prepare(operator, h.shape[1]) for operator in self.operators]
        for t in range(self.num_iterations):
            place = t % len(self.operators)
            s = sum_to_nodes(self.operators[place], h, hypergraph, x_e, shared[place])  # steps 1 to 3
            h = self.advance(self.updates[place](h, s, x_v, hypergraph))  # step 4
        out: Tensor = self.classifier(h)
        return out


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InvariantConfig(EDHNNConfig):
    r"""Options of the invariant ablation: ED-HNN's, but $\hat\rho$ may have 0 layers (released for four datasets)."""


@register_model("invariant", "ED-HNN with one message for all members, Appendix D")
class Invariant(EDHNN):
    r"""ED-HNN with the same message to every member, $\hat\rho(m_e)$. Paper: Appendix D."""

    config_class = InvariantConfig

    def _operator(self, config: EDHNNConfig) -> nn.Module:
        phi = self.make_inner_or_identity(config.hidden, config.phi_layers)
        if config.rho_layers == 0 and config.edge_features:
            raise UsageError("Hyperedge features need a rho of at least 1 layer. Got 0.")
        wide = config.hidden + config.edge_features
        rho = self.make_inner(wide, config.rho_layers) if config.rho_layers else nn.Identity()
        return InvariantOperator(phi, rho, aggregate=config.aggregate)


def check_edge_features(wanted: int, x_e: Tensor | None, hypergraph: Hypergraph) -> None:
    """Check that hyperedge features are given if and only if the model expects them."""
    given = None if x_e is None else list(x_e.shape)
    if given != ([hypergraph.num_edges, wanted] if wanted else None):
        place = f"of shape [{hypergraph.num_edges}, {wanted}]" if wanted else "absent"
        raise UsageError(f"Hyperedge features must be {place} (edge_features={wanted}). Got {given}.")
