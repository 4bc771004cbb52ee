"""The sentences of a report: the notes under a table, the method, and the machines.

Notes explain how to read a table, which cells are special or missing, and where numbers differ from the paper's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from edhnn.experiments.analysis.findings import least_gains, list_by_column
from edhnn.experiments.analysis.significance import LEVEL, shared_means
from edhnn.experiments.records import seconds_of
from edhnn.experiments.report.view import View, format_difference, format_duration
from edhnn.typing import JsonObject


def notes_of(view: View) -> list[str]:
    """Return all notes on an experiment; those on how to read the table come first."""
    return [
        *_reading(view),
        *view.grid.experiment.notes,
        *_special(view),
        *_left_out(view),
        *_missing(view),
        *_differences(view),
    ]


def _reading(view: View) -> list[str]:
    notes = [view.grid.kind.note] if view.grid.kind.note else []
    if view.published.numbers and view.published.unit:
        notes.append(f"The paper's numbers have other units ({view.published.unit}), so no difference is shown.")
    findings = view.findings
    if findings.tested:
        notes.append(
            f"Compared with {findings.reference}: ▼ worse, ▲ better, ≈ not distinguishable (corrected resampled t-test "
            f"over shared splits, Holm over the {_count(findings.tested, 'comparison')} of this table, level {LEVEL}). "
            f"Wins, ties and losses are those of {findings.reference}, counted in columns."
        )
        least = least_gains((column, contrast) for (_, column), contrast in findings.contrasts.items())
        notes.append(
            "With these splits the test detects differences above about "
            + ", ".join(f"{least[column]:.2g} ({column})" for column in view.grid.columns if column in least)
            + ", the median of a column. A smaller difference is neither shown nor excluded."
        )
    if findings.best:
        notes.append(f"Bold: the best of a column{_over(one.shared for one in findings.shared_means.values())}.")
    excluded = [(column, row) for column, one in findings.shared_means.items() for row in one.excluded]
    if excluded:
        notes.append(f"Too few splits or other epochs, so neither bold nor ranked: {list_by_column(excluded)}.")
    if findings.ranks:
        unranked = [line.label for line in view.grid.lines if line.label not in findings.ranks]
        notes.append(
            f"Mean ranks are over {_count(len(findings.ranked_over), 'column')} ({'; '.join(findings.ranked_over)}) "
            f"and the {len(findings.ranks)} rows that are compared in all{_over(findings.ranked_over.values())}."
            + (f" Not ranked: {', '.join(unranked)}." if unranked else "")
        )
    return notes


def _over(shared: Iterable[int]) -> str:
    """Describe over how many splits rows are compared."""
    counts = sorted(set(shared))
    if len(counts) == 1:
        return (
            ", over the one split that rows share"
            if counts == [1]
            else f", over the {counts[0]} splits that rows share"
        )
    return f", over the splits that rows share ({counts[0]} to {counts[-1]} in a column)"


def _special(view: View) -> list[str]:
    everywhere = [f"In all cells: {text}." for text, number in view.footnotes.items() if number == 0]
    numbered = [f"[{number}] {text[0].upper()}{text[1:]}." for text, number in view.footnotes.items() if number]
    return everywhere + numbered


def _left_out(view: View) -> list[str]:
    """List the cells that the experiment skips, and why."""
    return [
        f"Skipped: {'; '.join(change.rows) or 'all'} ({', '.join(change.columns) or 'everywhere'}): {change.why}."
        for change in view.grid.experiment.change
        if change.skip
    ]


def _missing(view: View) -> list[str]:
    """List the cells without a score, by row."""
    absent = []
    for line in view.grid.lines:
        cells = {column: view.grid.cells.get((line.label, column)) for column in view.grid.columns}
        existing = {column: cell.state for column, cell in cells.items() if cell is not None}
        not_run = [column for column, state in existing.items() if state == "not run"]
        if not_run:
            absent.append(f"{line.label} ({'all' if len(not_run) == len(existing) else ', '.join(not_run)})")
    failed = [
        f"Failed: {row}, {column}: {'; '.join(cell.failures)}"
        for (row, column), cell in view.grid.cells.items()
        if cell.state == "failed"
    ]
    return [f"Not run: {'; '.join(absent)}.", *failed] if absent else failed


def _differences(view: View) -> list[str]:
    """List the cells where our number differs from the paper's, and compare the best rows."""
    grid, numbers = view.grid, view.published.numbers
    rows = [line.label for line in grid.lines if any((line.label, column) in numbers for column in grid.columns)]
    measured = [(row, column) for row in rows for column in grid.columns if view.difference(row, column) is not None]
    if not measured:
        return []
    bound = "rounding" if view.grid.kind.exact else "twice the combined standard deviation"
    judged = {labels: far for labels in measured if (far := view.is_far(*labels)) is not None}
    apart = [(column, row) for (row, column), far in judged.items() if far]
    notes = []
    if judged:
        notes.append(
            f"Our number differs from the paper's by more than {bound} in {len(apart)} of "
            + _count(len(judged), "cell")
            + (f": {_list_differences(view, apart)}." if apart else ".")
        )
    single = [(column, row) for row, column in measured if (row, column) not in judged]
    if single:
        notes.append(f"Differences of a single split, which are not tested: {_list_differences(view, single)}.")
    if view.grid.kind.higher_is_better:
        notes += _best_rows(view, rows)
    return notes


