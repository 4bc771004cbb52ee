"""A search: what it may choose, that it never sees a test label, and that it ends the same however it was disturbed."""

import itertools
import re
import warnings
from dataclasses import replace

import pytest
import torch

from edhnn import Plan, Split, TrainConfig, contextual_sbm, train
from edhnn.errors import DataError, DivergedError, EdhnnError, MissingDependencyError, StoppedError, UsageError
from edhnn.models.registry import MODELS, make_config
from edhnn.runs.plan import choose_splits, make_plan
from edhnn.tuning import run as objective
from edhnn.tuning.run import ValidationScore, tune, without_test_labels
from edhnn.tuning.search import Search, write_winner

optuna = pytest.importorskip("optuna")

from edhnn.tuning.study import StudyFile, grid_points, paper_space, quiet, wide_space  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return contextual_sbm(1, nodes_per_class=24, num_hyperedges=40, edge_size=4)


def search_of(trials=5, *, splits=2, space="paper", seed=0, prune=False, epochs=2, **options):
    options = {"hidden": 8, "classifier_hidden": 8} | options
    plan = Plan(options=options, train=TrainConfig(epochs=epochs), num_splits=splits, seed=seed)
    return Search(plan=plan, trials=trials, space=space, fixed=tuple(sorted(options)), prune=prune)


def told(result):
    """All that a trial is, but for the time it took."""
    return [(trial.number, trial.state, trial.score, trial.scores, trial.params) for trial in result.trials]


@pytest.fixture
def scored(monkeypatch):
    """Scores by a rule instead of training; the list sees every split that is asked for."""
    asked = []

    def score(self, plan, number, should_stop, show):
        asked.append((plan.options["num_iterations"], number))
        show(number, 1)
        if should_stop():
            raise StoppedError("Stopped.")
        return plan.options["num_iterations"] / 10 + number / 1000

    monkeypatch.setattr(ValidationScore, "__call__", score)
    return asked


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
    with pytest.raises(UsageError, match="something to choose. 'ed-hnn' has num_iterations, hidden"):
        paper_space("ed-hnn", ("hidden", "num_iterations"))


@pytest.mark.parametrize("model", MODELS)
def test_whatever_is_drawn_for_a_model_is_a_model(model):
    search = Search(plan=Plan(model=model), trials=1, space="wide")
    with quiet():
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for _ in range(5):
            plan = search.plan_of(study.ask(wide_space(model, {}, ())).params)
            MODELS[model].model(MODELS[model].config(**plan.options), in_features=6, num_classes=2)
    for point in grid_points(paper_space(model, ()), 0)[:4]:
        search.plan_of(point)


def test_a_grid_is_searched_whole_and_its_best_trains_to_the_same_validation_scores(data, tmp_path, capfd):
    result = tune(data, search_of(trials=100), storage=tmp_path / "s.db", jobs=1)
    assert capfd.readouterr() == ("", "")
    assert sorted(trial.params["num_iterations"] for trial in result.trials) == [1, 2, 4, 6, 8]
    assert all(trial.state == "complete" and len(trial.scores) == 2 for trial in result.trials)
    assert [trial.score for trial in result.ranking] == sorted((t.score for t in result.trials), reverse=True)
    assert set(result.importance) <= {"num_iterations"}
    again = tune(data, search_of(trials=100), storage=tmp_path / "other.db", jobs=1)
    assert told(again) == told(result)

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
    real = objective.fit_inputs

    def spy(model, inputs, dataset, split, *rest, **options):
        known = dataset.y[test] >= 0 if task == "classification" else ~dataset.y[test].isnan()
        seen.append(bool(known.any()) or bool(torch.isin(split.test, test).any()))
        return real(model, inputs, dataset, split, *rest, **options)

    monkeypatch.setattr(objective, "fit_inputs", spy)
    found = [
        tune(each, search_of(trials=2), storage=tmp_path / f"{number}.db", jobs=1, splits=splits)
        for number, each in enumerate((honest, *spoiled))
    ]
    assert len(seen) == 3 * 2 * 2
    assert not any(seen)
    assert all(told(each) == told(found[0]) for each in found)
    assert found[0].minimise == (task == "regression")
    # and what was found with one is gone on with by the other: even the study's own facts do not tell them apart
    more = tune(spoiled[1], search_of(trials=3), storage=tmp_path / "0.db", jobs=1, splits=splits)
    assert told(more)[:2] == told(found[0])


