"""An experiment in a report: its grid and findings, the paper's numbers, and every cell as text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from edhnn.experiments.analysis.findings import Findings, analyse
from edhnn.experiments.analysis.grid import Grid, Measured
from edhnn.experiments.kinds import KINDS
from edhnn.experiments.spec import Number, Published, read_published


def format_value(value: float, kind: str) -> str:
    """Format a number of a kind, with a typographic minus.

    Examples:
        >>> format_value(80.314, "accuracy"), format_value(2708.0, "statistics"), format_value(0.03214, "timing")
        ('80.31', '2,708', '0.0321')
    """
    return KINDS[kind].format(value).replace("-", "−")


def format_mean(mean: float, std: float | None, kind: str) -> str:
    """Format a mean and, if there is one, its standard deviation."""
    text = format_value(mean, kind)
    return text if std is None else f"{text} ± {format_value(std, kind)}"


def format_milliseconds(seconds: float) -> str:
    """Format a time in milliseconds with about three digits.

    Examples:
        >>> format_milliseconds(0.00545), format_milliseconds(0.0528), format_milliseconds(1.1576)
        ('5.45', '52.8', '1,158')
    """
    value = 1e3 * seconds
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def format_difference(value: float, kind: str) -> str:
    """Format a difference with its sign.

    Examples:
        >>> format_difference(-0.4, "accuracy"), format_difference(0.001, "accuracy")
        ('−0.40', '0.00')
    """
    text = format_value(abs(value), kind)
    if not any(digit in text for digit in "123456789"):
        return text
    return f"{'+' if value > 0 else '−'}{text}"


def format_p(value: float) -> str:
    """Format a p value."""
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def format_duration(seconds: float) -> str:
    """Format a time in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"


