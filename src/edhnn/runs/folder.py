"""The files of a run.

    config.json          the plan and the dataset; a resumption must have the same
    environment.json     versions, kernels, threads, settings of `edhnn.configure_runtime`
    splits.npz           node numbers of train, valid and test of every split; config.json has their hash
    nodes.npy            a hash per node, to recognise training nodes in other data; config.json has their hash
    splits/03/           metrics.jsonl (a line per epoch), state.safetensors (until it ends), model/, result.json (last)
    metrics.jsonl        all epochs of all splits
    predictions.csv      probabilities and answers by original id
    learning-curve.png   confusion.png   report.html   summary.json
    tensorboard/         events, with ``tensorboard=True``

A split is finished when its ``result.json`` exists. It records the hashes of the run's configuration and of the model's
files, so that files of another run are recognised. Runs of versions that did not record them can still be read. Every
other file is either appended to, and truncated to the last checkpoint on resumption, or written under another name and
renamed.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final
from zipfile import BadZipFile

import msgspec
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.data.dataset import READING, NodeDataset
from edhnn.data.fingerprints import NodeHashes, nodes_sha256, splits_sha256
from edhnn.data.splits import Split
from edhnn.errors import DataError, UsageError
from edhnn.io.files import atomic_file, check_folder
from edhnn.io.json_files import describe_error, read_json, write_json
from edhnn.runs.plan import RUN_FORMAT, Plan, plan_from_json
from edhnn.training.inputs import Inputs
from edhnn.training.pretrained import Pretrained, from_pretrained, model_sha256
from edhnn.typing import JsonObject

_FIRST_FILES = ("splits.npz", "nodes.npy", "splits", "lock")
_DESCRIPTIONS = ("origin", "dataset.source")
_RESUME = "Resume the run to write the file again."
_SHOWN = 100


@final
class SplitFolder:
    """The files of one split.

    Attributes:
        path: The folder.
        metrics: A line per epoch.
        state: The checkpoint to resume from.
        model: The selected model, a pretrained folder.
        result: The split's metrics; written last.
        remedy: The advice in errors about a damaged file of the split.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / "metrics.jsonl"
        self.state = path / "state.safetensors"
        self.model = path / "model"
        self.result = path / "result.json"
        self.remedy = f"Delete the folder '{path}' and resume the run to train this split again."

    @property
    def finished(self) -> bool:
        """Whether the split needs no more training."""
        return self.result.is_file()

    def cut_metrics(self, epochs: int) -> None:
        """Remove the lines after the given number of epochs; training writes them again after a resumption."""
        lines = self.metrics.read_bytes().splitlines(keepends=True) if self.metrics.is_file() else []
        if len(lines) < epochs:
            raise DataError(
                f"The file must have a line for each of the {epochs} epochs of the checkpoint. Got {len(lines)}.",
                path=self.metrics,
                remedy=self.remedy,
            )
        with atomic_file(self.metrics) as temporary:
            temporary.write_bytes(b"".join(lines[:epochs]))