def test_what_a_search_sees_of_a_dataset(data):
    split = choose_splits(data, 1)[0]
    seen = without_test_labels(data, split)
    assert (seen.y[split.test] == -1).all()
    assert torch.equal(seen.y[split.train], data.y[split.train])
    assert seen.num_classes == 2
    assert (data.y >= 0).all()


def test_a_stopped_search_goes_on_to_the_same_trials(data, tmp_path):
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
        assert told(result) == told(whole)


def test_finished_splits_of_a_stopped_trial_are_not_trained_again(data, tmp_path, scored):
    with pytest.raises(StoppedError, match="0 of 2 trials"):
        tune(data, search_of(trials=2), storage=tmp_path / "s", jobs=1, should_stop=lambda: len(scored) == 2)
    first = scored[0][0]
    tune(data, search_of(trials=2), storage=tmp_path / "s", jobs=1)
    assert [number for depth, number in scored if depth == first] == [0, 1, 1]


def left_running(data, search, path, times=1):
    """Take the next trial and fall, as a killed process does: it stays running, and nobody holds it."""
    judge = ValidationScore(data, choose_splits(data, search.plan.num_splits), search.plan.train, torch.device("cpu"))
    facts = search.facts(data.name, judge.sha256())
    for _ in range(times):
        with quiet(), pytest.raises(RuntimeError, match="fallen"):
            study = StudyFile(str(path), search, facts, minimise=False)
            with study.take() as trial:
                assert trial is not None
                raise RuntimeError("fallen")
    with quiet():
        return StudyFile(str(path), search, facts, minimise=False)


def test_trials_of_the_dead_are_asked_again(data, tmp_path, scored):
    place = f"sqlite:///{tmp_path / 's.db'}"
    whole = tune(data, search_of(), storage=tmp_path / "whole.db", jobs=1)
    left_running(data, search_of(), place, times=2)
    result = tune(data, search_of(), storage=place, jobs=1)
    assert told(result) == told(whole)
    assert not list(tmp_path.glob("**/trial-*.lock"))


