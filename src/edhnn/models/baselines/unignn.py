r"""UniGNN, graph networks extended to hypergraphs: UniGCN, UniGIN, UniSAGE, UniGAT and UniGCNII.

The first four compute $y_e = \mathrm{agg}_{u \in e} W x_u$. Then, with $d_v$ the degrees and $\bar d_e$ their aggregate
in $e$,

- UniGCN: $d_v^{-1/2} \sum_{e \ni v} \bar d_e^{-1/2} y_e$,
- UniGIN: $(1 + \epsilon) W x_v + \sum_{e \ni v} y_e$ with $\epsilon$ learned,
- UniSAGE: $W x_v + \mathrm{agg}_{e \ni v}\, y_e$,
- UniGAT: $\sum_{e \ni v} \alpha_{ve} y_e$ with
  $\alpha_{ve} = \mathrm{softmax}_{e \ni v}\, \mathrm{LeakyReLU}_{0.2}(a \cdot y_e)$, head by head.

Source: Huang and Yang, IJCAI 2021, and their code, whose settings are the defaults. A network is dropout, layer, ReLU,
..., dropout, layer, without biases.

UniGCNII has many layers of degree-scaled averages with a link to the first state and near-identity maps. From
$h^0 = \mathrm{ReLU}(W_{in} x + b_{in})$, layer $i = 1, 2, \dots$ is, with $y_e$ and $\bar d_e$ the means of $h$
and of the degrees in $e$,

$$ s_v = d_v^{-1/2} \sum_{e \ni v} \bar d_e^{-1/2} y_e, \qquad z = (1 - \alpha) s + \alpha h^0, \qquad
   h = \mathrm{ReLU}((1 - \beta_i) z + \beta_i W_i z), \quad \beta_i = \ln(\lambda / i + 1), $$

and a linear map of the last state gives the outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.configuration import Configuration, Depth, Fraction, Positive, Width
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.base import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.registry import register_model
from edhnn.nn.aggregation import Aggregate, degree_smoothing, node_weights, row_smoothing, to_edges, to_nodes, unit_rows
from edhnn.nn.attention import attend, glorot_heads, head_scores, link_softmax
from edhnn.nn.features import FeatureLayer, Projection, dense_features
from edhnn.nn.mlp import make_linear


@dataclass(frozen=True, slots=True, kw_only=True)
class UniGNNConfig(Configuration):
    """Options that the four share. The defaults are those of the authors' code.

    Attributes:
        layers: Layers.
        hidden: Width of a head.
        heads: Heads of hidden layers, concatenated; the last layer has one.
        aggregate: Aggregation in hyperedges: ``mean`` or ``sum``.
        unit_rows: Scale the rows of each layer's output to length 1.
        dropout: Dropout rate before each layer except the first.
        input_dropout: Dropout rate on the features.
    """

    layers: Depth = 2
    hidden: Width = 8
    heads: Width = 8
    aggregate: Aggregate = "mean"
    unit_rows: bool = False
    dropout: float = 0.6
    input_dropout: float = 0.6


Config = TypeVar("Config", bound=UniGNNConfig)


class UniGNN(HypergraphModel[Config]):
    """Base of the four: projections and dropouts around a mixing step that the subclass defines."""

    def build(self, config: Config) -> None:
        """Make the layers."""
        wide = config.hidden * config.heads
        self.projections = nn.ModuleList()
        self.extras = nn.ModuleList()
        for layer in range(config.layers):
            last = layer == config.layers - 1
            dropout = self.make_dropout(config.dropout if layer else config.input_dropout)
            self.projections.append(
                Projection(
                    wide if layer else self.in_features,
                    self.num_classes if last else wide,
                    init="linear",
                    bias=self._bias(),
                    dropout=dropout,
                    generator=self.generator,
                )
            )
            self.extras.append(self._extra(1 if last else config.heads, self.num_classes if last else config.hidden))

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph = as_hypergraph(hypergraph, x)
        for layer, (projection, extra) in enumerate(zip(self.projections, self.extras, strict=True)):
            assert isinstance(projection, Projection)
            x = self._layer(x.relu() if layer else x, projection, extra, hypergraph)
        return x

    def _bias(self) -> bool:
        return False

    def _extra(self, heads: int, width: int) -> nn.Module:
        """Make the other parameters of a layer."""
        del heads, width
        return nn.Identity()

    def _layer(self, x: Tensor, projection: Projection, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        mixed = self._mix(projection.project(x), extra, hypergraph)
        return unit_rows(mixed) if self.config.unit_rows else mixed

    def _mix(self, z: Tensor, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        raise NotImplementedError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniGCNConfig(UniGNNConfig):
    """Options of UniGCN.

    Attributes:
        project_first: Project, then mix; otherwise mix, then project with a bias, which is UniGCN2 of the code.
    """

    project_first: bool = True


@register_model("unigcn", "GCN carried over by UniGNN")
class UniGCN(UniGNN[UniGCNConfig]):
    """UniGCN. Source: UniGNN, Eq. 5."""

    config_class = UniGCNConfig

    def _bias(self) -> bool:
        return not self.config.project_first

    def _layer(self, x: Tensor, projection: Projection, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        if self.config.project_first:
            return super()._layer(x, projection, extra, hypergraph)
        assert projection.dropout is not None
        dropped = projection.dropout(dense_features(x, projection.weight))
        mixed = self._mix(dropped, extra, hypergraph)
        mixed = unit_rows(mixed) if self.config.unit_rows else mixed
        return projection.shift(F.linear(mixed, projection.weight))

    def _mix(self, z: Tensor, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        del extra
        return degree_smoothing(z, hypergraph, self.config.aggregate)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniGINConfig(UniGNNConfig):
    """Options of UniGIN: the shared ones."""


@register_model("unigin", "GIN carried over by UniGNN")
class UniGIN(UniGNN[UniGINConfig]):
    """UniGIN. Source: UniGNN, Eq. 7."""

    config_class = UniGINConfig

    def _extra(self, heads: int, width: int) -> nn.Module:
        del heads, width
        return nn.ParameterList([nn.Parameter(torch.zeros(1))])

    def _mix(self, z: Tensor, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        assert isinstance(extra, nn.ParameterList)
        messages = to_nodes(to_edges(z, hypergraph, self.config.aggregate), hypergraph, "sum")
        return kernels.scale_columns(z, (1 + extra[0]).expand(z.shape[1])) + messages


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniSAGEConfig(UniGNNConfig):
    """Options of UniSAGE.

    Attributes:
        node_aggregate: Aggregation at nodes: ``sum`` or ``mean``.
    """

    node_aggregate: Aggregate = "sum"


@register_model("unisage", "GraphSAGE carried over by UniGNN")
class UniSAGE(UniGNN[UniSAGEConfig]):
    """UniSAGE. Source: UniGNN, Eq. 8."""

    config_class = UniSAGEConfig

    def _mix(self, z: Tensor, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        del extra
        return z + to_nodes(to_edges(z, hypergraph, self.config.aggregate), hypergraph, self.config.node_aggregate)


Scores = Literal["hyperedge", "pair"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniGATConfig(UniGNNConfig):
    r"""Options of UniGAT.

    Attributes:
        scores: ``hyperedge`` as in the code, which declares a vector for the node and does not use it; ``pair`` as in
            the paper's formula, $\mathrm{LeakyReLU}(a \cdot y_e + a' \cdot W x_v)$.
        skip: Whether to add $W x_v$.
        attention_dropout: Dropout rate on the weights of the attention.
    """

    scores: Scores = "hyperedge"
    skip: bool = False
    attention_dropout: float = 0.6


@register_model("unigat", "GAT carried over by UniGNN")
class UniGAT(UniGNN[UniGATConfig]):
    """UniGAT. Source: UniGNN, Eq. 6. A weight of w counts as w memberships."""

    config_class = UniGATConfig

    def build(self, config: UniGATConfig) -> None:
        """Make the layers."""
        super().build(config)
        self.attention_dropout = self.make_dropout(config.attention_dropout)

    def _extra(self, heads: int, width: int) -> nn.Module:
        vectors = 2 if self.config.scores == "pair" else 1
        return nn.ParameterList(glorot_heads(heads, width, self.generator) for _ in range(vectors))

    def _mix(self, z: Tensor, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        assert isinstance(extra, nn.ParameterList)
        node, y_e = hypergraph.node_index, to_edges(z, hypergraph, self.config.aggregate)
        scores = head_scores(y_e, extra[0]).index_select(0, hypergraph.edge_index)
        if self.config.scores == "pair":
            scores = scores + head_scores(z, extra[1]).index_select(0, node)
        links = kernels.node_links(hypergraph)
        alpha = link_softmax(F.leaky_relu(scores, 0.2), links, node_weights(hypergraph, z))
        return attend(y_e, links, self.attention_dropout(alpha))

    def _layer(self, x: Tensor, projection: Projection, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        z = projection.project(x)
        mixed = self._mix(z, extra, hypergraph)
        mixed = unit_rows(mixed) if self.config.unit_rows else mixed
        return mixed + z if self.config.skip else mixed


Smoothing = Literal["degree", "mean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniGCNIIConfig(Configuration):
    r"""Options of UniGCNII. The defaults are AllSet's, the source of the published numbers.

    Attributes:
        layers: Layers.
        hidden: Width of a head.
        heads: The state is ``heads`` times ``hidden`` wide.
        smoothing: ``degree`` as above; ``mean`` as in ED-HNN's code: the mean of $y_e$, with restart 0.5 and one head.
        restart: $\alpha$.
        identity_scale: $\lambda$.
        unit_rows: Scale the rows of $s$ to length 1, as the authors' deep recipe does.
        dropout: Dropout rate before each layer and on the features.
    """

    layers: Depth = 1
    hidden: Width = 64
    heads: Width = 1
    smoothing: Smoothing = "degree"
    restart: Fraction = 0.1
    identity_scale: Positive = 0.5
    unit_rows: bool = False
    dropout: float = 0.2


@register_model("unigcnii", "GCNII carried over by UniGNN")
class UniGCNII(HypergraphModel[UniGCNIIConfig]):
    """UniGCNII. Paper: Table 2 (UniGCNII). Source: Huang and Yang, IJCAI 2021, Eq. 9, in AllSet's setting."""

    config_class = UniGCNIIConfig

    def build(self, config: UniGCNIIConfig) -> None:
        """Make the layers."""
        width, generator = config.hidden * config.heads, self.generator
        self.encoder = FeatureLayer(
            self.in_features, width, dropout=config.dropout, seeds=self.seeds, generator=generator
        )
        self.maps = nn.ModuleList(
            Projection(width, width, init="linear", bias=False, generator=generator) for _ in range(config.layers)
        )
        self.classifier = make_linear(width, self.num_classes, generator)
        self.dropout = self.make_dropout(config.dropout)

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node."""
        hypergraph, config = as_hypergraph(hypergraph, x), self.config
        h = first = self.encoder(x).relu()
        for layer, linear in enumerate(self.maps, start=1):
            h = self.dropout(h)
            by_degree = config.smoothing == "degree"
            s = degree_smoothing(h, hypergraph, "mean") if by_degree else row_smoothing(h, hypergraph)
            z = torch.lerp(unit_rows(s) if config.unit_rows else s, first, config.restart)
            h = torch.lerp(z, linear(z), math.log(config.identity_scale / layer + 1)).relu()
        out: Tensor = self.classifier(self.dropout(h))
        return out

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the parameters with the weight decays of AllSet and the authors: 0.01 inside, 0.0005 at both ends."""
        ends = [*self.encoder.parameters(), *self.classifier.parameters()]
        return [{"params": list(self.maps.parameters()), "weight_decay": 0.01}, {"params": ends, "weight_decay": 5e-4}]
