"""What stands under a table, in sentences: how to read it, what is special, what is missing, how it meets the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from edhnn.experiments.comparison import LEVEL
from edhnn.experiments.contest import compete
from edhnn.experiments.findings import least_gains
from edhnn.experiments.gathered import Measured
from edhnn.experiments.report.numbers import signed
from edhnn.experiments.report.view import View

_WHAT: Mapping[str, str] = {
    "accuracy": "Test accuracy in per cent; mean ± sample standard deviation over splits.",
    "diffusion": "Mean absolute error on test pairs, lower is better; mean ± sample standard deviation over seeds.",
    "timing": "Milliseconds of a training step / of an inference: medians of repeated calls.",
}


def notes_of(view: View, *, ranked: bool = True) -> list[str]:
    """All notes of an experiment, the reader's first.

    Args:
        view: The experiment.
        ranked: Whether the table has columns of ranks and of wins, ties and losses.
    """
    return [
        *_reading(view, ranked),
        *view.grid.experiment.notes,
        *_special(view),
        *_left_out(view),
        *_missing(view),
        *_meeting(view),
    ]


def _reading(view: View, ranked: bool) -> list[str]:
    found = [_WHAT[view.kind]] if view.kind in _WHAT else []
    if view.published.numbers and view.published.unit:
        found.append(f"The paper's numbers are in other units ({view.published.unit}), so no difference is shown.")
    findings = view.findings
    if findings.tested:
        found.append(
            f"Against {findings.reference}: ▼ worse, ▲ better, ≈ not distinguishable (corrected resampled t-test over "
            f"shared splits, Holm over the {_count(findings.tested, 'comparison')} of this table, level {LEVEL})."
            + (f" Win, tie and loss are {findings.reference}'s, in columns." if ranked else "")
        )
        least = least_gains((column, contrast) for (_, column), contrast in findings.contrasts.items())
        found.append(
            "What that test can see: with the splits there are, a difference becomes distinguishable at about "
            + ", ".join(f"{least[column]:.2g} ({column})" for column in view.grid.columns if column in least)
            + ", the median of a column. A smaller one is neither shown nor excluded."
        )
    if findings.best:
        found.append(f"Bold: the best of a column{_over(one.shared for one in findings.contests.values())}.")
    outside = [(column, row) for column, one in findings.contests.items() for row in one.left_out]
    if outside:
        found.append(f"Too few splits or other epochs, so neither bold nor ranked: {_listed(outside)}.")
    if findings.ranks and ranked:
        unranked = [line.label for line in view.grid.lines if line.label not in findings.ranks]
        found.append(
            f"Mean ranks are over {_count(len(findings.ranked_over), 'column')} ({'; '.join(findings.ranked_over)}) "
            f"and the {len(findings.ranks)} rows that compete in them all{_over(findings.ranked_over.values())}."
            + (f" Not ranked: {', '.join(unranked)}." if unranked else "")
        )
    return found


def _over(shared: Iterable[int]) -> str:
    """Over how many splits rows compete."""
    counts = sorted(set(shared))
    if len(counts) == 1:
        return ", by the one split that rows share" if counts == [1] else f", by the {counts[0]} splits that rows share"
    return f", by the splits that rows share: {counts[0]} to {counts[-1]} in a column"


def _listed(places: Iterable[tuple[str, str]]) -> str:
    """``Cora: MLP, HGNN; House: HGNN``."""
    by_column: dict[str, list[str]] = {}
    for column, text in places:
        by_column.setdefault(column, []).append(text)
    return "; ".join(f"{column}: {', '.join(texts)}" for column, texts in by_column.items())


def _special(view: View) -> list[str]:
    everywhere = [text for text, number in view.footnotes.items() if number == 0]
    numbered = [f"[{number}] {_upper(text)}." for text, number in view.footnotes.items() if number]
    return [*(f"In all cells: {text}." for text in everywhere), *numbered]


def _left_out(view: View) -> list[str]:
    """Cells that the experiment does not have, and why."""
    return [
        f"Left out: {'; '.join(change.rows) or 'all'} ({', '.join(change.columns) or 'everywhere'}): {change.why}."
        for change in view.grid.experiment.change
        if change.skip
    ]


def _missing(view: View) -> list[str]:
    """Cells without a number, each named; a row without any is named once."""
    found = []
    absent = _where(view, lambda cell: cell.state == "not run")
    if absent:
        found.append(f"Not run: {absent}.")
    for (row, column), cell in view.grid.cells.items():
        if cell.state == "failed":
            found.append(f"Failed: {row}, {column}: {'; '.join(cell.failures)}")
    return found


def _meeting(view: View) -> list[str]:
    """Where ours and the paper's part."""
    grid, numbers = view.grid, view.published.numbers
    rows = [line.label for line in grid.lines if any((line.label, column) in numbers for column in grid.columns)]
    measured = [(row, column) for row in rows for column in grid.columns if view.difference(row, column) is not None]
    if not measured:
        return []
    bound = "rounding" if view.kind == "statistics" else "twice the two standard deviations together"
    judged = {place: far for place in measured if (far := view.is_far(*place)) is not None}
    apart = [(column, row) for (row, column), far in judged.items() if far]
    found = []
    if judged:
        found.append(
            f"Ours differs from the paper's by more than {bound} in {len(apart)} of {_count(len(judged), 'cell')}"
            + (f": {_by_column(view, apart)}." if apart else ".")
        )
    single = [(column, row) for row, column in measured if (row, column) not in judged]
    if single:
        found.append(f"Of one split, so not judged, only subtracted from: {_by_column(view, single)}.")
    if view.kind == "accuracy":
        found += _best_rows(view, rows)
    return found


def _best_rows(view: View, rows: list[str]) -> list[str]:
    same, other, shared = [], [], []
    for column in view.grid.columns:
        contest = compete(view.grid, column, [row for row in rows if view.difference(row, column) is not None])
        if len(contest.means) < 2:
            continue
        shared.append(contest.shared)
        printed = {row: view.published.numbers[row, column].mean for row in contest.means}
        theirs = [row for row, mean in printed.items() if mean == max(printed.values())]
        ours = contest.best(higher_is_better=True)
        if ours == theirs:
            same.append(f"{column} ({', '.join(ours)})")
        else:
            other.append(f"{column} (paper {', '.join(theirs)}; here {', '.join(ours)})")
    said = (("the same", same), ("another", other))
    return [
        f"The best of the rows that both have{_over(shared)}, is {what} in: {', '.join(columns)}."
        for what, columns in said
        if columns
    ]


def _where(view: View, chosen: Callable[[Measured], bool]) -> str:
    said = []
    for line in view.grid.lines:
        cells = {column: view.grid.cells.get((line.label, column)) for column in view.grid.columns}
        there = [column for column, cell in cells.items() if cell is not None]
        hit = [column for column, cell in cells.items() if cell is not None and chosen(cell)]
        if hit:
            said.append(f"{line.label} ({'all' if hit == there else ', '.join(hit)})")
    return "; ".join(said)


def _by_column(view: View, places: Iterable[tuple[str, str]]) -> str:
    """As `_listed`, each row with its difference."""
    differences = ((column, row, view.difference(row, column)) for column, row in places)
    return _listed((column, f"{row} ({signed(gap, view.kind)})") for column, row, gap in differences if gap is not None)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
