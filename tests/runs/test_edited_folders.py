"""Edited run, model and tuning folders: each edit gives an `EdhnnError` or a correct result, and none waits forever."""

import copy
import json
import os
import shutil
import signal
import sqlite3
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import safetensors.torch
import torch

from edhnn import EdhnnError, Plan, TrainConfig, UsageError, from_pretrained, train
from edhnn.io.files import need_regular, read_document
from edhnn.runs.evaluate import evaluate_run
from edhnn.runs.folder import RunFolder, read_result
from edhnn.runs.plan import make_plan, parse_settings
from edhnn.runs.predict import load_models

pytestmark = pytest.mark.usefixtures("without_shape_checks")  # so that our own checks run

PLAN = Plan(options={"hidden": 8, "classifier_hidden": 8}, train=TrainConfig(epochs=2), num_splits=2)
DEEP = "[" * 100_000 + "]" * 100_000
VALUES = (None, True, "text", -1, 10**9, 10**30, 1e308, [], {}, [[1], [[2]]], "removed")
MODEL = "splits/00/model"


@pytest.fixture(scope="module")
def intact(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("edited") / "run"
    train(replace(tiny, feature_names=tuple("abcdef")), PLAN, out=folder, jobs=1)
    return folder


@pytest.fixture
def run(intact, tmp_path):
    return shutil.copytree(intact, tmp_path / "run")


@contextmanager
def bounded(seconds=30):
    """Fail instead of waiting forever."""

    def stop(number, frame):
        raise AssertionError(f"no answer after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def places(content, above=()):
    for key in content:
        yield (*above, key)
        if isinstance(content[key], dict):
            yield from places(content[key], (*above, key))


def edited(content, place, value):
    content = copy.deepcopy(content)
    parent = content
    for key in place[:-1]:
        parent = parent[key]
    if value == "removed":
        del parent[place[-1]]
    else:
        parent[place[-1]] = value
    return content


def attempt(*calls):
    """Call functions; an `EdhnnError` is an answer, every other error fails the test."""
    for call in calls:
        with bounded():
            try:
                call()
            except EdhnnError as error:
                assert str(error)


def test_every_edited_field_gives_an_answer(run):
    for path, read in (
        (run / "config.json", lambda: RunFolder(run).plan()),
        (run / MODEL / "config.json", lambda: from_pretrained(run / MODEL)),
        (run / "splits/00/result.json", lambda: read_result(RunFolder(run).split(0))),
    ):
        content = json.loads(path.read_text())
        for place in places(content):
            for value in VALUES:
                path.write_text(json.dumps(edited(content, place, value)))
                attempt(read)


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("config.json", ["num_splits"], 10**9, "`int` <= 10000"),
        ("config.json", ["options", "num_iterations"], 10**6, "'num_iterations' must lie in 1..1000"),
        (f"{MODEL}/config.json", ["model_config", "num_iterations"], 10**6, "'num_iterations' must lie in 1..1000"),
        (f"{MODEL}/config.json", ["model_config", "phi_layers"], 10**7, "'phi_layers' must lie in 0..1000"),
        (f"{MODEL}/config.json", ["model_config", "phi_layers"], 1000, "more parameters than model.safetensors has"),
        (f"{MODEL}/config.json", ["model_config", "hidden"], 60_000, "more parameters than model.safetensors has"),
        (f"{MODEL}/config.json", ["in_features"], 10**12, "more parameters than model.safetensors has"),
        (f"{MODEL}/config.json", ["reading"], None, "Expected `object`, got `null`"),
        (f"{MODEL}/config.json", ["reading"], {"label_columns": 3}, "label_columns"),
        (f"{MODEL}/config.json", ["objective", "task"], "unknown", "must be one of classification"),
        (f"{MODEL}/config.json", ["feature_names"], [["a"]] * 6, "feature_names"),
    ],
)
def test_the_error_names_the_field(run, name, place, value, words):
    path = run / name
    path.write_text(json.dumps(edited(json.loads(path.read_text()), place, value)))
    with bounded(), pytest.raises(EdhnnError, match=words):
        from_pretrained(run / MODEL) if name.startswith(MODEL) else load_models(run)


def replace_by(kind, path):
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes({"empty": b"", "deep": DEEP.encode(), "bytes": b"\xff\xfe\0\x93NUMPY"}[kind])


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "empty", "deep", "bytes"])
@pytest.mark.parametrize(
    "name", ["config.json", "splits.npz", "nodes.npy", f"{MODEL}/config.json", f"{MODEL}/model.safetensors"]
)
def test_a_file_of_another_kind_raises(run, tiny, name, kind):
    replace_by(kind, run / name)
    other = replace(tiny, x=torch.cat([tiny.x[:-1], tiny.x[-1:] + 1]))
    with bounded(), pytest.raises(EdhnnError):
        evaluate_run(run, other if name == "nodes.npy" else tiny)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "empty", "deep", "bytes"])
