r"""Comparing scores over splits: intervals, ranks, a paired test, and the correction for making many of them.

The splits of a dataset are drawn again and again from the same nodes: two of them share half of their training nodes,
so their scores are not independent, and a test that takes them for independent (Student's, Wilcoxon's) finds
differences that are not there. The corrected resampled t-test (Nadeau and Bengio, 2003) knows this: the variance of the
mean difference over $n$ splits is not $s^2 / n$ but about $s^2 (1/n + n_\mathrm{test} / n_\mathrm{train})$. With ten
splits of 50 % training and 25 % test nodes that is six times the variance. It also works with five splits, where
Wilcoxon's smallest p is 0.06.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import scipy.special

from edhnn.typing import FloatArray

LEVEL = 0.05
_RESAMPLES = 10_000

Outcome = Literal["better", "worse", "not distinguishable", "not enough splits"]


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
    """Mean, sample standard deviation and the 95 % percentile bootstrap interval of the mean.

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
    """Mean rank of each row over the columns; 1 is best, equals share the mean of their ranks.

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
    r"""Two-sided p of the corrected resampled t-test.

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
    r"""The mean difference at which the corrected resampled t-test would reach a level, the spread being what it is.

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
    """Holm's adjusted p values: below the level for any of them, by chance alone, with at most that probability.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none is smaller than one before it, or above 1.
    """
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted


def judge(gain: float, adjusted: float | None) -> Outcome:
    """What a comparison says of the first of two: ``gain`` is how much better it is, ``adjusted`` the p value."""
    if adjusted is None:
        return "not enough splits"
    if adjusted >= LEVEL or gain == 0:
        return "not distinguishable"
    return "better" if gain > 0 else "worse"
