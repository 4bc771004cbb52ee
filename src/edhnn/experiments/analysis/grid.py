"""A grid: every cell of an experiment with the scores of its records.

A record belongs to the cells with its settings, even if it was run for another experiment. A cell without records gets
those that differ only in the number of epochs, and `Measured.epochs` gives that number. Floors depend only on the data,
so they are added to every accuracy experiment that has no row for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import msgspec
import numpy as np

from edhnn.experiments.jobs import Cell, digest, find_cell
from edhnn.experiments.kinds import KINDS
from edhnn.experiments.kinds.base import Kind, LineKind, MetricFloor
from edhnn.experiments.spec import Experiment
from edhnn.typing import FloatArray, JsonObject

State = Literal["measured", "failed", "not run"]
_ORDER: tuple[LineKind, ...] = ("floor", "network", "ceiling")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A cell with the content of its records.

    Attributes:
        cell: The cell.
        requested: Number of splits that the experiment requests.
        values: Scores by split.
        metrics: All metrics of the records, by split.
        failures: The reasons of failed splits, without duplicates.
        epochs: Epochs of the records, if they differ from the experiment's.
    """

    cell: Cell
    requested: int
    values: Mapping[int, float]
    metrics: Mapping[int, JsonObject]
    failures: Sequence[str] = ()
    epochs: int | None = None

    @property
    def state(self) -> State:
        """Whether the cell has a score, and if not, why."""
        if self.values:
            return "measured"
        return "failed" if self.failures else "not run"

    @property
    def scores(self) -> FloatArray:
        """The scores in the order of the splits."""
        return np.array([self.values[split] for split in sorted(self.values)], dtype=np.float64)

    def mean_of(self, metric: str) -> float | None:
        """Return the mean of a metric over the splits; ``None`` if no record has it."""
        values = self.by_split(metric)
        return float(np.mean(list(values.values()))) if values else None

    def by_split(self, metric: str) -> dict[int, float]:
        """Return a metric by split."""
        return {
            split: float(numbers[metric]) for split, numbers in self.metrics.items() if numbers.get(metric) is not None
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of a grid.

    Attributes:
        label: The name in the report.
        kind: Floor, network or ceiling.
    """

    label: str
    kind: LineKind


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """An experiment with its scores.

    Attributes:
        experiment: The experiment.
        lines: The rows, including added floors; floors first, ceilings last.
        cells: The cells by the labels of row and column.
    """

    experiment: Experiment
    lines: Sequence[Line]
    cells: Mapping[tuple[str, str], Measured]

    @property
    def kind(self) -> Kind:
        """The kind of the cells."""
        return KINDS[self.experiment.kind]

    @property
    def columns(self) -> list[str]:
        """The labels of the columns."""
        return [column.label for column in self.experiment.column]

    def measured(self, row: str, column: str) -> Measured | None:
        """Return the cell if it exists and has a score, else ``None``."""
        cell = self.cells.get((row, column))
        return cell if cell is not None and cell.state == "measured" else None

    @property
    def has_network_records(self) -> bool:
        """Whether a network has a score or a failure."""
        networks = set(self.networks)
        return any(cell.state != "not run" for (row, _), cell in self.cells.items() if row in networks)

    @property
    def networks(self) -> list[str]:
        """The labels of the networks."""
        return [line.label for line in self.lines if line.kind == "network"]

    @property
    def comparable(self) -> list[str]:
        """The labels of the rows that are compared with each other: all except ceilings."""
        return [line.label for line in self.lines if line.kind != "ceiling"]


@final
class RecordIndex:
    """Records by their settings.

    Args:
        records: The records.
    """

    def __init__(self, records: Iterable[JsonObject]) -> None:
        self._by_epochs: dict[str, dict[int | None, list[JsonObject]]] = {}
        for record in records:
            key, epochs = _without_epochs(record["settings"])
            self._by_epochs.setdefault(key, {}).setdefault(epochs, []).append(record)

    def find(self, cell: Cell, requested: int) -> Measured:
        """Return a cell with its own records, else with those of the other number of epochs that has most splits."""
        key, epochs = _without_epochs(cell.settings)
        known = self._by_epochs.get(key, {})
        if epochs in known:
            return _measured(cell, requested, known[epochs], None)
        others = [_measured(cell, requested, records, other) for other, records in known.items() if other is not None]
        return max(
            others,
            key=lambda measured: (len(measured.values), measured.epochs or 0),
            default=Measured(cell=cell, requested=requested, values={}, metrics={}),
        )


def _without_epochs(settings: JsonObject) -> tuple[str, int | None]:
    """Return the hash of the settings without the epochs, and the epochs."""
    train = dict(settings.get("train", {}))
    epochs = train.pop("epochs", None)
    return digest({**settings, "train": train}), None if epochs is None else int(epochs)


def gather(experiment: Experiment, index: RecordIndex) -> Grid:
    """Collect the scores of an experiment from the records."""
    kind = KINDS[experiment.kind]
    taken = {row.model for row in experiment.row} | {row.label for row in experiment.row}
    floors = [row for row in kind.shared_floors if not {row.model, row.label} & taken]
    without_options = msgspec.structs.replace(
        experiment,
        change=[],
        column=[msgspec.structs.replace(column, options={}, train={}) for column in experiment.column],
    )
    requested = min(experiment.splits, kind.max_splits)
    cells: dict[tuple[str, str], Measured] = {}
    for source, rows in ((without_options, floors), (experiment, experiment.row)):
        for row in rows:
            for column in source.column:
                cell = find_cell(source, row, column)
                if cell is not None:
                    cells[row.label, column.label] = index.find(cell, requested)
    lines = [
        Line(
            label=row.label,
            kind="ceiling" if row.model in kind.ceilings else "floor" if row.model in kind.floors else "network",
        )
        for row in (*floors, *experiment.row)
        if any((row.label, column.label) in cells for column in experiment.column)
    ]
    if kind.metric_floor is not None:
        cells |= _metric_floor(experiment, kind.metric_floor, cells)
        lines.append(Line(label=kind.metric_floor.label, kind="floor"))
    lines.sort(key=lambda line: _ORDER.index(line.kind))
    return Grid(experiment=experiment, lines=lines, cells=cells)


def _metric_floor(
    experiment: Experiment, floor: MetricFloor, cells: Mapping[tuple[str, str], Measured]
) -> dict[tuple[str, str], Measured]:
    """Return the cells of a floor that is a metric of the records."""
    floors = {}
    for column in experiment.column:
        values: dict[int, float] = {}
        for (_, label), measured in cells.items():
            values |= measured.by_split(floor.metric) if label == column.label else {}
        cell = Cell(experiment.name, floor.label, column.label, {}, floor.source)
        floors[floor.label, column.label] = Measured(cell=cell, requested=experiment.splits, values=values, metrics={})
    return floors


def _measured(cell: Cell, requested: int, records: Sequence[JsonObject], epochs: int | None) -> Measured:
    values: dict[int, float] = {}
    metrics: dict[int, JsonObject] = {}
    failures = []
    for record in records:
        numbers, split = record.get("metrics"), int(record["split"])
        if numbers is None:
            failures.append(str(record["failed"]))
        elif numbers.get("value") is None:
            failures.append("the score is not a number")
        else:
            values[split], metrics[split] = float(numbers["value"]), numbers
    reasons = tuple(dict.fromkeys(failures))
    return Measured(cell=cell, requested=requested, values=values, metrics=metrics, failures=reasons, epochs=epochs)
