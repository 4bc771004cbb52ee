"""What the paper claims of its tables and figures, and what we ask besides: each a family of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from edhnn.experiments.claims import Claim, Family, judge_claim
from edhnn.experiments.findings import gains
from edhnn.experiments.gathered import Grid, Measured
from edhnn.experiments.published import read_published

_OURS, _FLOOR = "ED-HNN", "Features alone: L1 logistic"
_HARD = ("alpha 3", "alpha 4", "alpha 6", "alpha 7")
_BARE = ", released layer"
"""Ends the labels of the layer that was released for learned diffusion, smaller than what it is compared with."""


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
    """The claim is that there is no gain; a gain that is not distinguishable agrees with it, and proves nothing."""
    family = {(panel, row): _deepest_gains(grid, panel, row) for panel in _panels(grid) for row in _rivals(grid)}
    statement = f"Depth helps none of {', '.join(_rivals(grid))}: the deepest is not above one layer."
    turned: Family = {name: {split: -gain for split, gain in found.items()} for name, found in family.items()}
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
    """The same of the bare layer. The paper does not say which of the two it measured."""
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
    """One comparison: whether the ratio of the two errors at the smallest width is above that at the largest."""
    small, *_, large = _in_order(grid, "TV")
    growth = gains(_log_ratios(grid, small), _log_ratios(grid, large), higher_is_better=True)
    statement = (
        "They come apart as the width shrinks: on total variation the ratio of the invariant operator's error to "
        "ED-HNN's is larger at the smallest width than at the largest."
    )
    family: Family = {(f"from {large} to {small}", "logarithm of the ratio"): growth}
    return judge_claim(grid, statement, family, "the ratio grows as the width shrinks")


def _hard_case(grid: Grid) -> Claim:
    """Section 4.4: the Lovász extension is hard for all, "though ED-HNN is still the best"."""
    statement = "ED-HNN's error is below that of every other network on the Lovász extension (LEC), at every width."
    return _lowest(grid, _in_order(grid, "LEC"), statement)


def _narrow(grid: Grid) -> Claim:
    """Appendix F.5: ED-HNN is ahead of the others "by a significant margin when hidden dimension is limited"."""
    statement = "ED-HNN's error is below that of every other network where the width is smallest."
    return _lowest(grid, [_in_order(grid, panel)[0] for panel in _panels(grid)], statement)


def _lowest(grid: Grid, columns: Sequence[str], statement: str) -> Claim:
    family = {(column, row): _row_gains(grid, column, _OURS, row) for column in columns for row in _rivals(grid)}
    return judge_claim(grid, statement, family, "ED-HNN's error is below the other's")


def _rivals(grid: Grid) -> list[str]:
    """The networks that ED-HNN is compared with: all others but for bare layers."""
    labels = [line.label for line in grid.lines if line.kind == "network"]
    return [label for label in labels if label != _OURS and not label.endswith(_BARE)]


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
    statement = "Every network beats logistic regression on the features alone."
    return judge_claim(grid, statement, family, "the network is better than the floor", papers=False)


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
