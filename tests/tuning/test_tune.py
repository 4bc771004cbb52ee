"""A search: its spaces, no use of test labels, and the same trials after interruptions."""

import itertools
import re
import sqlite3
import warnings
from contextlib import closing
from dataclasses import replace

import pytest
import torch

from edhnn import Plan, Split, TrainConfig, contextual_sbm, train
from edhnn.errors import DataError, DivergedError, EdhnnError, MissingDependencyError, StoppedError, UsageError
from edhnn.models.registry import MODELS, make_config
from edhnn.runs.plan import choose_splits, make_plan
from edhnn.tuning import run as tuning_run
from edhnn.tuning.run import ValidationScore, tune, without_test_labels
from edhnn.tuning.search import Search, write_winner

optuna = pytest.importorskip("optuna")

from edhnn.tuning.study import StudyFile, default_space, grid_points, paper_space, quiet, wide_space  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return contextual_sbm(1, nodes_per_class=24, num_hyperedges=40, edge_size=4)


def search_of(trials=5, *, splits=2, space="paper", seed=0, prune=False, epochs=2, **options):
    options = {"hidden": 8, "classifier_hidden": 8} | options
    plan = Plan(options=options, train=TrainConfig(epochs=epochs), num_splits=splits, seed=seed)
    return Search(plan=plan, trials=trials, space=space, fixed=tuple(sorted(options)), prune=prune)


def content_of(result):
    """Return everything about the trials except their time."""
    return [(trial.number, trial.state, trial.score, trial.scores, trial.params) for trial in result.trials]


@pytest.fixture
def scored(monkeypatch):
    """Score by a rule instead of training. The list records every scored split."""
    calls = []

    def score(self, plan, number, should_stop, show):
        calls.append((plan.options["num_iterations"], number))
        show(number, 1)
        if should_stop():
            raise StoppedError("Stopped.")
        return plan.options["num_iterations"] / 10 + number / 1000

    monkeypatch.setattr(ValidationScore, "__call__", score)
    return calls


def test_the_papers_grid_and_the_wide_space():
    grid = paper_space("ed-hnn", ())
    assert {name: values.choices for name, values in grid.items()} == {
        "num_iterations": (1, 2, 4, 6, 8),
        "hidden": (96, 128, 256, 512),
    }
    points = grid_points(grid, 0)
    assert len(points) == 20
    assert {(point["num_iterations"], point["hidden"]) for point in points} == set(
        itertools.product((1, 2, 4, 6, 8), (96, 128, 256, 512))
    )
    assert points == grid_points(grid, 0) != grid_points(grid, 1)
    assert list(paper_space("hgnn", ())) == ["layers", "hidden"]
    assert list(paper_space("hypernd", ())) == ["classifier_hidden"]
    assert "restart" in wide_space("ed-hnn", {}, ())
    assert "restart" not in wide_space("ed-hnn", {"update": "concat"}, ())
    assert {"dropout", "learning_rate", "weight_decay", "phi_layers"} <= set(wide_space("ed-hnn", {}, ()))
    with pytest.raises(
        UsageError, match="search space is empty. 'ed-hnn' has these parameters in it: num_iterations, hidden"
    ):
        paper_space("ed-hnn", ("hidden", "num_iterations"))


def test_the_default_space_has_what_matters_and_begins_with_the_rule(data, tmp_path):
    plan = make_plan(data, splits=1, settings={"hidden": 8, "classifier_hidden": 8, "epochs": 2})
    search = Search(plan=plan, trials=3, fixed=("classifier_hidden", "hidden"))
    assert {"learning_rate", "dropout", "input_dropout", "feature_scaling", "num_iterations"} <= set(
        default_space(search)
    )
    assert "hidden" not in default_space(search)
    result = tune(data, search, storage=tmp_path / "s.db", jobs=1)
    first = result.trials[0].params
    assert (first["learning_rate"], first["dropout"], first["feature_scaling"]) == (0.005, 0.2, "standard")
    assert {trial.params["feature_scaling"] for trial in result.trials} == {"standard", "none"}
    assert result.winner.train.feature_scaling == result.ranking[0].params["feature_scaling"]
    unscaled = replace(plan, train=TrainConfig())
    assert "feature_scaling" not in default_space(Search(plan=unscaled, trials=1))


