"""The inputs of a model, and the one function that runs a model on them.

Training, evaluation, prediction, estimators, tuning and experiments all call `outputs_of`, so that batches and devices
are handled in one function.
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
"""``cpu``, ``cuda``, ``cuda:1``, ``mps``, ..., or ``auto``: the first available of cuda, mps and cpu."""


@final
@dataclass(frozen=True, slots=True)
class Scaling:
    """Mean and deviation of each feature column over all nodes of the training hypergraph.

    Features in 64 bits are scaled in 64 bits, so that values far from 0, such as dates, keep their differences.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """A model's inputs.

    Attributes:
        hypergraph: The transformed hypergraph.
        x: Features in 32 bits, scaled if the configuration requires it.
        scaling: Mean and deviation that scaled them; ``None`` if they are not scaled.
    """

    hypergraph: Hypergraph
    x: Tensor
    scaling: Scaling | None = None

    def to(self, device: torch.device) -> Inputs:
        """Move the inputs to a device. Return the same object if they are on it already."""
        if self.x.device == device == self.hypergraph.device:
            return self
        return replace(self, hypergraph=self.hypergraph.to(device), x=self.x.to(device))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The data of one training step. The whole hypergraph is one batch.

    Attributes:
        inputs: The model's inputs.
        targets: The targets of the loss.
        rows: The rows of the outputs that the loss compares with the targets; all rows if ``None``.
    """

    inputs: Inputs
    targets: Tensor
    rows: Tensor | None = None


def outputs_of(model: nn.Module, inputs: Inputs, *, training: bool = False) -> Tensor:
    """Run a model and return its outputs, on its device.

    Args:
        model: Any module ``model(x, hypergraph)``.
        inputs: Its inputs, on its device.
        training: Run in training mode, with gradients; otherwise in evaluation mode, without.
    """
    model.train(training)
    with torch.set_grad_enabled(training):
        outputs: Tensor = model(inputs.x, inputs.hypergraph)
    return outputs


def find_device(name: Device) -> torch.device:
    """Find a device by name.

    Raises:
        UsageError: if this machine has no such device, or torch does not support it.
    """
    available = ["cpu"]
    if torch.backends.mps.is_available():
        available.insert(0, "mps")
    if torch.cuda.is_available():
        available.insert(0, "cuda")
    try:
        probe = torch.zeros(1, device=available[0] if name == "auto" else name)
        probe.item()  # a device without values, such as meta, fails here
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise unknown_name("device, on this machine,", str(name), ["auto", *available]) from error
    return probe.device  # includes the number: cuda is cuda:0


def make_inputs(dataset: NodeDataset, config: TrainConfig, scaling: Scaling | None = None) -> Inputs:
    """Make a model's inputs from a dataset.

    Args:
        dataset: The dataset, with features.
        config: The transforms and the feature scaling; see `TrainConfig.for_model`.
        scaling: The scaling of the training data, for prediction; measured here if not given.

    Raises:
        UsageError: if sparse features are to be scaled.
    """
    x = dataset.x
    assert x is not None
    if config.feature_scaling == "standard":
        if x.layout == torch.sparse_csr:
            raise UsageError(
                "Only dense features can be scaled, because scaled sparse features are dense. "
                "Use `feature_scaling='none'`."
            )
        x = x if x.dtype == torch.float64 else x.to(torch.float32)
        scaling = scaling or _measure_scaling(x)
        x = (x - x.new_tensor(scaling.mean)) / x.new_tensor(scaling.scale)
    return Inputs(config.transformed(dataset.hypergraph), x.to(torch.float32), scaling)


def _measure_scaling(x: Tensor) -> Scaling:
    """Measure mean and deviation of each column. The deviation of a constant column counts as 1."""
    exact = x.double()
    deviation = exact.std(dim=0, correction=0)
    deviation = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
    return Scaling(tuple(exact.mean(dim=0).tolist()), tuple(deviation.tolist()))