@final
class RunFolder:
    """A run's folder.

    Attributes:
        path: The folder.
        config: The plan and the dataset of the run.
        splits: The node numbers of every split.
        nodes: A hash per node, of its id and features.
        inputs: The dataset, shared with worker processes; deleted when they finish.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.splits = path / "splits.npz"
        self.nodes = path / "nodes.npy"
        self.inputs = path / "inputs.safetensors"

    def split(self, number: int) -> SplitFolder:
        """Return the files of a split."""
        return SplitFolder(self.path / "splits" / f"{number:02d}")

    def begin(self, record: JsonObject, splits: Sequence[Split], *, resume: bool) -> None:
        """Create the folder, or check that the existing one holds the same run.

        Raises:
            UsageError: if the folder holds other files, or a run with other settings or of another version.
        """
        check_folder(self.path)
        if not self.config.is_file():  # a new folder, or a run that was killed before it wrote config.json
            names = [path.name for path in self.path.iterdir()] if self.path.is_dir() else []
            if any(name not in _FIRST_FILES and not name.startswith(".") for name in names):
                raise UsageError(f"'{self.path}' holds files that are not of a run. Choose another folder.")
            (self.path / "splits").mkdir(parents=True, exist_ok=True)
            write_splits(splits, self.splits)
            write_json(record, self.config)  # last: if it exists, the other files exist
            return
        if not resume:
            raise UsageError(
                f"'{self.path}' holds a run already. Resume it with `resume=True`, or choose another folder."
            )
        _check_same_run(read_json(self.config), record, self.path)
        write_splits(splits, self.splits)  # again, because the file may be missing or damaged

    def plan(self) -> tuple[Plan, JsonObject]:
        """Read the plan of a run and the content of ``config.json``.

        Raises:
            UsageError: if this is not a run folder.
            DataError: if its format is not supported, or it is damaged.
        """
        if not self.config.is_file():
            raise UsageError(f"'{self.path}' must be a run folder that `edhnn train` wrote. It has no config.json.")
        record = read_json(self.config)
        _check_format(record, self.path)
        try:
            for name in ("name", "task", "num_nodes", "num_features", "class_names", "feature_names", "sha256"):
                record["dataset"][name]
            record["splits_sha256"]
            return plan_from_json(record), record
        except (KeyError, TypeError, AttributeError, UsageError) as error:
            raise DataError(
                f"The file must be the configuration of a run. Cause: {describe_error(error)}.",
                path=self.config,
                remedy="Copy the run folder again, or train in another folder.",
            ) from error

    def sha256(self) -> str:
        """Hash the configuration of the run, except for the names that a resumption may change."""
        record = self.plan()[1]
        fixed = sorted((name, value) for name, value in _leaves(record) if name not in _DESCRIPTIONS)
        return hashlib.sha256(json.dumps(fixed).encode()).hexdigest()

    def read_splits(self) -> list[Split]:
        """Read the splits of the run.

        Raises:
            DataError: if the file is missing or damaged, or its content is not that of the training.
        """
        splits = read_splits(self.splits)
        if splits_sha256(splits) != self.plan()[1]["splits_sha256"]:
            raise _changed(self.splits)
        return splits

    def read_nodes(self) -> NodeHashes:
        """Read the hashes of the nodes of the run.

        Raises:
            DataError: if the file is missing or damaged, or its content is not that of the training.
        """
        recorded = self.plan()[1]["dataset"]
        try:
            with self.nodes.open("rb") as stream:
                hashes: NodeHashes = np.lib.format.read_array(stream, allow_pickle=False)
            if hashes.shape != (recorded["num_nodes"],) or hashes.dtype != np.uint64:
                raise ValueError(f"got an array of {hashes.dtype} of shape {list(hashes.shape)}")
        except (OSError, EOFError, ValueError, MemoryError) as error:
            raise DataError(
                f"The file must hold a number for each node of the run. Cause: {error}.",
                path=self.nodes,
                remedy=_RESUME,
            ) from error
        if recorded.get("nodes_sha256", nodes_sha256(hashes)) != nodes_sha256(hashes):
            raise _changed(self.nodes)
        return hashes

    def model(self, number: int) -> Pretrained:
        """Read the model of a finished split and check that this run trained it.

        Raises:
            DataError: if files are damaged or changed, or are those of another split or another run.
        """
        split, (plan, record) = self.split(number), self.plan()
        result = read_result(split)
        if result.get("split") != number or result.get("run_sha256") not in (None, self.sha256()):
            raise DataError(
                f"The file must be the result of split {number} of the run in '{self.path}'. It is the result of "
                "another split or run, or config.json of the run was changed.",
                path=split.result,
                remedy=split.remedy,
            )
        recorded = result.get("model_sha256")
        if recorded is not None:
            for name, found in model_sha256(split.model).items():
                if found != recorded.get(name):
                    raise _changed(split.model / name, split.remedy)
        model = from_pretrained(split.model)
        _check_member(model, plan, record["dataset"], split)
        return model


def _changed(path: Path, remedy: str | None = None) -> DataError:
    return DataError(
        "The content must be what the training wrote. Its SHA-256 is not the recorded one.",
        path=path,
        remedy=f"{remedy or _RESUME} Or copy the run folder again.",
    )


def _check_member(model: Pretrained, plan: Plan, dataset: JsonObject, split: SplitFolder) -> None:
    """Check that a model has the type, options, training, task, classes and features of its run."""
    read = {name: dataset[name] for name in READING if name in dataset}
    for what, found, expected in (
        ("type", model.name, plan.model),
        ("options", asdict(model.model.config), asdict(plan.config)),
        ("training", asdict(model.config), asdict(plan.train)),
        ("task", model.objective.task, dataset["task"]),
        ("classes", _listed(model.class_names), dataset["class_names"]),
        ("features", _listed(model.feature_names), dataset["feature_names"]),
        ("number of features", model.model.in_features, dataset["num_features"]),
        ("reading", model.reading, read),
    ):
        if found != expected:
            shown, needed = found, expected
            if isinstance(found, dict) and isinstance(expected, dict):
                differing = [name for name in {**expected, **found} if found.get(name) != expected.get(name)]
                shown, needed = ({name: side.get(name) for name in differing} for side in (found, expected))
            raise DataError(
                f"The model must be that of the run. The {what} of the run: {_short(needed)}; of the model: "
                f"{_short(shown)}.",
                path=split.model,
                remedy=split.remedy,
            )


def _listed(names: tuple[Any, ...] | None) -> list[Any] | None:
    return None if names is None else list(names)


def _short(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def run_of_model(path: Path) -> tuple[RunFolder, int] | None:
    """Find the run folder that a model folder is in, and the number of its split; ``None`` if it is in none."""
    path = path.resolve()
    if len(path.parents) > 2 and path.parents[1].name == "splits" and path.parent.name.isdecimal():
        run, number = RunFolder(path.parents[2]), int(path.parent.name)
        if run.config.is_file() and run.split(number).model == path:
            return run, number
    return None


def read_splits(path: Path) -> list[Split]:
    """Read a file of `write_splits`.

    Raises:
        DataError: if the file is missing or damaged.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            count = len(arrays.files) // 3
            names = [f"{part}_{k}" for k in range(count) for part in ("train", "valid", "test")]
            parts = [arrays[name] for name in names]
            if len(names) != len(arrays.files) or any(a.ndim != 1 or a.dtype.kind != "i" for a in parts):
                raise ValueError("not three vectors of integers per split")
            return [Split(*map(torch.from_numpy, parts[3 * k : 3 * k + 3])) for k in range(count)]
    except (
        OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, MemoryError, BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        state = "damaged" if path.is_file() else "missing"
        raise DataError(
            f"The file must hold the node numbers of every split. It is {state}.", path=path, remedy=_RESUME
        ) from error


def write_nodes(hashes: NodeHashes, path: Path) -> None:
    """Write the hashes of a run's nodes. A resumed run writes them again, because the file may be damaged."""
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, hashes)


