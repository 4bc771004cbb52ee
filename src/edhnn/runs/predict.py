"""The models of a run as an ensemble.

A run of k splits trains k models. Its prediction is the mean of their probabilities (or values). The model of the
highest validation score alone would be the one with the easiest validation part, and is trained on half of the labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.data.fingerprints import node_hashes
from edhnn.data.ids import plain_integer
from edhnn.errors import DataError, UsageError
from edhnn.runs.folder import RunFolder, run_of_model
from edhnn.training.inputs import Device, Inputs, find_device
from edhnn.training.objective import labels_of
from edhnn.training.pretrained import Pretrained, from_pretrained, is_pretrained
from edhnn.typing import NodeOrEdgeId


@final
@dataclass(frozen=True, slots=True)
class Ensemble:
    """One or more models that predict together.

    Raises:
        UsageError: if there are none, or their tasks, classes, labels or features differ.

    Example:
        >>> from edhnn.runs.predict import load_models  # doctest: +SKIP
        >>> probabilities = load_models("runs/cora-ed-hnn").answers(dataset)  # doctest: +SKIP
    """

    members: tuple[Pretrained, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise UsageError("An ensemble needs at least 1 model. Got none.")
        first, *others = map(_interface, self.members)
        for number, other in enumerate(others, 1):
            for what, expected in first.items():
                if other[what] != expected:
                    raise UsageError(
                        f"The models of an ensemble must have the same {what}, in the same order. Model 0 has "
                        f"{expected}, model {number} has {other[what]}."
                    )

    @property
    def first(self) -> Pretrained:
        """The first member. All members have the same task, classes and features."""
        return self.members[0]

    def answers(self, dataset: NodeDataset, *, device: Device = "cpu") -> Float[Tensor, "N C"]:
        """Predict for every node: the mean of the members' probabilities or values.

        Models whose inputs are labels are given those of the dataset (`known_labels`) and those of their training nodes
        that are in it. The answer for a node never uses its own label.

        Args:
            dataset: The dataset.
            device: The device that runs the models; the answers are on the CPU.

        Raises:
            DataError: if the dataset's features are not those of the models, or an answer is not finite.
        """
        return mean_of(self.answers_from(self.outputs(dataset, device=device, labels=self.known_labels(dataset))))

    def answers_from(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """Turn each member's outputs into probabilities or values."""
        return [member.objective.answers(output) for member, output in zip(self.members, outputs, strict=True)]

    def known_labels(self, dataset: NodeDataset) -> tuple[Tensor, Tensor] | None:
        """Return the labelled nodes of a dataset and their labels, numbered like the models' classes.

        Labels that are not those of the models cause a warning.

        Returns:
            ``None`` if no member has labels as inputs, or no label is known.
        """
        if dataset.y is None or not any(member.config.label_inputs for member in self.members):
            return None
        try:
            mapped = with_classes(dataset, self.first)
        except DataError as error:
            warnings.warn(f"The labels of '{dataset.name}' are not used for the prediction. {error}", stacklevel=3)
            return None
        nodes = mapped.labelled.nonzero()[:, 0]
        return (nodes, labels_of(mapped)[nodes]) if len(nodes) else None

    def outputs(
        self, dataset: NodeDataset, *, device: Device = "cpu", labels: tuple[Tensor, Tensor] | None = None
    ) -> list[Tensor]:
        """Run each member. Members with the same columns, transforms and scaling share their inputs.

        Features far outside the range of the training cause a warning; see `edhnn.training.inputs.FeatureRange`.

        Args:
            dataset: The dataset.
            device: The device that runs the models.
            labels: Nodes with known labels, and their labels, for models whose inputs are labels. Such models also use
                the labels of their training nodes, which they keep.

        Raises:
            DataError: if an output is not finite.
        """
        target = find_device(device)
        shared: dict[object, Inputs] = {}
        outputs = []
        knowing = any(member.knowledge is not None for member in self.members)
        hashes = node_hashes(self.first.fitted(dataset)) if knowing else None
        for member in self.members:
            config = member.config
            key = (
                member.feature_names,
                config.transforms,
                config.feature_scaling,
                member.scaling,
                member.feature_range,
            )
            if key not in shared:
                shared[key] = member.inputs(dataset).to(target)
            outputs.append(member.outputs(shared[key], dataset, hashes=hashes, labels=labels))
        return outputs

    def fitted(self, dataset: NodeDataset) -> NodeDataset:
        """Select the models' feature columns and number the classes like the models.

        Raises:
            DataError: if features or classes do not match.
        """
        return with_classes(self.first.fitted(dataset), self.first)


def _interface(model: Pretrained) -> dict[str, object]:
    return {
        "task": model.objective.task,
        "number of outputs": model.objective.num_outputs,
        "classes or labels": model.label_names,
        "number of features": model.num_features,
        "feature columns": model.feature_names,
    }


