"""Verdicts on the paper's claims about its tables and figures, and on a few questions of ours, from the records.

A claim is a family of comparisons. It holds only if every comparison is clear, and one clear counterexample refutes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, final

import numpy as np

from edhnn.experiments.analysis.findings import Contrast, contrast_family, gains, least_gains, list_by_column
from edhnn.experiments.analysis.grid import Grid
from edhnn.experiments.analysis.significance import Comparison
from edhnn.experiments.spec import read_published

Verdict = Literal["holds", "does not hold", "not distinguishable", "not enough records"]
Family = dict[tuple[str, str], Mapping[int, float]]
_ROUNDING = 1e-9
"""Mean gains up to this are rounding errors of a sum."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim and its verdict.

    Attributes:
        statement: The claim.
        experiment: The name of the experiment.
        verdict: Whether it holds.
        evidence: The reasons, in sentences.
        rests_on: A sentence with the number of splits that the comparisons share; empty without comparisons.
        papers: Whether the paper makes the claim; otherwise it is a question of ours.
    """

    statement: str
    experiment: str
    verdict: Verdict
    evidence: Sequence[str]
    rests_on: str = ""
    papers: bool = True


def judge_claim(grid: Grid, statement: str, family: Family, success: str, *, papers: bool = True) -> Claim:
    """Test the claim that every comparison of a family succeeds.

    Args:
        grid: The experiment with its scores.
        statement: The claim.
        family: Gains by split, by the labels of column and row; positive if the comparison succeeds.
        success: A clause that describes the success of a comparison.
        papers: Whether the paper makes the claim.
    """
    contrasts = contrast_family(family, grid.kind.test_to_train or 0.0)
    missing = [name for name in family if name not in contrasts]
    results = [contrast.result for contrast in contrasts.values()]
    ahead = sum(contrast.gain > _ROUNDING for contrast in contrasts.values())
    evidence = [
        f"{success[0].upper()}{success[1:]} in {results.count('better')} of {len(family)} "
        f"comparison{'s' * (len(family) != 1)}; not distinguishable in {results.count('not distinguishable')}, "
        f"the opposite in {results.count('worse')}. "
        f"By the means alone: in {ahead} of {len(contrasts)}."
    ]
    evidence += _list_gains("The opposite", contrasts, "worse")
    evidence += _list_gains("Not distinguishable", contrasts, "not distinguishable")
    if "not distinguishable" in results:
        least = least_gains((column, contrast) for (column, _), contrast in contrasts.items())
        medians = ", ".join(f"{gain:.2g} ({column})" for column, gain in least.items())
        evidence.append(f"The test detects gains above about {medians}, the median of a column.")
    missing += [name for name, contrast in contrasts.items() if contrast.result == "not enough splits"]
    if missing:
        evidence.append(f"Not enough records: {_list_missing(missing, family)}.")
    shared = sorted({contrast.shared for contrast in contrasts.values()})
    rests_on = f"Shared splits: {' to '.join(map(str, dict.fromkeys((shared[0], shared[-1]))))}." if shared else ""
    return Claim(
        statement=statement,
        experiment=grid.experiment.name,
        verdict=decide(results, complete=not missing),
        evidence=evidence,
        rests_on=rests_on,
        papers=papers,
    )


def decide(results: Sequence[Comparison], *, complete: bool) -> Verdict:
    """Return the verdict on the claim that every comparison is ``better``."""
    if "worse" in results:
        return "does not hold"
    if not complete or not results or "not enough splits" in results:
        return "not enough records"
    return "not distinguishable" if "not distinguishable" in results else "holds"


def _list_gains(heading: str, contrasts: Mapping[tuple[str, str], Contrast], result: Comparison) -> list[str]:
    texts = [
        (column, f"{row} ({f'{contrast.gain:+.3g}'.replace('-', '−')})")
        for (column, row), contrast in contrasts.items()
        if contrast.result == result
    ]
    return [f"{heading}: {list_by_column(texts)}."] if texts else []


def _list_missing(names: Sequence[tuple[str, str]], family: Family) -> str:
    """List comparisons by column; a column in which all are missing is named without its rows."""
    present = {column for column, _ in set(family) - set(names)}
    absent = ", ".join(dict.fromkeys(column for column, _ in names if column not in present))
    partly = list_by_column((column, row) for column, row in names if column in present)
    return "; ".join(filter(None, (absent, partly)))


_OURS, _FLOOR = "ED-HNN", "Features alone: L1 logistic"
_HARD = ("alpha 3", "alpha 4", "alpha 6", "alpha 7")
_BARE = ", released layer"
"""The end of the labels of bare layers, which are smaller than the networks."""


def check_claims(grids: Mapping[str, Grid]) -> list[Claim]:
    """Check all claims about the given experiments, by their names."""
    return [check(grids[name]) for name, check in _CHECKS if name in grids]


def _best_of_all(grid: Grid, statement: str, columns: Sequence[str] = ()) -> Claim:
    """Compare ED-HNN with every baseline that the paper prints, in the given columns or all."""
    printed = read_published(grid.experiment.published).rows()
    baselines = [row.label for row in grid.experiment.row if not row.model.startswith("ed-hnn")]
    family = {
        (column, row): _gains(grid, (_OURS, column), (row, column))
        for column in columns or grid.columns
        for row in baselines
        if row in printed
    }
    return judge_claim(grid, statement, family, "ED-HNN is better than the baseline")


_table2 = partial(_best_of_all, statement="ED-HNN is above every baseline that the paper prints, in every column.")
_table3 = partial(
    _best_of_all,
    statement="ED-HNN is above every baseline that the paper prints on the contextual SBM from alpha 3 on.",
    columns=_HARD,
)


def _depth_helps(grid: Grid) -> Claim:
    family = {(panel, _OURS): _gains_by_depth(grid, panel, _OURS) for panel in _panels(grid)}
    statement = "Depth helps ED-HNN on Senate and House: the deepest is above one layer."
    return judge_claim(grid, statement, family, "the deepest is better than one layer")


def _depth_does_not_help(grid: Grid) -> Claim:
    """Check that depth gains nothing; gains that are not distinguishable agree with that but prove nothing."""
    networks = _other_networks(grid)
    family: Family = {
        (panel, row): {split: -gain for split, gain in _gains_by_depth(grid, panel, row).items()}
        for panel in _panels(grid)
        for row in networks
    }
    statement = f"Depth helps none of {', '.join(networks)}: the deepest is not above one layer."
    claim = judge_claim(grid, statement, family, "one layer is better than the deepest")
    if claim.verdict != "not distinguishable":
        return claim
    agrees = "No gain by depth can be distinguished: that agrees with the claim and does not prove it."
    first, *more = claim.evidence
    return replace(claim, evidence=[f"{first} {agrees}", *more])


def _equivariant_is_better(grid: Grid) -> Claim:
    statement = (
        "Total variation distinguishes equivariant from invariant operators: ED-HNN's error is below the invariant "
        "operator's at every width."
    )
    return _compare_operators(grid, "", statement, papers=True)


def _equivariant_layer_is_better(grid: Grid) -> Claim:
    """Check the same of the bare layers, because the paper does not state which of the two it measured."""
    statement = (
        "Total variation also distinguishes the bare layers, as released: the equivariant layer's error is below the "
        "invariant layer's at every width."
    )
    return _compare_operators(grid, _BARE, statement, papers=False)


def _compare_operators(grid: Grid, form: str, statement: str, *, papers: bool) -> Claim:
    equivariant, invariant = f"{_OURS}{form}", f"Invariant{form}"
    family = {
        (column, invariant): _gains(grid, (equivariant, column), (invariant, column))
        for column in _in_order(grid, "TV")
    }
    return judge_claim(grid, statement, family, "ED-HNN's error is below the invariant operator's", papers=papers)


def _ratio_grows(grid: Grid) -> Claim:
    """Make one comparison: whether the ratio of the two errors is larger at the smallest width than at the largest."""
    small, *_, large = _in_order(grid, "TV")
    growth = gains(_log_ratios(grid, small), _log_ratios(grid, large), higher_is_better=True)
    statement = (
        "The difference grows as the width shrinks: on total variation the ratio of the invariant operator's error to "
        "ED-HNN's is larger at the smallest width than at the largest."
    )
    family: Family = {(f"from {large} to {small}", "logarithm of the ratio"): growth}
    return judge_claim(grid, statement, family, "the ratio grows as the width shrinks")


def _lowest_on_lovasz(grid: Grid) -> Claim:
    """Check Section 4.4: the Lovász extension is hard for all, "though ED-HNN is still the best"."""
    statement = "ED-HNN's error is below that of every other network on the Lovász extension (LEC), at every width."
    return _lowest(grid, _in_order(grid, "LEC"), statement)


def _lowest_at_smallest_width(grid: Grid) -> Claim:
    """Check Appendix F.5: ED-HNN is ahead of the others "by a significant margin when hidden dimension is limited"."""
    statement = "ED-HNN's error is below that of every other network where the width is smallest."
    return _lowest(grid, [_in_order(grid, panel)[0] for panel in _panels(grid)], statement)


def _lowest(grid: Grid, columns: Sequence[str], statement: str) -> Claim:
    family = {
        (column, row): _gains(grid, (_OURS, column), (row, column))
        for column in columns
        for row in _other_networks(grid)
    }
    return judge_claim(grid, statement, family, "ED-HNN's error is below the other's")


def _above_floor(grid: Grid) -> Claim:
    family = {
        (column, row): _gains(grid, (row, column), (_FLOOR, column))
        for column in grid.columns
        for row in grid.networks
        if (row, column) in grid.cells
    }
    statement = "Every network beats logistic regression on the features alone."
    return judge_claim(grid, statement, family, "the network is better than the floor", papers=False)


def _other_networks(grid: Grid) -> list[str]:
    """List the networks that ED-HNN is compared with: all others except bare layers."""
    return [label for label in grid.networks if label != _OURS and not label.endswith(_BARE)]


def _panels(grid: Grid) -> list[str]:
    return list(dict.fromkeys(column.panel for column in grid.experiment.column))


def _in_order(grid: Grid, panel: str) -> list[str]:
    """List the columns of a plot by their position on the horizontal axis."""
    columns = [column for column in grid.experiment.column if column.panel == panel]
    return [column.label for column in sorted(columns, key=lambda one: one.x or 0)]


def _values(grid: Grid, row: str, column: str) -> Mapping[int, float]:
    """Return the scores of a cell; none if it was trained for other epochs than the experiment's."""
    cell = grid.measured(row, column)
    return cell.values if cell is not None and cell.epochs is None else {}


