"""What a grid shows: the best of each column, average ranks, and a test of every row against the reference row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar, final

import numpy as np

from edhnn.experiments.analysis.grid import Grid
from edhnn.experiments.analysis.significance import (
    LEVEL,
    Comparison,
    Contest,
    Summary,
    average_ranks,
    compete,
    corrected_resampled_p,
    holm,
    judge,
    least_gain,
    summarise,
)

Name = TypeVar("Name", bound=Hashable)
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
        least: The gain that would have been clear with the spread that was found, even were it the only clear one
            of the family; ``None`` with fewer than two splits.
        result: How the first compares with the other.
    """

    gain: float
    shared: int
    p: float | None
    adjusted: float | None
    least: float | None
    result: Comparison


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a grid shows.

    Attributes:
        summaries: By the labels of row and column.
        best: Labels of the best rows of each column.
        contests: Who competes in each column, by its label; without one where there is nothing to choose from.
        ranks: Average ranks of the rows that can be ranked.
        ranked_over: How many splits the ranked rows share, by the label of each column they are ranked over.
        reference: The row that all others are compared with.
        contrasts: The reference against each other row, by the labels of row and column.
    """

    summaries: Mapping[tuple[str, str], Summary]
    best: Mapping[str, Sequence[str]]
    contests: Mapping[str, Contest]
    ranks: Mapping[str, float]
    ranked_over: Mapping[str, int]
    reference: str
    contrasts: Mapping[tuple[str, str], Contrast]

    @property
    def tested(self) -> int:
        """How many of the contrasts have a p value."""
        return sum(contrast.p is not None for contrast in self.contrasts.values())

    def tally(self, row: str) -> tuple[int, int, int]:
        """Count the columns in which the reference is better than the row, not distinguishable from it, worse."""
        results = [contrast.result for (label, _), contrast in self.contrasts.items() if label == row]
        return results.count("better"), results.count("not distinguishable"), results.count("worse")


def analyse(grid: Grid) -> Findings:
    """Summarise, rank and test a grid; no ranks or tests where there is nothing to compare."""
    summaries = {
        place: summarise(cell.scores, np.random.default_rng(0))
        for place, cell in grid.cells.items()
        if cell.state == "measured"
    }
    reference = _REFERENCE if _REFERENCE in grid.rivals else grid.rivals[-1]
    compared = grid.kind.test_to_train is not None
    everywhere = {} if grid.kind.exact else {column: compete(grid, column, grid.rivals) for column in grid.columns}
    networks = grid.networks
    contests = {  # the columns with at least two networks to choose from
        column: one for column, one in everywhere.items() if sum(row in one.means for row in networks) > 1
    }
    ranks, over = _ranks(grid, everywhere) if compared else ({}, {})
    return Findings(
        summaries=summaries,
        best={column: one.best(higher_is_better=grid.higher_is_better) for column, one in contests.items()},
        contests=contests,
        ranks=ranks,
        ranked_over=over,
        reference=reference,
        contrasts=_against(grid, reference) if compared else {},
    )


def gains(first: Mapping[int, float], second: Mapping[int, float], *, higher_is_better: bool) -> dict[int, float]:
    """Return how much better the first is than the second on each split that both have."""
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
    arrays = {name: np.array(list(each.values()), dtype=np.float64) for name, each in family.items() if each}
    p = {name: corrected_resampled_p(each, test_to_train) for name, each in arrays.items() if len(each) > 1}
    adjusted = dict(zip(p, holm(np.array(list(p.values()), dtype=np.float64)).tolist(), strict=True))
    return {
        name: Contrast(
            gain=float(each.mean()),
            shared=len(each),
            p=p.get(name),
            adjusted=adjusted.get(name),
            least=least_gain(each, test_to_train, LEVEL / len(p)) if name in p else None,
            result=judge(float(each.mean()), adjusted.get(name)),
        )
        for name, each in arrays.items()
    }


def least_gains(contrasts: Iterable[tuple[str, Contrast]]) -> dict[str, float]:
    """Find the gain at which a comparison of a column would have been clear, the median over its comparisons.

    Args:
        contrasts: Contrasts, each with the label of its column.

    Returns:
        The gain by column, of those that have a tested comparison.
    """
    by_column: dict[str, list[float]] = {}
    for column, contrast in contrasts:
        if contrast.least is not None:
            by_column.setdefault(column, []).append(contrast.least)
    return {column: median(values) for column, values in by_column.items()}


def _against(grid: Grid, reference: str) -> dict[tuple[str, str], Contrast]:
    """Compare the reference with each row, where both were trained for the same epochs."""
    family = {}
    for row in grid.rivals:
        for column in grid.columns:
            own, other = grid.measured(reference, column), grid.measured(row, column)
            if row != reference and own is not None and other is not None and own.epochs == other.epochs:
                family[row, column] = gains(own.values, other.values, higher_is_better=grid.higher_is_better)
    return contrast_family(family, grid.kind.test_to_train or 0.0)


def _ranks(grid: Grid, contests: Mapping[str, Contest]) -> tuple[dict[str, float], dict[str, int]]:
    """Rank over the columns in which at least half of the rows compete, the rows that do in all of these."""
    rows = grid.rivals
    over = [column for column, contest in contests.items() if 2 * len(contest.means) >= len(rows)]
    ranked = [row for row in rows if over and all(row in contests[column].means for column in over)]
    if len(ranked) < 2:
        return {}, {}
    among = {column: compete(grid, column, ranked) for column in over}
    table = np.array([[one.means[row] for one in among.values()] for row in ranked], dtype=np.float64)
    ranks = average_ranks(table, higher_is_better=grid.higher_is_better)
    return dict(zip(ranked, ranks.tolist(), strict=True)), {column: one.shared for column, one in among.items()}