@pytest.mark.parametrize("name", ["result.json", "metrics.jsonl"])
def test_a_file_of_another_kind_raises_on_resumption(run, tiny, name, kind):
    replace_by(kind, run / "splits/00" / name)
    with bounded(60), pytest.raises(EdhnnError):
        train(replace(tiny, feature_names=tuple("abcdef")), PLAN, out=run, resume=True)


@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.complex64])
def test_weights_of_an_unusual_type_raise(run, kind):
    path = run / MODEL / "model.safetensors"
    safetensors.torch.save_file({name: w.to(kind) for name, w in safetensors.torch.load_file(path).items()}, path)
    with pytest.raises(EdhnnError, match="A tensor must be of type F64"):
        from_pretrained(run / MODEL)


@pytest.mark.parametrize("numbers", [np.ones(3), np.array([-1]), np.array([10**9]), np.ones((2, 2), int), np.array(3)])
def test_splits_that_are_not_node_numbers_raise(run, tiny, numbers):
    with np.load(run / "splits.npz") as arrays:
        content = dict(arrays) | {"test_0": numbers}
    np.savez(run / "splits.npz", **content)
    with pytest.raises(EdhnnError, match="must hold the node numbers of every split"):
        evaluate_run(run, replace(tiny, feature_names=tuple("abcdef")))


def test_a_configuration_without_a_part_is_not_resumed(run, tiny):
    content = json.loads((run / "config.json").read_text())
    del content["dataset"]
    (run / "config.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match="holds a different run: dataset.name is None there"):
        train(replace(tiny, feature_names=tuple("abcdef")), PLAN, out=run, resume=True)


@pytest.mark.parametrize("setting", ["phi_layers=10000000", "num_iterations=1000000", "hidden=100000000"])
def test_settings_have_limits(tiny, setting):
    with pytest.raises(UsageError, match=r"must lie in"):
        make_plan(tiny, settings=parse_settings([setting]))


def test_deep_settings_and_files_raise(tiny, tmp_path):
    with pytest.raises(UsageError, match="'hidden' must be of type int"):
        make_plan(tiny, settings=parse_settings([f"hidden={DEEP[:1000]}"]))
    for text in (f"a = {DEEP}", f"[{'a.' * 100_000}b]"):
        (tmp_path / "plan.toml").write_text(text)
        with bounded(), pytest.raises(EdhnnError, match="nested at most 64 deep"):
            make_plan(tiny, file=tmp_path / "plan.toml")


def test_an_integer_that_cannot_be_printed_raises(tiny, tmp_path):
    (tmp_path / "plan.toml").write_text(f"splits = 0x{'f' * 5000}")
    with pytest.raises(EdhnnError, match="an integer must have at most 1024 bits"):
        make_plan(tiny, file=tmp_path / "plan.toml")


def test_a_plan_has_a_limit_of_splits():
    with pytest.raises(UsageError, match="at most 10000 splits"):
        Plan(num_splits=10**9)


def test_only_regular_files_within_the_limit_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with bounded(), pytest.raises(UsageError, match=r"must be a file. It is a pipe. Save its content in a file first"):
        need_regular(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"12345")
    with pytest.raises(EdhnnError, match="at most 4 bytes"):
        read_document(tmp_path / "large", 4)


@pytest.mark.parametrize(
    "command",
    [
        "update study_user_attributes set value_json = '[]'",
        "update trial_user_attributes set value_json = '{}'",
        "update trial_system_attributes set value_json = '{\"x\": 1}'",
        "update trial_values set value = 'text'",
        "update trials set state = 'STRANGE'",
        "update trials set number = ''",
        "delete from trial_params",
    ],
)
def test_an_edited_study_gives_an_answer(tiny, tmp_path, command):
    from edhnn.tuning.run import tune
    from edhnn.tuning.search import Search

    search = Search(plan=replace(PLAN, num_splits=1, train=TrainConfig(epochs=1)), trials=1, fixed=("hidden",))
    tune(tiny, search, storage=tmp_path / "study.db", jobs=1)
    with sqlite3.connect(tmp_path / "study.db") as study:
        study.execute(command)
    attempt(lambda: tune(tiny, search, storage=tmp_path / "study.db", jobs=1))
