"""From records to a grid: every cell of an experiment with the scores that the records hold for it.

A record belongs to a cell by its settings, whatever experiment it was run for. A cell without records of its own is
given those that differ only in the number of epochs, and says so. Floors are lent to every experiment on accuracy that
has no row for them: they depend on nothing but the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import msgspec
import numpy as np

from edhnn.experiments.bounds import CEILINGS, FLOORS
from edhnn.experiments.job import Cell, digest, find_cell
from edhnn.experiments.kinds.registry import KINDS
from edhnn.experiments.spec import Experiment, Row
from edhnn.typing import FloatArray, JsonObject

_LENT = (
    Row(label="Features alone: L1 logistic", model="l1-logistic"),
    Row(label="Features alone: true class means", model="class-means"),
    Row(label="MLP", model="mlp"),
)
STANDING_STILL = "No step at all"

State = Literal["measured", "failed", "not run"]
LineKind = Literal["floor", "network", "ceiling"]
_ORDER: tuple[LineKind, ...] = ("floor", "network", "ceiling")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A cell and what the records say of it.

    Attributes:
        cell: The cell.
        asked: How many splits the experiment asks for.
        values: Scores by split.
        metrics: All numbers of the records, by split.
        failures: Why splits failed, each reason once.
        epochs: Epochs of the records, where they are not the experiment's.
    """

    cell: Cell
    asked: int
    values: Mapping[int, float]
    metrics: Mapping[int, JsonObject]
    failures: Sequence[str] = ()
    epochs: int | None = None

    @property
    def state(self) -> State:
        """Whether there is a number, and if not, why."""
        if self.values:
            return "measured"
        return "failed" if self.failures else "not run"

    @property
    def scores(self) -> FloatArray:
        """The scores in the order of the splits."""
        return np.array([self.values[split] for split in sorted(self.values)], dtype=np.float64)

    def mean_of(self, metric: str) -> float | None:
        """Mean over the splits of another number that the records hold."""
        known = self.by_split(metric)
        return float(np.mean(list(known.values()))) if known else None

    def by_split(self, metric: str) -> dict[int, float]:
        """Another number that the records hold, by split."""
        return {split: float(found[metric]) for split, found in self.metrics.items() if found.get(metric) is not None}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of a grid.

    Attributes:
        label: What the page calls it.
        kind: A floor knows nothing of the hypergraph; a ceiling knows how the data were made.
    """

    label: str
    kind: LineKind


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """An experiment with its scores.

    Attributes:
        experiment: The experiment.
        lines: Its rows and the floors lent to it; floors first, ceilings last.
        cells: By the labels of row and column; a cell that does not exist is absent.
    """

    experiment: Experiment
    lines: Sequence[Line]
    cells: Mapping[tuple[str, str], Measured]

    @property
    def higher_is_better(self) -> bool:
        """True of accuracy; errors and seconds are better low."""
        return self.experiment.kind == "accuracy"

    @property
    def columns(self) -> list[str]:
        """The labels of the columns."""
        return [column.label for column in self.experiment.column]

    def measured(self, row: str, column: str) -> Measured | None:
        """The cell, if it has a number."""
        cell = self.cells.get((row, column))
        return cell if cell is not None and cell.state == "measured" else None

    @property
    def begun(self) -> bool:
        """Whether a network has a number or a failure."""
        networks = {line.label for line in self.lines if line.kind == "network"}
        return any(cell.state != "not run" for (row, _), cell in self.cells.items() if row in networks)

    @property
    def rivals(self) -> list[str]:
        """The rows that can be better or worse than one another: all but ceilings."""
        return [line.label for line in self.lines if line.kind != "ceiling"]


@final
class RecordIndex:
    """Records by their settings.

    Args:
        records: The records.
    """

    def __init__(self, records: Iterable[JsonObject]) -> None:
        self._exact: dict[str, list[JsonObject]] = {}
        self._loose: dict[str, dict[int, list[JsonObject]]] = {}
        for record in records:
            settings = record["settings"]
            self._exact.setdefault(digest(settings), []).append(record)
            epochs = _epochs(settings)
            if epochs is not None:
                self._loose.setdefault(_without_epochs(settings), {}).setdefault(epochs, []).append(record)

    def find(self, cell: Cell, asked: int) -> Measured:
        """What is known of a cell: its own records, else those of the epochs that have most splits."""
        own = self._exact.get(digest(cell.settings), [])
        if own:
            return _measured(cell, asked, own, None)
        others = [
            _measured(cell, asked, records, epochs)
            for epochs, records in self._loose.get(_without_epochs(cell.settings), {}).items()
        ]
        return max(
            others,
            key=lambda found: (len(found.values), found.epochs),
            default=Measured(cell=cell, asked=asked, values={}, metrics={}),
        )


def gather(experiment: Experiment, index: RecordIndex) -> Grid:
    """The experiment with the scores that the records hold."""
    lent = _lent_rows(experiment)
    bare = msgspec.structs.replace(
        experiment,
        change=[],
        column=[msgspec.structs.replace(column, options={}, train={}) for column in experiment.column],
    )
    cells: dict[tuple[str, str], Measured] = {}
    for source, rows in ((bare, lent), (experiment, experiment.row)):
        for row in rows:
            for column in source.column:
                cell = find_cell(source, row, column)
                if cell is not None:
                    asked = min(experiment.splits, KINDS[experiment.kind].most_splits(cell.settings))
                    cells[row.label, column.label] = index.find(cell, asked)
    lines = [
        Line(label=row.label, kind=_line_kind(row.model, experiment.kind))
        for row in (*lent, *experiment.row)
        if any((row.label, column.label) in cells for column in experiment.column)
    ]
    if experiment.kind == "diffusion":
        cells |= _standing_still(experiment, cells)
        lines.append(Line(label=STANDING_STILL, kind="floor"))
    lines.sort(key=lambda line: _ORDER.index(line.kind))
    return Grid(experiment=experiment, lines=lines, cells=cells)


def _line_kind(model: str, kind: str) -> LineKind:
    if model in CEILINGS:
        return "ceiling"
    return "floor" if model in FLOORS or (model == "mlp" and kind == "accuracy") else "network"


def _lent_rows(experiment: Experiment) -> list[Row]:
    if experiment.kind != "accuracy":
        return []
    taken = {row.model for row in experiment.row} | {row.label for row in experiment.row}
    return [row for row in _LENT if not {row.model, row.label} & taken]


def _standing_still(
    experiment: Experiment, cells: Mapping[tuple[str, str], Measured]
) -> dict[tuple[str, str], Measured]:
    """The error of saying that nothing changes, which the records of a column hold."""
    found = {}
    for column in experiment.column:
        values: dict[int, float] = {}
        for (_, label), known in cells.items():
            values |= known.by_split("mean_absolute_change") if label == column.label else {}
        cell = Cell(experiment.name, STANDING_STILL, column.label, {}, "the mean absolute change of the test pairs")
        found[STANDING_STILL, column.label] = Measured(cell=cell, asked=experiment.splits, values=values, metrics={})
    return found


def _measured(cell: Cell, asked: int, records: Sequence[JsonObject], epochs: int | None) -> Measured:
    values: dict[int, float] = {}
    metrics: dict[int, JsonObject] = {}
    failures = []
    for record in records:
        found, split = record.get("metrics"), int(record["split"])
        if found is None:
            failures.append(str(record.get("failed", "the record has no numbers")))
        elif found.get("value") is None:
            failures.append("the score is not a number")
        else:
            values[split], metrics[split] = float(found["value"]), found
    reasons = tuple(dict.fromkeys(failures))
    return Measured(cell=cell, asked=asked, values=values, metrics=metrics, failures=reasons, epochs=epochs)


def _epochs(settings: JsonObject) -> int | None:
    epochs = settings.get("train", {}).get("epochs")
    return None if epochs is None else int(epochs)


def _without_epochs(settings: JsonObject) -> str:
    train = {key: value for key, value in settings.get("train", {}).items() if key != "epochs"}
    return digest({**settings, "train": train})
