"""An experiment as a report shows it: its grid, what the grid says, the paper's numbers, and each cell in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from edhnn.experiments.findings import Findings, analyse
from edhnn.experiments.gathered import Grid, Measured
from edhnn.experiments.published import Number, Published, read_published
from edhnn.experiments.report.numbers import milliseconds, signed, with_spread
from edhnn.experiments.spec import KindName

MARKS = {"better": "▼", "worse": "▲", "not distinguishable": "≈", "not enough splits": ""}
"""What a row's mark is where the reference came out so against it."""

_FAR = 2.0
_UNSTEADY = 0.25


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An experiment for a report.

    Attributes:
        grid: The experiment with its scores.
        findings: What they say.
        published: The paper's numbers.
        footnotes: What is special about some cells, by what it is; a number, or 0 where it is so of all cells.
    """

    grid: Grid
    findings: Findings
    published: Published
    footnotes: Mapping[str, int]

    @property
    def kind(self) -> KindName:
        """What the cells are."""
        return self.grid.experiment.kind

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.grid.experiment.name

    @property
    def heading(self) -> str:
        """The paper's name for it and its title."""
        paper = self.grid.experiment.paper
        return self.grid.experiment.title if paper == "none" else f"{paper}: {self.grid.experiment.title}"

    def printed(self, row: str, column: str) -> Number | None:
        """The paper's number."""
        return self.published.numbers.get((row, column))

    def difference(self, row: str, column: str) -> float | None:
        """Ours minus the paper's, where both are in the same unit."""
        ours, printed = self.findings.summaries.get((row, column)), self.printed(row, column)
        if ours is None or printed is None or self.published.unit:
            return None
        return ours.mean - printed.mean

    def is_far(self, row: str, column: str) -> bool | None:
        """Whether ours is farther from the paper's than twice the two standard deviations together, or rounding.

        ``None`` where that cannot be said: there is no difference, or ours is of one split.
        """
        difference, printed = self.difference(row, column), self.printed(row, column)
        if difference is None or printed is None:
            return None
        if self.kind == "statistics":
            return abs(difference) > printed.rounding
        ours = self.findings.summaries[row, column].std
        return None if ours is None else abs(difference) > _FAR * math.hypot(ours, printed.std or 0.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellText:
    """A cell in words.

    Attributes:
        ours: Our number, or why there is none.
        paper: The paper's, or nothing.
        difference: Ours minus the paper's, or nothing.
        mark: How it compares with the reference row.
        best: Whether it is the best of its column.
        far: Whether it is far from the paper's.
        footnotes: Numbers of footnotes.
        value: Our number, to sort by.
    """

    ours: str
    paper: str = ""
    difference: str = ""
    mark: str = ""
    best: bool = False
    far: bool = False
    footnotes: Sequence[int] = ()
    value: float | None = None


def make_view(grid: Grid) -> View:
    """Everything a report shows of an experiment."""
    return View(
        grid=grid,
        findings=analyse(grid),
        published=read_published(grid.experiment.published),
        footnotes=_number_footnotes(grid),
    )


def cell_text(view: View, row: str, column: str) -> CellText:
    """A cell in words; a cell that does not exist is a dash."""
    cell, kind, printed = view.grid.cells.get((row, column)), view.kind, view.printed(row, column)
    paper = "" if printed is None else _as_printed(printed, kind)
    if cell is None:
        return CellText(ours="–", paper=paper)
    if cell.state != "measured":
        return CellText(ours=cell.state, paper=paper)
    summary, difference = view.findings.summaries[row, column], view.difference(row, column)
    contrast = view.findings.contrasts.get((row, column))
    ours = with_spread(summary.mean, summary.std, kind)
    inference = cell.mean_of("inference")
    if inference is not None:
        ours = f"{milliseconds(summary.mean)} / {milliseconds(inference)} ms"
    return CellText(
        ours=ours,
        paper=paper,
        difference="" if difference is None else signed(difference, kind),
        mark="" if contrast is None else MARKS[contrast.outcome],
        best=row in view.findings.best.get(column, ()),
        far=view.is_far(row, column) is True,
        footnotes=[view.footnotes[text] for text in remarks(cell) if view.footnotes[text]],
        value=summary.mean,
    )


def _as_printed(number: Number, kind: KindName) -> str:
    if kind == "statistics":
        return f"{number.mean:,.0f}" if number.mean.is_integer() else f"{number.mean:,.{number.digits}f}"
    if number.inference is None:
        return with_spread(number.mean, number.std, kind)
    return f"{number.mean:.2f} ± {number.std:.2f} / {number.inference:.2f} ± {number.inference_std:.2f}"


def remarks(cell: Measured) -> list[str]:
    """What is special about a cell that has a number."""
    found = []
    if cell.epochs is not None:
        found.append(f"{cell.epochs} epochs in place of {cell.cell.settings['train']['epochs']}")
    if len(cell.values) < cell.asked:
        found.append(f"{len(cell.values)} of {cell.asked} splits")
    if cell.cell.changed:
        found.append(cell.cell.changed)
    found += _unsteady(cell)
    return found + [f"some splits failed: {reason}" for reason in cell.failures]


def _unsteady(cell: Measured) -> list[str]:
    """What shows that other work disturbed a timing."""
    step, inference = float(cell.scores.mean()), cell.mean_of("inference")
    if inference is None:
        return []
    found = [
        f"unsteady: the {what} differ by more than {_UNSTEADY:.0%} of their median (standard deviation)"
        for what, name, middle in (("steps", "spread", step), ("inferences", "inference_spread", inference))
        if (cell.mean_of(name) or 0.0) > _UNSTEADY * middle
    ]
    return found + (["disturbed: an inference took longer than a training step"] if inference > step else [])


def _number_footnotes(grid: Grid) -> dict[str, int]:
    """Numbers for remarks, in the order of the rows; 0 for one that is true of all cells with a number."""
    measured = [cell for line in grid.lines for column in grid.columns if (cell := grid.measured(line.label, column))]
    found: dict[str, int] = {}
    for cell in measured:
        for text in remarks(cell):
            if text not in found:
                everywhere = len(measured) > 1 and all(text in remarks(other) for other in measured)
                found[text] = 0 if everywhere else 1 + max(found.values(), default=0)
    return found
