"""Damaged run folders: each error names the file, the problem and the remedy."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import safetensors.torch
import torch

from edhnn import DataError, Plan, TrainConfig, UsageError, from_pretrained, train
from edhnn.io.json_files import read_json
from edhnn.runs.evaluate import evaluate_run
from edhnn.runs.folder import RunFolder
from edhnn.runs.plan import choose_splits
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
    with pytest.raises(DataError, match=r"splits.npz: The file must hold the node numbers.*Resume the run"):
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


def member(number):
    return f"splits/{number:02d}/model"


@pytest.fixture(scope="module")
def other(tiny, tmp_path_factory):
    """Return a run of the same data and plan, with other classes."""
    folder = tmp_path_factory.mktemp("damage") / "other"
    train(replace(tiny, class_names=("cat", "dog")), PLAN, out=folder, jobs=1)
    return folder


def put(source, target):
    shutil.rmtree(target)
    shutil.copytree(source, target)


def without_hashes(run):
    """Remove what earlier versions did not record."""
    change(run / "config.json", lambda facts: facts["dataset"].pop("nodes_sha256"))
    for path in run.glob("splits/*/result.json"):
        change(path, lambda facts: (facts.pop("run_sha256"), facts.pop("model_sha256")))


def test_a_model_of_another_run_is_refused(run, other, tiny):
    put(other / member(1), run / member(1))
    for use in (
        lambda: load_models(run),
        lambda: load_models(run, 1),
        lambda: load_models(run / member(1)),
        lambda: evaluate_run(run, tiny),
        lambda: train(tiny, PLAN, out=run, resume=True, jobs=1),
    ):
        with pytest.raises(DataError, match=r"01/model/\S+: The content must be what the training wrote.*SHA-256"):
            use()
    assert load_models(run, 0)
    shutil.rmtree(run / "splits/01")
    train(tiny, PLAN, out=run, resume=True, jobs=1)
    assert len(load_models(run).members) == 2


def test_a_split_of_another_run_or_another_split_is_refused(run, other):
    for source in (other / "splits/01", run / "splits/00"):
        put(source, run / "splits/01")
        with pytest.raises(DataError, match=r"01/result.json: The file must be the result of split 1 of the run"):
            load_models(run)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda facts: facts.update(class_names=["red", "blue"]), "classes of the run: blue, red; of the model: red, "),
        (lambda facts: facts.update(feature_names=list("abcdef")), "features of the run: None; of the model: a, b"),
        (
            lambda facts: facts["model_config"].update(dropout=0.25),
            r"options of the run: {'dropout': 0.*'dropout': 0.25",
        ),
        (lambda facts: facts["train_config"].update(epochs=7), r"training of the run: {'epochs': 2}; .*{'epochs': 7}"),
        (lambda facts: facts["objective"].update(task="multilabel"), "task of the run: classification"),
        (lambda facts: facts.update(reading={"label_columns": ["z"]}), "reading of the run: .*'label_columns': None"),
    ],
)
def test_runs_without_hashes_load_and_their_models_are_compared_with_the_plan(run, tiny, edit, words):
    expected = evaluate_run(run, tiny)
    without_hashes(run)
    assert evaluate_run(run, tiny) == expected
    change(run / member(1) / "config.json", edit)
    with pytest.raises(DataError, match=rf"The model must be that of the run. The {words}"):
        load_models(run)


def test_runs_without_hashes_can_be_resumed(run, tiny):
    without_hashes(run)
    (run / "splits/01/result.json").unlink()
    train(tiny, PLAN, out=run, resume=True, jobs=1)
    assert len(load_models(run).members) == 2


def edited_splits(run, edit):
    path = run / "splits.npz"
    with np.load(path) as arrays:
        content = dict(arrays)
    edit(content)
    np.savez_compressed(path, **content)


@pytest.mark.parametrize(
    "edit",
    [
        lambda parts: parts.update(test_0=np.concatenate([parts["test_0"], parts["train_0"]])),
        lambda parts: parts.update(test_0=parts["train_0"]),
        lambda parts: parts.update(test_0=np.repeat(parts["test_0"], 2)),
        lambda parts: parts.update(test_1=parts["test_1"] + 1000),
        lambda parts: parts.update(test_1=-1 - parts["test_1"]),
        lambda parts: parts.update(test_1=parts["test_1"].astype(float)),
        lambda parts: parts.update(test_1=parts["test_1"][None]),
        lambda parts: parts.update(test_1=np.array("x")),
        lambda parts: parts.pop("valid_1"),
        lambda parts: [parts.pop(f"{part}_1") for part in ("train", "valid", "test")],
        lambda parts: parts.update(train_0=parts["train_0"][:5]),
        lambda parts: parts.update(more=np.zeros(3)),
    ],
)
def test_edited_splits_are_refused_until_the_run_is_resumed(run, tiny, edit):
    edited_splits(run, edit)
    with pytest.raises(DataError, match=r"splits.npz: The (file|content) must .*Resume the run to write"):
        evaluate_run(run, tiny)
    RunFolder(run).begin(read_json(run / "config.json"), choose_splits(tiny, 2), resume=True)
    assert evaluate_run(run, tiny)["same_data"]


@pytest.mark.parametrize(
    "edit", [lambda nodes: nodes + 1, lambda nodes: nodes[::-1], lambda nodes: nodes.astype(float), None]
)
def test_edited_nodes_are_refused(run, tiny, edit):
    grown = replace(tiny, x=torch.cat([tiny.x[:39], tiny.x[39:] + 0.1]))
    seen = evaluate_run(run, grown)["seen"]
    assert seen > 20
    nodes = np.load(run / "nodes.npy")
    if edit is None:
        (run / "nodes.npy").write_bytes((run / "splits.npz").read_bytes())
    else:
        np.save(run / "nodes.npy", edit(nodes))
    with pytest.raises(DataError, match=r"nodes.npy: The (file|content) must .*Resume the run to write"):
        evaluate_run(run, grown)