MARKS = {"better": "▼", "worse": "▲", "not distinguishable": "≈", "not enough splits": ""}
"""The mark of a row by the result of the reference row's comparison with it."""
_FAR = 2.0
_UNSTEADY = 0.25


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An experiment in a report.

    Attributes:
        grid: The experiment with its scores.
        findings: The findings of the grid.
        published: The paper's numbers.
        footnotes: Numbers of the remarks on cells; 0 for a remark that applies to all cells.
    """

    grid: Grid
    findings: Findings
    published: Published
    footnotes: Mapping[str, int]

    @property
    def kind(self) -> str:
        """The name of the kind of the cells."""
        return self.grid.experiment.kind

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.grid.experiment.name

    @property
    def heading(self) -> str:
        """The name in the paper and the title."""
        paper = self.grid.experiment.paper
        return self.grid.experiment.title if paper == "none" else f"{paper}: {self.grid.experiment.title}"

    def printed(self, row: str, column: str) -> Number | None:
        """Return the paper's number; ``None`` if the paper prints none."""
        return self.published.numbers.get((row, column))

    def difference(self, row: str, column: str) -> float | None:
        """Return our number minus the paper's; ``None`` if one is missing or the units differ."""
        ours, printed = self.findings.summaries.get((row, column)), self.printed(row, column)
        if ours is None or printed is None or self.published.unit:
            return None
        return ours.mean - printed.mean

    def is_far(self, row: str, column: str) -> bool | None:
        """Return whether our number differs from the paper's by more than twice the combined standard deviation.

        An exact number must not differ by more than the rounding error. Returns ``None`` if there is no difference, or
        if ours has no standard deviation.
        """
        difference, printed = self.difference(row, column), self.printed(row, column)
        if difference is None or printed is None:
            return None
        if self.grid.kind.exact:
            return abs(difference) > printed.rounding
        ours = self.findings.summaries[row, column].std
        return None if ours is None else abs(difference) > _FAR * math.hypot(ours, printed.std or 0.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellText:
    """The texts of a cell.

    Attributes:
        ours: Our number, or the state of a cell without one.
        paper: The paper's number, or empty.
        difference: Ours minus the paper's, or empty.
        mark: The mark of the comparison with the reference row.
        best: Whether the number is the best of its column.
        far: Whether the number is far from the paper's.
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

    @property
    def classes(self) -> str:
        """The CSS classes of the cell."""
        return " ".join(name for name, on in (("best", self.best), ("none", self.value is None)) if on)


def make_view(grid: Grid) -> View:
    """Analyse a grid and collect the paper's numbers and the footnotes."""
    return View(
        grid=grid,
        findings=analyse(grid),
        published=read_published(grid.experiment.published),
        footnotes=_number_footnotes(grid),
    )


def cell_text(view: View, row: str, column: str) -> CellText:
    """Return the texts of a cell; a dash if the cell does not exist."""
    cell, kind, printed = view.grid.cells.get((row, column)), view.kind, view.printed(row, column)
    paper = "" if printed is None else _as_printed(printed, kind)
    if cell is None:
        return CellText(ours="–", paper=paper)
    if cell.state != "measured":
        return CellText(ours=cell.state, paper=paper)
    summary, difference = view.findings.summaries[row, column], view.difference(row, column)
    contrast = view.findings.contrasts.get((row, column))
    ours = format_mean(summary.mean, summary.std, kind)
    inference = cell.mean_of("inference")
    if inference is not None:
        ours = f"{format_milliseconds(summary.mean)} / {format_milliseconds(inference)} ms"
    return CellText(
        ours=ours,
        paper=paper,
        difference="" if difference is None else format_difference(difference, kind),
        mark="" if contrast is None else MARKS[contrast.result],
        best=row in view.findings.best.get(column, ()),
        far=view.is_far(row, column) is True,
        footnotes=[view.footnotes[text] for text in remarks(cell) if view.footnotes[text]],
        value=summary.mean,
    )


def _as_printed(number: Number, kind: str) -> str:
    if KINDS[kind].exact:
        return f"{number.mean:,.0f}" if number.mean.is_integer() else f"{number.mean:,.{number.digits}f}"
    if number.inference is None:
        return format_mean(number.mean, number.std, kind)
    return f"{number.mean:.2f} ± {number.std:.2f} / {number.inference:.2f} ± {number.inference_std:.2f}"


def remarks(cell: Measured) -> list[str]:
    """List the remarks on a cell that has a score."""
    texts = []
    if cell.epochs is not None:
        texts.append(f"{cell.epochs} epochs instead of {cell.cell.settings['train']['epochs']}")
    if len(cell.values) < cell.requested:
        texts.append(f"{len(cell.values)} of {cell.requested} splits")
    if cell.cell.changed:
        texts.append(cell.cell.changed)
    texts += _unsteady(cell)
    return texts + [f"some splits failed: {reason}" for reason in cell.failures]


def _unsteady(cell: Measured) -> list[str]:
    """List the indications that other processes disturbed a timing."""
    step, inference = float(cell.scores.mean()), cell.mean_of("inference")
    if inference is None:
        return []
    signs = [
        f"unsteady: the {what} differ by more than {_UNSTEADY:.0%} of their median (standard deviation)"
        for what, name, middle in (("steps", "spread", step), ("inferences", "inference_spread", inference))
        if (cell.mean_of(name) or 0.0) > _UNSTEADY * middle
    ]
    return signs + (["disturbed: an inference took longer than a training step"] if inference > step else [])


def _number_footnotes(grid: Grid) -> dict[str, int]:
    """Assign numbers to the remarks in the order of the rows; 0 if a remark applies to all cells with a score."""
    measured = [cell for line in grid.lines for column in grid.columns if (cell := grid.measured(line.label, column))]
    counts = Counter(text for cell in measured for text in remarks(cell))
    numbers: dict[str, int] = {}
    for text, count in counts.items():
        everywhere = count == len(measured) > 1
        numbers[text] = 0 if everywhere else 1 + max(numbers.values(), default=0)
    return numbers