def mean_of(answers: Sequence[Tensor]) -> Float[Tensor, "N C"]:
    """Return the mean answer, in 64 bits, so that the order of the members does not change a bit of it."""
    return torch.stack([answer.double() for answer in answers]).mean(dim=0)


def load_models(path: Path | str, split: int | None = None) -> Ensemble:
    """Load the models of a finished run, one of them, or a pretrained folder.

    Args:
        path: A run folder or a pretrained folder.
        split: One split's model; all if not given.

    Raises:
        UsageError: if the path is neither, the run is not finished, or the split does not exist.
        DataError: if files are damaged or changed, or a model is not one of the run.
    """
    path = Path(path)
    if is_pretrained(path):
        if split is not None:
            raise UsageError(f"'{path}' is a single model, so `split=` does not apply.")
        found = run_of_model(path)
        if found is not None and found[0].split(found[1]).finished:
            return Ensemble((found[0].model(found[1]),))
        return Ensemble((from_pretrained(path),))
    folder = RunFolder(path)
    plan, _ = folder.plan()
    if split is not None and not 0 <= split < plan.num_splits:
        raise UsageError(f"The split must lie in 0..{plan.num_splits - 1}. Got {split}.")
    numbers = range(plan.num_splits) if split is None else [split]
    for number in numbers:
        if not folder.split(number).finished:
            raise UsageError(f"The run in '{path}' must be finished. Split {number} is not. Resume its training first.")
    return Ensemble(tuple(map(folder.model, numbers)))


def with_classes(dataset: NodeDataset, model: Pretrained) -> NodeDataset:
    """Map the dataset's classes, or order its label columns, like the model.

    Raises:
        DataError: if the tasks differ, or the dataset has a class or label column that the model does not have.
    """
    if dataset.y is None:
        return dataset
    if dataset.task != model.objective.task:
        raise DataError(
            f"The model was trained for {model.objective.task}. The labels of '{dataset.name}' are for {dataset.task}.",
            remedy="Set the task with `task=`, or name another label with `label=`.",
        )
    return _numbered(dataset, model) if dataset.task == "classification" else _ordered(dataset, model)


def _numbered(dataset: NodeDataset, model: Pretrained) -> NodeDataset:
    known, given, y = model.class_names, dataset.class_names, dataset.y
    assert y is not None
    if known is not None and given is not None:
        given = _converted_names(given, known)
    if known is None or given is None or known == given:
        if (dataset.num_classes or 0) > model.model.num_classes:
            raise DataError(
                f"The model has {model.model.num_classes} classes. '{dataset.name}' has {dataset.num_classes}."
            )
        return dataset
    used = [given[number] for number in torch.unique(y[y >= 0]).tolist()]
    unknown = [str(name) for name in used if name not in known]
    if unknown:
        raise DataError(
            f"The classes must be among those of the training: {', '.join(map(str, known))}. Got "
            f"'{unknown[0]}' in '{dataset.name}'.",
            remedy="Train again with this class, or leave its nodes unlabelled.",
        )
    numbers = {name: number for number, name in enumerate(known)}
    mapped = torch.tensor([*(numbers.get(name, -1) for name in given), -1])  # the last entry is for unlabelled
    return replace(dataset, y=mapped[y], class_names=known)


def _converted_names(names: tuple[NodeOrEdgeId, ...], known: tuple[NodeOrEdgeId, ...]) -> tuple[NodeOrEdgeId, ...]:
    """Convert whole numbers to text, or text to whole numbers, if all known names are of that type.

    A text file has no types: if its classes are 1, 2 and x they are text, but a file with only 1 and 2 has numbers.
    """
    if all(isinstance(name, str) for name in known):
        return tuple(map(str, names))
    if all(isinstance(name, int) for name in known):
        numbers = [plain_integer(name) if isinstance(name, str) else None for name in names]
        return tuple(name if number is None else number for name, number in zip(names, numbers, strict=True))
    return names


def _ordered(dataset: NodeDataset, model: Pretrained) -> NodeDataset:
    y, known = labels_of(dataset), model.label_names
    if dataset.task == "regression" and y.shape[1] == model.objective.num_outputs == 1:
        return dataset  # a single target may have another name in another file
    given = dataset.class_names if dataset.task == "multilabel" else dataset.reading.get("label_columns")
    if y.shape[1] != model.objective.num_outputs or (known and given and set(known) != set(given)):
        shown = [", ".join(map(str, names)) if names else "unnamed" for names in (known, given)]
        raise DataError(
            f"The label columns must be the {model.objective.num_outputs} of the training ({shown[0]}). "
            f"'{dataset.name}' has {y.shape[1]} ({shown[1]}).",
            remedy="Name all of them with `label=`.",
        )
    if not known or not given or tuple(known) == tuple(given):
        return dataset
    columns = [list(given).index(name) for name in known]
    return replace(dataset, y=y[:, columns], class_names=known if dataset.task == "multilabel" else None)
