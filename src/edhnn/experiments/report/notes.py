"""The sentences of a report: notes under a table, the method of all tables, and the machines they were made on.

Notes say how to read a table, which cells are special or missing, and where its numbers differ from the paper's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from edhnn.experiments.analysis.findings import least_gains
from edhnn.experiments.analysis.grid import Measured
from edhnn.experiments.analysis.significance import LEVEL, compete
from edhnn.experiments.records import seconds_of
from edhnn.experiments.report.view import View, in_hours, signed
from edhnn.typing import JsonObject


def notes_of(view: View) -> list[str]:
    """Write all notes of an experiment, those on how to read it first."""
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
        notes.append(f"The paper's numbers are in other units ({view.published.unit}), so no difference is shown.")
    findings = view.findings
    if findings.tested:
        notes.append(
            f"Against {findings.reference}: ▼ worse, ▲ better, ≈ not distinguishable (corrected resampled t-test over "
            f"shared splits, Holm over the {_count(findings.tested, 'comparison')} of this table, level {LEVEL})."
            f" Win, tie and loss are {findings.reference}'s, in columns."
        )
        least = least_gains((column, contrast) for (_, column), contrast in findings.contrasts.items())
        notes.append(
            "What that test can see: with the splits there are, a difference becomes distinguishable at about "
            + ", ".join(f"{least[column]:.2g} ({column})" for column in view.grid.columns if column in least)
            + ", the median of a column. A smaller one is neither shown nor excluded."
        )
    if findings.best:
        notes.append(f"Bold: the best of a column{_over(one.shared for one in findings.contests.values())}.")
    outside = [(column, row) for column, one in findings.contests.items() for row in one.left_out]
    if outside:
        notes.append(f"Too few splits or other epochs, so neither bold nor ranked: {_listed(outside)}.")
    if findings.ranks:
        unranked = [line.label for line in view.grid.lines if line.label not in findings.ranks]
        notes.append(
            f"Mean ranks are over {_count(len(findings.ranked_over), 'column')} ({'; '.join(findings.ranked_over)}) "
            f"and the {len(findings.ranks)} rows that compete in them all{_over(findings.ranked_over.values())}."
            + (f" Not ranked: {', '.join(unranked)}." if unranked else "")
        )
    return notes


def _over(shared: Iterable[int]) -> str:
    """Write over how many splits rows compete."""
    counts = sorted(set(shared))
    if len(counts) == 1:
        return ", by the one split that rows share" if counts == [1] else f", by the {counts[0]} splits that rows share"
    return f", by the splits that rows share: {counts[0]} to {counts[-1]} in a column"


def _listed(places: Iterable[tuple[str, str]]) -> str:
    """List by column: ``Cora: MLP, HGNN; House: HGNN``."""
    by_column: dict[str, list[str]] = {}
    for column, text in places:
        by_column.setdefault(column, []).append(text)
    return "; ".join(f"{column}: {', '.join(texts)}" for column, texts in by_column.items())


def _special(view: View) -> list[str]:
    everywhere = [text for text, number in view.footnotes.items() if number == 0]
    numbered = [f"[{number}] {_upper(text)}." for text, number in view.footnotes.items() if number]
    return [*(f"In all cells: {text}." for text in everywhere), *numbered]


def _left_out(view: View) -> list[str]:
    """List the cells that the experiment does not have, and why."""
    return [
        f"Left out: {'; '.join(change.rows) or 'all'} ({', '.join(change.columns) or 'everywhere'}): {change.why}."
        for change in view.grid.experiment.change
        if change.skip
    ]


def _missing(view: View) -> list[str]:
    """Name the cells without a number; a row without any is named once."""
    notes = []
    absent = _where(view, lambda cell: cell.state == "not run")
    if absent:
        notes.append(f"Not run: {absent}.")
    for (row, column), cell in view.grid.cells.items():
        if cell.state == "failed":
            notes.append(f"Failed: {row}, {column}: {'; '.join(cell.failures)}")
    return notes


def _differences(view: View) -> list[str]:
    """Name the cells where our number differs from the paper's."""
    grid, numbers = view.grid, view.published.numbers
    rows = [line.label for line in grid.lines if any((line.label, column) in numbers for column in grid.columns)]
    measured = [(row, column) for row in rows for column in grid.columns if view.difference(row, column) is not None]
    if not measured:
        return []
    bound = "rounding" if view.grid.kind.exact else "twice the two standard deviations together"
    judged = {place: far for place in measured if (far := view.is_far(*place)) is not None}
    apart = [(column, row) for (row, column), far in judged.items() if far]
    notes = []
    if judged:
        notes.append(
            f"Ours differs from the paper's by more than {bound} in {len(apart)} of {_count(len(judged), 'cell')}"
            + (f": {_by_column(view, apart)}." if apart else ".")
        )
    single = [(column, row) for row, column in measured if (row, column) not in judged]
    if single:
        notes.append(f"Of one split, so not judged, only subtracted from: {_by_column(view, single)}.")
    if view.grid.higher_is_better:
        notes += _best_rows(view, rows)
    return notes


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
    return [
        f"The best of the rows that both have{_over(shared)}, is {what} in: {', '.join(columns)}."
        for what, columns in (("the same", same), ("another", other))
        if columns
    ]