def _best_rows(view: View, rows: list[str]) -> list[str]:
    """List the columns in which our best row is the paper's, and those in which it is another."""
    same, other, shared = [], [], []
    for column in view.grid.columns:
        means = shared_means(view.grid, column, [row for row in rows if view.difference(row, column) is not None])
        if len(means.means) < 2:
            continue
        shared.append(means.shared)
        printed = {row: view.published.numbers[row, column].mean for row in means.means}
        theirs = [row for row, mean in printed.items() if mean == max(printed.values())]
        ours = means.best(higher_is_better=True)
        if ours == theirs:
            same.append(f"{column} ({', '.join(ours)})")
        else:
            other.append(f"{column} (paper {', '.join(theirs)}; here {', '.join(ours)})")
    return [
        f"Among the rows that both have, the best{_over(shared)}, is {what} the paper's in {', '.join(columns)}."
        for what, columns in (("the same as", same), ("different from", other))
        if columns
    ]


def _list_differences(view: View, cells: Iterable[tuple[str, str]]) -> str:
    """List cells, given by column and row, with their differences from the paper."""
    return list_by_column(
        (column, f"{row} ({format_difference(difference, view.kind)})")
        for column, row in cells
        if (difference := view.difference(row, column)) is not None
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


METHOD = (
    "Splits are fixed: 50 % of the nodes for training, 25 % for validation, 25 % for test, drawn at random for each "
    "split and stored with a hash, so that all models use the same splits.",
    "A model is trained on the training nodes. The first epoch with the best validation accuracy is selected, and the "
    "test nodes are evaluated once, after that epoch. Learned diffusion steps use 80, 10 and 10 % of the pairs and the "
    "same rule.",
    "The sizes of ED-HNN are those of the paper's Table 6. The table of every cell names the origin of its sizes and "
    "what the experiment changed; the notes give the reason.",
    "Floors do not use the hypergraph: logistic regression with an L1 penalty (its strength is chosen by validation), "
    "the true class means where features were drawn from the labels, and a perceptron (MLP). For learned diffusion the "
    "floor is the error of predicting no change. A network below a floor is no better than a "
    "classifier of the features alone. A ceiling uses the generator of the data; it is neither ranked nor compared.",
    "± is the sample standard deviation over splits. Intervals are 95 % percentile bootstrap intervals of the "
    "mean from 10,000 resamples of the splits; with few splits they are too narrow.",
    "Tests are corrected resampled t-tests (Nadeau and Bengio, 2003) on the differences over shared splits. The splits "
    "overlap, so a test that assumes independence finds too many differences. p values are corrected by Holm's method "
    "over all comparisons of a table, or of a claim. A tie is a difference that is not distinguishable from zero at "
    "level 0.05; with three splits nearly every difference is a tie. The notes therefore give the difference that the "
    "test detects with the observed spread, at the strictest level of Holm's correction (0.05 divided by the number of "
    "comparisons).",
    "Ranks are those of the means in each column, averaged over the named columns; equal means share their ranks. Bold "
    "and ranks are based on the splits that the rows of a column share. A row with fewer than half as many splits as "
    "the median row, or trained for other epochs than most rows, is shown but not compared.",
    "Times are medians of repeated training steps on all cores of the machine below.",
)


def totals(records: Sequence[JsonObject]) -> str:
    """Describe the number of records and their total time."""
    failed = sum("failed" in record for record in records)
    seconds = sum(seconds_of(record) for record in records)
    failures = f", of which {failed} failed" if failed else ""
    return f"{len(records):,} records{failures}, {format_duration(seconds)} of computing."


def environments(records: Sequence[JsonObject]) -> tuple[list[str], list[list[str]]]:
    """Return a table of machines and versions with their numbers of records: headings and rows."""
    counts = Counter(tuple(sorted(record.get("machine", {}).items())) for record in records)
    names = list(dict.fromkeys(name for machine in counts for name, _ in machine))
    rows = [
        [str(count), *(str(dict(machine).get(name, "–")) for name in names)] for machine, count in counts.most_common()
    ]
    return ["records", *(name.replace("_", " ") for name in names)], rows
