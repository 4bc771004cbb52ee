"""What a grid says: the best of each column, average ranks, and every row against one of them, tested."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np

from edhnn.experiments.comparison import (
    Outcome,
    Summary,
    average_ranks,
    corrected_resampled_p,
    holm,
    judge,
    summarise,
)
from edhnn.experiments.gathered import Grid

Name = TypeVar("Name", bound=Hashable)

TEST_TO_TRAIN = {"accuracy": 0.25 / 0.50, "diffusion": 0.10 / 0.80}
"""Size of the test part over that of the training part; kinds without splits are not tested."""

_REFERENCE = "ED-HNN"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One of two against the other, over the splits that both have.

    Attributes:
        gain: How much better the first is, on average.
        shared: How many splits.
        p: The p value; ``None`` with fewer than two splits.
        adjusted: The same after Holm's correction over the family.
        outcome: What that says of the first.
    """

    gain: float
    shared: int
    p: float | None
    adjusted: float | None
    outcome: Outcome


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a grid says.

    Attributes:
        summaries: By the labels of row and column.
        best: Labels of the best rows of each column, over the splits that all rows of the column have.
        ranks: Average ranks of the rows that can be ranked.
        ranked_over: The columns they are ranked over, by the splits that the ranked rows share.
        reference: The row that all others are compared with.
        contrasts: The reference against each other row, by the labels of row and column.
    """

    summaries: Mapping[tuple[str, str], Summary]
    best: Mapping[str, Sequence[str]]
    ranks: Mapping[str, float]
    ranked_over: Sequence[str]
    reference: str
    contrasts: Mapping[tuple[str, str], Contrast]

    @property
    def tested(self) -> int:
        """How many of the contrasts have a p value."""
        return sum(contrast.p is not None for contrast in self.contrasts.values())

    def tally(self, row: str) -> tuple[int, int, int]:
        """Columns in which the reference is better than the row, not distinguishable from it, worse than it."""
        said = [contrast.outcome for (label, _), contrast in self.contrasts.items() if label == row]
        return said.count("better"), said.count("not distinguishable"), said.count("worse")


def analyse(grid: Grid) -> Findings:
    """Summaries, ranks and tests of a grid; no ranks or tests where there is nothing to compare."""
    summaries = {
        place: summarise(cell.scores, np.random.default_rng(0))
        for place, cell in grid.cells.items()
        if cell.state == "measured"
    }
    reference = _REFERENCE if _REFERENCE in grid.rivals else grid.rivals[-1]
    compared = grid.experiment.kind in TEST_TO_TRAIN
    ranks, over = _ranks(grid, summaries) if compared else ({}, [])
    return Findings(
        summaries=summaries,
        best={} if grid.experiment.kind == "statistics" else _best(grid),
        ranks=ranks,
        ranked_over=over,
        reference=reference,
        contrasts=_against(grid, reference) if compared else {},
    )


def gains(first: Mapping[int, float], second: Mapping[int, float], *, higher_is_better: bool) -> dict[int, float]:
    """How much better the first is than the second on each split that both have."""
    sign = 1.0 if higher_is_better else -1.0
    return {split: sign * (first[split] - second[split]) for split in sorted(first.keys() & second.keys())}


def contrast_family(family: Mapping[Name, Mapping[int, float]], test_to_train: float) -> dict[Name, Contrast]:
    """Test every mean gain, corrected for how many they are.

    Args:
        family: Gains by split, by whatever names the comparison.
        test_to_train: Size of the test part over that of the training part.

    Returns:
        A contrast for each that has a shared split.
    """
    arrays = {name: np.array(list(found.values()), dtype=np.float64) for name, found in family.items() if found}
    p = {name: corrected_resampled_p(found, test_to_train) for name, found in arrays.items() if len(found) > 1}
    adjusted = dict(zip(p, holm(np.array(list(p.values()), dtype=np.float64)).tolist(), strict=True))
    return {
        name: Contrast(
            gain=float(found.mean()),
            shared=len(found),
            p=p.get(name),
            adjusted=adjusted.get(name),
            outcome=judge(float(found.mean()), adjusted.get(name)),
        )
        for name, found in arrays.items()
    }


def _against(grid: Grid, reference: str) -> dict[tuple[str, str], Contrast]:
    family = {}
    for row in grid.rivals:
        for column in grid.columns:
            own, other = grid.measured(reference, column), grid.measured(row, column)
            if row != reference and own is not None and other is not None:
                family[row, column] = gains(own.values, other.values, higher_is_better=grid.higher_is_better)
    return contrast_family(family, TEST_TO_TRAIN[grid.experiment.kind])


def shared_means(grid: Grid, column: str, rows: Iterable[str]) -> dict[str, float]:
    """Means of the rows that have a number, over the splits that all of these have: others would not compare."""
    cells = {row: cell for row in rows if (cell := grid.measured(row, column)) is not None}
    shared = sorted(set.intersection(*(set(cell.values) for cell in cells.values()))) if cells else []
    return (
        {row: float(np.mean([cell.values[split] for split in shared])) for row, cell in cells.items()} if shared else {}
    )


def _best(grid: Grid) -> dict[str, list[str]]:
    """The best of each column in which there are at least two networks to choose from."""
    networks = [line.label for line in grid.lines if line.kind == "network"]
    found = {}
    for column in grid.columns:
        means = shared_means(grid, column, grid.rivals)
        if sum(row in means for row in networks) > 1:
            best = max(means.values()) if grid.higher_is_better else min(means.values())
            found[column] = [row for row, mean in means.items() if mean == best]
    return found


def _ranks(grid: Grid, summaries: Mapping[tuple[str, str], Summary]) -> tuple[dict[str, float], list[str]]:
    """Ranks over the columns that at least half of the rows have, of the rows that have all of these."""
    rows = grid.rivals
    over = [column for column in grid.columns if 2 * sum((row, column) in summaries for row in rows) >= len(rows)]
    ranked = [row for row in rows if over and all((row, column) in summaries for column in over)]
    if len(ranked) < 2:
        return {}, []
    means = [shared_means(grid, column, ranked) for column in over]
    if not all(means):
        return {}, []
    table = np.array([[found[row] for found in means] for row in ranked], dtype=np.float64)
    ranks = average_ranks(table, higher_is_better=grid.higher_is_better)
    return dict(zip(ranked, ranks.tolist(), strict=True)), over
