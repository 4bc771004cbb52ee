"""Claims: every verdict is possible, and a counterexample overrides everything else."""

import re

import pytest

from edhnn.experiments.analysis.claims import check_claims, decide
from edhnn.experiments.analysis.grid import RecordIndex, gather
from edhnn.experiments.spec import packaged_experiment
from tests.experiments.analysis.test_findings import JITTER
from tests.experiments.made import made_records


def verdicts(name, value, **more):
    experiment = packaged_experiment(name)
    grid = gather(experiment, RecordIndex(made_records(experiment, value, **more)))
    return check_claims({name: grid})


def noise(cell, split):
    return 0.2 * JITTER[sum(map(ord, cell.row + cell.column)) % 40, split]


@pytest.mark.parametrize(
    ("outcomes", "complete", "verdict"),
    [
        (["better", "better"], True, "holds"),
        (["better", "not distinguishable"], True, "not distinguishable"),
        (["better", "worse", "not distinguishable"], False, "does not hold"),
        (["better"], False, "not enough records"),
        (["better", "not enough splits"], True, "not enough records"),
        ([], True, "not enough records"),
    ],
)
def test_the_results_of_comparisons_decide_the_verdict(outcomes, complete, verdict):
    assert decide(outcomes, complete=complete) == verdict


def test_the_sbm_claim_is_about_the_papers_baselines_from_alpha_3_on():
    def value(cell, split):
        easy = cell.column in ("alpha 1", "alpha 2")
        return 80 + noise(cell, split) + (10 if (cell.row == "ED-HNN") != easy or "Features" in cell.row else 0)

    best, floor = verdicts("table3", value)
    assert best.verdict == "holds"
    assert "in 20 of 20" in best.evidence[0]
    assert floor.verdict == "does not hold"  # the floor is as high as ED-HNN and above all others


def test_a_counterexample_is_named():
    def value(cell, split):
        return (
            80
            + noise(cell, split)
            + 10 * (cell.row == "ED-HNN")
            + 20 * ((cell.row, cell.column) == ("HGNN", "alpha 6"))
        )

    best, _ = verdicts("table3", value)
    assert best.verdict == "does not hold"
    assert any(text.startswith("The opposite: alpha 6: HGNN (−") for text in best.evidence)


def test_cells_with_other_epochs_support_no_verdict():
    def value(cell, split):
        return 80 + noise(cell, split) + 10 * (cell.row == "ED-HNN")

    best, _ = verdicts("table3", value, epochs=5)
    assert best.verdict == "not enough records"
    best, _ = verdicts("table3", value)
    assert (best.verdict, best.rests_on) == ("holds", "Shared splits: 10.")


def test_missing_records_are_named():
    best, floor = verdicts("table3", lambda cell, split: None if cell.row == "HGNN" else 80 + noise(cell, split))
    assert (best.verdict, floor.verdict) == ("not enough records", "not enough records")
    assert "HGNN" in " ".join(best.evidence)


def test_a_column_without_records_is_named_without_rows():
    def value(cell, split):
        absent = cell.column == "alpha 3" or (cell.row, cell.column) == ("HGNN", "alpha 6")
        return None if absent else 80 + noise(cell, split)

    best, _ = verdicts("table3", value)
    assert "Not enough records: alpha 3; alpha 6: HGNN." in best.evidence


def test_a_row_that_is_best_in_every_column_holds():
    claim = verdicts("table2", lambda cell, split: 80 + noise(cell, split) + 9 * (cell.row == "ED-HNN"))[0]
    assert claim.verdict == "holds"
    assert "in 40 of 40 comparisons" in claim.evidence[0]


def test_evidence_includes_the_comparison_of_means():
    def value(cell, split):
        return 80 + 20 * noise(cell, split) + (1 if cell.row == "ED-HNN" else 0) - 99 * (cell.row == "HGNN")

    evidence = verdicts("table2", value)[0].evidence[0]
    better = int(re.search(r"in (\d+) of 40 comparisons", evidence)[1])
    ahead = int(re.search(r"By the means alone: in (\d+) of 40", evidence)[1])
    assert 5 <= better < ahead


def test_depth_helps_only_our_network():
    def value(cell, split):
        deep = int(cell.column.split(", ")[1])
        return 60 + noise(cell, split) + (deep if cell.row == "ED-HNN" else -deep)

    assert [claim.verdict for claim in verdicts("figure2", value)] == ["holds", "holds"]
    flat = verdicts("figure2", lambda cell, split: 60 + noise(cell, split))
    assert [claim.verdict for claim in flat] == ["not distinguishable", "not distinguishable"]
    assert re.search(r"in 0 of 8 comparisons; .* By the means alone: .* does not prove it", flat[1].evidence[0])
    rising = verdicts(
        "figure2", lambda cell, split: value(cell, split) if cell.row == "ED-HNN" else 120 - value(cell, split)
    )
    assert [claim.verdict for claim in rising] == ["holds", "does not hold"]


@pytest.mark.parametrize("name", ["figure3", "figure5"])
def test_the_difference_of_operators_and_its_growth_are_two_claims(name):
    def verdicts_for(gap, splits=3):
        def score(cell, split):
            width = int(cell.column.split(", ")[1])
            return 0.1 + 1e-4 * noise(cell, split) + (gap(width) if cell.row == "Invariant" else 0)

        return [claim.verdict for claim in verdicts(name, score, splits=splits)[:2]]

    assert verdicts_for(lambda width: 1 / width) == ["holds", "holds"]
    assert verdicts_for(lambda width: width / 100) == ["holds", "does not hold"]
    assert verdicts_for(lambda width: -0.05) == ["does not hold", "not distinguishable"]
    assert verdicts_for(lambda width: 0) == ["not distinguishable", "not distinguishable"]
    assert verdicts_for(lambda width: 0, splits=1) == ["not enough records", "not enough records"]


@pytest.mark.parametrize(
    ("name", "panels", "widths"), [("figure3", ["LEC"], {8, 16, 32, 64}), ("figure5", ["TV", "LEC"], {8})]
)
def test_the_lowest_error_is_claimed_among_all_networks(name, panels, widths):
    def claim_for(better):
        """Give errors of 1, except 2 to ED-HNN where another row must be better and in cells without a claim."""

        def score(cell, split):
            panel, width = cell.column.split(", ")
            claimed = panel in panels and int(width) in widths
            ahead = cell.row == better if claimed else cell.row != "ED-HNN"
            return 2 - ahead + 1e-3 * noise(cell, split)

        return verdicts(name, score, splits=3)[2]

    assert claim_for("ED-HNN").verdict == "holds"
    assert f"in {3 * len(panels) * len(widths)} of {3 * len(panels) * len(widths)}" in claim_for("ED-HNN").evidence[0]
    assert claim_for("AllDeepSets").verdict == "does not hold"
    assert "released" not in " ".join(claim_for("ED-HNN, released layer").evidence)  # it has another size


@pytest.mark.parametrize("name", ["figure3", "figure5"])
def test_released_layers_are_a_question_of_ours(name):
    def verdicts_for(worse):
        *others, layers = verdicts(
            name, lambda cell, split: 1 + 1e-3 * noise(cell, split) + (cell.row == worse), splits=3
        )
        assert [claim.papers for claim in (*others, layers)] == [True, True, True, False]
        return others[0].verdict, layers.verdict

    assert verdicts_for("Invariant") == ("holds", "not distinguishable")
    assert verdicts_for("Invariant, released layer") == ("not distinguishable", "holds")


def test_only_the_given_experiments_are_judged():
    assert check_claims({}) == []
