"""Damaged run folders: each error names the file, the problem and the remedy."""

import json
import shutil

import pytest
import safetensors.torch
import torch

from edhnn import DataError, Plan, TrainConfig, UsageError, from_pretrained, train
from edhnn.runs.evaluate import evaluate_run
from edhnn.runs.predict import load_models
from edhnn.training.checkpoint import read_state

pytestmark = pytest.mark.usefixtures("without_shape_checks")  # so that our own checks run

PLAN = Plan(options={"hidden": 8, "classifier_hidden": 8}, train=TrainConfig(epochs=2), num_splits=2)


@pytest.fixture(scope="module")
def intact(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage") / "run"
    train(tiny, PLAN, out=folder, jobs=1)
    return folder


@pytest.fixture
def run(intact, tmp_path):
    return shutil.copytree(intact, tmp_path / "run")


def change(path, edit):
    facts = json.loads(path.read_text())
    edit(facts)
    path.write_text(json.dumps(facts))


@pytest.mark.parametrize("content", [lambda old: b"", lambda old: old[: len(old) // 2], lambda old: b"no zip at all"])
def test_damaged_splits_raise(run, tiny, content):
    path = run / "splits.npz"
    path.write_bytes(content(path.read_bytes()))
    with pytest.raises(DataError, match=r"splits.npz: The file must hold the node numbers.*Delete it and resume"):
        evaluate_run(run, tiny)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda facts: facts.pop("train"), "missing required field `train`"),
        (lambda facts: facts.pop("dataset"), "Expected `object`, got `null`"),
        (lambda facts: facts["dataset"].pop("sha256"), "missing required field `sha256`"),
        (lambda facts: facts["train"].update(momentum=0.9), "momentum"),
        (lambda facts: facts["options"].update(hidden="wide"), "'hidden' must be of type int"),
        (lambda facts: facts.update(train=None), "Expected `object`, got `null`"),
    ],
)
def test_a_damaged_configuration_of_a_run_raises(run, edit, words):
    change(run / "config.json", edit)
    with pytest.raises(DataError, match=rf"config.json: The file must be the configuration of a run.*{words}.*Copy"):
        load_models(run)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda facts: facts.update(objective=None), "does not match its configuration"),
        (lambda facts: facts.pop("model_type"), "missing required field `model_type`"),
        (lambda facts: facts["train_config"].update(epochs=0), "'epochs' must lie in"),
        (lambda facts: facts.update(class_names=["blue"]), "'class_names' must have 2 entries. Got 1"),
        (lambda facts: facts.update(feature_names=["a"]), "'feature_names' must have 6 entries. Got 1"),
    ],
)
def test_a_damaged_configuration_of_a_model_raises(run, edit, words):
    change(run / "splits/00/model/config.json", edit)
    with pytest.raises(DataError, match=rf"model.*{words}.*Copy the model folder again"):
        from_pretrained(run / "splits/00/model")


def test_reading_a_run_as_a_model_raises(run):
    with pytest.raises(UsageError, match=r"It is a run folder, with a model for each split: '.*run/splits/00/model'"):
        from_pretrained(run)


@pytest.mark.parametrize(
    "change", ["{}", '{"metric": "accuracy"}', "{", {"test": None}, {"seconds": "x"}, {"valid": {}}]
)
def test_a_damaged_result_raises(run, tiny, change):
    path = run / "splits/01/result.json"
    path.write_text(change if isinstance(change, str) else json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=r"splits/01/result.json: .*must.*Delete the folder"):
        train(tiny, PLAN, out=run, resume=True, jobs=1)


def test_missing_metrics_raise(run, tiny):
    (run / "splits/01/metrics.jsonl").unlink()
    with pytest.raises(DataError, match=r"splits/01/metrics.jsonl: .*Got none.*Delete the folder"):
        train(tiny, PLAN, out=run, resume=True, jobs=1)


def test_a_model_without_weights_is_trained_again(run, tiny):
    expected = (run / "splits/01/model/model.safetensors").read_bytes()
    (run / "splits/01/model/model.safetensors").unlink()
    (run / "splits/01/result.json").unlink()
    train(tiny, PLAN, out=run, resume=True, jobs=1)
    assert (run / "splits/01/model/model.safetensors").read_bytes() == expected


def test_a_damaged_state_raises(tmp_path):
    for metadata in (None, {"state": "{"}, {"state": '{"epochs": 3}'}):
        safetensors.torch.save_file({"model/a": torch.ones(1)}, tmp_path / "state.safetensors", metadata)
        with pytest.raises(DataError, match=r"state.safetensors: .*state of a training.*Delete the folder"):
            read_state(tmp_path / "state.safetensors", torch.nn.Linear(1, 1))


@pytest.mark.parametrize("line", ['{"split": 1, "epo', "[]", '{"split": 1, "epoch": 2}', None])
def test_a_damaged_line_of_metrics_raises(run, tiny, line):
    path = run / "splits/01/metrics.jsonl"
    first = path.read_text().splitlines()[0]
    path.write_text("" if line is None else f"{first}\n{line}\n")
    words = "Got none" if line is None else "line 2: The line must be the record of epoch 2"
    with pytest.raises(DataError, match=rf"splits/01/metrics.jsonl.*{words}.*Delete the folder '.*splits/01'"):
        train(tiny, PLAN, out=run, resume=True, jobs=1)
