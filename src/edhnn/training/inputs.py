"""What a model is given: the transformed hypergraph and the scaled features of a dataset, made once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.errors import UsageError
from edhnn.hypergraph import Hypergraph
from edhnn.training.config import TrainConfig


@final
@dataclass(frozen=True, slots=True)
class Scaling:
    """Mean and deviation of each feature column over all nodes of the training hypergraph.

    Features in 64 bits are scaled in 64 bits, so that those far from 0, such as dates, keep their differences.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]

    def applied(self, x: Tensor) -> Tensor:
        """Features with mean 0 and deviation 1, by what was measured then."""
        return (x - x.new_tensor(self.mean)) / x.new_tensor(self.scale)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """A model's inputs.

    Attributes:
        hypergraph: After the transforms.
        x: Features in 32 bits, scaled if that was asked for.
        scaling: How they were scaled.
    """

    hypergraph: Hypergraph
    x: Tensor
    scaling: Scaling | None = None


def make_inputs(dataset: NodeDataset, config: TrainConfig, scaling: Scaling | None = None) -> Inputs:
    """A model's inputs from a dataset.

    Args:
        dataset: The dataset, with features.
        config: Says the transforms and the scaling.
        scaling: One measured before, for prediction; measured here if not given.

    Returns:
        The inputs.

    Raises:
        UsageError: if sparse features are to be scaled.
    """
    assert dataset.x is not None
    check_scaling(dataset, config)
    x = dataset.x
    if config.feature_scaling == "standard":
        x = x if x.dtype == torch.float64 else x.to(torch.float32)
        scaling = scaling or measure_scaling(x)
        x = scaling.applied(x)
    return Inputs(config.transformed(dataset.hypergraph), x.to(torch.float32), scaling)


def check_scaling(dataset: NodeDataset, config: TrainConfig) -> None:
    """Refuse to scale features that are sparse."""
    assert dataset.x is not None
    if config.feature_scaling == "standard" and dataset.x.layout == torch.sparse_csr:
        raise UsageError("Only dense features can be scaled: sparse ones would fill up. Use feature_scaling none.")


def measure_scaling(x: Tensor) -> Scaling:
    """Mean and deviation of each column; a constant column keeps its scale."""
    exact = x.double()
    deviation = exact.std(dim=0, correction=0)
    deviation = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
    return Scaling(tuple(exact.mean(dim=0).tolist()), tuple(deviation.tolist()))