@pytest.mark.parametrize("model", MODELS)
def test_all_drawn_parameters_give_a_valid_model(model):
    search = Search(plan=Plan(model=model), trials=1, space="wide")
    with quiet():
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for _ in range(5):
            plan = search.plan_of(study.ask(wide_space(model, {}, ())).params)
            MODELS[model].model(MODELS[model].config(**plan.options), in_features=6, num_classes=2)
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for _ in range(5):
            plan = search.plan_of(study.ask(default_space(search)).params)
            MODELS[model].model(MODELS[model].config(**plan.options), in_features=6, num_classes=2)
    for point in grid_points(paper_space(model, ()), 0)[:4]:
        search.plan_of(point)


def test_a_grid_is_searched_completely_and_a_run_of_its_best_has_the_same_validation_scores(data, tmp_path, capfd):
    result = tune(data, search_of(trials=100), storage=tmp_path / "s.db", jobs=1)
    assert capfd.readouterr() == ("", "")
    assert sorted(trial.params["num_iterations"] for trial in result.trials) == [1, 2, 4, 6, 8]
    assert all(trial.state == "complete" and len(trial.scores) == 2 for trial in result.trials)
    assert [trial.score for trial in result.ranking] == sorted((t.score for t in result.trials), reverse=True)
    assert set(result.importance) <= {"num_iterations"}
    again = tune(data, search_of(trials=100), storage=tmp_path / "other.db", jobs=1)
    assert content_of(again) == content_of(result)

    write_winner(result, tmp_path / "best.toml")
    plan = make_plan(data, splits=2, file=tmp_path / "best.toml")
    assert make_config("ed-hnn", **plan.options) == make_config("ed-hnn", **result.winner.options)
    assert (plan.train, plan.seed) == (result.winner.train, 0)
    run = train(data, plan, out=tmp_path / "run", jobs=1)
    assert run.valid == result.ranking[0].scores


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_test_labels_are_never_read(data, task, tmp_path, monkeypatch):
    test, rest = torch.arange(0, 48, 4), torch.tensor([v for v in range(48) if v % 4])
    mixed = rest[torch.randperm(len(rest), generator=torch.Generator().manual_seed(0))]
    splits = [Split(mixed[:24], mixed[24:], test), Split(mixed[12:], mixed[:12], test)]
    y = {
        "classification": data.y,
        "multilabel": torch.stack([data.y, 1 - data.y], dim=1).float(),
        "regression": data.x[:, 0].clone() + data.y,
    }[task]
    names = (0, 1) if task == "classification" else None
    honest = replace(data, y=y, task=task, class_names=names)
    unknown = -1 if task == "classification" else torch.nan
    spoiled = []
    for value in (unknown, 1):
        labels = y.clone()
        labels[test] = value
        spoiled.append(replace(honest, y=labels))
    seen = []
    real = tuning_run.fit_inputs

    def spy(model, inputs, dataset, split, *rest, **options):
        known = dataset.y[test] >= 0 if task == "classification" else ~dataset.y[test].isnan()
        seen.append(bool(known.any()) or bool(torch.isin(split.test, test).any()))
        return real(model, inputs, dataset, split, *rest, **options)

    monkeypatch.setattr(tuning_run, "fit_inputs", spy)
    results = [
        tune(each, search_of(trials=2), storage=tmp_path / f"{number}.db", jobs=1, splits=splits)
        for number, each in enumerate((honest, *spoiled))
    ]
    assert len(seen) == 3 * 2 * 2
    assert not any(seen)
    assert all(content_of(each) == content_of(results[0]) for each in results)
    assert results[0].minimise == (task == "regression")
    # a search begun with one dataset resumes with the other, because test labels are no part of the study's facts
    more = tune(spoiled[1], search_of(trials=3), storage=tmp_path / "0.db", jobs=1, splits=splits)
    assert content_of(more)[:2] == content_of(results[0])


