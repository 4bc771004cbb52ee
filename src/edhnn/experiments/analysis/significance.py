r"""Comparing scores over splits: intervals, ranks, a paired test, and the correction for making many of them.

The splits of a dataset are drawn again and again from the same nodes: two of them share half of their training nodes,
so their scores are not independent, and a test that takes them for independent (Student's, Wilcoxon's) finds
differences that are not there. The corrected resampled t-test (Nadeau and Bengio, 2003) allows for this: the variance
of the mean difference over $n$ splits is not $s^2 / n$ but about $s^2 (1/n + n_\mathrm{test} / n_\mathrm{train})$. With
ten splits of 50 % training and 25 % test nodes that is six times the variance. It also works with five splits, where
Wilcoxon's smallest p is 0.06.

Means compete only over the same splits and after the same epochs. So the rows of a column compete over the splits that
all of them share, and a row is left out if it was not trained for the epochs that most of them were, or if it has fewer
than half as many splits as their median: the others would be judged by its few.
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
"""How the first of two compares with the second."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Scores of a cell.

    Attributes:
        mean: Their mean.
        std: Their sample standard deviation; ``None`` for a single score.
        low: Lower end of the 95 % bootstrap interval of the mean; ``None`` for a single score.
        high: Its upper end.
        count: How many they are.
    """

    mean: float
    std: float | None
    low: float | None
    high: float | None
    count: int


def summarise(values: FloatArray, generator: np.random.Generator) -> Summary:
    """Compute mean, sample standard deviation and the 95 % percentile bootstrap interval of the mean.

    Args:
        values: Scores of the splits, at least one.
        generator: Draws the resamples.

    Returns:
        The summary. With few splits the interval is too narrow: it never leaves the range of the scores.
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
    """Compute the mean rank of each row over the columns; 1 is best, equals share the mean of their ranks.

    Args:
        values: Scores, a row per method and a column per dataset; none missing.
        higher_is_better: Whether the largest score has rank 1.

    Returns:
        A rank per row.
    """
    from scipy.stats import rankdata  # half a second to load, and only a report ranks

    ranks = rankdata(-values if higher_is_better else values, axis=0)
    return np.asarray(ranks.mean(axis=1), dtype=np.float64)


def corrected_resampled_p(differences: FloatArray, test_to_train: float) -> float:
    r"""Compute the two-sided p of the corrected resampled t-test.

    $t = \bar d \,/\, \sqrt{(1/n + n_\mathrm{test}/n_\mathrm{train})\, s^2}$ with $n - 1$ degrees of freedom.

    Args:
        differences: One score minus the other on each split, at least two.
        test_to_train: Size of the test part over that of the training part.

    Returns:
        The p value; 1 if all differences are the same. Shares of few test nodes often are, on two or three splits, and
        a variance of 0 is then no estimate: it is no evidence.
    """
    count = len(differences)
    mean, variance = float(differences.mean()), float(differences.var(ddof=1))
    if np.ptp(differences) <= 1e-9 * np.abs(differences).max():
        return 1.0
    t = mean / np.sqrt((1 / count + test_to_train) * variance)
    return float(2 * scipy.special.stdtr(count - 1, -abs(t)))


def least_gain(differences: FloatArray, test_to_train: float, level: float) -> float:
    r"""Compute the mean difference at which the corrected resampled t-test would reach a level, with this spread.

    $t_{1 - \mathrm{level}/2} \sqrt{(1/n + n_\mathrm{test}/n_\mathrm{train})\, s^2}$: what a test that found
    nothing could have found.

    Args:
        differences: One score minus the other on each split, at least two.
        test_to_train: Size of the test part over that of the training part.
        level: The level, two-sided.

    Returns:
        The difference; 0 if all differences are the same.
    """
    count, variance = len(differences), float(differences.var(ddof=1))
    return float(scipy.special.stdtrit(count - 1, 1 - level / 2) * np.sqrt((1 / count + test_to_train) * variance))


def holm(p: FloatArray) -> FloatArray:
    """Adjust p values by Holm's method: by chance alone any is below the level with at most that probability.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none is smaller than one before it, or above 1.
    """
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted


def judge(gain: float, adjusted: float | None) -> Comparison:
    """Compare the first of two with the second: ``gain`` is how much better it is, ``adjusted`` the p value."""
    if adjusted is None:
        return "not enough splits"
    if adjusted >= LEVEL or gain == 0:
        return "not distinguishable"
    return "better" if gain > 0 else "worse"


_DIGITS = 9
"""Means are rounded to these, so that equals are equal whatever the order of a sum."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The rows that compete in a column.

    Attributes:
        means: The mean of each, over the shared splits.
        shared: How many splits they share.
        left_out: Rows that have a number and do not compete.
    """

    means: Mapping[str, float]
    shared: int
    left_out: tuple[str, ...]

    def best(self, *, higher_is_better: bool) -> list[str]:
        """Return the best rows; more than one if they are equal."""
        if not self.means:
            return []
        best = (max if higher_is_better else min)(self.means.values())
        return [row for row, mean in self.means.items() if mean == best]


def compete(grid: Grid, column: str, rows: Iterable[str]) -> Contest:
    """Compare the rows of a column by their means.

    Args:
        grid: The experiment with its scores.
        column: The label of the column.
        rows: The rows to compare; one without a number is skipped.

    Returns:
        The contest; without rows if those that would compete share no split.
    """
    cells = {row: cell for row in rows if (cell := grid.measured(row, column)) is not None}
    if not cells:
        return Contest(means={}, shared=0, left_out=())
    usual_epochs, _ = Counter(cell.epochs for cell in cells.values()).most_common(1)[0]
    alike = {row: cell for row, cell in cells.items() if cell.epochs == usual_epochs}
    usual_splits = median_low(len(cell.values) for cell in alike.values())
    taken = {row: cell for row, cell in alike.items() if 2 * len(cell.values) >= usual_splits}
    shared = sorted(set.intersection(*(set(cell.values) for cell in taken.values())))
    means = (
        {row: round(float(np.mean([cell.values[split] for split in shared])), _DIGITS) for row, cell in taken.items()}
        if shared
        else {}
    )
    return Contest(means=means, shared=len(shared), left_out=tuple(row for row in cells if row not in means))
