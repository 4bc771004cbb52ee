"""A trained model with everything that prediction needs, as a folder: ``model.safetensors`` and ``config.json``.

The layout is that of model hubs, so the folder can be uploaded and downloaded without changes. Reading it executes no
code from it.
"""

from __future__ import annotations

import hashlib
import math
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, final

import msgspec
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from edhnn.configuration import Count, Natural, configure
from edhnn.data.dataset import UNLABELLED, NodeDataset, select_columns
from edhnn.data.encoding import Encoding, encoding_from_json
from edhnn.data.fingerprints import NodeHashes, node_hashes
from edhnn.errors import DataError, UsageError
from edhnn.io.file_format import TableColumns
from edhnn.io.files import atomic_folder, open_existing, refuse_foreign
from edhnn.io.json_files import describe_error, read_json, write_json
from edhnn.io.tensors import Tensors, read_tensors, write_tensors
from edhnn.models.base import HypergraphModel
from edhnn.models.registry import make_model
from edhnn.training.base_predictor import FOLDS, BasePredictor
from edhnn.training.beliefs import Knowledge, added_columns, knowledge_shapes, outputs_told, told_of
from edhnn.training.config import TrainConfig
from edhnn.training.inputs import Device, FeatureRange, Inputs, Scaling, find_device, make_inputs, outputs_of
from edhnn.training.objective import Objective, check_features, feature_name
from edhnn.training.structural_features import StructuralFeatures, with_features
from edhnn.typing import JsonObject, NodeOrEdgeId

FORMAT: Final = 1
_WEIGHTS, _CONFIG = "model.safetensors", "config.json"
_KNOWLEDGE: Final = "knowledge/"  # before the names of tensors; names of parameters have no slash
_COPY: Final = "Copy the model folder again."
_FLOATS: Final = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SHOWN_NODES = 3


class _Reading(msgspec.Struct):
    """How the training data were read; other keys are not used."""

    label_columns: list[str] | None = None
    feature_noise: Annotated[float, msgspec.Meta(ge=0)] | None = None
    feature_seed: Natural | None = None
    encoding: Encoding | None = None
    columns: TableColumns | None = None
    structural_features: StructuralFeatures | None = None


