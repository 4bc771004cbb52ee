"""The base class of all models: built from a frozen configuration, called with features and a hypergraph."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.nn.cache import hypergraph_of_pairs
from edhnn.nn.mlp import MLP, Dropout, NormName
from edhnn.nn.precision import AutocastModule
from edhnn.seeding import SeedStream, derive_seed

HypergraphLike = Hypergraph | Tensor
"""A hypergraph, or pairs [2, I] of nodes and hyperedges (PyG's ``hyperedge_index``)."""


Config = TypeVar("Config")


class HypergraphModel(AutocastModule, Generic[Config]):
    """A network on the nodes of a hypergraph: ``model(x, hypergraph) -> [N, num_classes]``.

    A subclass sets ``config_class``, makes its layers in `build` and applies them in `forward`.

    Args:
        config: The model's configuration; ``config_class()`` by default.
        in_features: Columns of the features.
        num_classes: Columns of the output.
        seed: Seed of the initial weights, the dropout masks and all other random draws.

    Attributes:
        seeds: The source of the seeds of dropout masks.
    """

    config_class: ClassVar[type[Any]]
    takes_beliefs: ClassVar[bool] = False
    """Whether `forward` has a third argument, beliefs; for other models beliefs are columns of the features."""
    needs_values: ClassVar[str | None] = None
    """Why a pass on the meta device, which has shapes and no values, is refused; ``None`` where it runs."""
    config: Config
    generator: torch.Generator
    """Source of the initial weights; exists only while `build` runs."""

    def __init__(self, config: Config | None = None, *, in_features: int, num_classes: int, seed: int = 0) -> None:
        super().__init__()
        counts: tuple[object, ...] = (in_features, num_classes)
        if not all(isinstance(count, int) and count > 0 for count in counts):
            raise UsageError(
                f"A model needs at least 1 feature and 1 output, as ints. Got {in_features!r} and {num_classes!r}."
            )
        self.config = self.config_class() if config is None else config
        self.in_features, self.num_classes = in_features, num_classes
        self.seeds = SeedStream(derive_seed(seed, "dropout"))
        self.generator = torch.Generator().manual_seed(derive_seed(seed, "weights"))
        self.build(self.config)
        del self.generator

    def build(self, config: Config) -> None:
        """Make the layers, in the order in which their weights are drawn."""
        raise NotImplementedError

    def forward(self, x: Tensor, hypergraph: HypergraphLike) -> Float[Tensor, "N C"]:
        """Return the outputs for every node: logits, or values for regression."""
        raise NotImplementedError

    def __call__(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs; under `torch.autocast` the whole model computes in its type."""
        if self.needs_values is not None and getattr(x, "is_meta", False):
            raise UsageError(
                f"{type(self).__name__} cannot run on the meta device: {self.needs_values}. "
                "Check its shapes with zeros and a small hypergraph."
            )
        return super().__call__(x, *args, **kwargs)

    def num_parameters(self) -> int:
        """Count the trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def make_dropout(self, rate: float) -> Dropout:
        """Make a dropout layer that takes its seeds from the model."""
        return Dropout(rate, self.seeds)

    def make_mlp(
        self,
        in_features: int,
        hidden: int,
        out_features: int,
        num_layers: int,
        *,
        norm: NormName,
        input_norm: bool = True,
        dropout: float = 0.0,
    ) -> MLP:
        """Make a perceptron that takes its initial weights and dropout seeds from the model."""
        return MLP(
            in_features,
            hidden,
            out_features,
            num_layers,
            norm=norm,
            input_norm=input_norm,
            dropout=dropout,
            seeds=self.seeds,
            generator=self.generator,
        )

    def make_classifier(self, width: int) -> MLP:
        """Make the perceptron from states of width ``width`` to the outputs; the configuration has its options."""
        config: Any = self.config
        return self.make_mlp(
            width,
            config.classifier_hidden,
            self.num_classes,
            config.classifier_layers,
            norm=config.norm,
            input_norm=False,
            dropout=config.dropout,
        )


def as_hypergraph(hypergraph: HypergraphLike, x: Tensor) -> Hypergraph:
    """Return a hypergraph with one node per row of ``x``; convert it from pairs if needed."""
    if not isinstance(x, Tensor):
        raise DataError(f"Features must be a tensor. Got {type(x).__name__}.", remedy="Use torch.as_tensor(...).")
    if not isinstance(hypergraph, Hypergraph | Tensor):
        raise DataError(
            f"A model needs a Hypergraph, or pairs [2, I] as a tensor. Got a {type(hypergraph).__name__}.",
            remedy="Make one with Hypergraph.from_hyperedges(...) or Hypergraph.from_scipy(...).",
        )
    if isinstance(hypergraph, Tensor):
        return hypergraph_of_pairs(hypergraph, x.shape[0])
    if x.shape[0] != hypergraph.num_nodes:
        raise DataError(f"Features must have a row per node, {hypergraph.num_nodes}. Got {x.shape[0]} rows.")
    return hypergraph


def refuse_weights(hypergraph: Hypergraph, model: str, why: str, *names: str) -> None:
    """Raise if the hypergraph has weights that the model does not support."""
    for name in names:
        if getattr(hypergraph, name) is not None:
            raise UsageError(
                f"{model} does not support '{name}': {why}. Use a hypergraph without it, or another model."
            )
