"""A run folder: its files, the same bits after a kill and a resumption, and invalid requests."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from edhnn import DataError, NodeDataset, Plan, TrainConfig, UsageError, read_dataset, train, write_dataset
from edhnn.data.fingerprints import node_hashes
from edhnn.errors import DivergedError, StoppedError
from edhnn.parallel import locked
from edhnn.runs import folder as folder_module
from edhnn.runs.evaluate import evaluate_run
from edhnn.runs.folder import RunFolder
from edhnn.runs.plan import choose_splits
from edhnn.runs.predict import load_models
from edhnn.runs.run import choose_jobs, cores
from edhnn.runtime import runtime_settings
from edhnn.training.config import TRANSFORMS

FILES = {
    "config.json", "environment.json", "splits.npz", "nodes.npy", "splits", "metrics.jsonl", "predictions.csv", "lock",
    "learning-curve.png", "confusion.png", "report.html", "summary.json",
}  # fmt: skip
SPLIT_FILES = {"metrics.jsonl", "model", "result.json", "lock"}


def comparable(folder: Path) -> dict[str, bytes]:
    """Return everything that interruptions must not change: numbers, parameters, predictions."""
    results = {}
    for path in sorted(folder.glob("splits/*/result.json")):
        facts = json.loads(path.read_text())
        del facts["seconds"], facts["peak_memory"]
        results[path.parent.name] = json.dumps(facts).encode()
    files = ["metrics.jsonl", "predictions.csv", "config.json"]
    files += [str(path.relative_to(folder)) for path in sorted(folder.glob("splits/*/model/*"))]
    return {**results, **{name: (folder / name).read_bytes() for name in files}}


def test_a_run_writes_all_its_files(tiny, plan, tmp_path):
    summary = train(tiny, plan, out=tmp_path / "run", jobs=1)
    folder = tmp_path / "run"
    assert {path.name for path in folder.iterdir()} == FILES
    assert {path.name for path in (folder / "splits" / "01").iterdir()} == SPLIT_FILES
    assert len(summary.test) == len(summary.valid) == len(summary.best_epoch) == 2
    assert summary.test_mean == pytest.approx(sum(summary.test) / 2)
    assert summary.test_std == pytest.approx(abs(summary.test[0] - summary.test[1]) / 2**0.5)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [(line["split"], line["epoch"]) for line in lines] == [(s, e) for s in (0, 1) for e in range(1, 7)]
    header, *rows = (folder / "predictions.csv").read_text().splitlines()
    assert header == '"node","label","prediction","held_out_prediction","p(blue)","p(red)"'
    assert len(rows) == 40
    page = (folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "http" not in page
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["kernels"] in ("native", "torch")
    assert environment["settings"] == runtime_settings() != {}


def test_one_process_and_two_give_the_same_bits(tiny, plan, tmp_path):
    train(tiny, plan, out=tmp_path / "one", jobs=1)
    train(tiny, plan, out=tmp_path / "two", jobs=2)
    assert comparable(tmp_path / "one") == comparable(tmp_path / "two")
    assert not (tmp_path / "two" / "inputs.safetensors").exists()


def test_a_process_does_not_read_the_splits_it_has_trained(tiny, plan, tmp_path, monkeypatch):
    """Files are read only by a resumed run, and the hypergraph is transformed once for all models."""
    read, transformed = [], []
    real_read, real_transform = folder_module.from_pretrained, TRANSFORMS["add_singletons"]
    monkeypatch.setattr(folder_module, "from_pretrained", lambda path: read.append(path) or real_read(path))
    counting = {"add_singletons": lambda hypergraph: transformed.append(1) or real_transform(hypergraph)}
    monkeypatch.setattr("edhnn.training.config.TRANSFORMS", counting)
    first = train(tiny, plan, out=tmp_path / "run", jobs=1)
    assert (len(read), len(transformed)) == (0, 1)
    before = comparable(tmp_path / "run")
    second = train(tiny, plan, out=tmp_path / "run", jobs=1, resume=True)
    assert (len(read), len(transformed)) == (2, 2)
    assert comparable(tmp_path / "run") == before
    assert first.test == second.test
    transformed.clear()
    assert load_models(tmp_path / "run").answers(tiny).shape == (40, 2)
    assert len(evaluate_run(tmp_path / "run", tiny)["each"]) == 2
    assert len(transformed) == 2  # one for the answers, one for the evaluation; each had two models


DRIVER = """
import sys, time, torch
torch.set_num_threads(1)
from edhnn import Plan, TrainConfig, read_dataset, train
from edhnn.runs import run
run.CHECKPOINT_SECONDS = 0.05
plan = Plan(options={"hidden": 8, "classifier_hidden": 8}, train=TrainConfig(epochs=30), num_splits=2)
print("started", flush=True)
train(read_dataset(sys.argv[1]), plan, out=sys.argv[2], resume=True, jobs=int(sys.argv[3]))
print("done", flush=True)
"""


def thirty_epochs():
    """Return the plan of the driver."""
    return Plan(options={"hidden": 8, "classifier_hidden": 8}, train=TrainConfig(epochs=30), num_splits=2)


def start(data, out, jobs):
    command = [sys.executable, "-c", DRIVER, str(data), str(out), str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output


@pytest.fixture(scope="module")
def on_disk(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_dataset(tiny, folder / "tiny.hif.json")
    train(read_dataset(folder / "tiny.hif.json"), thirty_epochs(), out=folder / "undisturbed", jobs=1)
    return folder


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_killed_at_random_moments_resumes_to_the_same_bits(on_disk, tmp_path, jobs):
    dice = random.Random(jobs)
    kills = 0
    for _ in range(1 if jobs == 1 else 3):
        process = start(on_disk / "tiny.hif.json", tmp_path / "run", jobs)
        assert process.stdout.readline().strip() == "started"
        time.sleep(dice.uniform(0.1, 0.6) if jobs == 1 else dice.uniform(2.0, 5.0))
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert kills
    if jobs == 1:
        train(read_dataset(on_disk / "tiny.hif.json"), thirty_epochs(), out=tmp_path / "run", resume=True, jobs=1)
    else:
        finish(start(on_disk / "tiny.hif.json", tmp_path / "run", jobs))
    assert comparable(tmp_path / "run") == comparable(on_disk / "undisturbed")


def test_an_interrupted_run_saves_and_resumes(tiny, tmp_path):
    plan = Plan(options={"hidden": 8, "classifier_hidden": 8}, train=TrainConfig(epochs=12), num_splits=2)
    train(tiny, plan, out=tmp_path / "whole", jobs=1)
    seen = []

    def interrupt(record):
        seen.append(record)
        if len(seen) == 17:
            os.kill(os.getpid(), signal.SIGINT)

    patched = pytest.MonkeyPatch()
    with patched.context() as patch:
        from edhnn.training import loop as fit_module

        make = fit_module.EpochRecord
        patch.setattr(fit_module, "EpochRecord", lambda **facts: (interrupt(facts), make(**facts))[1])
        with pytest.raises(StoppedError, match="split 1, epoch 5"):
            train(tiny, plan, out=tmp_path / "run", jobs=1)
    assert (tmp_path / "run/splits/01/state.safetensors").is_file()
    with pytest.raises(UsageError, match="Resume it with `resume=True`, or choose another folder"):
        train(tiny, plan, out=tmp_path / "run", jobs=1)
    with pytest.raises(UsageError, match="must be finished. Split 1 is not"):
        load_models(tmp_path / "run")
    train(tiny, plan, out=tmp_path / "run", jobs=1, resume=True)
    assert comparable(tmp_path / "run") == comparable(tmp_path / "whole")


def test_a_finished_run_is_not_trained_again(tiny, plan, tmp_path):
    first = train(tiny, plan, out=tmp_path / "run", jobs=1)
    before = comparable(tmp_path / "run")
    second = train(tiny, plan, out=tmp_path / "run", jobs=1, resume=True)
    assert (first.test, first.split_seconds) == (second.test, second.split_seconds)
    assert comparable(tmp_path / "run") == before


def test_resuming_a_different_run_raises(tiny, plan, tmp_path):
    train(tiny, plan, out=tmp_path / "run", jobs=1)
    other = Plan(options={**plan.options, "hidden": 9}, train=plan.train, num_splits=2)
    with pytest.raises(UsageError, match="options.hidden is 8 there, 9 here"):
        train(tiny, other, out=tmp_path / "run", resume=True)
    config = json.loads((tmp_path / "run/config.json").read_text())
    (tmp_path / "run/config.json").write_text(json.dumps({**config, "edhnn_version": "0.0.1"}))
    with pytest.raises(UsageError, match=r"started by edhnn 0.0.1. This is .* in another folder"):
        train(tiny, plan, out=tmp_path / "run", resume=True)
    (tmp_path / "run/config.json").write_text(json.dumps({**config, "format": 99}))
    with pytest.raises(DataError, match=r"format must be 1. Got 99"):
        load_models(tmp_path / "run")
    (tmp_path / "run/config.json").write_text("{")
    with pytest.raises(DataError, match="must be JSON"):
        load_models(tmp_path / "run")


def test_a_folder_with_other_files_raises(tiny, plan, tmp_path):
    (tmp_path / "thesis.tex").write_text("text")
    with pytest.raises(UsageError, match="not of a run"):
        train(tiny, plan, out=tmp_path, resume=True)
    with pytest.raises(UsageError, match="It is a file"):
        train(tiny, plan, out=tmp_path / "thesis.tex")
    with pytest.raises(UsageError, match="'.*thesis.tex' must be a folder, to hold 'run'. It is a file"):
        train(tiny, plan, out=tmp_path / "thesis.tex" / "run")


def begin(tiny, plan, path):
    """Make the folder of a run in which no split is trained."""
    splits = choose_splits(tiny, 2)
    RunFolder(path).begin(plan.to_json(tiny, splits, node_hashes(tiny)), splits, resume=False)


def test_two_processes_do_not_train_in_one_folder(tiny, plan, tmp_path):
    begin(tiny, plan, tmp_path / "run")
    with locked(tmp_path / "run/lock") as acquired:
        assert acquired
        with pytest.raises(UsageError, match="another process"):
            train(tiny, plan, out=tmp_path / "run", resume=True)


def test_the_error_for_a_damaged_checkpoint_names_it(tiny, plan, tmp_path):
    begin(tiny, plan, tmp_path / "run")
    (tmp_path / "run/splits/00").mkdir()
    (tmp_path / "run/splits/00/state.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{")
    with pytest.raises(DataError, match=r"state.safetensors.*Delete the folder"):
        train(tiny, plan, out=tmp_path / "run", resume=True, jobs=1)


def test_a_split_that_diverges_at_once_writes_no_model(tiny, tmp_path):
    wild = replace(tiny, x=tiny.x * 1e30)
    plan = Plan(options={"hidden": 8, "norm": "none"}, train=TrainConfig(epochs=9, learning_rate=1e10), num_splits=1)
    with pytest.raises(DivergedError, match="At epoch 1 it is not") as caught:
        train(wild, plan, out=tmp_path / "run", jobs=1)
    assert "is kept" not in str(caught.value)
    assert not (tmp_path / "run/splits/00/model").exists()


@pytest.mark.slow
def test_the_error_of_a_worker_is_raised(tiny, plan, tmp_path):
    from edhnn.errors import WorkerError

    splits = choose_splits(tiny, 2)
    RunFolder(tmp_path / "run").begin(plan.to_json(tiny, splits), splits, resume=False)
    (tmp_path / "run/splits/00").mkdir()
    (tmp_path / "run/splits/00/state.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{")
    with pytest.raises(WorkerError, match="Delete the folder"):
        train(tiny, plan, out=tmp_path / "run", resume=True, jobs=2)
    assert not (tmp_path / "run/inputs.safetensors").exists()


def test_partly_labelled_data_splits_its_labelled_nodes(tiny):
    y = tiny.y.clone()
    y[::4] = -1
    part = NodeDataset(name="part", hypergraph=tiny.hypergraph, x=tiny.x, y=y, task="classification")
    for split in choose_splits(part, 3):
        together = torch.cat([split.train, split.valid, split.test])
        assert sorted(together.tolist()) == (y >= 0).nonzero()[:, 0].tolist()


def test_evaluating_a_run_gives_its_reported_metrics(tiny, plan, tmp_path):
    summary = train(tiny, plan, out=tmp_path / "run", jobs=1)
    result = evaluate_run(tmp_path / "run", tiny)
    assert result["same_data"]
    assert result["together"] is None
    assert [100 * each["accuracy"] for each in result["each"]] == summary.test
    assert 100 * result["mean"]["accuracy"] == pytest.approx(summary.test_mean)


def test_the_number_of_jobs(tiny, plan, monkeypatch):
    assert choose_jobs(tiny, plan, 1) == 1
    assert choose_jobs(tiny, plan, 10) == 1  # the work is shorter than the start of a process
    large = Plan(options={"hidden": 512, "num_iterations": 8})
    assert choose_jobs(tiny, large, 10) == min(cores(), 10)
    monkeypatch.setattr("edhnn.runs.run.total_memory", lambda: 2**29)
    assert choose_jobs(tiny, large, 10) == 1
