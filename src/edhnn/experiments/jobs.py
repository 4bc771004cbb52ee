"""Jobs: one per cell and split of an experiment, identified by a hash of everything that decides its numbers.

The hash does not contain the experiment, so a cell that two tables share is run once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from edhnn.errors import UsageError, unknown_name
from edhnn.experiments.kinds import KINDS
from edhnn.experiments.spec import Column, Experiment, Row
from edhnn.typing import JsonObject


@final
@dataclass(frozen=True, slots=True)
class Cell:
    """A row and a column of an experiment, with the settings that result.

    Attributes:
        experiment: Name of the experiment.
        row: Label of the row.
        column: Label of the column.
        settings: Everything that decides the numbers, except split and seed.
        source: The origin of the settings.
        changed: Why they differ from those of row and column; empty if they do not differ.
    """

    experiment: str
    row: str
    column: str
    settings: JsonObject
    source: str
    changed: str = ""


@final
@dataclass(frozen=True, slots=True)
class Job:
    """One split of a cell.

    Attributes:
        cell: The cell.
        split: The split.
        key: A hash of settings and split, which identifies the job.
    """

    cell: Cell
    split: int
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", digest({**self.cell.settings, "split": self.split}))


def digest(content: JsonObject) -> str:
    """Hash a JSON object, independently of the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def find_cell(experiment: Experiment, row: Row, column: Column, epochs: int | None = None) -> Cell | None:
    """Resolve the cell of a row and a column; return ``None`` if the experiment has no such cell.

    ``epochs`` replaces the experiment's number of epochs.
    """
    kind = KINDS[experiment.kind]
    changes = [change for change in experiment.change if change.applies(row, column)]
    if any(change.skip for change in changes):
        return None
    options: dict[str, Any] = {}
    train = {**experiment.train, **row.train, **column.train}
    for change in changes:
        options, train = {**options, **change.options}, {**train, **change.train}
    if epochs is not None and kind.trains:
        train["epochs"] = epochs
    resolved = kind.resolve(row, column, options, train)
    if resolved is None:
        return None
    settings, source = resolved
    reasons = [change.why for change in changes if settings.get("options")]  # changes do not apply to bounds
    if settings["model"] != row.model:
        reasons.append(f"the {row.preset} settings belong to the model '{settings['model']}'")
    settings = {"kind": kind.name, **settings}
    return Cell(experiment.name, row.label, column.label, settings, source, "; ".join(reasons))


def cells_of(experiment: Experiment, epochs: int | None = None, models: Sequence[str] = ()) -> Iterator[Cell]:
    """Yield all cells, row by row; only rows of ``models`` unless it is empty."""
    for row in experiment.row:
        if models and row.model not in models:
            continue
        for column in experiment.column:
            cell = find_cell(experiment, row, column, epochs)
            if cell is not None:
                yield cell


def jobs_of(
    experiments: Iterable[Experiment],
    *,
    datasets: Sequence[str] = (),
    models: Sequence[str] = (),
    splits: int | None = None,
    epochs: int | None = None,
) -> list[Job]:
    """List the jobs of experiments without duplicates: the first split of every cell, then the second, and so on.

    Args:
        experiments: The experiments.
        datasets: Only these datasets; all if empty.
        models: Only rows of these models; all if empty.
        splits: Replaces the experiments' number of splits.
        epochs: Replaces the experiments' number of epochs; ignored by those that train nothing.

    Raises:
        UsageError: if a dataset or model is in none of the experiments, or ``epochs`` is given and none trains.
    """
    chosen = list(experiments)
    for names, attribute, known in (
        (datasets, "dataset", [column.dataset for one in chosen for column in one.column]),
        (models, "model", [row.model for one in chosen for row in one.row]),
    ):
        for name in names:
            if name not in known:
                raise unknown_name(f"{attribute} of these experiments", name, sorted(set(known)))
    if epochs is not None and not any(KINDS[one.kind].trains for one in chosen):
        raise UsageError(f"`epochs=` applies only to experiments that train. None of these trains. Got {epochs}.")
    if splits is not None and splits < 1:
        raise UsageError(f"`splits=` must be at least 1. Got {splits}.")
    pairs = [
        (cell, min(splits or one.splits, KINDS[one.kind].max_splits))
        for one in chosen
        for cell in cells_of(one, epochs, models)
        if not datasets or cell.settings["dataset"] in datasets
    ]
    jobs: dict[str, Job] = {}
    for split in range(max((count for _, count in pairs), default=0)):
        for cell, count in pairs:
            if split < count:
                job = Job(cell, split)
                jobs.setdefault(job.key, job)
    return list(jobs.values())
