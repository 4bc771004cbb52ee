"""`edhnn report` from the command's side."""

import json

from typer.testing import CliRunner

from edhnn.cli.main import app
from edhnn.experiments.spec import packaged_experiment, read_experiment
from tests.experiments.made import made_records, write_records

FLOOR = """
title = "Mine"
paper = "none"
kind = "accuracy"
splits = 1
[[row]]
label = "perceptron"
model = "mlp"
[[column]]
label = "one"
dataset = "csbm-1"
"""


def write_own(folder):
    """Write an experiment with a floor only, and its records in ``results``."""
    (folder / "mine.toml").write_text(FLOOR)
    experiment = read_experiment(folder / "mine.toml")
    write_records(folder / "results", made_records(experiment, lambda cell, split: 50.0))
    return folder / "mine.toml"


def run(*words):
    return CliRunner().invoke(app, ["report", *map(str, words)])


def test_it_writes_the_page_and_prints_the_tables_as_data(tmp_path):
    write_records(tmp_path / "results", made_records(packaged_experiment("table7"), lambda cell, split: 0.5, splits=1))
    done = run("--results", tmp_path / "results", "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert [table["name"] for table in found["tables"]] == ["table7"]
    assert found["written"][0] == str(tmp_path / "out" / "index.html")
    assert "clique homophily" in (tmp_path / "out" / "tables.md").read_text()


def test_as_text_it_prints_the_claims_and_the_path_of_the_page(tmp_path):
    write_records(tmp_path / "results", made_records(packaged_experiment("table3"), lambda cell, split: 50.0 + split))
    done = run("table3", "--results", tmp_path / "results", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "not distinguishable" in done.output
    assert "index.html" in done.output


def test_without_records_the_error_names_a_command(tmp_path):
    done = run("--results", tmp_path / "nothing")
    assert done.exception is not None
    assert "edhnn run" in str(done.exception)
    assert done.exception.exit_code == 2


def test_an_experiment_of_floors_only_is_shown_when_named(tmp_path):
    done = run(write_own(tmp_path), "--results", tmp_path / "results", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "| *perceptron* | 50.00 |" in (tmp_path / "out" / "tables.md").read_text()


def test_records_of_other_experiments_are_mentioned(tmp_path):
    write_own(tmp_path)
    done = run("--results", tmp_path / "results", "--out", tmp_path / "out")
    assert done.exception.exit_code == 2
    assert "are of mine. Name the experiments to show" in str(done.exception)
    assert "`edhnn report mine.toml`" in str(done.exception)
    write_records(tmp_path / "results", made_records(packaged_experiment("table7"), lambda cell, split: 0.5, splits=1))
    done = run("--results", tmp_path / "results", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "records of mine are not shown" in done.stderr
    assert "records of mine" not in run("table7", "--results", tmp_path / "results", "--out", tmp_path / "out").stderr


def test_floors_of_one_experiment_do_not_include_others_that_share_them(tmp_path):
    floors = made_records(packaged_experiment("smoke"), lambda cell, split: 50.0 if cell.row == "MLP" else None)
    write_records(tmp_path / "results", floors)
    done = run("--results", tmp_path / "results", "--out", tmp_path / "out")
    assert "`edhnn report smoke`" in str(done.exception)
    assert run("smoke", "--results", tmp_path / "results", "--out", tmp_path / "out").exit_code == 0


def test_shared_records_do_not_count_as_records_of_a_named_experiment(tmp_path):
    floors = made_records(packaged_experiment("table2"), lambda cell, split: 50.0 if cell.row == "MLP" else None)
    write_records(tmp_path / "results", floors)
    done = run("figure2", "--results", tmp_path / "results", "--out", tmp_path / "out")
    assert "No records of figure2 in" in str(done.exception)
