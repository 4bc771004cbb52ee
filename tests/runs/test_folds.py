"""Runs with folds: each labelled node is answered once, by a model that was neither trained nor selected by it."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from edhnn import Plan, TrainConfig, UsageError, contextual_sbm, load_dataset, train
from edhnn.runs.evaluate import evaluate_run
from edhnn.runs.folder import RunFolder
from edhnn.runs.plan import make_plan
from edhnn.runs.predict import load_models
from edhnn.tuning.run import tune
from edhnn.tuning.search import Search, write_winner

SMALL = {"hidden": 8, "classifier_hidden": 8}


@pytest.fixture(scope="module")
def shop():
    """A hypergraph of 60 nodes, some unlabelled, with groups of three and a column of splits."""
    data = contextual_sbm(1, nodes_per_class=30, num_hyperedges=30, edge_size=5)
    y = data.y.clone()
    y[::10] = -1
    parts = (["train"] * 4 + ["valid", "test"]) * 10
    attributes = {"brand": [f"b{node // 3}" for node in range(60)], "part": parts}
    return replace(
        data, name="shop", x=data.x[:, :4].contiguous(), y=y, class_names=("in", "out"), node_attributes=attributes
    )


def of_task(shop, task):
    if task == "classification":
        return shop
    chance = torch.Generator().manual_seed(0)
    y = torch.stack([shop.y, 1 - shop.y], dim=1).float()
    y[shop.y < 0] = torch.nan
    if task == "multilabel":
        return replace(shop, y=y, task=task, class_names=("in", "out"))
    return replace(shop, y=y + torch.randn(60, 2, generator=chance), task=task, class_names=None)


def plan_for(data, **wanted):
    return make_plan(data, settings={**SMALL, "epochs": 3}, **wanted)


@pytest.mark.parametrize(
    ("task", "group"),
    [("classification", None), ("classification", "brand"), ("multilabel", None), ("regression", "brand")],
)
def test_every_labelled_node_is_answered_once_by_a_model_that_has_not_seen_it(shop, tmp_path, task, group):
    data = of_task(shop, task)
    summary = train(data, plan_for(data, group=group), out=tmp_path / "run", jobs=1)
    folder = RunFolder(tmp_path / "run")
    with (folder.path / "out-of-fold.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    known = data.labelled.nonzero()[:, 0].tolist()
    assert [int(row["node"]) for row in rows] == known
    splits, models = folder.read_splits(), load_models(folder.path)
    assert len(splits) == summary.to_json()["score"]["num_nodes"] // 10 == 5
    answers = [
        member.objective.answers(output) for member, output in zip(models.members, models.outputs(data), strict=True)
    ]
    column = "p(in)" if task != "regression" else "prediction_0"
    for row, node in zip(rows, known, strict=True):
        fold = int(row["fold"])
        assert node in splits[fold].test
        assert node not in torch.cat([splits[fold].train, splits[fold].valid])
        assert float(row[column]) == pytest.approx(float(answers[fold][node, 0]))
        unseen = [k for k, split in enumerate(splits) if node not in torch.cat([split.train, split.valid])]
        assert unseen == [fold]
        if group is not None:  # nothing of its group was learned from, or chose the epoch
            members = [other for other in known if other // 3 == node // 3]
            assert not {*members} & {*torch.cat([splits[fold].train, splits[fold].valid]).tolist()}
    pooled = torch.stack([answers[int(row["fold"])][node] for row, node in zip(rows, known, strict=True)])
    metrics = models.first.objective.answer_metrics(pooled, (data.y)[known])
    factor = 1 if task == "regression" else 100
    assert summary.score.value == pytest.approx(factor * metrics[summary.metric])
    assert summary.score.low <= summary.score.value <= summary.score.high
    evaluated = evaluate_run(folder.path, data)
    assert evaluated["out_of_fold"] == pytest.approx(metrics)
    assert evaluated["num_nodes"] == len(splits[0].test)
    assert evaluate_run(folder.path, data, 1)["std"] is None
    mean = torch.stack([answer.double() for answer in answers]).mean(dim=0)
    assert torch.allclose(models.answers(data).double(), mean)  # the final answer is the mean of all folds' models


def test_the_table_of_answers_has_labels_probabilities_and_folds(shop, tmp_path):
    summary = train(shop, plan_for(shop), out=tmp_path / "run", jobs=1)
    lines = (tmp_path / "run/out-of-fold.csv").read_text().splitlines()
    assert lines[0] == '"node","label","prediction","p(in)","p(out)","fold"'
    assert len(lines) == 55
    right = [row["label"] == row["prediction"] for row in csv.DictReader(lines)]
    assert summary.score.value == pytest.approx(100 * np.mean(right))
    predicted = {
        row["node"]: row for row in csv.DictReader((tmp_path / "run/predictions.csv").read_text().splitlines())
    }
    assert all(predicted[row["node"]]["held_out_prediction"] == row["prediction"] for row in csv.DictReader(lines))
    content = json.loads((tmp_path / "run/summary.json").read_text())
    assert content["protocol"] == "folds"
    assert [floor["name"] for floor in content["floors"]] == ["majority", "features", "neighbours"]
    assert [one["name"] for one in content["classes"]] == ["in", "out"]
    assert sum(one["support"] for one in content["classes"]) == 54
    page = (tmp_path / "run/report.html").read_text()
    assert summary.verdict.partition(" (")[0] in page.replace("&#39;", "'")
    assert "neighbours&#39; vote" in page
    assert f"95 % interval {summary.interval}" in page


@pytest.mark.slow
def test_two_processes_and_a_resumption_give_the_same_bits(shop, tmp_path):
    plan = plan_for(shop, group="brand")
    train(shop, plan, out=tmp_path / "one", jobs=1)
    train(shop, plan, out=tmp_path / "two", jobs=2)
    names = ("out-of-fold.csv", "predictions.csv", "metrics.jsonl", "config.json")
    first = [(tmp_path / "one" / name).read_bytes() for name in names]
    assert first == [(tmp_path / "two" / name).read_bytes() for name in names]
    scores = [json.loads((tmp_path / name / "summary.json").read_text()) for name in ("one", "two")]
    assert [scores[0][key] for key in ("score", "floors", "classes")] == [
        scores[1][key] for key in ("score", "floors", "classes")
    ]
    (tmp_path / "one/splits/02/result.json").unlink()
    train(shop, plan, out=tmp_path / "one", jobs=1, resume=True)
    assert first == [(tmp_path / "one" / name).read_bytes() for name in names]
    with pytest.raises(UsageError, match="group is 'brand' there, None here"):
        train(shop, plan_for(shop), out=tmp_path / "one", resume=True)


def test_data_of_the_catalogue_have_the_papers_splits_and_other_data_folds(shop):
    paper = load_dataset("csbm-1")
    assert (make_plan(paper).protocol, make_plan(paper).num_splits) == ("splits", 10)
    assert (make_plan(paper, folds=4).protocol, make_plan(paper, folds=4).num_splits) == ("folds", 4)
    assert (make_plan(shop).protocol, make_plan(shop).num_splits) == ("folds", 5)
    assert (make_plan(shop, splits=7).protocol, make_plan(shop, splits=7).num_splits) == ("splits", 7)
    assert make_plan(replace(shop, name="cora"), preset="paper").protocol == "splits"
    few = replace(shop, y=torch.where(torch.arange(60) < 58, torch.tensor(-1), shop.y))
    assert make_plan(few).num_splits == 3


def test_a_plan_file_names_folds_and_arguments_override_it(shop, tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text('folds = 4\ngroup = "brand"\n')
    plan = make_plan(shop, file=file)
    assert (plan.protocol, plan.num_splits, plan.group) == ("folds", 4, "brand")
    assert make_plan(shop, folds=3, file=file).group == "brand"
    file.write_text("splits = 4\nfolds = 4\n")
    with pytest.raises(UsageError, match="`splits=` and `folds=` exclude each other"):
        make_plan(shop, file=file)
    assert make_plan(shop, split_column="part", file=file).protocol == "given"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"splits": 3, "folds": 3}, "exclude each other"),
        ({"splits": 3, "group": "brand"}, "`group=` needs folds"),
        ({"split_column": "part", "group": "brand"}, "`group=` needs folds"),
        ({"folds": 2}, "`folds=` must be at least 3"),
        ({"group": "brnad"}, "Did you mean 'brand'"),
    ],
)
def test_invalid_protocols_raise(shop, wanted, words):
    with pytest.raises(UsageError, match=words):
        make_plan(shop, **wanted)


def test_a_given_split_is_one_split_without_a_deviation(shop, tmp_path):
    summary = train(shop, plan_for(shop, split_column="part"), out=tmp_path / "run", jobs=1)
    (split,) = RunFolder(tmp_path / "run").read_splits()
    assert split.test.tolist() == [node for node in range(60) if node % 6 == 5 and node % 10]
    assert (summary.test_std, summary.protocol) == (None, "given")
    assert summary.score.method == "wilson"
    assert "±" not in summary.headline
    assert "±" not in (tmp_path / "run/report.html").read_text()
    assert not (tmp_path / "run/out-of-fold.csv").exists()
    one = train(shop, Plan(options=SMALL, train=TrainConfig(epochs=2), num_splits=1), out=tmp_path / "one", jobs=1)
    assert json.loads((tmp_path / "one/summary.json").read_text())["test_std"] is None
    assert one.interval is not None


def test_few_labels_of_a_class_are_a_warning_and_a_note_in_the_results(shop, tmp_path):
    y = torch.where(shop.y == 1, torch.tensor(-1), shop.y)
    y[[31, 32]] = 1
    y[33:39] = 2
    data = replace(shop, y=y, class_names=("in", "out", "new"))
    with pytest.warns(UserWarning, match=r"fewer labelled nodes than there are folds \(5\): 'out' \(2\)"):
        summary = train(data, plan_for(data), out=tmp_path / "run", jobs=1)
    assert any("'out' (2)" in note for note in summary.notes)
    assert "&#39;out&#39; (2)" in (tmp_path / "run/report.html").read_text()


def test_a_search_on_folds_reads_no_test_label_and_its_winner_keeps_the_folds(shop, tmp_path):
    plan = plan_for(shop, group="brand", folds=3)
    search = Search(plan=plan, trials=1)
    found = tune(shop, search, storage=tmp_path / "s.db", jobs=1)
    assert len(found.trials[0].scores) == 3
    write_winner(found, tmp_path / "best.toml")
    kept = make_plan(shop, file=tmp_path / "best.toml")
    assert (kept.protocol, kept.num_splits, kept.group) == ("folds", 3, "brand")
    summary = train(shop, kept, out=tmp_path / "run", jobs=1)
    assert summary.valid == pytest.approx(found.ranking[0].scores)