def _gains(grid: Grid, first: tuple[str, str], second: tuple[str, str]) -> Mapping[int, float]:
    """Return how much better the first cell is than the second, on each split that both have."""
    return gains(_values(grid, *first), _values(grid, *second), higher_is_better=grid.kind.higher_is_better)


def _gains_by_depth(grid: Grid, panel: str, row: str) -> Mapping[int, float]:
    shallow, *_, deep = _in_order(grid, panel)
    return _gains(grid, (row, deep), (row, shallow))


def _log_ratios(grid: Grid, column: str) -> dict[int, float]:
    """Compute the logarithm of the invariant operator's error over ED-HNN's, by split."""
    ours, invariant = _values(grid, _OURS, column), _values(grid, "Invariant", column)
    return {split: float(np.log(invariant[split] / ours[split])) for split in sorted(ours.keys() & invariant.keys())}


_CHECKS: tuple[tuple[str, Callable[[Grid], Claim]], ...] = (
    ("table2", _table2),
    ("table2-large", _table2),
    ("table3", _table3),
    ("figure2", _depth_helps),
    ("figure2", _depth_does_not_help),
    ("figure3", _equivariant_is_better),
    ("figure3", _ratio_grows),
    ("figure3", _lowest_on_lovasz),
    ("figure3", _equivariant_layer_is_better),
    ("figure5", _equivariant_is_better),
    ("figure5", _ratio_grows),
    ("figure5", _lowest_at_smallest_width),
    ("figure5", _equivariant_layer_is_better),
    ("table2", _above_floor),
    ("table2-large", _above_floor),
    ("table3", _above_floor),
    ("table9", _above_floor),
)
