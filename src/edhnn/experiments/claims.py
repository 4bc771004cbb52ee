"""The paper's claims, checked against the records: each gets a verdict and says on what.

A claim of many comparisons fails by one clear counterexample; it holds only if every comparison is clear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from edhnn.experiments.comparison import Outcome
from edhnn.experiments.findings import TEST_TO_TRAIN, Contrast, contrast_family, gains
from edhnn.experiments.gathered import Grid, Measured
from edhnn.experiments.published import read_published

Verdict = Literal["holds", "does not hold", "not distinguishable", "not enough records"]
Family = dict[tuple[str, str], Mapping[int, float]]

_OURS, _FLOOR = "ED-HNN", "Features alone: L1 logistic"
_HARD = ("alpha 3", "alpha 4", "alpha 6", "alpha 7")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim and what the records say of it.

    Attributes:
        statement: The claim.
        experiment: The experiment it is about.
        verdict: Whether it holds.
        evidence: Why, in sentences.
        rests_on: How many splits the comparisons share, as a sentence; nothing without any.
    """

    statement: str
    experiment: str
    verdict: Verdict
    evidence: Sequence[str]
    rests_on: str = ""


def check_claims(grids: Mapping[str, Grid]) -> list[Claim]:
    """All claims about the experiments given, by their names."""
    found = []
    for name, check in _CHECKS:
        if name in grids:
            found.append(check(grids[name]))
    return found


def _best_of_all(grid: Grid, columns: Sequence[str], statement: str) -> Claim:
    """ED-HNN against every baseline that the paper prints, in each column."""
    printed = read_published(grid.experiment.published)
    own = {row.label for row in grid.experiment.row if row.model.startswith("ed-hnn")}
    rows = [row.label for row in grid.experiment.row if row.label in printed.rows() and row.label not in own]
    family = {(column, row): _row_gains(grid, column, _OURS, row) for column in columns for row in rows}
    return _claim(grid, statement, family, "ED-HNN is better than the baseline")


def _table3(grid: Grid) -> Claim:
    columns = [column for column in grid.columns if column in _HARD]
    return _best_of_all(grid, columns, "ED-HNN is above every baseline on the contextual SBM from alpha 3 on.")


def _table2(grid: Grid) -> Claim:
    return _best_of_all(grid, grid.columns, "ED-HNN is the best in every column.")


def _depth_helps(grid: Grid) -> Claim:
    family = {(panel, _OURS): _deepest_gains(grid, panel, _OURS) for panel in _panels(grid)}
    statement = "Depth helps ED-HNN on Senate and House: the deepest is above one layer."
    return _claim(grid, statement, family, "the deepest is better than one layer")


def _depth_does_not_help(grid: Grid) -> Claim:
    """The claim is that there is no gain; a gain that is not distinguishable agrees with it, and proves nothing."""
    rows = [row.label for row in grid.experiment.row if row.model in ("alldeepsets", "allsettransformer")]
    family = {(panel, row): _deepest_gains(grid, panel, row) for panel in _panels(grid) for row in rows}
    statement = "Depth does not help AllDeepSets and AllSetTransformer: the deepest is not above one layer."
    turned: Family = {name: {split: -gain for split, gain in found.items()} for name, found in family.items()}
    claim = _claim(grid, statement, turned, "one layer is better than the deepest")
    if claim.verdict != "not distinguishable":
        return claim
    agrees = "No gain by depth can be distinguished: that agrees with the claim and does not prove it."
    return replace(claim, evidence=[agrees, *claim.evidence])


def _told_apart(grid: Grid) -> Claim:
    family: Family = {
        (column, "Invariant"): _row_gains(grid, column, _OURS, "Invariant") for column in _in_order(grid, "TV")
    }
    statement = (
        "Total variation tells equivariant from invariant operators: ED-HNN's error is below the invariant operator's "
        "at every width."
    )
    return _claim(grid, statement, family, "ED-HNN's error is below the invariant operator's")


def _apart_by_width(grid: Grid) -> Claim:
    """One comparison: whether the ratio of the two errors at the smallest width is above that at the largest."""
    small, *_, large = _in_order(grid, "TV")
    growth = gains(_log_ratios(grid, small), _log_ratios(grid, large), higher_is_better=True)
    statement = (
        "They come apart as the width shrinks: on total variation the ratio of the invariant operator's error to "
        "ED-HNN's is larger at the smallest width than at the largest."
    )
    family: Family = {(f"from {large} to {small}", "logarithm of the ratio"): growth}
    return _claim(grid, statement, family, "the ratio grows as the width shrinks")


def _in_order(grid: Grid, panel: str) -> list[str]:
    """The columns of a plot by their place on the horizontal axis."""
    columns = [column for column in grid.experiment.column if column.panel == panel]
    return [column.label for column in sorted(columns, key=lambda one: one.x or 0)]


def _floor(grid: Grid) -> Claim:
    networks = [line.label for line in grid.lines if line.kind == "network"]
    family = {
        (column, row): _row_gains(grid, column, row, _FLOOR)
        for column in grid.columns
        for row in networks
        if (row, column) in grid.cells
    }
    statement = "Every network beats logistic regression on the features alone (our floor; the paper has none)."
    return _claim(grid, statement, family, "the network is better than the floor")


