"""The state of a training, in memory and as a file. A training that resumes from it gives the same bits.

Its tensors are on the CPU, also when the model is on another device.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import torch
from torch import Tensor, nn

from edhnn.errors import DataError
from edhnn.io.json_files import describe_error
from edhnn.io.tensors import Tensors, read_tensors, write_tensors
from edhnn.training.objective import Metrics

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
_FACTS = ("epoch", "best_epoch", "best_score", "best_train", "best_valid", "seconds")


@final
@dataclass(slots=True)
class FitState:
    """The state of a training after an epoch.

    Attributes:
        epoch: Epochs done.
        model: Parameters and buffers now.
        adam: Adam's step count and moments, by ``moment/parameter``.
        best_epoch: The best epoch so far; 0 if none.
        best_score: Its validation score.
        best_train: Its training metrics.
        best_valid: Its validation metrics.
        best: Its parameters and buffers.
        seconds: Time spent.
    """

    epoch: int = 0
    model: Tensors = field(default_factory=dict)
    adam: Tensors = field(default_factory=dict)
    best_epoch: int = 0
    best_score: float = float("-inf")
    best_train: Metrics = field(default_factory=dict)
    best_valid: Metrics = field(default_factory=dict)
    best: Tensors = field(default_factory=dict)
    seconds: float = 0.0


def copied(tensors: Mapping[str, Tensor]) -> Tensors:
    """Copy tensors to the CPU, so that training does not change them."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}


def adam_tensors(optimiser: torch.optim.Adam, model: nn.Module) -> Tensors:
    """Return Adam's state by name. A parameter that never had a gradient has no state."""
    return {
        f"{moment}/{name}": optimiser.state[parameter][moment]
        for name, parameter in model.named_parameters()
        if optimiser.state.get(parameter)
        for moment in _MOMENTS
    }


def load_adam(optimiser: torch.optim.Adam, model: nn.Module, tensors: Tensors) -> None:
    """Load what `adam_tensors` returned."""
    for name, parameter in model.named_parameters():
        if f"step/{name}" in tensors:
            optimiser.state[parameter] = {
                moment: tensors[f"{moment}/{name}"].to(parameter.device, copy=True) for moment in _MOMENTS
            }


def write_state(state: FitState, path: Path) -> None:
    """Write a state. The old file is replaced after the new one is on the disk, so no partial file remains."""
    tensors = {
        f"{part}/{name}": tensor.contiguous()
        for part in ("model", "adam", "best")
        for name, tensor in getattr(state, part).items()
    }
    facts = {name: getattr(state, name) for name in _FACTS}
    write_tensors(tensors, path, {"state": json.dumps(facts)})


def read_state(path: Path) -> FitState:
    """Read a state.

    Raises:
        DataError: if the file is damaged.
    """
    remedy = f"Delete the folder '{path.parent}' and resume the run to train this split again."
    tensors, metadata = read_tensors(path, remedy)
    try:
        state = FitState(**json.loads(metadata["state"]))
        for name, tensor in tensors.items():
            part, rest = name.split("/", 1)
            getattr(state, part)[rest] = tensor
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"The file is not the state of a training. Cause: {describe_error(error)}.", path=path, remedy=remedy
        ) from error
    return state
