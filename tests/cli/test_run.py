"""`edhnn run` from the command's side: the list, a small grid, and invalid requests."""

import json

import pytest
from typer.testing import CliRunner

from edhnn import UsageError
from edhnn.cli.main import app
from edhnn.experiments.jobs import jobs_of
from edhnn.experiments.records import Records
from edhnn.experiments.runner import do_jobs
from edhnn.experiments.spec import experiment_names, read_experiment

GRID = """
title = "t"
paper = "none"
kind = "accuracy"
splits = 2
[[row]]
label = "floor"
model = "l1-logistic"
[[column]]
label = "one"
dataset = "csbm-1"
"""


def run(*words):
    return CliRunner().invoke(app, ["run", *map(str, words)])


def test_without_a_name_it_lists_the_experiments(tmp_path):
    found = json.loads(run("--results", tmp_path, "--json").stdout)
    assert [row["name"] for row in found] == list(experiment_names())
    assert all(row["jobs"] > 0 and row["done"] == 0 for row in found)
    assert "table2-large" in run("--results", tmp_path).stdout


def test_it_runs_the_cells_without_a_record(tmp_path):
    spec = tmp_path / "mine.toml"
    spec.write_text(GRID)
    do_jobs(jobs_of([read_experiment(spec)])[:1], Records(tmp_path / "results"), lambda: False)
    done = run(spec, "--results", tmp_path / "results", "--jobs", 1)
    assert done.exit_code == 0
    assert "1 done" in done.output
    again = json.loads(run(spec, "--results", tmp_path / "results", "--jobs", 1, "--json").stdout)
    assert (again["asked"], again["before"], again["done"], again["left"]) == (2, 2, 0, 0)
    assert len((tmp_path / "results" / "mine.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dataset", "cora"], "need the name of an experiment"),
        (["--splits", "3"], "need the name of an experiment"),
        ([""], "Got '' instead"),
        (["tabel3"], "Did you mean 'table3'"),
        (["table3", "--dataset", "cora"], "Got 'cora' instead"),
        (["table8", "--epochs", "3"], "experiments that train"),
    ],
)
def test_invalid_requests_are_refused(tmp_path, words, message):
    done = run(*words, "--results", tmp_path)
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
    assert list(tmp_path.iterdir()) == []
