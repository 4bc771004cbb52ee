"""TensorBoard events: every epoch of every split occurs once, also after interruptions."""

import json

import pytest

from edhnn import Plan, TrainConfig, contextual_sbm, train
from edhnn.errors import MissingDependencyError
from edhnn.runs import tensorboard as tensorboard_events
from edhnn.runs.folder import RunFolder


@pytest.fixture(scope="module")
def data():
    return contextual_sbm(1, nodes_per_class=24, num_hyperedges=40, edge_size=4)


@pytest.fixture
def plan():
    options = {"hidden": 8, "classifier_hidden": 8}
    return Plan(options=options, train=TrainConfig(epochs=4), num_splits=2)


def events_of(folder):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_epoch_occurs_once(data, plan, tmp_path, jobs):
    pytest.importorskip("tensorboard")
    train(data, plan, out=tmp_path / "run", jobs=jobs, tensorboard=True)
    for _ in range(2):  # then again, resumed, with nothing left to train
        lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
        for number in range(2):
            expected = [line for line in lines if line["split"] == number]
            found = events_of(tmp_path / f"run/tensorboard/split-{number:02d}")
            assert {"loss", "train/accuracy", "valid/accuracy"} <= set(found)
            assert found["loss"] == [(line["epoch"], pytest.approx(line["loss"], rel=1e-6)) for line in expected]
            accuracies = [(line["epoch"], pytest.approx(line["valid"]["accuracy"], rel=1e-6)) for line in expected]
            assert found["valid/accuracy"] == accuracies
        train(data, plan, out=tmp_path / "run", jobs=jobs, tensorboard=True, resume=True)


def test_new_lines_are_written_and_removed_lines_are_skipped(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    monkeypatch.setattr(tensorboard_events, "_POLL_SECONDS", 0.0)
    folder = RunFolder(tmp_path)
    lines = folder.split(0).metrics
    lines.parent.mkdir(parents=True)

    def line(epoch):
        return (
            json.dumps({"epoch": epoch, "loss": 1 / epoch, "train": {"accuracy": 0.5}, "valid": {"auc": None}}) + "\n"
        )

    with tensorboard_events.tensorboard_events(folder, 2) as poll:
        poll()
        lines.write_text(line(1) + line(2) + line(3)[:9])  # an incomplete line
        poll()
        lines.write_text(line(1))  # cut back to the checkpoint
        poll()
        lines.write_text(line(1) + line(2) + line(3))
        poll()
    found = events_of(tmp_path / "tensorboard/split-00")
    assert [step for step, _ in found["loss"]] == [1, 2, 3]
    assert "valid/auc" not in found
    assert not (tmp_path / "tensorboard/split-01").exists()


def test_missing_tensorboard_raises_before_training(data, plan, tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard_events, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'edhnn\[tensorboard\]'"):
        train(data, plan, out=tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()
