"""The models of a run as one: what the run predicts.

A run of k splits leaves k models. Its prediction is the mean of their probabilities (or values): picking the split of
the highest validation score would pick the luckiest validation part, and one model alone knows half of the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.data.ids import plain_integer
from edhnn.errors import DataError, UsageError
from edhnn.runs.folder import RunFolder
from edhnn.training.inputs import Device, Inputs, find_device
from edhnn.training.objective import labels_of
from edhnn.training.pretrained import Pretrained, from_pretrained, is_pretrained
from edhnn.typing import NodeOrEdgeId


@final
@dataclass(frozen=True, slots=True)
class Ensemble:
    """Models that predict together; one is enough.

    Example:
        >>> from edhnn.runs.predict import load_models  # doctest: +SKIP
        >>> probabilities = load_models("runs/cora-ed-hnn").answers(dataset)  # doctest: +SKIP
    """

    members: tuple[Pretrained, ...]

    @property
    def first(self) -> Pretrained:
        """The first member; all agree on task, classes and features."""
        return self.members[0]

    def answers(self, dataset: NodeDataset, *, device: Device = "cpu") -> Float[Tensor, "N C"]:
        """Predict for every node: the mean of the members' probabilities or values.

        Args:
            dataset: The dataset.
            device: Where to run the models; the answers are on the CPU.

        Raises:
            DataError: if the dataset's features are not those of the models.
        """
        return mean_of(self.answers_from(self.outputs(dataset, device=device)))

    def answers_from(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """Turn each member's outputs into probabilities or values."""
        return [member.objective.answers(output) for member, output in zip(self.members, outputs, strict=True)]

    def outputs(self, dataset: NodeDataset, *, device: Device = "cpu") -> list[Tensor]:
        """Run each member; members that see the data alike, as those of a run do, share their inputs."""
        place = find_device(device)
        shared: dict[object, Inputs] = {}
        outputs = []
        for member in self.members:
            view = (member.feature_names, member.config.transforms, member.config.feature_scaling, member.scaling)
            if view not in shared:
                shared[view] = member.inputs(dataset).to(place)
            outputs.append(member.outputs(shared[view]))
        return outputs

    def fitted(self, dataset: NodeDataset) -> NodeDataset:
        """Give the dataset the models' feature columns and classes.

        Raises:
            DataError: if features or classes do not fit.
        """
        return with_classes(self.first.fitted(dataset), self.first)


def mean_of(answers: Sequence[Tensor]) -> Float[Tensor, "N C"]:
    """Average in 64 bits, so that the order of the members does not matter to the last bit."""
    return torch.stack([answer.double() for answer in answers]).mean(dim=0)


def load_models(path: Path | str, split: int | None = None) -> Ensemble:
    """Load the models of a finished run, one of them, or a pretrained folder.

    Args:
        path: A run folder or a pretrained folder.
        split: One split's model; all if not given.

    Returns:
        The models.

    Raises:
        UsageError: if it is neither, the run is not finished, or there is no such split.
    """
    path = Path(path)
    if is_pretrained(path):
        if split is not None:
            raise UsageError(f"'{path}' is a single model: --split does not apply.")
        return Ensemble((from_pretrained(path),))
    folder = RunFolder(path)
    plan, _ = folder.plan()
    if split is not None and not 0 <= split < plan.num_splits:
        raise UsageError(f"The split must lie in 0..{plan.num_splits - 1}. Got {split}.")
    wanted = range(plan.num_splits) if split is None else [split]
    open_ones = [number for number in wanted if not folder.split(number).finished]
    if open_ones:
        raise UsageError(
            f"The run in '{path}' must be finished. Split {open_ones[0]} is not. Finish it with "
            f"`edhnn train ... --out {path} --resume`."
        )
    return Ensemble(tuple(from_pretrained(folder.split(number).model) for number in wanted))


def with_classes(dataset: NodeDataset, model: Pretrained) -> NodeDataset:
    """Number the dataset's classes, and order its label columns, as the model has them.

    Raises:
        DataError: if the tasks differ, the dataset has a class the model does not know, or other label columns.
    """
    if dataset.y is None:
        return dataset
    if dataset.task != model.objective.task:
        raise DataError(
            f"The model was trained for {model.objective.task}. The labels of '{dataset.name}' are for {dataset.task}.",
            remedy="Say what they are with --task, or name another label with --label.",
        )
    return _numbered(dataset, model) if dataset.task == "classification" else _ordered(dataset, model)


def _numbered(dataset: NodeDataset, model: Pretrained) -> NodeDataset:
    ours, theirs, y = model.class_names, dataset.class_names, dataset.y
    assert y is not None
    if ours is not None and theirs is not None:
        theirs = _written_alike(theirs, ours)
    if ours is None or theirs is None or ours == theirs:
        if (dataset.num_classes or 0) > model.model.num_classes:
            raise DataError(
                f"The model knows {model.model.num_classes} classes. '{dataset.name}' has {dataset.num_classes}."
            )
        return dataset
    used = [theirs[number] for number in torch.unique(y[y >= 0]).tolist()]
    unknown = [str(name) for name in used if name not in ours]
    if unknown:
        raise DataError(
            f"The classes must be among those the model was trained on: {', '.join(map(str, ours))}. Got "
            f"'{unknown[0]}' in '{dataset.name}'.",
            remedy="Train again with it, or leave those nodes unlabelled.",
        )
    number = {name: place for place, name in enumerate(ours)}
    mapped = torch.tensor([*(number.get(name, -1) for name in theirs), -1])  # the last entry is for unlabelled
    return replace(dataset, y=mapped[y], class_names=ours)


def _written_alike(names: tuple[NodeOrEdgeId, ...], known: tuple[NodeOrEdgeId, ...]) -> tuple[NodeOrEdgeId, ...]:
    """Write whole numbers as text, or text as the whole numbers it spells, where the known names are all of one type.

    A text file carries no types: of the classes 1, 2 and x, one that holds 1 and 2 only reads them as numbers.
    """
    if all(isinstance(name, str) for name in known):
        return tuple(map(str, names))
    if all(isinstance(name, int) for name in known):
        numbers = [plain_integer(name) if isinstance(name, str) else None for name in names]
        return tuple(name if number is None else number for name, number in zip(names, numbers, strict=True))
    return names


def _ordered(dataset: NodeDataset, model: Pretrained) -> NodeDataset:
    y, ours = labels_of(dataset), model.label_names
    if dataset.task == "regression" and y.shape[1] == model.objective.num_outputs == 1:
        return dataset  # a single target may be called something else in another file
    theirs = dataset.class_names if dataset.task == "multilabel" else dataset.reading.get("label_columns")
    if y.shape[1] != model.objective.num_outputs or (ours and theirs and set(ours) != set(theirs)):
        shown = [", ".join(map(str, names)) if names else "unnamed" for names in (ours, theirs)]
        raise DataError(
            f"The label columns must be the {model.objective.num_outputs} of the training ({shown[0]}). "
            f"'{dataset.name}' has {y.shape[1]} ({shown[1]}).",
            remedy="Name them with --label, once for each.",
        )
    if not ours or not theirs or tuple(ours) == tuple(theirs):
        return dataset
    places = [list(theirs).index(name) for name in ours]
    return replace(dataset, y=y[:, places], class_names=ours if dataset.task == "multilabel" else None)
