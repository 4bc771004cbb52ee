"""Scores: intervals and comparisons against known values, precision and recall, and the words about floors."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from sklearn.metrics import precision_recall_fscore_support

from edhnn import Hypergraph, NodeDataset, Split
from edhnn.runs import scores as scores_module
from edhnn.runs.scores import FloorScore, score_run, verdict_words
from edhnn.training.objective import make_objective

NODES = 240


def made(task="classification", right=0.8, splits=4, x=None):
    """Return a dataset, folds, objectives, and the answers of models of which a share is right."""
    chance = np.random.default_rng(3)
    y = torch.from_numpy(chance.integers(0, 3, NODES))
    guesses = torch.where(torch.from_numpy(chance.random(NODES) < right), y, (y + 1) % 3)
    answers = torch.eye(3)[guesses].double()
    if task == "multilabel":
        y = torch.eye(3)[y]
        y[::5, 1] = torch.nan
    elif task == "regression":
        y, answers = y.double() * 10, guesses[:, None].double() * 10
    graph = Hypergraph.from_hyperedges([[v, (v + 1) % NODES, (v + 2) % NODES] for v in range(NODES)])
    x = torch.ones(NODES, 1) if x is None else x
    groups = [v // 6 for v in range(NODES)]
    dataset = NodeDataset(
        name="d", hypergraph=graph, x=x, y=y, task=task, node_attributes={"shop": groups},
        class_names=tuple("abc") if task != "regression" else None,
    )  # fmt: skip
    fold = np.arange(NODES) % splits
    parts = [[torch.from_numpy(np.flatnonzero((fold - k) % splits == n)) for n in range(splits)] for k in range(splits)]
    folds = [Split(torch.cat(part[2:]), part[1], part[0]) for part in parts]
    objectives = [make_objective(dataset, split.train) for split in folds]
    return dataset, folds, objectives, [answers] * splits


def score(task="classification", group=None, **settings):
    dataset, folds, objectives, answers = made(task, **settings)
    return score_run(dataset, folds, objectives, answers, "abc" if task != "regression" else "", group=group)


def test_an_accuracy_has_wilsons_interval():
    found = score().score
    hits = round(found.value / 100 * NODES)
    share, z = hits / NODES, 1.959964
    centre, spread = share + z**2 / (2 * NODES), z * np.sqrt(share * (1 - share) / NODES + z**2 / (4 * NODES**2))
    ends = [100 * (centre + sign * spread) / (1 + z**2 / NODES) for sign in (-1, 1)]
    assert (found.low, found.high) == pytest.approx(ends, abs=1e-3)
    assert (found.method, found.num_nodes) == ("wilson", NODES)


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_other_metrics_are_those_of_all_answers_and_have_a_bootstrap_interval(task):
    dataset, _, objectives, answers = made(task)
    found = score(task).score
    metric = objectives[0].metric
    expected = objectives[0].answer_metrics(answers[0], dataset.y.reshape(NODES, -1))[metric]
    assert found.value == pytest.approx(expected * (1 if task == "regression" else 100))
    assert found.low < found.value < found.high
    assert found.method == "bootstrap over nodes"


def test_groups_widen_the_interval_if_their_answers_are_alike():
    alone = score(group="shop").score
    assert alone.method == "bootstrap over groups"
    dataset, folds, objectives, _ = made()
    wrong = torch.arange(NODES) // 6 % 5 == 0  # whole groups are wrong
    alike = torch.eye(3)[torch.where(wrong, (dataset.y + 1) % 3, dataset.y)].double()
    together = score_run(dataset, folds, objectives, [alike] * 4, "abc", group="shop").score
    assert together.high - together.low > 1.7 * (alone.high - alone.low)
    perfect = score(group="shop", right=1.0).score
    assert perfect.value == perfect.high == 100
    assert perfect.low == pytest.approx(100 * binomtest(40, 40).proportion_ci(0.95, "wilson").low)


def test_the_comparison_is_mcnemars_test(monkeypatch):
    monkeypatch.setattr(scores_module, "_DRAWS", 20_000)
    dataset, folds, objectives, answers = made(right=0.5)
    other = torch.roll(answers[0], 7, 0)
    mine, theirs = (torch.stack([a.argmax(1) == dataset.y]).squeeze() for a in (answers[0], other))
    metric = scores_module._Metric(dataset, folds, objectives, None)
    sums = [metric.sums([each[split.test] for split in folds]) for each in (answers[0], other)]
    found = metric.compare("neighbours", *sums)
    ours, floors = int((mine & ~theirs).sum()), int((theirs & ~mine).sum())
    assert found.difference == pytest.approx(100 * (ours - floors) / NODES)
    assert found.p_value == pytest.approx(binomtest(ours, ours + floors).pvalue, abs=0.02)


def test_the_verdict_is_in_words_and_not_by_a_bare_difference():
    better = {floor.name: floor for floor in score(right=0.8).floors}
    assert [better[name].verdict for name in ("majority", "features", "neighbours")] == ["better"] * 3
    guessing = {floor.name: floor for floor in score(right=0.37).floors}
    assert guessing["majority"].verdict == "no better"
    worse = {floor.name: floor.verdict for floor in score(right=0.05).floors}
    assert worse["majority"] == "worse"
    floors = [
        FloorScore(name="majority", value=1.0, verdict="no better"),
        FloorScore(name="features", skipped="long"),
        FloorScore(name="neighbours", value=1.0, verdict="worse"),
    ]
    assert verdict_words(floors, 1200) == (
        "No better than guessing; worse than the neighbours' vote (paired over 1,200 nodes, at the 5 % level)."
    )
    floors = [FloorScore(name=name, value=1.0, verdict="no better") for name in ("majority", "features")]
    assert verdict_words(floors, 7).startswith("No better than guessing or the features alone (paired")
    values = {floor.name: floor for floor in score("regression", right=0.8).floors}
    assert values["majority"].difference > 0
    assert values["majority"].verdict == "better"


def test_a_model_that_answers_like_the_floor_is_no_better():
    dataset, folds, objectives, _ = made()
    from edhnn.training.floors import features_alone

    answers = []
    for split, objective in zip(folds, objectives, strict=True):
        table = torch.zeros(NODES, 3, dtype=torch.float64)
        table[split.test] = features_alone(dataset, split, objective)
        answers.append(table)
    floor = score_run(dataset, folds, objectives, answers, "abc").floors[1]
    assert (floor.name, floor.difference, floor.p_value, floor.verdict) == ("features", 0.0, 1.0, "no better")


@pytest.mark.parametrize("task", ["classification", "multilabel"])
def test_precision_and_recall_are_scikit_learns(task):
    dataset, _, _, answers = made(task)
    classes = score(task).classes
    y = dataset.y.numpy()
    for number, one in enumerate(classes):
        if task == "classification":
            true, predicted = y == number, answers[0].argmax(1).numpy() == number
        else:
            known = ~np.isnan(y[:, number])
            true, predicted = y[known, number] == 1, answers[0].numpy()[known, number] > 0.5
        precision, recall, _, support = precision_recall_fscore_support(true, predicted, labels=[True])
        assert (one.name, one.support) == ("abc"[number], support[0])
        assert (one.precision, one.recall) == pytest.approx((100 * precision[0], 100 * recall[0]))


def test_over_random_splits_the_score_is_the_mean_and_has_no_interval():
    dataset, folds, objectives, answers = made()
    again = [folds[0], folds[0], folds[1]]
    found = score_run(dataset, again, objectives[:3], answers[:3], "abc").score
    each = [float((answers[0][s.test].argmax(1) == dataset.y[s.test]).double().mean()) for s in again]
    assert found.value == pytest.approx(100 * np.mean(each))
    assert (found.low, found.high, found.method) == (None, None, None)


def test_very_many_nodes_are_drawn_in_parts(monkeypatch):
    exact = score("regression").score
    monkeypatch.setattr(scores_module, "_MANY_UNITS", 100)
    parts = score("regression").score
    assert parts.value == pytest.approx(exact.value)
    assert (parts.low, parts.high) == pytest.approx((exact.low, exact.high), rel=0.1)
