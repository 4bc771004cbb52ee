"""Options and settings: NumPy numbers are accepted, and invalid values raise before a folder exists."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import scipy.sparse as sp

from edhnn import Plan, TrainConfig, UsageError, train
from edhnn.data.dataset import sparse_features
from edhnn.runs.plan import make_plan, parse_settings


@pytest.mark.usefixtures("without_shape_checks")
def test_numpy_numbers_are_accepted(tiny, tmp_path):
    config = TrainConfig(epochs=np.int64(2), learning_rate=np.float32(0.5), patience=np.int32(1))
    assert [type(value) for value in (config.epochs, config.learning_rate, config.patience)] == [int, float, int]
    options = {"hidden": np.int64(8), "classifier_hidden": 8, "dropout": np.float64(0.25), "restart": 1}
    plan = Plan(options=options, train=config, num_splits=np.int64(1), seed=np.int64(3))
    assert plan.options == {"hidden": 8, "classifier_hidden": 8, "dropout": 0.25, "restart": 1.0}
    train(tiny, plan, out=tmp_path / "run", jobs=1)
    assert json.loads((tmp_path / "run/config.json").read_text())["options"]["hidden"] == 8
    assert json.dumps(asdict(plan))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"restart": float("nan")}, "'restart' must be a finite number. Got nan"),
        ({"restart": 10**400}, "'restart' must be a finite number. Got inf"),
        ({"hidden": 8.0}, "'hidden' must be of type int. Got 8.0"),
        ({"hidden": "8"}, "'hidden' must be of type int. Got '8'"),
    ],
)
def test_a_plan_checks_its_options(options, words):
    with pytest.raises(UsageError, match=words):
        Plan(options=options)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_invalid_model_creates_no_folder(tiny, tmp_path, jobs):
    with pytest.raises(UsageError, match="dropout rate"):
        train(tiny, Plan(options={"dropout": 2.0}), out=tmp_path / "run", jobs=jobs)
    words = tiny.__class__(
        name="s", hypergraph=tiny.hypergraph, x=sparse_features(sp.csr_array(tiny.x)), y=tiny.y, task=tiny.task
    )
    with pytest.raises(UsageError, match="Only dense features"):
        train(words, Plan(train=TrainConfig(feature_scaling="standard")), out=tmp_path / "run", jobs=jobs)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("without_shape_checks")
def test_transforms_must_be_a_list(tiny):
    with pytest.raises(UsageError, match="'transforms' must be of type .*list.* Got 'add_singletons'"):
        make_plan(tiny, settings=parse_settings(["transforms=add_singletons"]))
    named = parse_settings(['transforms=["add_singletons"]'])
    assert make_plan(tiny, settings=named).train.transforms == ("add_singletons",)


def test_a_run_of_random_splits_records_no_protocol_so_that_old_folders_are_resumed(tiny, plan, tmp_path):
    train(tiny, plan, out=tmp_path / "run", jobs=1)
    record = json.loads((tmp_path / "run/config.json").read_text())
    assert not {"protocol", "group", "split_column"} & set(record)
    assert train(tiny, plan, out=tmp_path / "run", jobs=1, resume=True).protocol == "splits"