def test_a_kill_while_a_trial_is_queued_again_queues_it_once(data, tmp_path, scored, monkeypatch):
    study = left_running(data, search_of(), tmp_path / "s")
    with quiet():
        monkeypatch.setattr(study._study, "tell", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            study._retry(0, died=True)  # it is queued again; then the process dies before it fails the old one
    whole = tune(data, search_of(), storage=tmp_path / "whole.db", jobs=1)
    assert told(tune(data, search_of(), storage=tmp_path / "s", jobs=1)) == told(whole)


def test_a_trial_that_kills_its_process_every_time_is_left_alone(data, tmp_path, scored):
    left_running(data, search_of(), tmp_path / "s", times=3)
    result = tune(data, search_of(), storage=tmp_path / "s", jobs=1)
    assert [trial.state for trial in result.trials].count("fail") == 1
    assert "died 3 times" in next(trial.reason for trial in result.trials if trial.reason)
    assert len(result.trials) == 5


def test_trials_of_the_living_are_left_to_them(data, tmp_path, scored):
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


def test_processes_side_by_side_give_the_same_grid(data, tmp_path):
    alone = tune(data, search_of(trials=4), storage=tmp_path / "one", jobs=1)
    (tmp_path / "two.work/call-left-by-the-dead").mkdir(parents=True)
    together = tune(data, search_of(trials=4), storage=tmp_path / "two", jobs=2)
    assert told(together) == told(alone)
    assert [path.name for path in (tmp_path / "two.work").iterdir() if path.name.startswith("call-")] == []


def test_what_diverges_has_failed_and_says_why(data, tmp_path, monkeypatch):
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
    with pytest.raises(EdhnnError, match="None did; the last reason: The loss must stay finite"):
        tune(data, search_of(), storage=tmp_path / "t", jobs=1)


def test_real_divergence_is_a_failed_trial(data, tmp_path):
    search = search_of(trials=1)
    search = replace(search, plan=replace(search.plan, train=TrainConfig(epochs=5, learning_rate=1e30)))
    with pytest.raises(EdhnnError, match="The loss must stay finite"):
        tune(data, search, storage=tmp_path / "s", jobs=1)


def test_bad_trials_are_given_up_if_asked(data, tmp_path, scored):
    kept = tune(data, search_of(trials=40, splits=3, space="wide"), storage=tmp_path / "all", jobs=1)
    assert all(trial.state == "complete" for trial in kept.trials)
    assert tune(data, search_of(trials=3, splits=3), storage=tmp_path / "few", jobs=1).importance == {}
    before = len(scored)
    pruned = tune(data, search_of(trials=40, splits=3, space="wide", prune=True), storage=tmp_path / "some", jobs=1)
    states = [trial.state for trial in pruned.trials]
    assert states.count("pruned") > 0
    assert len(scored) - before < 3 * 40
    assert all(trial.score is None for trial in pruned.trials if trial.state == "pruned")
    assert abs(sum(pruned.importance.values()) - 1) < 1e-6


def test_another_search_is_not_gone_on_with(data, tmp_path, scored):
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
    tune(data, search_of(trials=1, space="wide"), storage=tmp_path / "s", jobs=1)  # a study of its own in the same file


def test_files_that_hold_no_study(data, tmp_path, scored):
    notes, journal = tmp_path / "notes.txt", tmp_path / "old.journal"
    notes.write_text("shopping list\nmilk")
    journal.write_text('{"op_code":0,"worker_id":"x","study_name":"s","directions":[2]}\n')
    for place in (str(notes), f"sqlite:///{notes}"):
        with pytest.raises(DataError, match="must be a database of Optuna's"):
            tune(data, search_of(), storage=place, jobs=1)
    assert notes.read_text() == "shopping list\nmilk"
    with pytest.raises(DataError, match="a journal of Optuna's, which earlier versions of edhnn wrote.*copy_study"):
        tune(data, search_of(), storage=journal, jobs=1)
    with pytest.raises(UsageError, match="takes a file or sqlite:///FILE"):
        tune(data, search_of(), storage="mysql://somewhere/else", jobs=1)


def test_requests_that_cannot_be_met(data, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="at least 1 trial"):
        tune(data, search_of(trials=0), storage=tmp_path / "s")
    with pytest.raises(UsageError, match="device, on this machine, must be one of auto"):
        tune(data, search_of(), storage=tmp_path / "s", device="cuda:9")
    with pytest.raises(UsageError, match="at least 1 job"):
        tune(data, search_of(), storage=tmp_path / "s", jobs=0)
    with pytest.raises(UsageError, match="There must be 2 splits. Got 1"):
        tune(data, search_of(), storage=tmp_path / "s", splits=choose_splits(data, 1))
    split = choose_splits(data, 1)[0]
    with pytest.raises(DataError, match="validation part of split 0 has none"):
        tune(data, search_of(splits=1), storage=tmp_path / "s", splits=[Split(split.train, split.test, split.test)])
    ones, zeros = (data.y == 1).nonzero()[:, 0], (data.y == 0).nonzero()[:, 0]
    with pytest.raises(DataError, match="Class '1', of which there are .* nodes, is missing in split 0"):
        tune(data, search_of(splits=1), storage=tmp_path / "s", splits=[Split(zeros[:9], ones[:9], zeros[9:])])
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'edhnn\[tune\]'"):
        tune(data, search_of(), storage=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_optuna_is_as_loud_as_before_afterwards(data, tmp_path, scored):
    before = optuna.logging.get_verbosity()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tune(data, search_of(trials=12, space="wide"), storage=tmp_path / "s", jobs=1)
    assert [str(warning.message) for warning in said] == []
    assert optuna.logging.get_verbosity() == before
