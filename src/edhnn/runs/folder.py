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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, final

import msgspec
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.configuration import Count
from edhnn.data.dataset import READING, NodeDataset
from edhnn.data.fingerprints import NodeHashes, nodes_sha256, splits_sha256
from edhnn.data.limits import Limits
from edhnn.data.splits import Split
from edhnn.errors import DataError, UsageError
from edhnn.io.files import atomic_file, check_folder, read_document
from edhnn.io.json_files import describe_error, parse_json, read_json, write_json
from edhnn.io.tensors import read_npy, read_npz
from edhnn.runs.plan import RUN_FORMAT, Plan, RecordedDataset, plan_from_json
from edhnn.training.inputs import Inputs
from edhnn.training.pretrained import Pretrained, from_pretrained, model_sha256
from edhnn.typing import JsonObject

_FIRST_FILES = ("splits.npz", "nodes.npy", "splits", "lock")
_DESCRIPTIONS = ("origin", "dataset.source")
_ADDED = ("dataset.nodes_sha256", "dataset.encoding.", "dataset.columns.")  # earlier versions did not record them
_ADDED_READING = ("encoding", "columns")  # likewise
_RESUME = "Resume the run to write the file again."
_SHOWN = 100
_MAX_LINES_BYTES: Final = 4 * 2**30


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
        return self.result.exists()

    def read_lines(self, *, keepends: bool = False) -> list[bytes]:
        """Read the lines of all epochs; none if the file does not exist."""
        if not self.metrics.exists():
            return []
        try:
            return read_document(self.metrics, _MAX_LINES_BYTES).splitlines(keepends=keepends)
        except UsageError as error:
            raise DataError(str(error), remedy=self.remedy) from error

    def cut_metrics(self, epochs: int) -> None:
        """Remove the lines after the given number of epochs; training writes them again after a resumption."""
        lines = self.read_lines(keepends=True)
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
            msgspec.convert(record.get("dataset"), RecordedDataset)
            msgspec.convert(record.get("splits_sha256"), str)
            return plan_from_json(record), record
        except (UsageError, msgspec.ValidationError) as error:
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
        plan, record = self.plan()
        splits = read_splits(self.splits, plan.num_splits, record["dataset"]["num_nodes"])
        if splits_sha256(splits) != record["splits_sha256"]:
            raise _changed(self.splits)
        return splits

    def read_nodes(self) -> NodeHashes:
        """Read the hashes of the nodes of the run.

        Raises:
            DataError: if the file is missing or damaged, or its content is not that of the training.
        """
        recorded = self.plan()[1]["dataset"]
        try:
            hashes: NodeHashes = read_npy(self.nodes)
            if hashes.shape != (recorded["num_nodes"],) or hashes.dtype != np.uint64:
                raise ValueError(f"got an array of {hashes.dtype} of shape {list(hashes.shape)}")
        except ValueError as error:
            raise DataError(
                f"The file must hold a number for each node of the run. Cause: {_cause(error)}.",
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
    reading = {name: value for name, value in model.reading.items() if name in read or name not in _ADDED_READING}
    for what, found, expected in (
        ("type", model.name, plan.model),
        ("options", asdict(model.model.config), asdict(plan.config)),
        ("training", asdict(model.config), asdict(plan.train)),
        ("task", model.objective.task, dataset["task"]),
        ("classes", _listed(model.class_names), dataset["class_names"]),
        ("features", _listed(model.feature_names), dataset["feature_names"]),
        ("number of features", model.num_features, dataset["num_features"]),
        ("reading", reading, read),
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


def read_splits(path: Path, num_splits: int, num_nodes: int) -> list[Split]:
    """Read a file of `write_splits`.

    Args:
        path: The file.
        num_splits: Number of splits of the run.
        num_nodes: Number of nodes of its dataset.

    Raises:
        DataError: if the file is missing or damaged, or does not fit the run.
    """
    state = "damaged" if path.exists() else "missing"
    try:
        arrays = read_npz(path, Limits())
        names = [f"{part}_{k}" for k in range(num_splits) for part in ("train", "valid", "test")]
        if set(names) != set(arrays):
            raise ValueError("the number of splits is not that of the run")
        for name in names:
            _check_nodes(arrays[name], num_nodes)
        numbers = iter(torch.from_numpy(arrays[name]) for name in names)
        return [Split(train, valid, test) for train, valid, test in zip(numbers, numbers, numbers, strict=True)]
    except ValueError as error:
        raise DataError(
            f"The file must hold the node numbers of every split. It is {state}. Cause: {_cause(error)}.",
            path=path,
            remedy=_RESUME,
        ) from error


def _cause(error: ValueError) -> str:
    return (error.problem if isinstance(error, DataError) else str(error)).rstrip(".")


def write_nodes(hashes: NodeHashes, path: Path) -> None:
    """Write the hashes of a run's nodes. A resumed run writes them again, because the file may be damaged."""
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, hashes)


def _check_nodes(numbers: Any, num_nodes: int) -> None:
    if numbers.dtype != np.int64 or numbers.ndim != 1 or not len(numbers):
        raise ValueError(f"got {numbers.dtype} of shape {list(numbers.shape)}")
    if not 0 <= numbers.min() <= numbers.max() < num_nodes:
        raise ValueError(f"got node numbers {numbers.min()} to {numbers.max()}, with {num_nodes} nodes")


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
    added = tuple(start for start in _ADDED if not any(name.startswith(start) for name in before))
    ignored = {*_DESCRIPTIONS, *(name for name in now if name.startswith(added))}
    names = [name for name in {**before, **now} if name not in ignored and now.get(name) != before.get(name)]
    if names:
        shown = "; ".join(f"{name} is {before.get(name)!r} there, {now.get(name)!r} here" for name in names[:5])
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


def read_split(folder: RunFolder, number: int, inputs: Inputs, dataset: NodeDataset, nodes: NodeHashes) -> TrainedSplit:
    """Read a finished split and run its model on the run's dataset, whose nodes have the given hashes.

    Raises:
        DataError: if a file is damaged, or of another run.
    """
    model, split = folder.model(number), folder.split(number)
    outputs = model.outputs(inputs, dataset, hashes=nodes)
    return TrainedSplit(model, read_result(split), read_metrics(split, model.objective.metric), outputs)


class _Result(msgspec.Struct):
    """The fields of a result that are read."""

    metric: str
    test: dict[str, float | None]
    valid: dict[str, float | None]
    best_epoch: Count
    seconds: float
    num_parameters: int
    peak_memory: int | None
    split: int
    cut: bool = False
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


class _Epoch(msgspec.Struct):
    """A line of ``metrics.jsonl``."""

    split: int
    epoch: int
    loss: float | None
    train: dict[str, float | None]
    valid: dict[str, float | None]
    best_epoch: Count


def read_metrics(split: SplitFolder, metric: str) -> list[JsonObject]:
    """Read the epochs of a split.

    Raises:
        DataError: if a line is damaged, or the file has no lines.
    """
    records: list[JsonObject] = []
    for number, line in enumerate(split.read_lines(), 1):
        try:
            record = parse_json(line)
            epoch = msgspec.convert(record, _Epoch)
            valid = epoch.epoch == number >= epoch.best_epoch and metric in epoch.train and metric in epoch.valid
        except ValueError:
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