def _where(view: View, chosen: Callable[[Measured], bool]) -> str:
    rows = []
    for line in view.grid.lines:
        cells = {column: view.grid.cells.get((line.label, column)) for column in view.grid.columns}
        there = [column for column, cell in cells.items() if cell is not None]
        hit = [column for column, cell in cells.items() if cell is not None and chosen(cell)]
        if hit:
            rows.append(f"{line.label} ({'all' if hit == there else ', '.join(hit)})")
    return "; ".join(rows)


def _by_column(view: View, places: Iterable[tuple[str, str]]) -> str:
    """List as `_listed` does, each row with its difference."""
    differences = ((column, row, view.difference(row, column)) for column, row in places)
    return _listed((column, f"{row} ({signed(gap, view.kind)})") for column, row, gap in differences if gap is not None)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


METHOD = (
    "Splits are frozen: 50 % of the nodes for training, 25 % for validation, 25 % for test, drawn anew for each "
    "split and stored with a hash, so that every model meets the same ones.",
    "A model is trained on the training nodes; the first epoch of the best validation accuracy is chosen; the "
    "test nodes are read once, for that epoch. Learned diffusion steps use 80, 10 and 10 % of the pairs and the "
    "same rule.",
    "Sizes of ED-HNN are those of the paper's Table 6; every cell names where its sizes come from, and what the "
    "experiment changed, with the reason.",
    "Floors know nothing of the hypergraph: logistic regression with an L1 penalty (its strength by validation), "
    "the true class means where features were drawn from the labels, and a perceptron (MLP). For learned "
    "diffusion the floor is the error of saying that nothing changes. A network below a floor does no better than "
    "the features alone allow, whatever it made of the hypergraph. A ceiling knows how the data were made; it is "
    "neither ranked nor compared.",
    "± is the sample standard deviation over splits. Intervals are 95 % percentile bootstrap intervals of the "
    "mean from 10,000 resamples of the splits; with few splits they are too narrow.",
    "Tests are corrected resampled t-tests (Nadeau and Bengio, 2003) on the differences over shared splits: the "
    "splits overlap, and a test that takes them for independent finds too much. p values are corrected by Holm's "
    "method over all comparisons of a table, or of a claim. A tie is a difference that is not distinguishable "
    "from none at level 0.05; with three splits that is nearly everything, whatever the means look like. So each "
    "table says at which difference its test would have spoken: the level over the number of comparisons, as for the "
    "strongest of them, with the spread that was found.",
    "Ranks are of the means in each column, equals sharing; they are averaged over the columns named. Bold and "
    "ranks go by the splits that the rows of a column share; a row with fewer than half as many splits as the "
    "median row, or trained for other epochs than most, is shown and does not compete.",
    "Times are medians of repeated training steps on all cores of the machine below.",
)


def totals(records: Sequence[JsonObject]) -> str:
    """Write how many records there are, and how long they took."""
    failed = sum("failed" in record for record in records)
    seconds = sum(seconds_of(record) for record in records)
    failures = f", of which {failed} could not be done" if failed else ""
    return f"{len(records):,} records{failures}, {in_hours(seconds)} of computing."


def environments(records: Sequence[JsonObject]) -> tuple[list[str], list[list[str]]]:
    """Tabulate every machine and set of versions, and how many records it made: headings and rows."""
    counts = Counter(tuple(sorted(record.get("machine", {}).items())) for record in records)
    names = list(dict.fromkeys(name for machine in counts for name, _ in machine))
    rows = [
        [str(count), *(str(dict(machine).get(name, "–")) for name in names)] for machine, count in counts.most_common()
    ]
    return ["records", *(name.replace("_", " ") for name in names)], rows
