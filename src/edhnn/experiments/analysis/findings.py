"""Findings of a grid: the best rows of each column, average ranks, and tests of all rows against the reference."""

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
    SharedMeans,
    Summary,
    average_ranks,
    corrected_resampled_p,
    holm,
    judge,
    least_gain,
    shared_means,
    summarise,
)

Name = TypeVar("Name", bound=Hashable)
_REFERENCE = "ED-HNN"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A comparison of two rows over the splits that both have.

    Attributes:
        gain: How much better the first row is, on average.
        shared: The number of splits.
        p: The p value; ``None`` with fewer than two splits.
        adjusted: The p value after Holm's correction over the family; ``None`` with fewer than two splits.
        least: The smallest gain that would be significant with the observed spread and the strictest level of Holm's
            correction; ``None`` with fewer than two splits.
        result: How the first row compares with the second.
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
    """The findings of a grid.

    Attributes:
        summaries: Summaries of the cells by the labels of row and column.
        best: Labels of the best rows of each column.
        shared_means: Means over shared splits by column, for columns with at least two networks.
        ranks: Average ranks of the rows that can be ranked.
        ranked_over: The columns that ranks are averaged over, with the number of splits that the ranked rows share.
        reference: The row that all others are compared with.
        contrasts: The reference against each other row, by the labels of row and column.
    """

    summaries: Mapping[tuple[str, str], Summary]
    best: Mapping[str, Sequence[str]]
    shared_means: Mapping[str, SharedMeans]
    ranks: Mapping[str, float]
    ranked_over: Mapping[str, int]
    reference: str
    contrasts: Mapping[tuple[str, str], Contrast]

    @property
    def tested(self) -> int:
        """The number of contrasts that have a p value."""
        return sum(contrast.p is not None for contrast in self.contrasts.values())

    def tally(self, row: str) -> tuple[int, int, int]:
        """Count the columns in which the reference is better than a row, not distinguishable from it, and worse."""
        results = [contrast.result for (label, _), contrast in self.contrasts.items() if label == row]
        return results.count("better"), results.count("not distinguishable"), results.count("worse")


def analyse(grid: Grid) -> Findings:
    """Summarise, rank and test a grid; exact numbers and times are neither ranked nor tested."""
    rows, networks = grid.comparable, grid.networks
    reference = _REFERENCE if _REFERENCE in rows else rows[-1]
    is_tested = grid.kind.test_to_train is not None
    means = {} if grid.kind.exact else {column: shared_means(grid, column, rows) for column in grid.columns}
    chosen = {column: one for column, one in means.items() if sum(row in one.means for row in networks) > 1}
    ranks, over = _ranks(grid, means) if is_tested else ({}, {})
    return Findings(
        summaries={
            labels: summarise(cell.scores, np.random.default_rng(0))
            for labels, cell in grid.cells.items()
            if cell.state == "measured"
        },
        best={column: one.best(higher_is_better=grid.kind.higher_is_better) for column, one in chosen.items()},
        shared_means=chosen,
        ranks=ranks,
        ranked_over=over,
        reference=reference,
        contrasts=_against(grid, reference) if is_tested else {},
    )


def gains(first: Mapping[int, float], second: Mapping[int, float], *, higher_is_better: bool) -> dict[int, float]:
    """Return how much better the first scores are than the second, on each split that both have."""
    sign = 1.0 if higher_is_better else -1.0
    return {split: sign * (first[split] - second[split]) for split in sorted(first.keys() & second.keys())}


def contrast_family(family: Mapping[Name, Mapping[int, float]], test_to_train: float) -> dict[Name, Contrast]:
    """Test every mean gain of a family, with a correction for multiple tests.

    Args:
        family: Gains by split, by the name of the comparison.
        test_to_train: Size of the test part over that of the training part.

    Returns:
        The contrasts of the comparisons with at least one shared split.
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
    """Compute the median of `Contrast.least` by column, for columns with a tested contrast.

    Args:
        contrasts: Contrasts, each with the label of its column.
    """
    by_column: dict[str, list[float]] = {}
    for column, contrast in contrasts:
        if contrast.least is not None:
            by_column.setdefault(column, []).append(contrast.least)
    return {column: median(values) for column, values in by_column.items()}


def _against(grid: Grid, reference: str) -> dict[tuple[str, str], Contrast]:
    """Compare the reference with each row in each column where both were trained for the same epochs."""
    family = {}
    for row in grid.comparable:
        for column in grid.columns:
            first, other = grid.measured(reference, column), grid.measured(row, column)
            if row != reference and first is not None and other is not None and first.epochs == other.epochs:
                family[row, column] = gains(first.values, other.values, higher_is_better=grid.kind.higher_is_better)
    return contrast_family(family, grid.kind.test_to_train or 0.0)


def _ranks(grid: Grid, means: Mapping[str, SharedMeans]) -> tuple[dict[str, float], dict[str, int]]:
    """Rank the rows over the columns in which at least half of the rows are compared.

    Only rows that are compared in all of these columns are ranked. Returns the mean ranks, and the columns with the
    number of splits that the ranked rows share.
    """
    rows = grid.comparable
    over = [column for column, one in means.items() if 2 * len(one.means) >= len(rows)]
    ranked = [row for row in rows if over and all(row in means[column].means for column in over)]
    if len(ranked) < 2:
        return {}, {}
    among = {column: shared_means(grid, column, ranked) for column in over}
    table = np.array([[one.means[row] for one in among.values()] for row in ranked], dtype=np.float64)
    ranks = average_ranks(table, higher_is_better=grid.kind.higher_is_better)
    return dict(zip(ranked, ranks.tolist(), strict=True)), {column: one.shared for column, one in among.items()}


def list_by_column(texts: Iterable[tuple[str, str]]) -> str:
    """Join texts by the labels of their columns: ``Cora: MLP, HGNN; House: HGNN``."""
    by_column: dict[str, list[str]] = {}
    for column, text in texts:
        by_column.setdefault(column, []).append(text)
    return "; ".join(f"{column}: {', '.join(each)}" for column, each in by_column.items())
