"""The files of a run and where they are.

    config.json          what the run is; a resumption must ask for the same
    environment.json     versions, kernels, threads
    splits.npz           node numbers of train, valid and test of every split
    nodes.npy            what tells the nodes again in other data
    splits/03/           metrics.jsonl (a line per epoch), state.safetensors (meanwhile), model/, result.json (last)
    metrics.jsonl        all epochs of all splits
    predictions.csv      probabilities and answers by original id
    learning-curve.png   confusion.png   report.html   summary.json
    tensorboard/         events, if they were asked for

A split is finished when its ``result.json`` is there. Everything else is either appended to and cut back to the last
checkpoint on resumption, or written beside its place and renamed.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from zipfile import BadZipFile

import numpy as np
import torch

from edhnn.data.atomic import atomic_file
from edhnn.data.splits import Split
from edhnn.errors import DataError, UsageError
from edhnn.training.json_file import read_json, said, write_json
from edhnn.training.places import check_folder
from edhnn.training.plan import RUN_FORMAT, Plan, plan_from_json
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
        """The checkpoint to go on from."""
        return self.path / "state.safetensors"

    @property
    def model(self) -> Path:
        """The selected model, a pretrained folder."""
        return self.path / "model"

    @property
    def result(self) -> Path:
        """The split's numbers; written last."""
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
        """A number per node, by its id and features."""
        return self.path / "nodes.npy"

    @property
    def inputs(self) -> Path:
        """The dataset for worker processes; there while they work."""
        return self.path / "inputs.safetensors"

    def split(self, number: int) -> SplitFolder:
        """The files of a split."""
        return SplitFolder(self.path / "splits" / f"{number:02d}")

    def begin(self, facts: JsonObject, splits: Sequence[Split], *, resume: bool) -> None:
        """Make the folder, or make sure that the one there is of the same run.

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
        """The plan and the record of a run.

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
                f"The file must be the configuration of a run. Reading it said: {said(error)}.",
                path=self.config,
                remedy="Copy the run folder again, or train anew in another folder.",
            ) from error

    def read_splits(self) -> list[Split]:
        """The splits of the run.

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
    """Refuse to go on with a run that is not the one asked for.

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


def json_line(content: JsonObject) -> str:
    """An object on a line; what is not finite becomes null."""
    return json.dumps(finite(content), allow_nan=False, ensure_ascii=False) + "\n"


def finite(content: Any) -> Any:
    """The same with null for numbers that JSON does not have."""
    if isinstance(content, dict):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