def test_a_search_removes_test_labels(data):
    split = choose_splits(data, 1)[0]
    seen = without_test_labels(data, split)
    assert (seen.y[split.test] == -1).all()
    assert torch.equal(seen.y[split.train], data.y[split.train])
    assert seen.num_classes == 2
    assert (data.y >= 0).all()


def test_a_stopped_search_resumes_to_the_same_trials(data, tmp_path):
    for space in ("paper", "wide"):
        search = search_of(trials=3, space=space)
        whole = tune(data, search, storage=tmp_path / f"{space}-whole.db", jobs=1)
        stopped = 0
        while True:
            epochs = itertools.count(1)
            try:  # 4 epochs a trial: now and then a trial is stopped in its second split
                result = tune(
                    data,
                    search,
                    storage=tmp_path / f"{space}.db",
                    jobs=1,
                    should_stop=lambda epochs=epochs: next(epochs) >= 3,
                )
                break
            except StoppedError as error:
                stopped += 1
                assert re.search(r"of 3 trials are finished and saved", str(error))
        assert stopped >= 3
        assert content_of(result) == content_of(whole)


def test_finished_splits_of_a_stopped_trial_are_not_trained_again(data, tmp_path, scored):
    with pytest.raises(StoppedError, match="0 of 2 trials"):
        tune(data, search_of(trials=2), storage=tmp_path / "s", jobs=1, should_stop=lambda: len(scored) == 2)
    first = scored[0][0]
    tune(data, search_of(trials=2), storage=tmp_path / "s", jobs=1)
    assert [number for depth, number in scored if depth == first] == [0, 1, 1]


def left_running(data, search, path, times=1):
    """Take the next trial and fail like a killed process: the trial stays in state running and is not locked."""
    judge = ValidationScore(data, choose_splits(data, search.plan.num_splits), search.plan.train, torch.device("cpu"))
    facts = search.facts(data.name, judge.sha256())
    for _ in range(times):
        with quiet(), pytest.raises(RuntimeError, match="killed"):
            study = StudyFile(str(path), search, facts, minimise=False)
            with study.take() as trial:
                assert trial is not None
                raise RuntimeError("killed")
    with quiet():
        return StudyFile(str(path), search, facts, minimise=False)


def test_trials_of_processes_that_died_are_queued_again(data, tmp_path, scored):
    storage = f"sqlite:///{tmp_path / 's.db'}"
    whole = tune(data, search_of(), storage=tmp_path / "whole.db", jobs=1)
    left_running(data, search_of(), storage, times=2)
    result = tune(data, search_of(), storage=storage, jobs=1)
    assert content_of(result) == content_of(whole)
    assert not list(tmp_path.glob("**/trial-*.lock"))


