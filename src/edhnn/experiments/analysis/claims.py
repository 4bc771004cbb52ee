"""The paper's claims about its tables and figures, and a few questions of ours: a verdict on each, from the records.

A claim is a family of comparisons. It fails by one clear counterexample and holds only if every comparison is clear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from edhnn.experiments.analysis.findings import Contrast, contrast_family, gains, least_gains
from edhnn.experiments.analysis.grid import Grid, Measured
from edhnn.experiments.analysis.significance import Comparison
from edhnn.experiments.spec import read_published

Verdict = Literal["holds", "does not hold", "not distinguishable", "not enough records"]
Family = dict[tuple[str, str], Mapping[int, float]]
_NOTHING = 1e-9
"""A mean gain up to this is rounding: what another order of a sum can make."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim and its verdict.

    Attributes:
        statement: The claim.
        experiment: The experiment it is about.
        verdict: Whether it holds.
        evidence: Why, in sentences.
        rests_on: How many splits the comparisons share, as a sentence; empty without any.
        papers: Whether the paper makes the claim; else it is a question of ours.
    """

    statement: str
    experiment: str
    verdict: Verdict
    evidence: Sequence[str]
    rests_on: str = ""
    papers: bool = True


def judge_claim(grid: Grid, statement: str, family: Family, success: str, *, papers: bool = True) -> Claim:
    """Test a claim that every comparison of a family comes out well.

    Args:
        grid: The experiment with its scores.
        statement: The claim.
        family: By column and row, how much better the one is that should be, on each split.
        success: What it means that a comparison comes out well.
        papers: Whether the paper makes the claim.
    """
    contrasts = contrast_family(family, grid.kind.test_to_train or 0.0)
    missing = [name for name in family if name not in contrasts]
    results = [contrast.result for contrast in contrasts.values()]
    ahead = sum(contrast.gain > _NOTHING for contrast in contrasts.values())
    evidence = [
        f"{success[0].upper()}{success[1:]} in {results.count('better')} of {len(family)} "
        f"comparison{'s' * (len(family) != 1)}; not distinguishable in {results.count('not distinguishable')}, "
        f"the opposite in {results.count('worse')}. "
        f"By the means alone: in {ahead} of {len(contrasts)}."
    ]
    evidence += _listed("The opposite", contrasts, "worse")
    evidence += _listed("Not distinguishable", contrasts, "not distinguishable")
    if "not distinguishable" in results:
        least = least_gains((column, contrast) for (column, _), contrast in contrasts.items())
        seen = ", ".join(f"{gain:.2g} ({column})" for column, gain in least.items())
        evidence.append(f"A gain would have been clear at about {seen}, the median of a column.")
    few = [name for name, contrast in contrasts.items() if contrast.result == "not enough splits"]
    if missing or few:
        evidence.append(f"Without enough records: {_left_out([*missing, *few], list(family))}.")
    shared = sorted({contrast.shared for contrast in contrasts.values()})
    rests = f"Shared splits: {' to '.join(map(str, dict.fromkeys((shared[0], shared[-1]))))}." if shared else ""
    return Claim(
        statement=statement,
        experiment=grid.experiment.name,
        verdict=decide(results, complete=not missing),
        evidence=evidence,
        rests_on=rests,
        papers=papers,
    )


def decide(results: Sequence[Comparison], *, complete: bool) -> Verdict:
    """Decide on a claim that every comparison comes out ``better``."""
    if "worse" in results:
        return "does not hold"
    if not complete or not results or "not enough splits" in results:
        return "not enough records"
    return "not distinguishable" if "not distinguishable" in results else "holds"


def _listed(what: str, contrasts: Mapping[tuple[str, str], Contrast], result: Comparison) -> list[str]:
    chosen = [
        (*name, f"{contrast.gain:+.3g}".replace("-", "−"))
        for name, contrast in contrasts.items()
        if contrast.result == result
    ]
    return [f"{what}: {_by_column(chosen)}."] if chosen else []


def _by_column(named: Iterable[tuple[str, str, str]]) -> str:
    """List by column: ``Cora: MLP (+1.2), HGNN (+0.3); House: ...``."""
    by_column: dict[str, list[str]] = {}
    for column, row, gain in named:
        by_column.setdefault(column, []).append(f"{row} ({gain})" if gain else row)
    return "; ".join(f"{column}: {', '.join(rows)}" for column, rows in by_column.items())


def _left_out(names: Sequence[tuple[str, str]], everything: Sequence[tuple[str, str]]) -> str:
    """List as `_by_column` does; a column without any record is named alone."""
    known = set(everything) - set(names)
    whole = {column for column, _ in names} - {column for column, _ in known}
    parts = [", ".join(column for column in dict.fromkeys(column for column, _ in names) if column in whole)]
    parts.append(_by_column((column, row, "") for column, row in names if column not in whole))
    return "; ".join(part for part in parts if part)


_OURS, _FLOOR = "ED-HNN", "Features alone: L1 logistic"
_HARD = ("alpha 3", "alpha 4", "alpha 6", "alpha 7")
_BARE = ", released layer"
"""Ends the labels of the layer that was released for learned diffusion, smaller than what it is compared with."""


def check_claims(grids: Mapping[str, Grid]) -> list[Claim]:
    """Check all claims about the experiments given, by their names."""
    return [check(grids[name]) for name, check in _CHECKS if name in grids]


def _best_of_all(grid: Grid, columns: Sequence[str], statement: str) -> Claim:
    """Compare ED-HNN with every baseline that the paper prints, in each column."""
    printed = read_published(grid.experiment.published)
    own = {row.label for row in grid.experiment.row if row.model.startswith("ed-hnn")}
    rows = [row.label for row in grid.experiment.row if row.label in printed.rows() and row.label not in own]
    family = {(column, row): _row_gains(grid, column, _OURS, row) for column in columns for row in rows}
    return judge_claim(grid, statement, family, "ED-HNN is better than the baseline")


def _table3(grid: Grid) -> Claim:
    columns = [column for column in grid.columns if column in _HARD]
    return _best_of_all(
        grid, columns, "ED-HNN is above every baseline that the paper prints on the contextual SBM from alpha 3 on."
    )


def _table2(grid: Grid) -> Claim:
    return _best_of_all(grid, grid.columns, "ED-HNN is above every baseline that the paper prints, in every column.")


def _depth_helps(grid: Grid) -> Claim:
    family = {(panel, _OURS): _deepest_gains(grid, panel, _OURS) for panel in _panels(grid)}
    statement = "Depth helps ED-HNN on Senate and House: the deepest is above one layer."
    return judge_claim(grid, statement, family, "the deepest is better than one layer")


def _depth_does_not_help(grid: Grid) -> Claim:
    """Check that there is no gain; a gain that is not distinguishable agrees with that and proves nothing."""
    family = {(panel, row): _deepest_gains(grid, panel, row) for panel in _panels(grid) for row in _rivals(grid)}
    statement = f"Depth helps none of {', '.join(_rivals(grid))}: the deepest is not above one layer."
    turned: Family = {name: {split: -gain for split, gain in each.items()} for name, each in family.items()}
    claim = judge_claim(grid, statement, turned, "one layer is better than the deepest")
    if claim.verdict != "not distinguishable":
        return claim
    agrees = "No gain by depth can be distinguished: that agrees with the claim and does not prove it."
    first, *more = claim.evidence
    return replace(claim, evidence=[f"{first} {agrees}", *more])


def _told_apart(grid: Grid) -> Claim:
    statement = (
        "Total variation tells equivariant from invariant operators: ED-HNN's error is below the invariant operator's "
        "at every width."
    )
    return _apart(grid, "", statement, papers=True)


def _layers_told_apart(grid: Grid) -> Claim:
    """Check the same of the bare layer. The paper does not say which of the two it measured."""
    statement = (
        "Total variation tells the bare layers, as released, apart too: the equivariant one's error is below the "
        "invariant one's at every width."
    )
    return _apart(grid, _BARE, statement, papers=False)


def _apart(grid: Grid, form: str, statement: str, *, papers: bool) -> Claim:
    invariant = f"Invariant{form}"
    family = {
        (column, invariant): _row_gains(grid, column, f"{_OURS}{form}", invariant) for column in _in_order(grid, "TV")
    }
    return judge_claim(grid, statement, family, "ED-HNN's error is below the invariant operator's", papers=papers)


def _apart_by_width(grid: Grid) -> Claim:
    """Make one comparison: whether the ratio of the two errors at the smallest width is above that at the largest."""
    small, *_, large = _in_order(grid, "TV")
    growth = gains(_log_ratios(grid, small), _log_ratios(grid, large), higher_is_better=True)
    statement = (
        "They come apart as the width shrinks: on total variation the ratio of the invariant operator's error to "
        "ED-HNN's is larger at the smallest width than at the largest."
    )
    family: Family = {(f"from {large} to {small}", "logarithm of the ratio"): growth}
    return judge_claim(grid, statement, family, "the ratio grows as the width shrinks")


def _hard_case(grid: Grid) -> Claim:
    """Check Section 4.4: the Lovász extension is hard for all, "though ED-HNN is still the best"."""
    statement = "ED-HNN's error is below that of every other network on the Lovász extension (LEC), at every width."
    return _lowest(grid, _in_order(grid, "LEC"), statement)


def _narrow(grid: Grid) -> Claim:
    """Check Appendix F.5: ED-HNN is ahead of the others "by a significant margin when hidden dimension is limited"."""
    statement = "ED-HNN's error is below that of every other network where the width is smallest."
    return _lowest(grid, [_in_order(grid, panel)[0] for panel in _panels(grid)], statement)


def _lowest(grid: Grid, columns: Sequence[str], statement: str) -> Claim:
    family = {(column, row): _row_gains(grid, column, _OURS, row) for column in columns for row in _rivals(grid)}
    return judge_claim(grid, statement, family, "ED-HNN's error is below the other's")


def _rivals(grid: Grid) -> list[str]:
    """List the networks that ED-HNN is compared with: all others except bare layers."""
    return [label for label in grid.networks if label != _OURS and not label.endswith(_BARE)]


def _in_order(grid: Grid, panel: str) -> list[str]:
    """List the columns of a plot by their place on the horizontal axis."""
    columns = [column for column in grid.experiment.column if column.panel == panel]
    return [column.label for column in sorted(columns, key=lambda one: one.x or 0)]


def _floor(grid: Grid) -> Claim:
    family = {
        (column, row): _row_gains(grid, column, row, _FLOOR)
        for column in grid.columns
        for row in grid.networks
        if (row, column) in grid.cells
    }
    statement = "Every network beats logistic regression on the features alone."
    return judge_claim(grid, statement, family, "the network is better than the floor", papers=False)


def _row_gains(grid: Grid, column: str, first: str, second: str) -> Mapping[int, float]:
    one, other = _as_asked(grid, first, column), _as_asked(grid, second, column)
    if one is None or other is None:
        return {}
    return gains(one.values, other.values, higher_is_better=grid.higher_is_better)


def _as_asked(grid: Grid, row: str, column: str) -> Measured | None:
    """Return the cell if it was trained for the experiment's epochs; other cells support no verdict."""
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
    """Compute the logarithm of the invariant operator's error over ED-HNN's, by split."""
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
    ("figure3", _hard_case),
    ("figure3", _layers_told_apart),
    ("figure5", _told_apart),
    ("figure5", _apart_by_width),
    ("figure5", _narrow),
    ("figure5", _layers_told_apart),
    ("table2", _floor),
    ("table2-large", _floor),
    ("table3", _floor),
    ("table9", _floor),
)
