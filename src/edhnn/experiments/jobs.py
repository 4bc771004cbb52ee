"""Jobs: the cells of experiments, one per split, each known by a hash of all that decides its numbers.

The hash does not contain the experiment: a cell that two tables share is run once.
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
    """Where a row and a column cross.

    Attributes:
        experiment: Name of the experiment.
        row: Label of the row.
        column: Label of the column.
        settings: All that decides its numbers, but for split and seed.
        source: Where the settings come from.
        changed: Why they differ from the row's and the column's, if they do.
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
    """A split of a cell.

    Attributes:
        cell: The cell.
        split: The split.
        key: The job's name: a hash of its settings and split.
    """

    cell: Cell
    split: int
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", digest({**self.cell.settings, "split": self.split}))


def digest(content: JsonObject) -> str:
    """Hash a JSON object, whatever the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def find_cell(experiment: Experiment, row: Row, column: Column, epochs: int | None = None) -> Cell | None:
    """Resolve the cell where a row and a column cross; ``None`` where there is none.

    Args:
        experiment: The experiment.
        row: A row of it.
        column: A column of it.
        epochs: Epochs in place of the experiment's.

    Returns:
        The cell.
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
    reasons = [change.why for change in changes if settings.get("options")]  # a bound has no options to change
    if settings["model"] != row.model:
        reasons.append(f"the {row.preset} settings are of the model '{settings['model']}'")
    settings = {"kind": kind.name, **settings}
    return Cell(experiment.name, row.label, column.label, settings, source, "; ".join(reasons))


def cells_of(experiment: Experiment, epochs: int | None = None, models: Sequence[str] = ()) -> Iterator[Cell]:
    """Yield all cells, row by row.

    Args:
        experiment: The experiment.
        epochs: Epochs in place of its own.
        models: Only rows of these models; all if empty.
    """
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
    """List the jobs of experiments, the first split of every cell before the second of any; none twice.

    Args:
        experiments: The experiments.
        datasets: Only these; all if empty.
        models: Only rows of these; all if empty.
        splits: Splits in place of the experiments'.
        epochs: Epochs in place of the experiments'; those that train nothing have none.

    Returns:
        The jobs.

    Raises:
        UsageError: if a dataset or model is in none of the experiments, or none trains for epochs.
    """
    chosen = list(experiments)
    for asked, attribute, known in (
        (datasets, "dataset", [column.dataset for one in chosen for column in one.column]),
        (models, "model", [row.model for one in chosen for row in one.row]),
    ):
        for name in asked:
            if name not in known:
                raise unknown_name(f"{attribute} of these experiments", name, sorted(set(known)))
    if epochs is not None and not any(KINDS[one.kind].trains for one in chosen):
        raise UsageError(f"Epochs may be given for experiments that train. Got {epochs} for others only.")
    if splits is not None and splits < 1:
        raise UsageError(f"There must be at least 1 split. Got {splits}.")
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