def test_a_kill_while_a_trial_is_queued_again_queues_it_once(data, tmp_path, scored, monkeypatch):
    study = left_running(data, search_of(), tmp_path / "s")
    with quiet():
        monkeypatch.setattr(study._study, "tell", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            study._retry(0, died=True)  # it is queued again; then the process dies before it marks the old one
    whole = tune(data, search_of(), storage=tmp_path / "whole.db", jobs=1)
    assert content_of(tune(data, search_of(), storage=tmp_path / "s", jobs=1)) == content_of(whole)


def test_a_trial_that_kills_its_process_three_times_fails(data, tmp_path, scored):
    left_running(data, search_of(), tmp_path / "s", times=3)
    result = tune(data, search_of(), storage=tmp_path / "s", jobs=1)
    assert [trial.state for trial in result.trials].count("fail") == 1
    assert "died 3 times" in next(trial.reason for trial in result.trials if trial.reason)
    assert len(result.trials) == 5


def test_trials_of_running_processes_are_not_taken(data, tmp_path, scored):
    whole = tune(data, search_of(), storage=tmp_path / "whole", jobs=1)
    study = left_running(data, search_of(), tmp_path / "s", times=0)
    with quiet(), study.take() as held:
        result = tune(data, search_of(), storage=tmp_path / "s", jobs=1)
        assert [trial.state for trial in result.trials].count("running") == 1
        assert held.params not in [trial.params for trial in result.ranking]
        study.finish(held, 0.5)
    result = tune(data, search_of(), storage=tmp_path / "s", jobs=1)
    assert [trial.params for trial in result.trials] == [trial.params for trial in whole.trials]
    assert all(trial.state == "complete" for trial in result.trials)


def test_parallel_processes_give_the_same_grid(data, tmp_path):
    alone = tune(data, search_of(trials=2), storage=tmp_path / "one", jobs=1)
    (tmp_path / "two.work/call-abandoned").mkdir(parents=True)
    together = tune(data, search_of(trials=2), storage=tmp_path / "two", jobs=2)
    assert content_of(together) == content_of(alone)
    assert [path.name for path in (tmp_path / "two.work").iterdir() if path.name.startswith("call-")] == []


def test_a_diverged_trial_fails_with_its_reason(data, tmp_path, monkeypatch):
    def score(self, plan, number, should_stop, show):
        if plan.options["num_iterations"] > bound:
            raise DivergedError(3, "the outputs overflow", "Lower the learning rate.")
        return 0.5

    monkeypatch.setattr(ValidationScore, "__call__", score)
    bound = 2
    result = tune(data, search_of(), storage=tmp_path / "s", jobs=1)
    failed = [trial for trial in result.trials if trial.state == "fail"]
    assert {trial.params["num_iterations"] for trial in failed} == {4, 6, 8}
    assert all("At epoch 3" in trial.reason and trial.score is None for trial in failed)
    assert tune(data, search_of(), storage=tmp_path / "s", jobs=1).trials == result.trials, "they are not tried again"
    bound = 0
    with pytest.raises(EdhnnError, match="No trial succeeded. The last failure: The loss must stay finite"):
        tune(data, search_of(), storage=tmp_path / "t", jobs=1)


def test_a_training_that_diverges_is_a_failed_trial(data, tmp_path):
    search = search_of(trials=1)
    search = replace(search, plan=replace(search.plan, train=TrainConfig(epochs=5, learning_rate=1e30)))
    with pytest.raises(EdhnnError, match="The loss must stay finite"):
        tune(data, search, storage=tmp_path / "s", jobs=1)


def test_pruning_abandons_bad_trials(data, tmp_path, scored):
    whole = tune(data, search_of(trials=20, splits=3, space="wide"), storage=tmp_path / "all", jobs=1)
    assert all(trial.state == "complete" for trial in whole.trials)
    assert tune(data, search_of(trials=3, splits=3), storage=tmp_path / "few", jobs=1).importance == {}
    before = len(scored)
    pruned = tune(data, search_of(trials=20, splits=3, space="wide", prune=True), storage=tmp_path / "some", jobs=1)
    states = [trial.state for trial in pruned.trials]
    assert states.count("pruned") > 0
    assert len(scored) - before < 3 * 20
    assert all(trial.score is None for trial in pruned.trials if trial.state == "pruned")
    assert abs(sum(pruned.importance.values()) - 1) < 1e-6


def test_resuming_a_different_search_raises(data, tmp_path, scored):
    tune(data, search_of(trials=1), storage=tmp_path / "s", jobs=1)
    assert len(tune(data, search_of(trials=3), storage=tmp_path / "s", jobs=1).trials) == 3
    assert len(tune(data, search_of(trials=2), storage=tmp_path / "s", jobs=1).trials) == 3
    for other, words in (
        (search_of(seed=1), "seed is 0 there, 1 here"),
        (search_of(splits=3), "num_splits is 2 there, 3 here"),
        (search_of(dropout=0.1), "options is"),
    ):
        with pytest.raises(UsageError, match=words):
            tune(data, other, storage=tmp_path / "s", jobs=1)
    with pytest.raises(UsageError, match="data_sha256"):
        tune(replace(data, y=1 - data.y), search_of(), storage=tmp_path / "s", jobs=1)
    tune(data, search_of(trials=1, space="wide"), storage=tmp_path / "s", jobs=1)  # a second study in the same file


def test_files_that_are_not_studies_raise(data, tmp_path, scored):
    notes, journal = tmp_path / "notes.txt", tmp_path / "old.journal"
    notes.write_text("shopping list\nmilk")
    journal.write_text('{"op_code":0,"worker_id":"x","study_name":"s","directions":[2]}\n')
    for storage in (str(notes), f"sqlite:///{notes}"):
        with pytest.raises(DataError, match="must be an intact Optuna database"):
            tune(data, search_of(), storage=storage, jobs=1)
    assert notes.read_text() == "shopping list\nmilk"
    with pytest.raises(DataError, match="an Optuna journal of an earlier version of edhnn.*copy_study"):
        tune(data, search_of(), storage=journal, jobs=1)
    with pytest.raises(UsageError, match="must be a file or sqlite:///FILE"):
        tune(data, search_of(), storage="mysql://somewhere/else", jobs=1)


def test_invalid_requests_raise(data, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="`trials=` must be at least 1"):
        tune(data, search_of(trials=0), storage=tmp_path / "s")
    with pytest.raises(UsageError, match="device, on this machine, must be one of auto"):
        tune(data, search_of(), storage=tmp_path / "s", device="cuda:9")
    with pytest.raises(UsageError, match="`jobs=` must be at least 1"):
        tune(data, search_of(), storage=tmp_path / "s", jobs=0)
    with pytest.raises(UsageError, match="The plan needs 2 splits. Got 1"):
        tune(data, search_of(), storage=tmp_path / "s", splits=choose_splits(data, 1))
    split = choose_splits(data, 1)[0]
    with pytest.raises(DataError, match="validation part of split 0 has none"):
        tune(data, search_of(splits=1), storage=tmp_path / "s", splits=[Split(split.train, split.test, split.test)])
    ones, zeros = (data.y == 1).nonzero()[:, 0], (data.y == 0).nonzero()[:, 0]
    with pytest.raises(DataError, match="Class '1' \\(.* nodes\\) is missing in split 0"):
        tune(data, search_of(splits=1), storage=tmp_path / "s", splits=[Split(zeros[:9], ones[:9], zeros[9:])])
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'edhnn\[tune\]'"):
        tune(data, search_of(), storage=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_a_search_restores_the_verbosity_of_optuna(data, tmp_path, scored):
    before = optuna.logging.get_verbosity()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tune(data, search_of(trials=12, space="wide"), storage=tmp_path / "s", jobs=1)
    assert [str(warning.message) for warning in caught] == []
    assert optuna.logging.get_verbosity() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE trial_values SET value = 'x'",
        "UPDATE trial_values SET value = NULL, value_type = 'INF_POS'",
        "UPDATE trials SET state = 'ASLEEP'",
        "DROP TABLE version_info; CREATE TABLE version_info (version_info_id INTEGER)",
        "UPDATE trial_system_attributes SET value_json = '{'",
        "UPDATE trial_system_attributes SET value_json = '{\"hidden\": 3}' WHERE key = 'fixed_params'",
    ],
)
def test_a_damaged_study_raises(data, tmp_path, scored, statement):
    tune(data, search_of(2), storage=tmp_path / "s.db", jobs=1)
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        connection.executescript(statement)
    with pytest.raises(DataError, match="s.db: The file must be an intact Optuna database"):
        tune(data, search_of(3), storage=tmp_path / "s.db", jobs=1)
