r"""Comparison of scores over splits: intervals, ranks, a paired test, and a correction for multiple tests.

All splits of a dataset are drawn from the same nodes: two splits share half of their training nodes, so their scores
are not independent. Tests that assume independence (Student's, Wilcoxon's) find differences that do not exist. The
corrected resampled t-test (Nadeau and Bengio, 2003) accounts for the overlap: the variance of the mean difference over
$n$ splits is not $s^2 / n$ but about $s^2 (1/n + n_\mathrm{test} / n_\mathrm{train})$. With ten splits of 50 % training
and 25 % test nodes that is six times the variance. The test also works with five splits, where Wilcoxon's smallest p is
0.06.

Means are compared only over the same splits and after the same epochs. So the rows of a column are compared over the
splits that all of them share. A row is excluded if it was trained for other epochs than most rows, or if it has fewer
than half as many splits as the median row, because it would leave too few shared splits for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import Literal, final

import numpy as np
import scipy.special

from edhnn.experiments.analysis.grid import Grid
from edhnn.typing import FloatArray

LEVEL = 0.05
_RESAMPLES = 10_000
Comparison = Literal["better", "worse", "not distinguishable", "not enough splits"]
"""How the first of two rows compares with the second."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Statistics of the scores of a cell.

    Attributes:
        mean: The mean.
        std: The sample standard deviation; ``None`` for a single score.
        low: Lower end of the 95 % bootstrap interval of the mean; ``None`` for a single score.
        high: Upper end of the interval; ``None`` for a single score.
        count: The number of scores.
    """

    mean: float
    std: float | None
    low: float | None
    high: float | None
    count: int


def summarise(values: FloatArray, generator: np.random.Generator) -> Summary:
    """Compute mean, sample standard deviation and the 95 % percentile bootstrap interval of the mean.

    With few splits the interval is too narrow, because it never leaves the range of the scores.

    Args:
        values: Scores of the splits, at least one.
        generator: Draws the resamples.
    """
    count = len(values)
    if count < 2:
        return Summary(mean=float(values[0]), std=None, low=None, high=None, count=count)
    means = values[generator.integers(count, size=(_RESAMPLES, count))].mean(axis=1)
    low, high = np.quantile(means, [LEVEL / 2, 1 - LEVEL / 2])
    return Summary(
        mean=float(values.mean()), std=float(values.std(ddof=1)), low=float(low), high=float(high), count=count
    )


def average_ranks(values: FloatArray, *, higher_is_better: bool) -> FloatArray:
    """Compute the mean rank of each row over the columns; 1 is best, and equal scores share the mean of their ranks.

    Args:
        values: Scores, a row per method and a column per dataset; none missing.
        higher_is_better: Whether the largest score has rank 1.
    """
    from scipy.stats import rankdata  # here, because it takes half a second to load

    ranks = rankdata(-values if higher_is_better else values, axis=0)
    return np.asarray(ranks.mean(axis=1), dtype=np.float64)


def corrected_resampled_p(differences: FloatArray, test_to_train: float) -> float:
    r"""Compute the two-sided p of the corrected resampled t-test.

    $t = \bar d \,/\, \sqrt{(1/n + n_\mathrm{test}/n_\mathrm{train})\, s^2}$ with $n - 1$ degrees of freedom.

    Args:
        differences: One score minus the other on each split, at least two.
        test_to_train: Size of the test part over that of the training part.

    Returns:
        The p value; 1 if all differences are equal. On two or three splits with few test nodes this happens by chance,
        so a variance of 0 is no evidence.
    """
    count = len(differences)
    mean, variance = float(differences.mean()), float(differences.var(ddof=1))
    if np.ptp(differences) <= 1e-9 * np.abs(differences).max():
        return 1.0
    t = mean / np.sqrt((1 / count + test_to_train) * variance)
    return float(2 * scipy.special.stdtr(count - 1, -abs(t)))


def least_gain(differences: FloatArray, test_to_train: float, level: float) -> float:
    r"""Compute the mean difference at which the corrected resampled t-test would reach a level, with this spread.

    $t_{1 - \mathrm{level}/2} \sqrt{(1/n + n_\mathrm{test}/n_\mathrm{train})\, s^2}$: the smallest difference that the
    test can detect.

    Args:
        differences: One score minus the other on each split, at least two.
        test_to_train: Size of the test part over that of the training part.
        level: The level, two-sided.

    Returns:
        The difference; 0 if all differences are equal.
    """
    count, variance = len(differences), float(differences.var(ddof=1))
    return float(scipy.special.stdtrit(count - 1, 1 - level / 2) * np.sqrt((1 / count + test_to_train) * variance))


def holm(p: FloatArray) -> FloatArray:
    """Adjust p values by Holm's method, which bounds the probability of any false positive by the level.

    The smallest of m values is multiplied by m, the next by m - 1, and so on. An adjusted value is at least the one
    before it and at most 1.
    """
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def judge(gain: float, adjusted: float | None) -> Comparison:
    """Compare two rows: ``gain`` is how much better the first is, ``adjusted`` the adjusted p value."""
    if adjusted is None:
        return "not enough splits"
    if adjusted >= LEVEL or gain == 0:
        return "not distinguishable"
    return "better" if gain > 0 else "worse"


_DIGITS = 9
"""Means are rounded to these decimals, so that equal means do not depend on the order of a sum."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMeans:
    """Means of the rows of a column over the splits that they share.

    Attributes:
        means: The means by the labels of the rows.
        shared: The number of shared splits.
        excluded: Labels of rows that have a score and are not compared.
    """

    means: Mapping[str, float]
    shared: int
    excluded: tuple[str, ...]

    def best(self, *, higher_is_better: bool) -> list[str]:
        """Return the labels of the best rows; several if their means are equal."""
        if not self.means:
            return []
        best = (max if higher_is_better else min)(self.means.values())
        return [row for row, mean in self.means.items() if mean == best]


def shared_means(grid: Grid, column: str, rows: Iterable[str]) -> SharedMeans:
    """Compute the means of the rows of a column over the splits that they share.

    Args:
        grid: The experiment with its scores.
        column: The label of the column.
        rows: The labels of the rows; those without a score are skipped.

    Returns:
        The means; none if the rows share no split.
    """
    cells = {row: cell for row in rows if (cell := grid.measured(row, column)) is not None}
    if not cells:
        return SharedMeans(means={}, shared=0, excluded=())
    usual_epochs, _ = Counter(cell.epochs for cell in cells.values()).most_common(1)[0]
    same_epochs = {row: cell for row, cell in cells.items() if cell.epochs == usual_epochs}
    usual_splits = median_low(len(cell.values) for cell in same_epochs.values())
    compared = {row: cell for row, cell in same_epochs.items() if 2 * len(cell.values) >= usual_splits}
    shared = sorted(set.intersection(*(set(cell.values) for cell in compared.values())))
    means = (
        {
            row: round(float(np.mean([cell.values[split] for split in shared])), _DIGITS)
            for row, cell in compared.items()
        }
        if shared
        else {}
    )
    return SharedMeans(means=means, shared=len(shared), excluded=tuple(row for row in cells if row not in means))
