"""A trained model with all it needs to predict for a dataset, as a folder: ``model.safetensors`` and ``config.json``.

The layout is that of model hubs: the folder can be uploaded and downloaded as it is. Nothing in it is executed when it
is read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, final

from jaxtyping import Float
from torch import Tensor

from edhnn.configuration import configure
from edhnn.data.dataset import NodeDataset, select_columns
from edhnn.errors import DataError, UsageError
from edhnn.io.files import atomic_folder, refuse_foreign
from edhnn.io.json_files import describe_error, read_json, write_json
from edhnn.io.tensors import read_tensors, write_tensors
from edhnn.models.base import HypergraphModel
from edhnn.models.registry import make_model
from edhnn.training.config import TrainConfig
from edhnn.training.inputs import Device, Inputs, Scaling, find_device, make_inputs, outputs_of
from edhnn.training.objective import Objective, check_features
from edhnn.typing import JsonObject, NodeOrEdgeId

FORMAT: Final = 1
_WEIGHTS, _CONFIG = "model.safetensors", "config.json"
_COPY: Final = "Copy the model folder again."


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pretrained:
    """A trained model and what was recorded about its data.

    Attributes:
        name: The model's name in the registry.
        model: The model, in evaluation mode.
        objective: The task; turns outputs into probabilities or values.
        config: How it was trained; its transforms and scaling are applied to other data too.
        class_names: The classes as their owner wrote them.
        feature_names: The feature columns, in their order.
        scaling: How features are scaled.
        reading: Which columns were the labels, or how features were drawn: other data are read alike.
    """

    name: str
    model: HypergraphModel[Any]
    objective: Objective
    config: TrainConfig
    class_names: tuple[NodeOrEdgeId, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    scaling: Scaling | None = None
    reading: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", self.config.for_model(self.model))

    @property
    def label_names(self) -> tuple[NodeOrEdgeId, ...] | None:
        """The columns of the answers: classes, labels that may hold together, or targets; ``None`` if unnamed."""
        targets = self.reading.get("label_columns")
        return tuple(targets) if self.objective.task == "regression" and targets else self.class_names

    def answers(self, dataset: NodeDataset, *, device: Device = "cpu") -> Float[Tensor, "N C"]:
        """Predict probabilities or values for every node of a dataset: the one it was trained on, or another.

        Args:
            dataset: The dataset.
            device: Where to run the model; the answers are on the CPU.

        Raises:
            DataError: if the dataset's features are not those of the model.
        """
        return self.objective.answers(self.outputs(self.inputs(dataset).to(find_device(device))))

    def inputs(self, dataset: NodeDataset) -> Inputs:
        """Make the model's inputs from a dataset: its columns, its transforms, its scaling."""
        return make_inputs(self.fitted(dataset), self.config, self.scaling)

    def outputs(self, inputs: Inputs) -> Float[Tensor, "N C"]:
        """Run the model on the device of the inputs; the outputs are on the CPU."""
        return outputs_of(self.model.to(inputs.x.device), inputs).cpu()

    def fitted(self, dataset: NodeDataset) -> NodeDataset:
        """Select the model's feature columns, in the model's order, where both sides name their columns.

        Raises:
            DataError: if columns are missing, or their number differs, or a value is not finite.
        """
        check_features(dataset)
        assert dataset.x is not None
        ours, theirs = self.feature_names, dataset.feature_names
        if ours is not None and theirs is not None and ours != theirs:
            missing = [name for name in ours if name not in theirs]
            if missing:
                shown = ", ".join(f"'{name}'" for name in missing[:5]) + (", ..." if len(missing) > 5 else "")
                raise DataError(
                    f"The model needs the {len(ours)} feature columns of its training. '{dataset.name}' lacks {shown}.",
                    remedy="Add the columns under the same names.",
                )
            place = {name: number for number, name in enumerate(theirs)}
            dataset = replace(dataset, x=select_columns(dataset.x, [place[name] for name in ours]), feature_names=ours)
        elif dataset.num_features != self.model.in_features:
            raise DataError(
                f"The model was trained on {self.model.in_features} feature columns. '{dataset.name}' has "
                f"{dataset.num_features}.",
                remedy="Give the same columns in the same order, or name them in both files.",
            )
        return dataset

    def save_pretrained(self, folder: Path | str, *, overwrite: bool = False) -> Path:
        """Write the folder, whole or not at all.

        Args:
            folder: Where to.
            overwrite: Replace the model that is there.

        Returns:
            The folder.

        Raises:
            UsageError: if something is there that may not be replaced, or is no model.
        """
        target = Path(folder)
        refuse_foreign(target, _WEIGHTS, "model")
        with atomic_folder(target, overwrite=overwrite) as temporary:
            tensors = {name: tensor.cpu().contiguous() for name, tensor in self.model.state_dict().items()}
            write_tensors(tensors, temporary / _WEIGHTS, {"format": "pt"})
            write_json(self._to_json(), temporary / _CONFIG)
        return target

    def _to_json(self) -> JsonObject:
        return {
            "format": FORMAT,
            "edhnn_version": version("edhnn"),
            "model_type": self.name,
            "model_config": asdict(self.model.config),
            "in_features": self.model.in_features,
            "num_classes": self.model.num_classes,
            "class_names": self.class_names,
            "feature_names": self.feature_names,
            "objective": asdict(self.objective),
            "train_config": asdict(self.config),
            "feature_scaling": None if self.scaling is None else asdict(self.scaling),
            "reading": self.reading,
        }


