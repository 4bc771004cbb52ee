r"""UniGNN: graph networks carried over to hypergraphs. UniGCN, UniGIN and UniSAGE; UniGAT is next door.

All begin with $y_e = \mathrm{agg}_{u \in e} W x_u$. Then, with $d_v$ degrees and $\bar d_e$ what the same aggregation
makes of them in $e$,

- UniGCN: $d_v^{-1/2} \sum_{e \ni v} \bar d_e^{-1/2} y_e$,
- UniGIN: $(1 + \epsilon) W x_v + \sum_{e \ni v} y_e$ with $\epsilon$ learned,
- UniSAGE: $W x_v + \mathrm{agg}_{e \ni v}\, y_e$.

Source: Huang and Yang, IJCAI 2021, and their code, whose settings are the defaults. A network is dropout, layer, ReLU,
..., dropout, layer; there are no biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.hypergraph import Hypergraph
from edhnn.models.contract import HypergraphLike, HypergraphModel, as_hypergraph
from edhnn.models.option_checks import check_choices, check_counts
from edhnn.nn.aggregate import Aggregate, to_edges, to_nodes
from edhnn.nn.features import dense_features
from edhnn.nn.mlp import Dropout
from edhnn.nn.projection import Projection
from edhnn.nn.smoothing import degree_smoothing, unit_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class UniGNNConfig:
    """Choices of all four; the defaults are the authors' code.

    Attributes:
        layers: Layers.
        hidden: Width of a head.
        heads: Heads of hidden layers, side by side; the last layer has one.
        aggregate: In hyperedges: ``mean`` or ``sum``.
        unit_rows: Scale the rows of each layer's output to length 1.
        dropout: Rate before each layer but the first.
        input_dropout: Rate on the features.
    """

    layers: int = 2
    hidden: int = 8
    heads: int = 8
    aggregate: Aggregate = "mean"
    unit_rows: bool = False
    dropout: float = 0.6
    input_dropout: float = 0.6

    def __post_init__(self) -> None:
        check_counts(self, "layers", "hidden", "heads")
        check_choices(self, aggregate=Aggregate)


class UniGNN(HypergraphModel):
    """What the four share: projections and dropouts around a mixing step, the subclass's.

    Args:
        config: Its choices.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: UniGNNConfig

    def __init__(self, config: UniGNNConfig, *, in_features: int, num_classes: int, seed: int) -> None:
        super().__init__(config, in_features=in_features, num_classes=num_classes, seed=seed)
        wide = config.hidden * config.heads
        self.projections = nn.ModuleList()
        self.extras = nn.ModuleList()
        for layer in range(config.layers):
            last = layer == config.layers - 1
            dropout = Dropout(config.dropout if layer else config.input_dropout, self.seeds)
            self.projections.append(
                Projection(
                    wide if layer else in_features,
                    num_classes if last else wide,
                    init="linear",
                    bias=self._bias(),
                    dropout=dropout,
                    generator=self.generator,
                )
            )
            self.extras.append(self._extra(1 if last else config.heads, num_classes if last else config.hidden))
        del self.generator

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node."""
        joined = as_hypergraph(hypergraph, x)
        for layer, (projection, extra) in enumerate(zip(self.projections, self.extras, strict=True)):
            assert isinstance(projection, Projection)
            x = self._layer(x.relu() if layer else x, projection, extra, joined)
        return x

    def _bias(self) -> bool:
        return False

    def _extra(self, heads: int, width: int) -> nn.Module:
        """What else a layer learns."""
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
    """UniGCN's choices.

    Attributes:
        project_first: Otherwise the features are mixed first and then projected, with a bias: the code's UniGCN2.
    """

    project_first: bool = True


class UniGCN(UniGNN):
    """UniGCN. Source: UniGNN, Eq. 5.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: UniGCNConfig

    def __init__(
        self, config: UniGCNConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        super().__init__(config or UniGCNConfig(), in_features=in_features, num_classes=num_classes, seed=seed)

    def _bias(self) -> bool:
        return not self.config.project_first

    def _layer(self, x: Tensor, projection: Projection, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        if self.config.project_first:
            return super()._layer(x, projection, extra, hypergraph)
        assert projection.dropout is not None
        dropped = projection.dropout(dense_features(x, projection.weight))
        mixed = self._mix(dropped, extra, hypergraph)
        mixed = unit_rows(mixed) if self.config.unit_rows else mixed
        return F.linear(mixed, projection.weight, projection.bias)

    def _mix(self, z: Tensor, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        del extra
        return degree_smoothing(z, hypergraph, self.config.aggregate)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniGINConfig(UniGNNConfig):
    """UniGIN's choices: those of all four."""


class UniGIN(UniGNN):
    """UniGIN. Source: UniGNN, Eq. 7.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    def __init__(
        self, config: UniGINConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        super().__init__(config or UniGINConfig(), in_features=in_features, num_classes=num_classes, seed=seed)

    def _extra(self, heads: int, width: int) -> nn.Module:
        del heads, width
        return nn.ParameterList([nn.Parameter(torch.zeros(1))])

    def _mix(self, z: Tensor, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        assert isinstance(extra, nn.ParameterList)
        heard = to_nodes(to_edges(z, hypergraph, self.config.aggregate), hypergraph, "sum")
        scale = (
            (1 + extra[0]).expand(z.shape[1]).clone()
        )  # its gradient sums by channel first: the same for any threads
        out: Tensor = scale * z + heard
        return out


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniSAGEConfig(UniGNNConfig):
    """UniSAGE's choices.

    Attributes:
        node_aggregate: At nodes: ``sum`` or ``mean``.
    """

    node_aggregate: Aggregate = "sum"

    def __post_init__(self) -> None:
        super(UniSAGEConfig, self).__post_init__()
        check_choices(self, node_aggregate=Aggregate)


class UniSAGE(UniGNN):
    """UniSAGE. Source: UniGNN, Eq. 8.

    Args:
        config: Its choices; the defaults if not given.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Of the initial weights and the dropout masks.
    """

    config: UniSAGEConfig

    def __init__(
        self, config: UniSAGEConfig | None = None, *, in_features: int, num_classes: int, seed: int = 0
    ) -> None:
        super().__init__(config or UniSAGEConfig(), in_features=in_features, num_classes=num_classes, seed=seed)

    def _mix(self, z: Tensor, extra: nn.Module, hypergraph: Hypergraph) -> Tensor:
        del extra
        return z + to_nodes(to_edges(z, hypergraph, self.config.aggregate), hypergraph, self.config.node_aggregate)
