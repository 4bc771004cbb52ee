"""A user's registered model works in experiments, reports and searches, also in worker processes."""

import sys

import pytest

from edhnn import Plan, TrainConfig, contextual_sbm
from edhnn.experiments.jobs import jobs_of
from edhnn.experiments.records import Records
from edhnn.experiments.report.content import make_content
from edhnn.experiments.report.render import markdown_report
from edhnn.experiments.runner import run_jobs
from edhnn.experiments.spec import read_experiment
from edhnn.tuning.run import tune
from edhnn.tuning.search import Search
from tests.models.test_registry import USER_MODEL

GRID = """
title = "t"
paper = "none"
kind = "accuracy"
splits = 2
train = {{ epochs = 2 }}
[[row]]
label = "mine"
model = "{name}"
options = {{ hidden = 5 }}
[[row]]
label = "HGNN"
model = "hgnn"
options = {{ hidden = 5 }}
[[column]]
label = "one"
dataset = "csbm-1"
"""


@pytest.fixture
def name(tmp_path, monkeypatch):
    """Register a model in a module that only this process can import; return its name."""
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(USER_MODEL.replace("{name}", name))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("edhnn.parallel._SHARED", [])
    __import__(name)
    yield name
    del sys.modules[name]


@pytest.mark.usefixtures("without_shape_checks")
def test_an_experiment_with_a_users_model_is_run_in_a_worker_and_reported(name, tmp_path):
    (tmp_path / "grid.toml").write_text(GRID.format(name=name))
    jobs = jobs_of([read_experiment(tmp_path / "grid.toml")])
    counts = run_jobs(jobs, Records(tmp_path / "results"), workers=1)
    assert (counts.done, counts.failed, counts.left) == (4, 0, 0)
    cell = next(job.cell for job in jobs if job.cell.row == "mine")
    assert (cell.settings["model"], cell.settings["options"]) == (name, {"hidden": 5})
    assert cell.source == "the model's defaults; this experiment: epochs, hidden"
    table = markdown_report(make_content(Records(tmp_path / "results"), [str(tmp_path / "grid.toml")]))
    (line,) = [line for line in table.splitlines() if line.startswith("| mine ")]
    assert "±" in line


@pytest.mark.slow
@pytest.mark.usefixtures("without_shape_checks")
def test_a_users_model_is_searched_in_workers(name, tmp_path):
    pytest.importorskip("optuna")
    data = contextual_sbm(1, nodes_per_class=24, num_hyperedges=40, edge_size=4)
    search = Search(plan=Plan(model=name, train=TrainConfig(epochs=2), num_splits=1), trials=2)
    result = tune(data, search, storage=tmp_path / "s.db", jobs=2)
    assert [trial.state for trial in result.trials] == ["complete", "complete"]
    assert all(set(trial.params) == {"hidden"} for trial in result.trials)
