"""A trained model with everything that prediction needs, as a folder: ``model.safetensors`` and ``config.json``.

The layout is that of model hubs, so the folder can be uploaded and downloaded without changes. Reading it executes no
code from it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, final

import msgspec
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from edhnn.configuration import Count, Natural, configure
from edhnn.data.dataset import NodeDataset, select_columns
from edhnn.errors import DataError, UsageError
from edhnn.io.files import atomic_folder, refuse_foreign
from edhnn.io.json_files import describe_error, read_json, write_json
from edhnn.io.tensors import Tensors, read_tensors, write_tensors
from edhnn.models.base import HypergraphModel
from edhnn.models.registry import make_model
from edhnn.training.config import TrainConfig
from edhnn.training.inputs import Device, Inputs, Scaling, find_device, make_inputs, outputs_of
from edhnn.training.objective import Objective, check_features
from edhnn.typing import JsonObject, NodeOrEdgeId

FORMAT: Final = 1
_WEIGHTS, _CONFIG = "model.safetensors", "config.json"
_COPY: Final = "Copy the model folder again."


class _Reading(msgspec.Struct):
    """How the training data were read; other keys are not used."""

    label_columns: list[str] | None = None
    feature_noise: Annotated[float, msgspec.Meta(ge=0)] | None = None
    feature_seed: Natural | None = None


class _Record(msgspec.Struct, kw_only=True):
    """The content of ``config.json``."""

    model_type: str
    model_config: dict[str, Any]
    in_features: Count
    num_classes: Count
    class_names: list[int | str] | None
    feature_names: list[str] | None
    objective: dict[str, Any]
    train_config: dict[str, Any]
    feature_scaling: Scaling | None
    reading: dict[str, Any] = {}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pretrained:
    """A trained model and the record of its training data.

    Attributes:
        name: The model's name in the registry.
        model: The model, in evaluation mode.
        objective: The task; turns outputs into probabilities or values.
        config: The training configuration. Its transforms and scaling apply to other data too.
        class_names: Names of the classes in the training data.
        feature_names: Names of the feature columns, in order.
        scaling: Mean and deviation of the feature columns, if they are scaled.
        reading: The label columns, or how features were drawn; other data are read in the same way.
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
        """The names of the answer columns: classes, labels or targets; ``None`` if they have no names."""
        targets = self.reading.get("label_columns")
        return tuple(targets) if self.objective.task == "regression" and targets else self.class_names

    def answers(self, dataset: NodeDataset, *, device: Device = "cpu") -> Float[Tensor, "N C"]:
        """Predict probabilities or values for every node of the training dataset or of another one.

        Args:
            dataset: The dataset.
            device: The device that runs the model; the answers are on the CPU.

        Raises:
            DataError: if the dataset's features are not those of the model.
        """
        return self.objective.answers(self.outputs(self.inputs(dataset).to(find_device(device))))

    def inputs(self, dataset: NodeDataset) -> Inputs:
        """Make the model's inputs from a dataset, with the model's columns, transforms and scaling."""
        return make_inputs(self.fitted(dataset), self.config, self.scaling)

    def outputs(self, inputs: Inputs) -> Float[Tensor, "N C"]:
        """Run the model on the device of the inputs. Return the outputs on the CPU."""
        return outputs_of(self.model.to(inputs.x.device), inputs).cpu()

    def fitted(self, dataset: NodeDataset) -> NodeDataset:
        """Select the model's feature columns in the model's order, if model and dataset have column names.

        Raises:
            DataError: if columns are missing, or their number differs, or a value is not finite.
        """
        check_features(dataset)
        assert dataset.x is not None
        needed, given = self.feature_names, dataset.feature_names
        if needed is not None and given is not None and needed != given:
            missing = [name for name in needed if name not in given]
            if missing:
                shown = ", ".join(f"'{name}'" for name in missing[:5]) + (", ..." if len(missing) > 5 else "")
                raise DataError(
                    f"The model needs the {len(needed)} feature columns of its training. '{dataset.name}' lacks "
                    f"{shown}.",
                    remedy="Add the columns under the same names.",
                )
            index = {name: number for number, name in enumerate(given)}
            x = select_columns(dataset.x, [index[name] for name in needed])
            return replace(dataset, x=x, feature_names=needed)
        if dataset.num_features != self.model.in_features:
            raise DataError(
                f"The model was trained on {self.model.in_features} feature columns. '{dataset.name}' has "
                f"{dataset.num_features}.",
                remedy="Use the same columns in the same order, or name them in both files.",
            )
        return dataset

    def save_pretrained(self, folder: Path | str, *, overwrite: bool = False) -> Path:
        """Write the folder. If writing fails, no partial folder remains.

        Args:
            folder: The folder to write.
            overwrite: Replace an existing model.

        Raises:
            UsageError: if the folder exists and may not be replaced, or is not a model folder.
        """
        target = Path(folder)
        refuse_foreign(target, _WEIGHTS, "model")
        with atomic_folder(target, overwrite=overwrite) as temporary:
            tensors = {name: tensor.cpu().contiguous() for name, tensor in self.model.state_dict().items()}
            write_tensors(tensors, temporary / _WEIGHTS, {"format": "pt"})
            record = {
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
            write_json(record, temporary / _CONFIG)
        return target


def is_pretrained(folder: Path) -> bool:
    """Return whether a folder holds a single model; otherwise it may be a run folder."""
    return (folder / _WEIGHTS).exists()


def from_pretrained(folder: Path | str) -> Pretrained:
    """Read a folder that `Pretrained.save_pretrained` wrote.

    Args:
        folder: A folder with ``model.safetensors`` and ``config.json``.

    Returns:
        The model, ready to predict.

    Raises:
        UsageError: if the folder is missing or not a model folder.
        DataError: if it is damaged, or its format is not supported.
    """
    folder = Path(folder)
    if not is_pretrained(folder) and (folder / "splits").is_dir():
        raise UsageError(
            f"'{folder}' must be a model folder. It is a run folder, with a model for each split: "
            f"'{folder / 'splits' / '00' / 'model'}'."
        )
    if not (folder / _CONFIG).is_file():
        raise UsageError(f"'{folder}' must be a model folder, with {_CONFIG} and {_WEIGHTS}. {_CONFIG} is missing.")
    record = read_json(folder / _CONFIG)
    if record.get("format") != FORMAT:
        raise DataError(
            f"The model's format must be {FORMAT}. Got {record.get('format')!r}, written by edhnn "
            f"{record.get('edhnn_version', 'of unknown version')}.",
            path=folder / _CONFIG,
            remedy="Use that version of edhnn.",
        )
    try:
        pretrained = _from_record(msgspec.convert(record, _Record), folder)
        msgspec.convert(pretrained.reading, _Reading)
    except DataError:
        raise
    except (TypeError, RuntimeError, OverflowError, UsageError, msgspec.ValidationError) as error:
        raise DataError(
            f"The model does not match its configuration. Cause: {describe_error(error).rstrip('.')}.",
            path=folder,
            remedy=_COPY,
        ) from error
    _check_counts(pretrained, folder / _CONFIG)
    return pretrained


def _check_counts(pretrained: Pretrained, path: Path) -> None:
    features, outputs = pretrained.model.in_features, pretrained.model.num_classes
    scaling, objective = pretrained.scaling, pretrained.objective
    for what, values, count in (
        ("class_names", pretrained.class_names, outputs),
        ("feature_names", pretrained.feature_names, features),
        ("feature_scaling", None if scaling is None else scaling.mean, features),
        ("feature_scaling", None if scaling is None else scaling.scale, features),
        ("objective", objective.mean if objective.task == "regression" else None, outputs),
        ("objective", objective.scale if objective.task == "regression" else None, outputs),
    ):
        if values is not None and len(values) != count:
            raise DataError(f"'{what}' must have {count} entries. Got {len(values)}.", path=path, remedy=_COPY)


def _from_record(record: _Record, folder: Path) -> Pretrained:
    tensors, _ = read_tensors(folder / _WEIGHTS, _COPY)
    with _bounded_by(tensors):
        model = make_model(
            record.model_type, in_features=record.in_features, num_classes=record.num_classes, **record.model_config
        )
    types = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    if len(types) == 1:
        model.to(types.pop())  # the saved type, because load_state_dict would round to 32 bits
    model.load_state_dict(tensors)
    return Pretrained(
        name=record.model_type,
        model=model.eval(),
        objective=configure(Objective, record.objective),
        config=configure(TrainConfig, record.train_config),
        class_names=None if record.class_names is None else tuple(record.class_names),
        feature_names=None if record.feature_names is None else tuple(record.feature_names),
        scaling=record.feature_scaling,
        reading=record.reading,
    )


@contextmanager
def _bounded_by(weights: Tensors) -> Iterator[None]:
    """Stop the building of a model that has more parameters than its weights, before it takes all memory or time."""
    thread, left = threading.get_ident(), {"tensors": len(weights), "numbers": sum(w.numel() for w in weights.values())}

    def count(module: nn.Module, name: str, parameter: object) -> None:
        del module, name
        if parameter is None or threading.get_ident() != thread:
            return
        left["tensors"] -= 1
        left["numbers"] -= parameter.numel()  # type: ignore[attr-defined]
        if min(left.values()) < 0:
            raise UsageError(f"the configuration describes more parameters than {_WEIGHTS} has")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()
