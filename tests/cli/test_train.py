"""`edhnn train`, `predict`, `evaluate`, `models` through the entry point: files in, files out, and exit codes."""

import csv
import io
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from edhnn import contextual_sbm
from tests.cli.test_data import here, refuse  # noqa: F401  (fixtures)

TRAIN_FIELDS = {
    "dataset", "model", "task", "metric", "test_mean", "test_std", "test", "valid", "best_epoch", "split_seconds",
    "seconds", "num_parameters", "peak_memory", "jobs", "threads", "kernels", "origin", "run",
    "protocol", "score", "floors", "classes", "notes", "cut",
}  # fmt: skip
EVALUATE_FIELDS = {
    "dataset",
    "same_data",
    "num_nodes",
    "seen",
    "models",
    "mean",
    "std",
    "each",
    "together",
    "out_of_fold",
}
SMALL = ["--epochs", "5", "--splits", "2", "--set", "hidden=8", "--set", "classifier_hidden=8", "--jobs", "1"]


def write_tables(folder, name, nodes, edges, x, y):
    """Memberships and a node table, as a user would have them; some labels are unknown."""
    kinds = ["cat", "dog"]
    with (folder / f"{name}.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("node", "hyperedge"), *edges])
    with (folder / f"{name}.nodes.csv").open("w", newline="") as stream:
        rows = [(f"n{v}", "" if y[v] < 0 else kinds[y[v]], *x[v].tolist()) for v in nodes]
        csv.writer(stream).writerows([("id", "kind", "size", "age", "weight_kg"), *rows])


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    """80 % of a hypergraph's nodes and hyperedges as ``part``, all of it, without labels, as ``full``."""
    folder = tmp_path_factory.mktemp("animals")
    data = contextual_sbm(0, nodes_per_class=30, num_hyperedges=60, edge_size=4)
    x, y = data.x[:, :3] * 2, data.y
    order = np.random.RandomState(0).permutation(60)
    kept = set(order[:48].tolist())
    pairs = list(zip(data.hypergraph.node_index.tolist(), data.hypergraph.edge_index.tolist(), strict=True))
    inside = [(f"n{v}", f"e{e}") for v, e in pairs if v in kept and e < 48]
    write_tables(folder, "part", sorted(kept), inside, x, y)
    write_tables(folder, "full", range(60), [(f"n{v}", f"e{e}") for v, e in pairs], x, -torch.ones(60, dtype=torch.int))
    write_tables(folder, "truth", range(60), [(f"n{v}", f"e{e}") for v, e in pairs], x, y)
    (folder / "y.json").write_text(json.dumps({f"n{v}": ["cat", "dog"][int(y[v])] for v in range(60)}))
    return folder


def test_train_on_a_part_predict_the_whole_through_files(animals, here):  # noqa: F811
    arguments = ["--label", "kind", "--out", "run", "--json", "--epochs", "60", "--splits", "2", "--jobs", "1"]
    quiet = ["--set", "dropout=0", "--set", "input_dropout=0", "--set", "learning_rate=0.01"]
    code, output, errors = here("train", "part.csv", *arguments, *quiet, folder=animals)
    assert code == 0, errors
    found = json.loads(output)
    assert set(found) == TRAIN_FIELDS
    assert found["metric"] == "accuracy"
    assert len(found["test"]) == len(found["best_epoch"]) == 2
    assert found["num_parameters"] > 0

    code, output, errors = here("predict", "run", "full.csv", "--out", "p.csv", "--json", folder=animals)
    assert code == 0, errors
    assert json.loads(output) == {"predictions": "p.csv", "num_nodes": 60, "models": 2}
    with (animals / "p.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert set(rows[0]) == {"node", "prediction", "p(cat)", "p(dog)"}
    truth = json.loads((animals / "y.json").read_text())
    assert np.mean([truth[row["node"]] == row["prediction"] for row in rows]) > 0.8
    assert all(abs(float(row["p(cat)"]) + float(row["p(dog)"]) - 1) < 1e-6 for row in rows)

    code, output, errors = here("evaluate", "run", "truth.csv", "--label", "kind", "--json", folder=animals)
    assert code == 0, errors
    other = json.loads(output)
    assert set(other) == EVALUATE_FIELDS
    assert not other["same_data"]
    assert other["together"]["accuracy"] > 0.8
    code, output, _ = here("evaluate", "run", "part.csv", "--label", "kind", folder=animals)
    assert code == 0
    assert "accuracy" in output


def test_predicting_for_the_same_file_gives_the_runs_predictions(animals, here):  # noqa: F811
    code, output, errors = here("train", "part.csv", "--label", "kind", "--out", "same", *SMALL, folder=animals)
    assert code == 0, errors
    assert "test accuracy" in output
    assert "report: same/report.html" in errors
    code, _, errors = here("predict", "same", "part.csv", "--label", "kind", "--out", "q.csv", folder=animals)
    assert code == 0, errors
    with (animals / "q.csv").open(newline="") as one, (animals / "same/predictions.csv").open(newline="") as two:
        for new, old in zip(csv.DictReader(one), csv.DictReader(two), strict=True):
            assert new == {name: old[name] for name in new}
    code, _, errors = here("predict", "same", "part.csv", "--out", "q1.csv", "--split", "1", folder=animals)
    assert code == 0, errors


def test_default_folders_are_numbered_and_resumed(animals, here):  # noqa: F811
    one = ["train", "part.csv", "--label", "kind", "--json", *SMALL]
    runs = [json.loads(here(*one, *extra, folder=animals)[1])["run"] for extra in ([], [], ["--resume"])]
    assert runs == ["runs/part-ed-hnn", "runs/part-ed-hnn-2", "runs/part-ed-hnn-2"]


@pytest.mark.parametrize(
    ("code", "arguments", "words"),
    [
        (2, ["train", "nowhere"], "not found: 'nowhere'"),
        (2, ["train", "--model", "transformer"], "model must be one of"),
        (2, ["train", "--set", "hiden=8"], "Did you mean 'hidden'"),
        (2, ["train", "--set", "hidden=0"], "'hidden' must lie in 1..65536"),
        (2, ["train", "part.csv", "--label", "kind", "--preset", "paper"], "--preset auto"),
        (2, ["train", "--config", "none.toml"], "File not found: 'none.toml'"),
        (2, ["predict", "nothing", "full.csv", "--out", "x.csv"], "must be a run folder"),
        (2, ["evaluate", "nothing", "full.csv"], "must be a run folder"),
        (2, ["train", "part.csv", "--label", "kind", "--out", "part.csv"], "It is a file"),
    ],
)
def test_invalid_requests_exit_with_2(animals, refuse, code, arguments, words):  # noqa: F811
    assert words in refuse(code, *arguments, folder=animals)


def test_invalid_data_exits_with_1(animals, refuse):  # noqa: F811
    (animals / "mono.csv").write_text("node,hyperedge\na,1\nb,1\n")
    (animals / "mono.nodes.csv").write_text("id,kind,size\na,cat,1.5\nb,cat,2\n")
    assert "at least 2 classes. Only 'cat'" in refuse(1, "train", "mono.csv", "--label", "kind", folder=animals)
    (animals / "names.csv").write_text("node,hyperedge\na,1\nb,1\n")
    (animals / "names.nodes.csv").write_text("id,kind\na,cat\nb,dog\n")
    assert "Label more nodes" in refuse(1, "train", "names.csv", "--label", "kind", folder=animals)
    (animals / "few.csv").write_text((animals / "part.csv").read_text())
    (animals / "few.nodes.csv").write_text((animals / "part.nodes.csv").read_text().replace(",cat,", ",,", 20))
    errors = refuse(1, "train", "few.csv", "--label", "kind", "--splits", "400", folder=animals)
    assert "Class 'cat'" in errors
    assert "missing in split" in errors
    (animals / "bare.csv").write_text("node,hyperedge\na,1\nb,1\n")
    (animals / "bare.nodes.csv").write_text("id,size\na,1.5\nb,2\n")
    assert "needs labels" in refuse(1, "train", "bare.csv", folder=animals)
    assert "feature columns" in refuse(1, "predict", trained(animals), "bare.csv", "--out", "z.csv", folder=animals)


def trained(animals):
    folder = animals / "done"
    if not folder.exists():
        from edhnn import Plan, TrainConfig, read_dataset, train

        options = {"hidden": 8, "classifier_hidden": 8}
        plan = Plan(options=options, train=TrainConfig(epochs=2), num_splits=1)
        train(read_dataset(animals / "part.csv", label="kind"), plan, out=folder, jobs=1)
    return folder


def test_every_guess_is_reported(animals, here):  # noqa: F811
    run = trained(animals)
    for command in (
        ["train", "part.csv", "--out", "guessed", "--json", *SMALL],
        ["predict", run, "full.csv", "--out", "guessed.csv", "--json"],
        ["evaluate", run, "part.csv", "--json"],
    ):
        code, output, errors = here(*command, folder=animals)
        assert code == 0, errors
        assert json.loads(output)
        assert "note: table of nodes found beside it: 'part.nodes.csv'" in errors or "full.nodes.csv" in errors
        assert ("note: feature columns guessed" in errors) == (command[0] == "train")  # a run knows its columns
    assert json.loads((animals / "guessed/config.json").read_text())["dataset"]["feature_names"] == [
        "size", "age", "weight_kg"
    ]  # fmt: skip
    assert "size, age, weight_kg" in (animals / "guessed/report.html").read_text()


def test_a_refused_request_does_not_block_the_folder(animals, here, refuse):  # noqa: F811
    command = ["train", "part.csv", "--label", "kind", "--out", "second-try"]
    assert "dropout rate" in refuse(2, *command, *SMALL, "--set", "dropout=2", folder=animals)
    assert "dropout rate" in refuse(2, *command, "--set", "dropout=2", "--jobs", "2", folder=animals)
    assert "'restart' must be a finite" in refuse(2, *command, "--set", "restart=nan", folder=animals)
    assert here(*command, *SMALL, folder=animals)[0] == 0


def test_names_with_dollars_and_brackets(animals, here):  # noqa: F811
    for end in (".csv", ".nodes.csv"):
        text = (animals / f"part{end}").read_text().replace(",cat,", ",$10%-$20%,")
        (animals / f"$a_{{b$[red]{end}").write_text(text)
    code, output, errors = here("train", "$a_{b$[red].csv", "--label", "kind", "--out", "[red]", *SMALL, folder=animals)
    assert code == 0, errors
    (animals / "b[").mkdir()
    code, output, errors = here("predict", "[red]", "$a_{b$[red].csv", "--out", "b[/b]:cat:.csv", folder=animals)
    assert code == 0, errors
    assert "Written: b[/b]:cat:.csv, 48 nodes" in output


def test_the_target_of_predictions_is_checked_first(animals, refuse, monkeypatch):  # noqa: F811
    monkeypatch.setattr("edhnn.cli.predict.load_models", lambda *_: pytest.fail("the work started"))
    for target, words in (
        ("p.txt", "must end in .csv, .tsv or .parquet"),
        ("nowhere/p.csv", "The folder 'nowhere' must exist"),
        ("part.csv", "exists already"),
    ):
        assert words in refuse(2, "predict", "done", "part.csv", "--out", target, folder=animals)


def test_unencodable_characters_are_escaped(animals, here, monkeypatch):  # noqa: F811
    (animals / "naïve.csv").write_text("node,hyperedge\na,1\n")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    code, _, errors = here("data", "info", "naïve.csv", folder=animals)
    assert code == 0, errors
    stream.flush()
    assert b"na\\xefve" in stream.buffer.getvalue()


def test_an_interrupt_exits_with_130_and_a_message(animals, here, monkeypatch):  # noqa: F811
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("edhnn.cli.predict.load_models", interrupted)
    code, output, errors = here("evaluate", "done", "part.csv", folder=animals)
    assert (code, output) == (130, "")
    assert "Interrupted. No partial file was written." in errors


def test_a_full_disk_is_reported(animals, here, monkeypatch):  # noqa: F811
    from edhnn.runs import run as split_run

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(split_run, "write_json", full)
    code, _, errors = here("train", "part.csv", "--label", "kind", "--out", "full-disk", *SMALL, folder=animals)
    assert code == 1
    assert "No space left on the disk" in errors
    assert "What was saved before is intact" in errors
    assert "--resume" in errors


def test_ctrl_c_saves_and_prints_how_to_resume(animals):
    command = [
        sys.executable, "-m", "edhnn.cli.main", "train", "part.csv", "--label", "kind", "--out", "stopped",
        "--epochs", "100000", "--splits", "1", "--set", "hidden=8",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=animals, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    metrics = animals / "stopped/splits/00/metrics.jsonl"
    until = time.monotonic() + 90
    while not (metrics.is_file() and metrics.stat().st_size) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "All epochs are saved" in errors
    assert "edhnn train part.csv --label kind --out stopped" in errors
    assert errors.strip().endswith("--resume")
    assert (animals / "stopped/splits/00/state.safetensors").is_file()


def test_models_are_listed_with_their_options(here, tmp_path):  # noqa: F811
    code, output, _ = here("models", "--json", folder=tmp_path)
    assert code == 0
    rows = {row["name"]: row for row in json.loads(output)}
    assert {"ed-hnn", "ed-hnn-ii", "invariant"} <= set(rows)
    assert all(set(row) == {"name", "summary", "options"} for row in rows.values())
    assert rows["ed-hnn"]["options"]["restart"] == 0.5
    code, output, _ = here("models", folder=tmp_path)
    assert "ed-hnn-ii" in output


def write_people(folder, name, columns):
    """Write twenty people in ten groups, with the given columns."""
    rows = [(f"n{v}", *(column(v) for column in columns.values())) for v in range(20)]
    with (folder / f"{name}.csv").open("w", newline="") as stream:
        pairs = [(f"n{v}", f"e{e}") for e in range(10) for v in (e, e + 5, e + 10)]
        csv.writer(stream).writerows([("node", "hyperedge"), *pairs])
    with (folder / f"{name}.nodes.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("id", *columns), *rows])


TINY = ["--epochs", "2", "--splits", "1", "--set", "hidden=8", "--jobs", "1"]


def test_other_files_are_read_with_the_columns_of_the_run(tmp_path, here):  # noqa: F811
    known = {"x": lambda v: v / 20, "y": lambda v: -v / 10, "outcome": lambda v: "" if v % 5 == 0 else v % 2}
    write_people(tmp_path, "people", known)
    write_people(tmp_path, "new", {"x": known["x"], "y": known["y"], "notes": lambda v: "" if v else 7})
    code, _, errors = here(
        "train", "people.csv", "--label", "outcome", "--features", "x,y", "--out", "run", *TINY, folder=tmp_path
    )
    assert code == 0, errors
    for name in ("people", "new"):  # a label with gaps, a feature called y, an unused column
        code, _, errors = here("predict", "run", f"{name}.csv", "--out", f"p-{name}.csv", folder=tmp_path)
        assert code == 0, errors
    code, output, errors = here("evaluate", "run", "people.csv", "--json", folder=tmp_path)
    assert code == 0, errors
    assert json.loads(output)["same_data"]
    code, _, errors = here("evaluate", "run", "new.csv", "--json", folder=tmp_path)
    assert code == 1
    assert "An evaluation needs labels. 'new' has none" in errors
    plain = ["--label", "outcome", "--out", "plain", *TINY]
    assert here("train", "people.csv", "--features", "y", *plain, folder=tmp_path)[0] == 0
    _, output, _ = here("evaluate", "plain", "people.csv", "--label", "outcome", "--json", folder=tmp_path)
    assert json.loads(output)["same_data"]  # though its features were not named again
    write_people(tmp_path, "odd", {**known, "outcome": lambda v: "a" if v else 1, "class": lambda v: v % 2})
    code, _, errors = here("evaluate", "run", "odd.csv", "--json", folder=tmp_path)
    assert code == 1  # and not another column in its place
    assert "all text or all numbers" in errors or "must be among those" in errors
    write_people(tmp_path, "less", {"x": known["x"]})
    code, _, errors = here("predict", "run", "less.csv", "--out", "p.csv", folder=tmp_path)
    assert code == 1
    assert "less.nodes.csv: The model needs the 2 feature columns of its training. Missing: 'y'" in errors


def test_a_label_that_is_named_keeps_the_task_of_the_run(tmp_path, here):  # noqa: F811
    write_people(tmp_path, "real", {"x": lambda v: v / 20, "price": lambda v: v * 0.75})
    write_people(tmp_path, "whole", {"x": lambda v: v / 20, "target": lambda v: v})
    code, _, errors = here("train", "real.csv", "--label", "price", "--out", "run", *TINY, folder=tmp_path)
    assert code == 0, errors
    code, output, errors = here("evaluate", "run", "whole.csv", "--label", "target", "--json", folder=tmp_path)
    assert code == 0, errors
    assert set(json.loads(output)["mean"]) == {"rmse", "mae", "r2"}


def test_features_are_drawn_as_in_training(tmp_path, here):  # noqa: F811
    quick = ["--model", "mlp", "--epochs", "1", "--splits", "1", "--jobs", "1"]
    code, _, errors = here("train", "csbm-4", "--noise", "2", "--out", "run", *quick, folder=tmp_path)
    assert code == 0, errors
    assert json.loads((tmp_path / "run/config.json").read_text())["dataset"]["feature_noise"] == 2.0
    code, output, errors = here("evaluate", "run", "csbm-4", "--json", folder=tmp_path)
    assert code == 0, errors
    assert json.loads(output)["same_data"]
    _, output, _ = here("evaluate", "run", "csbm-4", "--noise", "1", "--json", folder=tmp_path)
    assert not json.loads(output)["same_data"]
    code, _, errors = here("train", "csbm-4", "--out", "run", "--resume", *quick, folder=tmp_path)
    assert code == 2
    assert "dataset.feature_noise is 2.0 there, 1.0 here" in errors


def test_small_errors_are_not_shown_as_zero(tmp_path, here):  # noqa: F811
    write_people(tmp_path, "small", {"x": lambda v: v / 20, "target": lambda v: (v % 7 + 0.5) * 1e-4})
    code, output, errors = here("train", "small.csv", "--label", "target", "--out", "run", *TINY, folder=tmp_path)
    assert code == 0, errors
    assert "0.00 ± 0.00" not in output
    assert "e-05" in output or "0.000" in output


def test_folds_groups_and_floors_through_the_command(animals, here):  # noqa: F811
    rows = list(csv.DictReader((animals / "part.nodes.csv").read_text().splitlines()))
    with (animals / "herds.nodes.csv").open("w", newline="") as stream:
        table = csv.DictWriter(stream, [*rows[0], "herd", "part"])
        table.writeheader()
        parts = ["train", "train", "valid", "test"]
        table.writerows(row | {"herd": n // 4, "part": parts[n % 4]} for n, row in enumerate(rows))
    (animals / "herds.csv").write_text((animals / "part.csv").read_text())
    small = ["--label", "kind", "--epochs", "5", "--set", "hidden=8", "--jobs", "1"]
    code, output, errors = here("train", "herds.csv", *small, "--group", "herd", "--out", "grouped", folder=animals)
    assert code == 0, errors
    assert "5 folds that keep the groups in 'herd' together" in errors
    guessed = next(line for line in errors.splitlines() if "feature columns guessed" in line)
    assert "herd" not in guessed
    for words in ("95 % interval", "of each fold", "majority class", "features alone", "neighbours' vote", "recall %"):
        assert words in output
    assert "(paired over 48 nodes, at the 5 % level)." in output
    assert "±" not in output
    code, output, errors = here(
        "train", "herds.csv", *small, "--split-column", "part", "--out", "given", "--json", folder=animals
    )
    assert code == 0, errors
    found = json.loads(output)
    assert (found["protocol"], found["test_std"], found["score"]["num_nodes"]) == ("given", None, 12)
    code, output, errors = here("evaluate", "grouped", "herds.csv", "--group", "herd", folder=animals)
    assert code == 2
    code, _, errors = here("train", "herds.csv", *small, "--folds", "3", "--splits", "3", folder=animals)
    assert code == 2
    assert "--splits and --folds exclude each other" in errors
    code, _, errors = here("train", "herds.csv", *small, "--split-column", "weight_kg", folder=animals)
    assert code == 1
    assert "must hold train, valid or test" in errors
