"""What a model is given, and the one function that runs a model on it.

Training, evaluation, prediction, estimators, tuning and experiments all call `outputs_of`: batches and devices have
one place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor, nn

from edhnn.data.dataset import NodeDataset
from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.training.config import TrainConfig

Device = str | torch.device
"""``cpu``, ``cuda``, ``cuda:1``, ``mps``, ..., or ``auto``: the first of cuda, mps and cpu that is there."""


@final
@dataclass(frozen=True, slots=True)
class Scaling:
    """Mean and deviation of each feature column over all nodes of the training hypergraph.

    Features in 64 bits are scaled in 64 bits, so that those far from 0, such as dates, keep their differences.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]

    def applied(self, x: Tensor) -> Tensor:
        """Scale features by this mean and deviation."""
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

    def to(self, device: torch.device) -> Inputs:
        """Move the inputs to a device; return the same object if they are there."""
        if self.x.device == device == self.hypergraph.device:
            return self
        return replace(self, hypergraph=self.hypergraph.to(device), x=self.x.to(device))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What one training step sees; the whole hypergraph is one batch.

    Attributes:
        inputs: The model's inputs.
        targets: What the loss compares the outputs with.
        rows: The rows of the outputs that are compared; all of them if ``None``.
    """

    inputs: Inputs
    targets: Tensor
    rows: Tensor | None = None


def outputs_of(model: nn.Module, inputs: Inputs, *, training: bool = False) -> Tensor:
    """Run a model.

    Args:
        model: Any module ``model(x, hypergraph)``.
        inputs: Its inputs, on its device.
        training: Run in training mode, with gradients; otherwise in evaluation mode, without.

    Returns:
        The outputs, on the model's device.
    """
    model.train(training)
    with torch.set_grad_enabled(training):
        outputs: Tensor = model(inputs.x, inputs.hypergraph)
    return outputs


def find_device(name: Device) -> torch.device:
    """Find a device by name.

    Raises:
        UsageError: if there is no such device on this machine, or torch does not support it.
    """
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(device for device, there in present.items() if there)
    try:
        probe = torch.zeros(1, device=name)
        probe.item()  # a device without values, such as meta, fails here
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        there = [device for device in present if present[device]]
        raise unknown_name("device, on this machine,", str(name), ["auto", *there]) from error
    return probe.device  # with its number: cuda is cuda:0


def make_inputs(dataset: NodeDataset, config: TrainConfig, scaling: Scaling | None = None) -> Inputs:
    """Make a model's inputs from a dataset.

    Args:
        dataset: The dataset, with features.
        config: Its transforms and scaling; see `TrainConfig.for_model`.
        scaling: A scaling measured before, for prediction; measured here if not given.

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
        scaling = scaling or _measure_scaling(x)
        x = scaling.applied(x)
    return Inputs(config.transformed(dataset.hypergraph), x.to(torch.float32), scaling)


def check_scaling(dataset: NodeDataset, config: TrainConfig) -> None:
    """Refuse to scale features that are sparse."""
    assert dataset.x is not None
    if config.feature_scaling == "standard" and dataset.x.layout == torch.sparse_csr:
        raise UsageError("Only dense features can be scaled: sparse ones would fill up. Use feature_scaling none.")


def _measure_scaling(x: Tensor) -> Scaling:
    """Measure mean and deviation of each column; a constant column keeps its scale."""
    exact = x.double()
    deviation = exact.std(dim=0, correction=0)
    deviation = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
    return Scaling(tuple(exact.mean(dim=0).tolist()), tuple(deviation.tolist()))
