"""The forecast of a run: what `edhnn train` would do with the same dataset."""

import json

import pytest

from edhnn.cli.main import main
from edhnn.doctor import cost
from edhnn.runs.forecast import forecast_run
from edhnn.runs.plan import Plan, make_plan
from edhnn.runs.run import choose_jobs
from edhnn.training.config import TrainConfig


@pytest.fixture(autouse=True)
def half_a_second(monkeypatch):
    monkeypatch.setattr(cost, "_best_seconds", lambda work, threads: 0.5 / len(threads))


def test_sizes_epochs_splits_and_processes_are_those_of_the_plan(tiny):
    options = {"hidden": 16, "num_iterations": 3, "classifier_hidden": 8, "dropout": 0.0, "input_dropout": 0.0}
    plan = Plan(options=options, train=TrainConfig(epochs=20, transforms=()), num_splits=5)
    found = forecast_run(tiny, plan, jobs=2)
    assert found.parameters == plan.num_parameters(tiny)
    assert (found.size.epochs, found.size.splits, found.processes) == (20, 5, 2)
    assert (found.size.dropout, found.size.self_loops) == (False, False)
    assert found.seconds_per_run == 3 * 20 * (0.5 + 0.5)  # three rounds of two processes with one thread each
    assert found.run_bytes == 2 * found.peak_bytes + 3 * cost.PROCESS_BYTES
    assert forecast_run(tiny, plan).processes == choose_jobs(tiny, plan, 5) == 1


def test_the_doctor_forecasts_what_train_would_do(monkeypatch, capsys):
    def doctor(*words):
        monkeypatch.setattr("sys.argv", ["edhnn", "data", "doctor", "csbm-1", "--json", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        return json.loads(capsys.readouterr().out)["forecast"]

    from edhnn import load_dataset

    plan = make_plan(load_dataset("csbm-1"))
    found = doctor()
    assert found["size"]["hidden"] == plan.options["hidden"]
    assert (found["size"]["epochs"], found["size"]["splits"]) == (plan.train.epochs, plan.num_splits)
    assert found["parameters"] == plan.num_parameters(load_dataset("csbm-1"))
    given = doctor("--hidden", "8", "--iterations", "1", "--epochs", "7", "--splits", "3")["size"]
    assert [given[name] for name in ("hidden", "num_iterations", "epochs", "splits")] == [8, 1, 7, 3]