def write_splits(splits: Sequence[Split], path: Path) -> None:
    """Write splits as named arrays."""
    arrays: dict[str, Any] = {
        f"{part}_{k}": getattr(split, part).numpy()
        for k, split in enumerate(splits)
        for part in ("train", "valid", "test")
    }
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _check_same_run(old: JsonObject, new: JsonObject, folder: Path) -> None:
    """Check that a run to resume has the same record as the new one; otherwise list the differences."""
    _check_format(old, folder)
    if old.get("edhnn_version") != new["edhnn_version"]:
        raise UsageError(
            f"The run in '{folder}' was started by edhnn {old.get('edhnn_version')}. This is {new['edhnn_version']}, "
            "which may give other numbers. Resume with that version, or train in another folder."
        )
    before, now = dict(_leaves(old)), dict(_leaves(new))
    names = [name for name in before if name not in _DESCRIPTIONS and now.get(name) != before[name]]
    if names:
        shown = "; ".join(f"{name} is {before[name]!r} there, {now.get(name)!r} here" for name in names[:5])
        raise UsageError(f"'{folder}' holds a different run: {shown}. Use the same settings, or choose another folder.")


def _check_format(record: JsonObject, folder: Path) -> None:
    if record.get("format") != RUN_FORMAT:
        raise DataError(
            f"The run's format must be {RUN_FORMAT}. Got {record.get('format')!r}, written by edhnn "
            f"{record.get('edhnn_version', 'of unknown version')}.",
            path=folder,
            remedy="Use that version of edhnn, or train in another folder.",
        )


def _leaves(record: JsonObject, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainedSplit:
    """A finished split.

    Attributes:
        model: The selected model.
        result: The content of ``result.json``.
        epochs: The lines of ``metrics.jsonl``.
        outputs: The model's outputs for the run's dataset, on the CPU.
    """

    model: Pretrained
    result: JsonObject
    epochs: list[JsonObject]
    outputs: Float[Tensor, "N C"]


def read_split(folder: RunFolder, number: int, inputs: Inputs, dataset: NodeDataset) -> TrainedSplit:
    """Read a finished split and run its model on the run's dataset.

    Raises:
        DataError: if a file is damaged, or of another run.
    """
    model, split = folder.model(number), folder.split(number)
    outputs = model.outputs(inputs, dataset)
    return TrainedSplit(model, read_result(split), read_metrics(split, model.objective.metric), outputs)


class _Result(msgspec.Struct):
    """The fields of a result that are read."""

    metric: str
    test: dict[str, float | None]
    valid: dict[str, float | None]
    best_epoch: int
    seconds: float
    num_parameters: int
    peak_memory: int | None
    split: int
    run_sha256: str | None = None
    model_sha256: dict[str, str] | None = None


def read_result(split: SplitFolder) -> JsonObject:
    """Read the metrics of a finished split.

    Raises:
        DataError: if the file is damaged.
    """
    try:
        record = read_json(split.result)
        result = msgspec.convert(record, _Result)
        result.test[result.metric], result.valid[result.metric]
    except (DataError, msgspec.ValidationError, KeyError) as error:
        cause = error.problem if isinstance(error, DataError) else f"Cause: {describe_error(error)}."
        raise DataError(
            f"The file must be the result of a split. {cause}", path=split.result, remedy=split.remedy
        ) from error
    return record


def read_metrics(split: SplitFolder, metric: str) -> list[JsonObject]:
    """Read the epochs of a split.

    Raises:
        DataError: if a line is damaged, or the file has no lines.
    """
    records: list[JsonObject] = []
    lines = split.metrics.read_bytes().splitlines() if split.metrics.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            for part in ("train", "valid"):
                record[part][metric]
            valid = record["epoch"] == number and 1 <= record["best_epoch"] <= number and "loss" in record
        except (ValueError, TypeError, KeyError):
            valid = False
        if not valid:
            raise DataError(
                f"The line must be the record of epoch {number}. It is not.",
                path=split.metrics,
                where=f"line {number}",
                remedy=split.remedy,
            )
        records.append(record)
    if not records:
        raise DataError("The file must have a line per epoch. Got none.", path=split.metrics, remedy=split.remedy)
    return records
