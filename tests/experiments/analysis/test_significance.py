"""Intervals, ranks and tests against slow references and SciPy's own."""

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

scores = st.lists(st.floats(0, 100, width=32), min_size=2, max_size=12).map(lambda found: np.array(found, np.float64))
p_values = st.lists(st.floats(0, 1), max_size=12).map(lambda found: np.array(found, np.float64))


def slow_holm(p):
    """By its definition: reject while the k-th smallest is at most level / (m - k); the level at which each falls."""
    adjusted = []
    for value in p:
        smaller = [(other, sum(third < other for third in p)) for other in p if other <= value]
        adjusted.append(min(1.0, max(other * (len(p) - rank) for other, rank in smaller)))
    return adjusted


@given(scores)
def test_a_summary_is_mean_sample_deviation_and_an_interval_around_the_mean(values):
    found = summarise(values, np.random.default_rng(0))
    assert found.mean == pytest.approx(sum(values) / len(values))
    assert found.std == pytest.approx(np.sqrt(sum((values - found.mean) ** 2) / (len(values) - 1)), abs=1e-6)
    tolerance = 1e-9 * max(values)
    assert min(values) - tolerance <= found.low <= found.high <= max(values) + tolerance
    assert found.count == len(values)


def test_the_interval_is_scipys():
    values = np.random.default_rng(1).normal(70, 3, 10)
    found = summarise(values, np.random.default_rng(0))
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.1)
    assert found == summarise(values, np.random.default_rng(0))


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        found = summarise(generator.normal(5, 1, 40), generator)
        hits += found.low <= 5 <= found.high
    assert 180 <= hits <= 199


def test_one_score_has_no_spread():
    found = summarise(np.array([3.5]), np.random.default_rng(0))
    assert (found.mean, found.std, found.low, found.high, found.count) == (3.5, None, None, None, 1)


@given(st.integers(1, 6), st.integers(1, 5), st.randoms(use_true_random=False), st.booleans())
def test_ranks_count_those_above_and_share_ties(rows, columns, random, higher):
    values = np.array([[random.randint(0, 3) for _ in range(columns)] for _ in range(rows)], np.float64)
    found = average_ranks(values, higher_is_better=higher)
    better = (lambda a, b: a > b) if higher else (lambda a, b: a < b)
    for row in range(rows):
        slow = [
            1
            + sum(better(values[other, column], values[row, column]) for other in range(rows))
            + 0.5 * sum(values[other, column] == values[row, column] for other in range(rows) if other != row)
            for column in range(columns)
        ]
        assert found[row] == pytest.approx(np.mean(slow))
    assert found.sum() == pytest.approx(rows * (rows + 1) / 2)


@given(scores)
def test_without_overlap_the_test_is_students(differences):
    differences = differences - 50
    if np.ptp(differences) < 1e-3:
        return
    expected = scipy.stats.ttest_1samp(differences, 0).pvalue
    assert corrected_resampled_p(differences, 0.0) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(scores, st.floats(0.01, 2))
def test_overlap_only_makes_it_more_careful_and_the_sign_does_not_matter(differences, ratio):
    differences = differences - 50
    careful = corrected_resampled_p(differences, ratio)
    assert 0 <= corrected_resampled_p(differences, 0.0) <= careful + 1e-12 <= 1 + 2e-12
    assert corrected_resampled_p(-differences, ratio) == pytest.approx(careful)


def test_differences_that_are_all_the_same_are_no_evidence():
    assert corrected_resampled_p(np.zeros(4), 0.5) == 1.0
    assert corrected_resampled_p(np.full(2, 100 / 71), 0.5) == 1.0  # one test node of Senate, on both of two splits
    assert corrected_resampled_p(np.array([71.83 - 70.42, 67.61 - 66.2]), 0.5) == 1.0  # the same, but for rounding
    assert corrected_resampled_p(np.array([1.0, 1.01]), 0.5) < 0.01


def halves_of_the_features(generator, nodes=200, width=5):
    """Ten splits of 50/25/25 %: accuracy of class means on one half of the features minus the same on the other.

    Both halves are drawn alike, so neither classifier is truly better.
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


def test_overlapping_splits_fool_students_test_and_not_the_corrected_one():
    """False alarms in 300 trials at level 0.05: 15 are allowed."""
    generator = np.random.default_rng(7)
    alarms = np.zeros(2)
    for _ in range(300):
        differences = halves_of_the_features(generator)
        alarms += [corrected_resampled_p(differences, ratio) < 0.05 for ratio in (0.0, 0.5)]
    assert alarms[0] > 60
    assert alarms[1] <= 15


@given(p_values)
def test_holm_is_its_definition(p):
    np.testing.assert_allclose(holm(p), slow_holm(p), rtol=1e-12)


@given(p_values, st.randoms(use_true_random=False))
def test_holm_keeps_order_and_only_raises(p, random):
    adjusted = holm(p)
    assert np.all(adjusted >= p)
    assert np.all(adjusted <= np.minimum(1, len(p) * p) + 1e-12)
    shuffled = random.sample(range(len(p)), len(p))
    np.testing.assert_allclose(holm(p[shuffled]), adjusted[shuffled])
    for a, b in itertools.combinations(range(len(p)), 2):
        assert (p[a] <= p[b]) <= (adjusted[a] <= adjusted[b])


def test_holm_on_the_textbooks_numbers():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    assert len(holm(np.array([]))) == 0


@pytest.mark.parametrize(
    ("gain", "adjusted", "said"),
    [
        (1.0, 0.01, "better"),
        (-1.0, 0.01, "worse"),
        (1.0, 0.05, "not distinguishable"),
        (0.0, 0.0, "not distinguishable"),
        (9.0, None, "not enough splits"),
    ],
)
def test_outcomes(gain, adjusted, said):
    assert judge(gain, adjusted) == said


@given(scores, st.floats(0, 1), st.floats(1e-4, 0.5))
def test_the_least_gain_is_where_the_test_reaches_its_level(values, ratio, level):
    found = least_gain(values, ratio, level)
    if np.ptp(values) < 1e-3:
        return
    for share, side in ((0.99, 1), (1.01, -1)):
        moved = values - values.mean() + share * found
        assert side * (corrected_resampled_p(moved, ratio) - level) > 0
    assert least_gain(np.full(4, 3.0), ratio, level) == 0