class _Base(msgspec.Struct, forbid_unknown_fields=True):
    """The base predictor, whose tensors are beside the weights."""

    penalty: str
    strength: Annotated[float, msgspec.Meta(gt=0)]


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
    feature_range: FeatureRange | None = None
    reading: dict[str, Any] = {}
    base: _Base | None = None


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
        reading: The label columns, the columns of the tables, and how features were encoded or drawn; other data are
            read in the same way.
        feature_range: The range of the feature columns in the training data; ``None`` for models of earlier versions.
            Features far outside it cause a warning (`FeatureRange`).
        knowledge: The base predictor and the training labels, if they are inputs of the model.
    """

    name: str
    model: HypergraphModel[Any]
    objective: Objective
    config: TrainConfig
    class_names: tuple[NodeOrEdgeId, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    scaling: Scaling | None = None
    reading: JsonObject = field(default_factory=dict)
    feature_range: FeatureRange | None = None
    knowledge: Knowledge | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", self.config.for_model(self.model))

    @property
    def label_names(self) -> tuple[NodeOrEdgeId, ...] | None:
        """The names of the answer columns: classes, labels or targets; ``None`` if they have no names."""
        targets = self.reading.get("label_columns")
        return tuple(targets) if self.objective.task == "regression" and targets else self.class_names

    @property
    def num_features(self) -> int:
        """The number of feature columns; `HypergraphModel.in_features` also counts the columns of beliefs."""
        return self.model.in_features - added_columns(self.model, self.objective.num_outputs, self.config)

    def answers(self, dataset: NodeDataset, *, device: Device = "cpu") -> Float[Tensor, "N C"]:
        """Predict probabilities or values for every node of the training dataset or of another one.

        If labels are inputs, the model is given the labels of the training nodes that it recognises. Other labels of
        the dataset are not read; `edhnn.runs.predict.Ensemble.answers` gives them to the model.

        Args:
            dataset: The dataset.
            device: The device that runs the model; the answers are on the CPU.

        Raises:
            DataError: if the dataset's features are not those of the model, or an answer is not finite.
        """
        return self.objective.answers(self.outputs(self.inputs(dataset).to(find_device(device)), dataset))

    def inputs(self, dataset: NodeDataset) -> Inputs:
        """Make the model's inputs from a dataset, with the model's columns, transforms and scaling.

        Features far outside the range of the training cause a warning; see `FeatureRange`.
        """
        fitted = self.fitted(dataset)
        note = None if self.feature_range is None else self.feature_range.note(fitted)
        if note is not None:
            warnings.warn(note, stacklevel=3)
        return make_inputs(fitted, self.config, self.scaling)

    def outputs(
        self,
        inputs: Inputs,
        dataset: NodeDataset,
        *,
        hashes: NodeHashes | None = None,
        labels: tuple[Tensor, Tensor] | None = None,
    ) -> Float[Tensor, "N C"]:
        """Run the model on the device of the inputs. Return the outputs on the CPU.

        Args:
            inputs: The model's inputs.
            dataset: The dataset of the inputs.
            hashes: The hashes of its nodes (`node_hashes`), if they are available.
            labels: Nodes with known labels, and their labels, for a model whose inputs are labels; beside the training
                nodes, whose labels the model keeps.

        Raises:
            DataError: if an output is not finite. The message names the first nodes and the likely column.
        """
        model = self.model.to(inputs.x.device)
        if self.knowledge is None:
            outputs = outputs_of(model, inputs).cpu()
        else:
            found = self.knowledge.recognise(node_hashes(self.fitted(dataset)) if hashes is None else hashes)
            outputs = outputs_told(
                model, told_of(self.knowledge, inputs, self.objective, self.config, found=found, labels=labels)
            )
        bad = (~outputs.isfinite()).any(dim=1).nonzero()[:, 0]
        if len(bad):
            raise self._not_finite(bad, self.fitted(dataset))
        return outputs

    def _not_finite(self, nodes: Tensor, dataset: NodeDataset) -> DataError:
        """Return the error for outputs of some nodes that are not finite."""
        known = self.feature_range
        if known is None and self.scaling is not None:
            pairs = list(zip(self.scaling.mean, self.scaling.scale, strict=True))
            known = FeatureRange(tuple(a - b for a, b in pairs), tuple(a + b for a, b in pairs))
        usual = known or FeatureRange((-1.0,), (1.0,))
        everything = torch.arange(dataset.hypergraph.num_nodes)
        cause = usual.most_extreme(dataset, nodes) or usual.most_extreme(dataset, everything)
        shown = ", ".join(f"'{dataset.node_ids[node]}'" for node in nodes[:_SHOWN_NODES].tolist())
        problem = (
            f"The outputs of a model must be finite. They are not for {len(nodes)} of {len(everything)} nodes of "
            f"'{dataset.name}', first {shown}{', ...' if len(nodes) > _SHOWN_NODES else ''}."
        )
        if cause is None:
            return DataError(
                f"{problem} All features are in the range of the training.",
                remedy="Check the weights of the hyperedges, or train again.",
            )
        node, column, value = cause
        where = f"'{feature_name(dataset, column)}', with the value {value:.6g}"
        if known is not None:
            where = known.describe(dataset, column, value)
        return DataError(
            f"{problem} The likely cause is column {where}, at node '{dataset.node_ids[node]}'.",
            remedy="Correct the value, or train on data with such values.",
        )

    def fitted(self, dataset: NodeDataset) -> NodeDataset:
        """Select the model's feature columns in the model's order, if model and dataset have column names.

        If the features of the training were made from its hypergraph, they are made from this one in the same way.

        Raises:
            DataError: if columns are missing, or their number differs, or a value is not finite.
        """
        dataset = with_features(dataset, self.reading)
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
        if dataset.num_features != self.num_features:
            raise DataError(
                f"The model was trained on {self.num_features} feature columns. '{dataset.name}' has "
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
            base = None if self.knowledge is None else self.knowledge.base
            if self.knowledge is not None:
                tensors |= {_KNOWLEDGE + name: tensor for name, tensor in self.knowledge.tensors().items()}
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
                "train_config": self.config.to_json(),
                "feature_scaling": None if self.scaling is None else asdict(self.scaling),
                "reading": self.reading,
                "feature_range": None if self.feature_range is None else asdict(self.feature_range),
            }
            if base is not None:
                record["base"] = {"penalty": base.penalty, "strength": base.strength}
            write_json(record, temporary / _CONFIG)
        return target


def model_sha256(folder: Path) -> dict[str, str]:
    """Hash the files of a model folder, by name.

    Raises:
        DataError: if a file cannot be read.
    """
    hashes = {}
    for name in (_WEIGHTS, _CONFIG):
        try:
            with open_existing(folder / name) as stream:
                hashes[name] = hashlib.file_digest(stream, "sha256").hexdigest()
        except UsageError as error:
            raise DataError(str(error), remedy=_COPY) from error
    return hashes


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
        reading = msgspec.convert(pretrained.reading, _Reading)
        if reading.encoding is not None:
            encoding_from_json(pretrained.reading["encoding"])
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
    features, outputs = pretrained.num_features, pretrained.model.num_classes
    scaling, objective, usual = pretrained.scaling, pretrained.objective, pretrained.feature_range
    regression = objective.task == "regression"

    def damaged(problem: str) -> DataError:
        return DataError(problem, path=path, remedy=_COPY)

    for what, values, count in (
        ("class_names", pretrained.class_names, outputs),
        ("feature_names", pretrained.feature_names, features),
        ("feature_scaling", None if scaling is None else scaling.mean, features),
        ("feature_scaling", None if scaling is None else scaling.scale, features),
        ("feature_range", None if usual is None or len(usual.low) == 1 else usual.low, features),
        ("feature_range", None if usual is None or len(usual.high) == 1 else usual.high, features),
        ("objective", objective.mean if regression else None, outputs),
        ("objective", objective.scale if regression else None, outputs),
    ):
        if values is not None and len(values) != count:
            raise damaged(f"'{what}' must have {count} entries. Got {len(values)}.")
        wrong = [value for value in values or () if isinstance(value, float) and not math.isfinite(value)]
        if wrong:
            raise damaged(f"The numbers of '{what}' must be finite. Got {wrong[0]}.")
    if objective.num_outputs != outputs:
        raise damaged(f"The model must have the {objective.num_outputs} outputs of its objective. It has {outputs}.")
    for what, deviations in (("feature_scaling", scaling.scale if scaling else ()), ("objective", objective.scale)):
        if any(value <= 0 for value in deviations):
            raise damaged(f"The deviations of '{what}' must be more than 0. Got {min(deviations)}.")
    names = pretrained.class_names or ()
    if len(set(names)) < len(names):
        raise damaged(f"Class names must be unique. {Counter(names).most_common(1)[0][0]!r} occurs twice.")


def _check_weights(tensors: Tensors, expected: Tensors, path: Path) -> None:
    """Check that tensors are floating point where those of the model are, and finite.

    Raises:
        DataError: if not; the message names the tensor.
    """
    for name, tensor in tensors.items():
        kind = expected[name].dtype if name in expected else torch.float32
        kinds = _FLOATS if kind.is_floating_point else (kind,)
        if tensor.dtype not in kinds:
            allowed = ", ".join(str(kind).removeprefix("torch.") for kind in kinds)
            given = str(tensor.dtype).removeprefix("torch.")
            raise DataError(
                f"The weights must be of type {allowed}. '{name}' is of type {given}.", path=path, remedy=_COPY
            )
        if not bool(tensor.isfinite().all()):
            count = int((~tensor.isfinite()).sum())
            raise DataError(
                f"The weights of a model must be finite. '{name}' has {count} values that are not.",
                path=path,
                remedy=f"{_COPY} If the original has them too, train again.",
            )


def _from_record(record: _Record, folder: Path) -> Pretrained:
    stored, _ = read_tensors(folder / _WEIGHTS, _COPY)
    tensors = {name: tensor for name, tensor in stored.items() if not name.startswith(_KNOWLEDGE)}
    kept = {name.removeprefix(_KNOWLEDGE): stored[name] for name in stored if name not in tensors}
    with _bounded_by(tensors):
        model = make_model(
            record.model_type, in_features=record.in_features, num_classes=record.num_classes, **record.model_config
        )
    _check_weights(tensors, model.state_dict(), folder / _WEIGHTS)
    types = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    if len(types) == 1:
        model.to(types.pop())  # the saved type, because load_state_dict would round to 32 bits
    model.load_state_dict(tensors)
    objective, config = configure(Objective, record.objective), configure(TrainConfig, record.train_config)
    return Pretrained(
        name=record.model_type,
        model=model.eval(),
        objective=objective,
        config=config,
        class_names=None if record.class_names is None else tuple(record.class_names),
        feature_names=None if record.feature_names is None else tuple(record.feature_names),
        scaling=record.feature_scaling,
        reading=record.reading,
        feature_range=record.feature_range,
        knowledge=_read_knowledge(kept, record, model, objective, config, folder / _WEIGHTS),
    )


def _read_knowledge(
    tensors: Tensors,
    record: _Record,
    model: HypergraphModel[Any],
    objective: Objective,
    config: TrainConfig,
    path: Path,
) -> Knowledge | None:
    """Check the tensors of the knowledge and put it together; ``None`` for a model without base and label inputs.

    Raises:
        DataError: if a tensor is missing, or its type, shape or values do not fit.
    """
    columns = objective.num_outputs
    features = record.in_features - added_columns(model, columns, config)
    if features < 1 or (record.base is None) != (config.base == "none"):
        raise DataError("The base of the model must match its training configuration.", path=path, remedy=_COPY)
    needed = knowledge_shapes(config, objective, features)
    if set(tensors) != set(needed):
        wrong = sorted(set(tensors) ^ set(needed))[0]
        state = "missing" if wrong in needed else "not one of this model"
        raise DataError(f"The tensor '{_KNOWLEDGE}{wrong}' is {state}.", path=path, remedy=_COPY)
    if not tensors:
        return None
    nodes = len(tensors["hashes"]) if tensors["hashes"].dim() else 0
    for name, (kind, shape) in needed.items():
        found, full = tensors[name], tuple(nodes if size is None else size for size in shape)
        if (found.dtype, tuple(found.shape)) != (kind, full):
            raise DataError(
                f"The tensor '{_KNOWLEDGE}{name}' must be {kind} of shape {list(full)}. Got {found.dtype}, "
                f"{list(found.shape)}.",
                path=path,
                remedy=_COPY,
            )
        if name in ("weight", "bias") and not bool(found.isfinite().all()):
            raise DataError(f"The values of '{_KNOWLEDGE}{name}' must be finite.", path=path, remedy=_COPY)
    for name, low, high in (("folds", -1, FOLDS - 1), ("labels", UNLABELLED, columns - 1)):
        found = tensors[name]
        if name == "labels" and objective.task != "classification":
            valid = bool((~found.isinf()).all())
        else:
            valid = not len(found) or low <= int(found.min()) <= int(found.max()) <= high
        if not valid:
            raise DataError(f"The values of '{_KNOWLEDGE}{name}' are out of range.", path=path, remedy=_COPY)
    base = None
    if record.base is not None:
        base = BasePredictor(tensors["weight"], tensors["bias"], record.base.penalty, record.base.strength)
    return Knowledge(tensors["labels"], tensors["folds"], tensors["hashes"].numpy().view(np.uint64), base)


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
