"""`edhnn tune` through the entry point: a file in, a configuration for `edhnn train` out, and exit codes."""

import csv
import json
import signal
import subprocess
import sys
import time

import pytest

from edhnn import contextual_sbm, random_splits, read_dataset
from tests.cli.test_data import here, refuse  # noqa: F401  (fixtures)
from tests.cli.test_train import write_tables

pytest.importorskip("optuna")

TUNE_FIELDS = {
    "dataset", "model", "space", "num_splits", "metric", "best", "trials", "importance", "storage", "seconds", "config",
}  # fmt: skip
TRIAL_FIELDS = {"number", "state", "score", "scores", "params", "reason", "seconds"}
SMALL = ["--label", "kind", "--epochs", "3", "--set", "hidden=8", "--set", "classifier_hidden=8", "--jobs", "1"]


@pytest.fixture
def animals(tmp_path):
    """A hypergraph, and in ``again`` the same with the labels of the first split's test nodes flipped."""
    data = contextual_sbm(0, nodes_per_class=24, num_hyperedges=40, edge_size=4)
    pairs = zip(data.hypergraph.node_index.tolist(), data.hypergraph.edge_index.tolist(), strict=True)
    edges = [(f"n{v}", f"e{e}") for v, e in pairs]
    y = data.y.clone()
    write_tables(tmp_path, "honest", range(48), edges, data.x[:, :3], y)
    ids = read_dataset(tmp_path / "honest.csv", label="kind").node_ids
    for index in random_splits(48, 1)[0].test.tolist():
        y[int(str(ids[index])[1:])] ^= 1
    (tmp_path / "again").mkdir()
    write_tables(tmp_path / "again", "honest", range(48), edges, data.x[:, :3], y)
    return tmp_path


def trials_without_times(output):
    trials = json.loads(output)["trials"]
    return [{name: value for name, value in trial.items() if name != "seconds"} for trial in trials]


def test_from_a_file_to_a_configuration_that_trains(animals, here):  # noqa: F811
    arguments = ["tune", "honest.csv", *SMALL, "--splits", "2", "--trials", "3", "--out", "best.toml"]
    code, output, errors = here(*arguments, "--json", folder=animals)
    assert code == 0, errors
    found = json.loads(output)
    assert set(found) == TUNE_FIELDS
    assert len(found["trials"]) == 3
    assert all(set(trial) == TRIAL_FIELDS for trial in found["trials"])
    assert found["best"]["score"] == max(trial["score"] for trial in found["trials"])
    assert found["storage"] == "tune/honest-ed-hnn.db"
    assert (animals / found["storage"]).is_file()

    code, output, errors = here(
        "train", "honest.csv", "--label", "kind", "--config", "best.toml", "--splits", "2", "--jobs", "1", "--json",
        "--out", "run", folder=animals,
    )  # fmt: skip
    assert code == 0, errors
    assert json.loads(output)["valid"] == found["best"]["scores"]

    assert "best.toml exists already" in here(*arguments, folder=animals)[2]
    arguments[arguments.index("3", 8)] = "5"
    code, output, errors = here(*arguments, "--force", folder=animals)
    assert code == 0, errors
    assert "the best of 5 trials" in output
    assert "num_iterations" in output
    assert "best settings: best.toml" in errors


def test_every_guess_is_reported(animals, here):  # noqa: F811
    command = ["tune", "honest.csv", "--epochs", "2", "--set", "hidden=8", "--jobs", "1", "--trials", "1", "--json"]
    code, output, errors = here(*command, "--splits", "1", folder=animals)
    assert code == 0, errors
    assert json.loads(output)
    assert "note: label column guessed: 'kind'" in errors
    assert "note: feature columns guessed" in errors


def test_test_labels_do_not_matter(animals, here):  # noqa: F811
    command = ["tune", "honest.csv", *SMALL, "--splits", "1", "--trials", "4", "--json"]
    found = []
    for folder in (animals, animals / "again"):
        code, output, errors = here(*command, folder=folder)
        assert code == 0, errors
        found.append(trials_without_times(output))
    assert found[0] == found[1]
    tables = [(folder / "honest.nodes.csv").read_text() for folder in (animals, animals / "again")]
    changed = sum(one != two for one, two in zip(*(csv.reader(t.splitlines()) for t in tables), strict=True))
    assert changed == 12


def test_the_wide_space_reports_the_importance_of_settings(animals, here):  # noqa: F811
    command = [
        "tune", "honest.csv", "--label", "kind", "--epochs", "3", "--set", "hidden=8", "--model", "hgnn",
        "--space", "wide", "--trials", "6", "--splits", "1", "--prune", "--seed", "3", "--storage", "sqlite:///s.db",
    ]  # fmt: skip
    code, output, errors = here(*command, folder=animals)
    assert code == 0, errors
    assert "learning_rate=" in output
    assert "importance of the settings: " in errors
    assert "study: sqlite:///s.db" in errors
    assert (animals / "s.db").is_file()


@pytest.mark.parametrize(
    ("code", "arguments", "words"),
    [
        (2, ["nowhere"], "not found: 'nowhere'"),
        (2, ["honest.csv", "--model", "transformer"], "model must be one of"),
        (2, ["honest.csv", "--set", "hiden=8"], "Did you mean 'hidden'"),
        (
            2,
            ["honest.csv", "--label", "kind", "--set", "hidden=8", "--set", "num_iterations=1", "--space", "paper"],
            "space is empty",
        ),
        (2, ["honest.csv", "--out", "no/such/folder.toml"], "folder 'no/such' must exist"),
        (2, ["honest.csv", "--label", "kind", "--storage", "redis://x"], "must be a file or sqlite"),
        (1, ["honest.csv", "--label", "kind", "--storage", "honest.nodes.csv"], "must be an intact Optuna database"),
        (1, ["honest.csv", "--label", "kind", "--features", "weight_kg", "--task", "regression"], "number"),
    ],
)
def test_invalid_requests_and_data_are_refused(animals, refuse, code, arguments, words):  # noqa: F811
    assert words in refuse(code, "tune", *arguments, folder=animals)


@pytest.mark.slow
def test_ctrl_c_saves_and_prints_how_to_resume(animals):
    command = [
        sys.executable, "-m", "edhnn.cli.main", "tune", "honest.csv", "--label", "kind", "--epochs", "100000",
        "--set", "hidden=8", "--storage", "s.db", "--jobs", "1",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=animals, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 90
    while not list(animals.glob("s.db.work/*/trial-*.lock")) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "0 of 5 trials are finished and saved. Resume with: edhnn tune honest.csv --label kind" in errors
