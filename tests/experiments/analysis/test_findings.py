"""Findings of a grid: best rows, ranks, and tests against the reference."""

import numpy as np
import pytest
import scipy.stats

from edhnn.experiments.analysis.findings import analyse, contrast_family, gains, least_gains
from edhnn.experiments.analysis.grid import RecordIndex, gather
from edhnn.experiments.spec import packaged_experiment
from tests.experiments.made import made_records

LEVELS = {"ED-HNN": 90.0, "HGNN": 70.0, "MLP": 89.9, "AllDeepSets": 95.0}
JITTER = np.random.default_rng(0).normal(0, 0.5, (40, 10))


def score(cell, split):
    """Return the level of the row plus noise: one part is shared by all rows of a split, one is independent."""
    independent = JITTER[sum(map(ord, cell.row + cell.column)) % 40, split]
    return LEVELS.get(cell.row, 60.0) + JITTER[0, split] + independent


def findings(value=score, name="table3", **more):
    experiment = packaged_experiment(name)
    return analyse(gather(experiment, RecordIndex(made_records(experiment, value, **more))))


def test_clear_differences_are_found_and_unclear_ones_are_ties():
    result = findings()
    assert result.reference == "ED-HNN"
    assert result.tally("HGNN") == (6, 0, 0)
    assert result.tally("AllDeepSets") == (0, 0, 6)
    assert result.tally("MLP") == (0, 6, 0)
    assert result.tally("ED-HNN") == (0, 0, 0)
    assert result.best["alpha 3"] == ["AllDeepSets"]


def test_the_family_is_the_whole_table():
    result = findings()
    table = packaged_experiment("table3")
    others = len(table.row) - 3  # without itself and the two ceilings
    assert len(result.contrasts) == others * len(table.column)
    for contrast in result.contrasts.values():
        assert contrast.p <= contrast.adjusted <= min(1.0, len(result.contrasts) * contrast.p)
        assert contrast.shared == 10


def test_ranks_are_over_columns_with_most_rows():
    result = findings(
        lambda cell, split: None if cell.row == "HGNN" and cell.column == "alpha 7" else score(cell, split)
    )
    assert "HGNN" not in result.ranks
    assert result.ranks["AllDeepSets"] == 1
    assert result.ranked_over == dict.fromkeys(("alpha 1", "alpha 2", "alpha 3", "alpha 4", "alpha 6", "alpha 7"), 10)
    result = findings(lambda cell, split: score(cell, split) if cell.column == "alpha 1" or cell.row == "MLP" else None)
    assert result.ranked_over == {"alpha 1": 10}
    assert len(result.ranks) == len(packaged_experiment("table3").row) - 2
    assert findings(lambda cell, split: score(cell, split) if cell.row == "MLP" else None).ranks == {}


def test_a_ceiling_is_neither_best_nor_ranked_nor_compared():
    ceiling = "Generator known"
    result = findings(lambda cell, split: 99.0 if cell.row == ceiling else score(cell, split))
    assert result.summaries[ceiling, "alpha 3"].mean == 99
    assert result.best["alpha 3"] == ["AllDeepSets"]
    assert ceiling not in result.ranks
    assert not any(row == ceiling for row, _ in result.contrasts)


def test_best_and_ranks_are_over_shared_splits():
    def value(cell, split):
        if cell.row == "ED-HNN":
            return 90.0 - 2 * split  # best on the three shared splits, below the others over all splits
        return None if split > 2 else 85.0

    result = findings(value)
    assert result.summaries["ED-HNN", "alpha 3"].mean == 81.0
    assert result.best["alpha 3"] == ["ED-HNN"]
    assert result.ranks["ED-HNN"] == 1


def test_a_row_with_few_splits_does_not_reduce_the_shared_splits():
    def value(cell, split):
        if cell.row == "HGNN" and split > 1:
            return None
        return 99.0 if cell.row == "HGNN" else score(cell, split)

    result = findings(value)
    assert result.best["alpha 3"] == ["AllDeepSets"]
    assert result.shared_means["alpha 3"].excluded == ("HGNN",)
    assert result.shared_means["alpha 3"].shared == 10
    assert "HGNN" not in result.ranks


