"""What a model is: a call on features and a hypergraph, built from a frozen configuration."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.errors import DataError, UsageError
from edhnn.hypergraph import Hypergraph
from edhnn.nn.mlp import MLP, NormName
from edhnn.seeding import SeedStream, derive_seed

HypergraphLike = Hypergraph | Tensor
"""A hypergraph, or pairs [2, I] of nodes and hyperedges (PyG's ``hyperedge_index``)."""


@runtime_checkable
class ModelConfig(Protocol):
    """A frozen dataclass: every choice of a model that its data does not make."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@runtime_checkable
class ClassifierConfig(Protocol):
    """The fields of a configuration that describe a classifier at the end."""

    @property
    def classifier_hidden(self) -> int: ...  # noqa: D102
    @property
    def classifier_layers(self) -> int: ...  # noqa: D102
    @property
    def norm(self) -> NormName: ...  # noqa: D102
    @property
    def dropout(self) -> float: ...  # noqa: D102


class HypergraphModel(nn.Module):
    """A network on the nodes of a hypergraph: ``model(x, hypergraph) -> [N, num_classes]``.

    Attributes:
        config: What it was built from.
        in_features: Columns of the features it takes.
        num_classes: Columns of its output.
        seeds: The stream its dropout masks come from.
    """

    def __init__(self, config: ModelConfig, *, in_features: int, num_classes: int, seed: int) -> None:
        super().__init__()
        counts: tuple[object, ...] = (in_features, num_classes)
        if not all(isinstance(count, int) and count > 0 for count in counts):
            raise UsageError(
                f"A model needs at least 1 feature and 1 output, as ints. Got {in_features!r} and {num_classes!r}."
            )
        self.config, self.in_features, self.num_classes = config, in_features, num_classes
        self.seeds = SeedStream(derive_seed(seed, "dropout"))
        self.generator = torch.Generator().manual_seed(derive_seed(seed, "weights"))

    def _classifier(self, width: int, config: ClassifierConfig) -> MLP:
        """The perceptron from a state of that width to the outputs."""
        return MLP(
            width,
            config.classifier_hidden,
            self.num_classes,
            config.classifier_layers,
            norm=config.norm,
            input_norm=False,
            dropout=config.dropout,
            seeds=self.seeds,
            generator=self.generator,
        )

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Outputs for every node: logits, or values for regression."""
        raise NotImplementedError

    def num_parameters(self) -> int:
        """Numbers that are learned."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)


def as_hypergraph(hypergraph: HypergraphLike, x: Tensor) -> Hypergraph:
    """The hypergraph, made from pairs where pairs are given, with a node per row of ``x``."""
    if not isinstance(x, Tensor):
        raise DataError(f"Features must be a tensor. Got a {type(x).__name__}.", remedy="Use torch.as_tensor(...).")
    if not isinstance(hypergraph, Hypergraph | Tensor):
        raise DataError(
            f"A model takes a Hypergraph, or pairs [2, I] as a tensor. Got a {type(hypergraph).__name__}.",
            remedy="Make one with Hypergraph.from_hyperedges(...) or Hypergraph.from_scipy(...).",
        )
    if isinstance(hypergraph, Tensor):
        if hypergraph.dim() != 2 or len(hypergraph) != 2:
            raise DataError(f"A hyperedge_index must have shape [2, I]. Got {list(hypergraph.shape)}.")
        num_edges = int(hypergraph[1].max()) + 1 if hypergraph.shape[1] else 0
        return Hypergraph.from_incidence(hypergraph, num_nodes=x.shape[0], num_edges=num_edges)
    if x.shape[0] != hypergraph.num_nodes:
        raise DataError(f"Features must have a row per node, {hypergraph.num_nodes}. Got {x.shape[0]} rows.")
    return hypergraph