def _claim(grid: Grid, statement: str, family: Family, success: str) -> Claim:
    contrasts = contrast_family(family, TEST_TO_TRAIN[grid.experiment.kind])
    missing = [name for name in family if name not in contrasts]
    said = [contrast.outcome for contrast in contrasts.values()]
    evidence = [
        f"{success[0].upper()}{success[1:]} in {said.count('better')} of {len(family)} "
        f"comparison{'s' * (len(family) != 1)}; not distinguishable in {said.count('not distinguishable')}, "
        f"the opposite in {said.count('worse')}. "
        f"By the means alone: in {sum(contrast.gain > 0 for contrast in contrasts.values())} of {len(contrasts)}."
    ]
    evidence += _listed("The opposite", contrasts, "worse")
    evidence += _listed("Not distinguishable", contrasts, "not distinguishable")
    few = [name for name, contrast in contrasts.items() if contrast.outcome == "not enough splits"]
    if missing or few:
        evidence.append(f"Without enough records: {_left_out([*missing, *few], list(family))}.")
    shared = sorted({contrast.shared for contrast in contrasts.values()})
    rests = f"Shared splits: {' to '.join(map(str, dict.fromkeys((shared[0], shared[-1]))))}." if shared else ""
    return Claim(
        statement=statement,
        experiment=grid.experiment.name,
        verdict=decide(said, complete=not missing),
        evidence=evidence,
        rests_on=rests,
    )


def decide(outcomes: Sequence[Outcome], *, complete: bool) -> Verdict:
    """The verdict on a claim that every comparison comes out ``better``."""
    if "worse" in outcomes:
        return "does not hold"
    if not complete or not outcomes or "not enough splits" in outcomes:
        return "not enough records"
    return "not distinguishable" if "not distinguishable" in outcomes else "holds"


def _listed(what: str, contrasts: Mapping[tuple[str, str], Contrast], outcome: Outcome) -> list[str]:
    chosen = [
        (*name, f"{contrast.gain:+.3g}".replace("-", "−"))
        for name, contrast in contrasts.items()
        if contrast.outcome == outcome
    ]
    return [f"{what}: {_by_column(chosen)}."] if chosen else []


def _by_column(named: Iterable[tuple[str, str, str]]) -> str:
    """``Cora: MLP (+1.2), HGNN (+0.3); House: ...``."""
    by_column: dict[str, list[str]] = {}
    for column, row, gain in named:
        by_column.setdefault(column, []).append(f"{row} ({gain})" if gain else row)
    return "; ".join(f"{column}: {', '.join(rows)}" for column, rows in by_column.items())


def _left_out(names: Sequence[tuple[str, str]], everything: Sequence[tuple[str, str]]) -> str:
    """As `_by_column`; a column of which nothing is known is named alone."""
    known = set(everything) - set(names)
    whole = {column for column, _ in names} - {column for column, _ in known}
    parts = [", ".join(column for column in dict.fromkeys(column for column, _ in names) if column in whole)]
    parts.append(_by_column((column, row, "") for column, row in names if column not in whole))
    return "; ".join(part for part in parts if part)


def _row_gains(grid: Grid, column: str, first: str, second: str) -> Mapping[int, float]:
    one, other = _as_asked(grid, first, column), _as_asked(grid, second, column)
    if one is None or other is None:
        return {}
    return gains(one.values, other.values, higher_is_better=grid.higher_is_better)


def _as_asked(grid: Grid, row: str, column: str) -> Measured | None:
    """The cell, if it was trained for as many epochs as the experiment says; one that was not supports no verdict."""
    cell = grid.measured(row, column)
    return cell if cell is not None and cell.epochs is None else None


def _panels(grid: Grid) -> list[str]:
    return list(dict.fromkeys(column.panel for column in grid.experiment.column))


def _deepest_gains(grid: Grid, panel: str, row: str) -> Mapping[int, float]:
    columns = _in_order(grid, panel)
    deep, shallow = _as_asked(grid, row, columns[-1]), _as_asked(grid, row, columns[0])
    if deep is None or shallow is None:
        return {}
    return gains(deep.values, shallow.values, higher_is_better=grid.higher_is_better)


def _log_ratios(grid: Grid, column: str) -> dict[int, float]:
    """Logarithm of the invariant operator's error over ED-HNN's, by split."""
    ours, invariant = _as_asked(grid, _OURS, column), _as_asked(grid, "Invariant", column)
    if ours is None or invariant is None:
        return {}
    shared = ours.values.keys() & invariant.values.keys()
    return {split: float(np.log(invariant.values[split] / ours.values[split])) for split in sorted(shared)}


_CHECKS: tuple[tuple[str, Callable[[Grid], Claim]], ...] = (
    ("table2", _table2),
    ("table2-large", _table2),
    ("table3", _table3),
    ("figure2", _depth_helps),
    ("figure2", _depth_does_not_help),
    ("figure3", _told_apart),
    ("figure3", _apart_by_width),
    ("figure5", _told_apart),
    ("figure5", _apart_by_width),
    ("table2", _floor),
    ("table2-large", _floor),
    ("table3", _floor),
    ("table9", _floor),
)