def test_a_row_with_other_epochs_is_neither_best_nor_ranked_nor_tested():
    experiment = packaged_experiment("table3")
    records = made_records(experiment, lambda cell, split: 99.0 if cell.row == "HGNN" else score(cell, split))
    for record in records:
        if record["row"] == "HGNN":
            record["settings"]["train"]["epochs"] = 7
    result = analyse(gather(experiment, RecordIndex(records)))
    assert result.summaries["HGNN", "alpha 3"].mean == 99
    assert result.best["alpha 3"] == ["AllDeepSets"]
    assert "HGNN" not in result.ranks
    assert not any(row == "HGNN" for row, _ in result.contrasts)


def test_equal_means_do_not_depend_on_the_order_of_the_sum():
    steps = (70.1, 70.2, 71.3)
    assert np.mean(steps) != np.mean(steps[::-1])
    orders = {"ED-HNN": steps, "HGNN": steps[::-1]}
    result = findings(lambda cell, split: orders.get(cell.row, (0, 0, 0))[split], splits=3)
    assert result.best["alpha 3"] == ["HGNN", "ED-HNN"]
    assert result.ranks["HGNN"] == result.ranks["ED-HNN"] == 1.5


def test_no_row_is_best_with_fewer_than_two_networks():
    floors = ("MLP", "Features alone: L1 logistic")
    result = findings(lambda cell, split: 80.0 if cell.row in floors or cell.row == "ED-HNN" else None)
    assert result.best == {}


def test_one_split_is_not_enough_for_a_test():
    result = findings(splits=1)
    assert {contrast.result for contrast in result.contrasts.values()} == {"not enough splits"}
    assert result.tally("HGNN") == (0, 0, 0)


def test_lower_is_better_for_errors():
    def error(cell, split):
        return 0.1 + 0.001 * JITTER[sum(map(ord, cell.row)) % 40, split] + (cell.row != "ED-HNN")

    result = findings(error, "figure5", splits=3)
    assert result.best["TV, 8"] == ["ED-HNN"]
    assert result.tally("Invariant") == (8, 0, 0)


@pytest.mark.parametrize("name", ["table7", "table8"])
def test_facts_and_times_are_not_tested(name):
    result = findings(lambda cell, split: 1.0, name, splits=1)
    assert not result.contrasts
    assert not result.ranks


def test_gains_are_over_shared_splits():
    assert gains({0: 3.0, 1: 5.0, 4: 1.0}, {1: 4.0, 0: 1.0, 3: 9.0}, higher_is_better=True) == {0: 2.0, 1: 1.0}
    assert gains({0: 3.0}, {0: 1.0}, higher_is_better=False) == {0: -2.0}


def test_a_family_of_one_is_not_corrected():
    values = {0: 1.0, 1: 2.0, 2: 4.0}
    (result,) = contrast_family({"a": values, "b": {}}, 0.0).values()
    assert result.adjusted == result.p == pytest.approx(scipy.stats.ttest_1samp(list(values.values()), 0).pvalue)
    assert contrast_family({}, 0.5) == {}


def test_significant_gains_exceed_the_least_gain():
    noise = np.random.default_rng(5).normal(0, 1, (30, 8))
    family = {number: dict(enumerate(row + number / 4)) for number, row in enumerate(noise)}
    contrasts = contrast_family(family, 0.5)
    strongest = [one for one in contrasts.values() if one.adjusted == min(two.adjusted for two in contrasts.values())]
    assert all((one.result == "better") == (one.gain > one.least) for one in strongest)
    clear = [one for one in contrasts.values() if abs(one.gain) > one.least]
    assert clear
    assert all(one.result == "better" for one in clear)
    assert contrast_family({"a": {0: 1.0}}, 0.5)["a"].least is None
    named = [("even" if number % 2 == 0 else "odd", one) for number, one in contrasts.items()]
    assert least_gains(named)["odd"] == np.median([one.least for name, one in named if name == "odd"])
    assert least_gains([("none", contrast_family({"a": {0: 1.0}}, 0.5)["a"])]) == {}
