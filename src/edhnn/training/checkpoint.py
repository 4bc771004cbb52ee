"""The state of a training, in memory and as a file. A training that resumes from it gives the same bits.

Its tensors are on the CPU, also when the model is on another device.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import msgspec
import torch
from torch import Tensor, nn

from edhnn.configuration import Natural
from edhnn.errors import DataError
from edhnn.io.json_files import describe_error
from edhnn.io.tensors import Tensors, read_tensors, write_tensors
from edhnn.training.objective import Metrics

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


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


class _Facts(msgspec.Struct, forbid_unknown_fields=True):
    """The numbers of a state's file, beside its tensors."""

    epoch: Natural
    best_epoch: Natural
    best_score: float
    best_train: Metrics
    best_valid: Metrics
    seconds: float


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
    facts = {name: getattr(state, name) for name in _Facts.__struct_fields__}
    write_tensors(tensors, path, {"state": json.dumps(facts)})


def read_state(path: Path, model: nn.Module) -> FitState:
    """Read the state of a model's training.

    Raises:
        DataError: if the file is damaged, or is the state of another model.
    """
    remedy = f"Delete the folder '{path.parent}' and resume the run to train this split again."
    tensors, metadata = read_tensors(path, remedy)
    try:
        facts = msgspec.convert(json.loads(metadata["state"]), _Facts)  # json reads NaN and infinity, msgspec does not
        state = FitState(**msgspec.structs.asdict(facts))
        parts = {"model": state.model, "adam": state.adam, "best": state.best}
        for name, tensor in tensors.items():
            part, rest = name.split("/", 1)
            parts[part][rest] = tensor
        if not state.best_epoch <= state.epoch:
            raise ValueError(f"the best epoch, {state.best_epoch}, is after the last one, {state.epoch}")
        _check_tensors(state, model)
    except (KeyError, ValueError, RecursionError) as error:
        raise DataError(
            f"The file is not the state of a training. Cause: {describe_error(error)}.", path=path, remedy=remedy
        ) from error
    return state


def _check_tensors(state: FitState, model: nn.Module) -> None:
    """Raise a `ValueError` unless the tensors are those of the model and of its optimiser."""
    parameters = dict(model.named_parameters())
    expected = {name: (tensor.dtype, tensor.shape) for name, tensor in model.state_dict().items()}
    moments = {
        f"{moment}/{name}": (parameters[name].dtype, parameters[name].shape)
        for name in parameters
        for moment in _MOMENTS[1:]
        if f"step/{name}" in state.adam
    } | {f"step/{name}": (torch.float32, torch.Size()) for name in parameters if f"step/{name}" in state.adam}
    for part, needed in (
        ("model", expected if state.epoch else {}),
        ("best", expected if state.best_epoch else {}),
        ("adam", moments),
    ):
        found = {name: (tensor.dtype, tensor.shape) for name, tensor in getattr(state, part).items()}
        wrong = [name for name in {**needed, **found} if found.get(name) != needed.get(name)]
        if wrong:
            raise ValueError(f"the tensor '{part}/{wrong[0]}' does not match the model")
        infinite = [name for name, tensor in getattr(state, part).items() if not bool(tensor.isfinite().all())]
        if infinite:  # training stops before it saves such a state
            raise ValueError(f"the tensor '{part}/{infinite[0]}' holds a value that is not finite")
