"""What is needed to go on with a training as if it had never stopped, and how it is kept in a file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from edhnn.data.atomic import atomic_file
from edhnn.errors import DataError
from edhnn.training.json_file import said
from edhnn.training.metrics import Metrics

Tensors = dict[str, Tensor]
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


def adam_tensors(optimiser: torch.optim.Adam, model: nn.Module) -> Tensors:
    """Adam's state by name; parameters that never had a gradient have none."""
    return {
        f"{moment}/{name}": optimiser.state[parameter][moment]
        for name, parameter in model.named_parameters()
        if optimiser.state.get(parameter)
        for moment in _MOMENTS
    }


def load_adam(optimiser: torch.optim.Adam, model: nn.Module, tensors: Tensors) -> None:
    """Put back what `adam_tensors` took."""
    for name, parameter in model.named_parameters():
        if f"step/{name}" in tensors:
            optimiser.state[parameter] = {moment: tensors[f"{moment}/{name}"].clone() for moment in _MOMENTS}


def write_state(state: FitState, path: Path) -> None:
    """Write a state, whole or not at all, and to the disk before the old one goes."""
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
    remedy = f"Delete the folder '{path.parent}' and resume the run to train this split anew."
    tensors, metadata = read_tensors(path, remedy)
    try:
        state = FitState(**json.loads(metadata["state"]))
        for name, tensor in tensors.items():
            part, rest = name.split("/", 1)
            getattr(state, part)[rest] = tensor
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"The file must be the state of a training. Reading it said: {said(error)}.", path=path, remedy=remedy
        ) from error
    return state


_FACTS = ("epoch", "best_epoch", "best_score", "best_train", "best_valid", "seconds")


def write_tensors(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file, whole or not at all."""
    content = safetensors.torch.save(tensors, metadata)
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def read_tensors(path: Path, remedy: str) -> tuple[Tensors, dict[str, str]]:
    """The tensors and the metadata of a safetensors file.

    Raises:
        DataError: if the file is missing or damaged; the message ends with the remedy.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except FileNotFoundError as error:
        raise DataError("There must be a file of this name. There is none.", path=path, remedy=remedy) from error
    except safetensors.SafetensorError as error:
        raise DataError(f"The file must be intact safetensors. Got: {error}.", path=path, remedy=remedy) from error
