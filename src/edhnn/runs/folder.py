"""The files of a run.

    config.json          what the run is; a resumption must ask for the same
    environment.json     versions, kernels, threads, settings of `edhnn.configure_runtime`
    splits.npz           node numbers of train, valid and test of every split
    nodes.npy            a hash per node, to recognise training nodes in other data
    splits/03/           metrics.jsonl (a line per epoch), state.safetensors (meanwhile), model/, result.json (last)
    metrics.jsonl        all epochs of all splits
    predictions.csv      probabilities and answers by original id
    learning-curve.png   confusion.png   report.html   summary.json
    tensorboard/         events, if they were asked for

A split is finished when its ``result.json`` is there. Every other file is either appended to, and cut back to the last
checkpoint on resumption, or written under another name and renamed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from zipfile import BadZipFile

import msgspec
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.data.splits import Split
from edhnn.errors import DataError, UsageError
from edhnn.io.files import atomic_file, check_folder
from edhnn.io.json_files import describe_error, read_json, write_json
from edhnn.runs.plan import RUN_FORMAT, Plan, plan_from_json
from edhnn.training.inputs import Inputs
from edhnn.training.pretrained import Pretrained, from_pretrained
from edhnn.typing import JsonObject

_FIRST_FILES = ("splits.npz", "nodes.npy", "splits", "lock")


@final
@dataclass(frozen=True, slots=True)
class SplitFolder:
    """The files of one split."""

    path: Path

    @property
    def metrics(self) -> Path:
        """A line per epoch."""
        return self.path / "metrics.jsonl"

    @property
    def state(self) -> Path:
        """The checkpoint to resume from."""
        return self.path / "state.safetensors"

    @property
    def model(self) -> Path:
        """The selected model, a pretrained folder."""
        return self.path / "model"

    @property
    def result(self) -> Path:
        """The split's metrics; written last."""
        return self.path / "result.json"

    @property
    def finished(self) -> bool:
        """Whether the split needs no more training."""
        return self.result.is_file()

    @property
    def remedy(self) -> str:
        """What to do about a damaged file of the split."""
        return f"Delete the folder '{self.path}' and resume the run to train this split anew."

    def cut_metrics(self, epochs: int) -> None:
        """Keep the lines of the first epochs: those after the last checkpoint will be written again."""
        lines = self.metrics.read_bytes().splitlines(keepends=True) if self.metrics.is_file() else []
        if len(lines) < epochs:
            raise DataError(
                f"There must be a line for each of the {epochs} epochs of the checkpoint. Got {len(lines)}.",
                path=self.metrics,
                remedy=self.remedy,
            )
        with atomic_file(self.metrics) as temporary:
            temporary.write_bytes(b"".join(lines[:epochs]))


@final
@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run's folder."""

    path: Path

    @property
    def config(self) -> Path:
        """What the run is."""
        return self.path / "config.json"

    @property
    def splits(self) -> Path:
        """The node numbers of every split."""
        return self.path / "splits.npz"

    @property
    def nodes(self) -> Path:
        """A hash per node, of its id and features."""
        return self.path / "nodes.npy"

    @property
    def inputs(self) -> Path:
        """The dataset, shared with worker processes; deleted when they finish."""
        return self.path / "inputs.safetensors"

    def split(self, number: int) -> SplitFolder:
        """Return the files of a split."""
        return SplitFolder(self.path / "splits" / f"{number:02d}")

    def begin(self, facts: JsonObject, splits: Sequence[Split], *, resume: bool) -> None:
        """Make the folder, or check that the one there is of the same run.

        Raises:
            UsageError: if something else is there, or a run with other settings or of another version.
        """
        check_folder(self.path)
        if not self.config.is_file():  # nothing yet, or killed before anything was written
            there = [found.name for found in self.path.iterdir()] if self.path.is_dir() else []
            if any(name not in _FIRST_FILES and not name.startswith(".") for name in there):
                raise UsageError(f"'{self.path}' holds files that are not of a run. Choose another folder.")
            (self.path / "splits").mkdir(parents=True, exist_ok=True)
            write_splits(splits, self.splits)
            write_json(facts, self.config)  # last: its presence says that the rest is there
            return
        if not resume:
            raise UsageError(
                f"'{self.path}' holds a run already. Go on with --resume (in Python: resume=True), or choose "
                "another folder."
            )
        compare_runs(read_json(self.config), facts, self.path)
        if not self.splits.is_file():
            write_splits(splits, self.splits)

    def plan(self) -> tuple[Plan, JsonObject]:
        """Read the plan of a run, and the record that holds it.

        Raises:
            UsageError: if this is no run folder.
            DataError: if it is of another format, or damaged.
        """
        if not self.config.is_file():
            raise UsageError(f"'{self.path}' must be a run folder, as `edhnn train` leaves it. It has no config.json.")
        facts = read_json(self.config)
        _check_format(facts, self.path)
        try:
            for name in ("name", "task", "sha256"):
                facts["dataset"][name]
            return plan_from_json(facts), facts
        except (KeyError, TypeError, AttributeError, UsageError) as error:
            raise DataError(
                f"The file must be the configuration of a run. Cause: {describe_error(error)}.",
                path=self.config,
                remedy="Copy the run folder again, or train anew in another folder.",
            ) from error

    def read_splits(self) -> list[Split]:
        """Read the splits of the run.

        Raises:
            DataError: if the file is missing or damaged.
        """
        try:
            with self.splits.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                return [
                    Split(*(torch.from_numpy(arrays[f"{part}_{k}"]) for part in ("train", "valid", "test")))
                    for k in range(len(arrays.files) // 3)
                ]
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, BadZipFile, zlib.error) as error:
            state = "damaged" if self.splits.is_file() else "not there"
            raise DataError(
                f"The file must hold the node numbers of every split. It is {state}.",
                path=self.splits,
                remedy="Delete it and resume the run, which writes it again.",
            ) from error