def is_pretrained(folder: Path) -> bool:
    """Whether a folder holds a single model; otherwise it may be a run's."""
    return (folder / _WEIGHTS).is_file()


def from_pretrained(folder: Path | str) -> Pretrained:
    """Read what `Pretrained.save_pretrained` wrote.

    Args:
        folder: A folder with ``model.safetensors`` and ``config.json``.

    Returns:
        The model, ready to answer.

    Raises:
        UsageError: if there is no such folder.
        DataError: if it is damaged, or of a format this version does not know.
    """
    folder = Path(folder)
    if not is_pretrained(folder) and (folder / "splits").is_dir():
        raise UsageError(
            f"'{folder}' must be a model folder. It is a run's, with a model for each split: "
            f"'{folder / 'splits' / '00' / 'model'}'."
        )
    if not (folder / _CONFIG).is_file():
        raise UsageError(f"'{folder}' must be a model folder, with {_CONFIG} and {_WEIGHTS}. It is not.")
    facts = read_json(folder / _CONFIG)
    if facts.get("format") != FORMAT:
        raise DataError(
            f"The model's format must be {FORMAT}. Got {facts.get('format')!r}, written by edhnn "
            f"{facts.get('edhnn_version', 'of unknown version')}.",
            path=folder / _CONFIG,
            remedy="Use that version of edhnn.",
        )
    try:
        found = _from_facts(facts, folder)
    except (KeyError, TypeError, AttributeError, RuntimeError, UsageError) as error:
        raise DataError(
            f"The model and its configuration must fit. They do not: {describe_error(error)}.",
            path=folder,
            remedy=_COPY,
        ) from error
    _check_counts(found, folder / _CONFIG)
    return found


def _check_counts(found: Pretrained, path: Path) -> None:
    features, outputs = found.model.in_features, found.model.num_classes
    scaling, objective = found.scaling, found.objective
    for what, values, count in (
        ("class_names", found.class_names, outputs),
        ("feature_names", found.feature_names, features),
        ("feature_scaling", None if scaling is None else scaling.mean, features),
        ("feature_scaling", None if scaling is None else scaling.scale, features),
        ("objective", objective.mean if objective.task == "regression" else None, outputs),
        ("objective", objective.scale if objective.task == "regression" else None, outputs),
    ):
        if values is not None and len(values) != count:
            raise DataError(f"'{what}' must have {count} entries. Got {len(values)}.", path=path, remedy=_COPY)


def _from_facts(facts: JsonObject, folder: Path) -> Pretrained:
    model = make_model(
        facts["model_type"],
        in_features=facts["in_features"],
        num_classes=facts["num_classes"],
        **facts["model_config"],
    )
    tensors, _ = read_tensors(folder / _WEIGHTS, _COPY)
    kinds = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    if len(kinds) == 1:
        model.to(kinds.pop())  # as it was saved: loading alone would round to 32 bits
    model.load_state_dict(tensors)
    scaling = facts["feature_scaling"]
    return Pretrained(
        name=facts["model_type"],
        model=model.eval(),
        objective=Objective(**_with_tuples(facts["objective"])),
        config=configure(TrainConfig, facts["train_config"]),
        class_names=None if facts["class_names"] is None else tuple(facts["class_names"]),
        feature_names=None if facts["feature_names"] is None else tuple(facts["feature_names"]),
        scaling=None if scaling is None else Scaling(**_with_tuples(scaling)),
        reading=facts.get("reading", {}),
    )


def _with_tuples(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
