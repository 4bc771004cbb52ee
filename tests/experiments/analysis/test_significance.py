"""Intervals, ranks and tests compared with slow references and SciPy."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from edhnn.experiments.analysis.significance import (
    average_ranks,
    corrected_resampled_p,
    holm,
    judge,
    least_gain,
    summarise,
)

scores = st.lists(st.floats(0, 100, width=32), min_size=2, max_size=12).map(lambda values: np.array(values, np.float64))
p_values = st.lists(st.floats(0, 1), max_size=12).map(lambda values: np.array(values, np.float64))


def slow_holm(p):
    """Compute by definition the level at which each is rejected: while the k-th smallest is at most level / (m - k)."""
    adjusted = []
    for value in p:
        smaller = [(other, sum(third < other for third in p)) for other in p if other <= value]
        adjusted.append(min(1.0, max(other * (len(p) - rank) for other, rank in smaller)))
    return adjusted


@given(scores)
def test_a_summary_has_mean_sample_deviation_and_interval(values):
    summary = summarise(values, np.random.default_rng(0))
    assert summary.mean == pytest.approx(sum(values) / len(values))
    assert summary.std == pytest.approx(np.sqrt(sum((values - summary.mean) ** 2) / (len(values) - 1)), abs=1e-6)
    tolerance = 1e-9 * max(values)
    assert min(values) - tolerance <= summary.low <= summary.high <= max(values) + tolerance
    assert summary.count == len(values)


def test_the_interval_equals_scipys():
    values = np.random.default_rng(1).normal(70, 3, 10)
    summary = summarise(values, np.random.default_rng(0))
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert (summary.low, summary.high) == pytest.approx((theirs.low, theirs.high), abs=0.1)
    assert summary == summarise(values, np.random.default_rng(0))


def test_the_interval_covers_the_mean_about_95_percent_of_the_time():
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        summary = summarise(generator.normal(5, 1, 40), generator)
        hits += summary.low <= 5 <= summary.high
    assert 180 <= hits <= 199


def test_one_score_has_no_spread():
    summary = summarise(np.array([3.5]), np.random.default_rng(0))
    assert (summary.mean, summary.std, summary.low, summary.high, summary.count) == (3.5, None, None, None, 1)


@given(st.integers(1, 6), st.integers(1, 5), st.randoms(use_true_random=False), st.booleans())
def test_ranks_match_their_definition_with_ties(rows, columns, random, higher):
    values = np.array([[random.randint(0, 3) for _ in range(columns)] for _ in range(rows)], np.float64)
    ranks = average_ranks(values, higher_is_better=higher)
    better = (lambda a, b: a > b) if higher else (lambda a, b: a < b)
    for row in range(rows):
        slow = [
            1
            + sum(better(values[other, column], values[row, column]) for other in range(rows))
            + 0.5 * sum(values[other, column] == values[row, column] for other in range(rows) if other != row)
            for column in range(columns)
        ]
        assert ranks[row] == pytest.approx(np.mean(slow))
    assert ranks.sum() == pytest.approx(rows * (rows + 1) / 2)


@given(scores)
def test_without_overlap_the_test_is_students_t_test(differences):
    differences = differences - 50
    if np.ptp(differences) < 1e-3:
        return
    expected = scipy.stats.ttest_1samp(differences, 0).pvalue
    assert corrected_resampled_p(differences, 0.0) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(scores, st.floats(0.01, 2))
def test_overlap_only_raises_p_and_the_sign_does_not_matter(differences, ratio):
    differences = differences - 50
    p = corrected_resampled_p(differences, ratio)
    assert 0 <= corrected_resampled_p(differences, 0.0) <= p + 1e-12 <= 1 + 2e-12
    assert corrected_resampled_p(-differences, ratio) == pytest.approx(p)


def test_equal_differences_are_no_evidence():
    assert corrected_resampled_p(np.zeros(4), 0.5) == 1.0
    assert corrected_resampled_p(np.full(2, 100 / 71), 0.5) == 1.0  # one test node of Senate, on both of two splits
    assert corrected_resampled_p(np.array([71.83 - 70.42, 67.61 - 66.2]), 0.5) == 1.0  # equal except for rounding
    assert corrected_resampled_p(np.array([1.0, 1.01]), 0.5) < 0.01


def halves_of_the_features(generator, nodes=200, width=5):
    """Return differences of accuracy between classifiers by class means on two halves of the features, on ten splits.

    Both halves have the same distribution, so neither classifier is truly better. Splits are 50/25/25 %.
    """
    y = generator.integers(0, 2, nodes)
    x = generator.normal(size=(nodes, 2 * width)) + 0.2 * (2 * y[:, None] - 1)
    differences = []
    for _ in range(10):
        order = generator.permutation(nodes)
        train, test = order[: nodes // 2], order[3 * nodes // 4 :]
        scores = []
        for half in (x[:, :width], x[:, width:]):
            centre, ones, zeros = (
                half[part].mean(axis=0) for part in (train, train[y[train] == 1], train[y[train] == 0])
            )
            scores.append(np.mean(((half[test] - centre) @ (ones - zeros) > 0) == (y[test] == 1)))
        differences.append(scores[0] - scores[1])
    return np.array(differences)


def test_overlapping_splits_mislead_students_test_but_not_the_corrected_one():
    """Count false positives in 300 trials at level 0.05: 15 are allowed."""
    generator = np.random.default_rng(7)
    alarms = np.zeros(2)
    for _ in range(300):
        differences = halves_of_the_features(generator)
        alarms += [corrected_resampled_p(differences, ratio) < 0.05 for ratio in (0.0, 0.5)]
    assert alarms[0] > 60
    assert alarms[1] <= 15


@given(p_values)
def test_holm_matches_its_definition(p):
    np.testing.assert_allclose(holm(p), slow_holm(p), rtol=1e-12)


@given(p_values, st.randoms(use_true_random=False))
def test_holm_keeps_the_order_and_only_raises_p(p, random):
    adjusted = holm(p)
    assert np.all(adjusted >= p)
    assert np.all(adjusted <= np.minimum(1, len(p) * p) + 1e-12)
    shuffled = random.sample(range(len(p)), len(p))
    np.testing.assert_allclose(holm(p[shuffled]), adjusted[shuffled])
    for a, b in itertools.combinations(range(len(p)), 2):
        assert (p[a] <= p[b]) <= (adjusted[a] <= adjusted[b])


def test_holm_on_textbook_numbers():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    assert len(holm(np.array([]))) == 0


@pytest.mark.parametrize(
    ("gain", "adjusted", "result"),
    [
        (1.0, 0.01, "better"),
        (-1.0, 0.01, "worse"),
        (1.0, 0.05, "not distinguishable"),
        (0.0, 0.0, "not distinguishable"),
        (9.0, None, "not enough splits"),
    ],
)
def test_gain_and_p_decide_the_result(gain, adjusted, result):
    assert judge(gain, adjusted) == result


@given(scores, st.floats(0, 1), st.floats(1e-4, 0.5))
def test_the_test_reaches_its_level_at_the_least_gain(values, ratio, level):
    least = least_gain(values, ratio, level)
    if np.ptp(values) < 1e-3:
        return
    for share, side in ((0.99, 1), (1.01, -1)):
        moved = values - values.mean() + share * least
        assert side * (corrected_resampled_p(moved, ratio) - level) > 0
    assert least_gain(np.full(4, 3.0), ratio, level) == 0
