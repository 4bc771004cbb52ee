"""`edhnn report` from the command's side."""

import json

from typer.testing import CliRunner

from edhnn.cli.main import app
from edhnn.experiments.spec import packaged_experiment
from tests.experiments.made import made_records, write_records


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


def test_for_people_it_prints_the_claims_and_where_the_page_is(tmp_path):
    write_records(tmp_path / "results", made_records(packaged_experiment("table3"), lambda cell, split: 50.0 + split))
    done = run("table3", "--results", tmp_path / "results", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "not distinguishable" in done.output
    assert "index.html" in done.output


def test_without_records_it_says_what_to_run(tmp_path):
    done = run("--results", tmp_path / "nothing")
    assert done.exception is not None
    assert "edhnn run" in str(done.exception)
    assert done.exception.exit_code == 2