def write_splits(splits: Sequence[Split], path: Path) -> None:
    """Write splits as named arrays."""
    arrays: dict[str, Any] = {
        f"{part}_{k}": getattr(split, part).numpy()
        for k, split in enumerate(splits)
        for part in ("train", "valid", "test")
    }
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def compare_runs(found: JsonObject, asked: JsonObject, folder: Path) -> None:
    """Refuse to resume a run that is not the one asked for.

    Raises:
        UsageError: and it lists what differs.
    """
    _check_format(found, folder)
    if found.get("edhnn_version") != asked["edhnn_version"]:
        raise UsageError(
            f"The run in '{folder}' was begun by edhnn {found.get('edhnn_version')}; this is {asked['edhnn_version']}, "
            "which may give other numbers. Go on with that version, or train anew in another folder."
        )
    mine, theirs = dict(_leaves(asked)), dict(_leaves(found))
    names = [name for name in theirs if name not in ("origin", "dataset.source") and mine.get(name) != theirs[name]]
    if names:
        shown = "; ".join(f"{name} is {theirs[name]!r} there, {mine.get(name)!r} here" for name in names[:5])
        raise UsageError(f"The run in '{folder}' is another one: {shown}. Ask for the same, or choose another folder.")


def _check_format(facts: JsonObject, folder: Path) -> None:
    if facts.get("format") != RUN_FORMAT:
        raise DataError(
            f"The run's format must be {RUN_FORMAT}. Got {facts.get('format')!r}, written by edhnn "
            f"{facts.get('edhnn_version', 'of unknown version')}.",
            path=folder,
            remedy="Use that version of edhnn, or train anew.",
        )


def _leaves(facts: JsonObject, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainedSplit:
    """What a finished split left.

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


def read_split(split: SplitFolder, inputs: Inputs) -> TrainedSplit:
    """Read a finished split back and run its model.

    Raises:
        DataError: if a file is damaged.
    """
    model = from_pretrained(split.model)
    return TrainedSplit(model, read_result(split), read_metrics(split, model.objective.metric), model.outputs(inputs))


class _Result(msgspec.Struct):
    """The fields of a result that are read."""

    metric: str
    test: dict[str, float | None]
    valid: dict[str, float | None]
    best_epoch: int
    seconds: float
    num_parameters: int
    peak_memory: int | None


def read_result(split: SplitFolder) -> JsonObject:
    """Read the metrics of a finished split.

    Raises:
        DataError: if the file is damaged.
    """
    try:
        facts = read_json(split.result)
        found = msgspec.convert(facts, _Result)
        found.test[found.metric], found.valid[found.metric]
    except (DataError, msgspec.ValidationError, KeyError) as error:
        words = error.problem if isinstance(error, DataError) else f"{describe_error(error)}."
        raise DataError(
            f"The file must be the result of a split. {words}", path=split.result, remedy=split.remedy
        ) from error
    return facts


def read_metrics(split: SplitFolder, metric: str) -> list[JsonObject]:
    """Read the epochs of a split.

    Raises:
        DataError: if a line is damaged, or there is none.
    """
    records: list[JsonObject] = []
    lines = split.metrics.read_bytes().splitlines() if split.metrics.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            for part in ("train", "valid"):
                record[part][metric]
            whole = record["epoch"] == number and 1 <= record["best_epoch"] <= number and "loss" in record
        except (ValueError, TypeError, KeyError):
            whole = False
        if not whole:
            raise DataError(
                f"The line must be the record of epoch {number}. It is not.",
                path=split.metrics,
                where=f"line {number}",
                remedy=split.remedy,
            )
        records.append(record)
    if not records:
        raise DataError("There must be a line per epoch. There is none.", path=split.metrics, remedy=split.remedy)
    return records
