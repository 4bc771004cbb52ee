"""Models as folders: a saved model gives the same answers, for the same hypergraph and for others."""

import copy
import json
import warnings
from dataclasses import replace

import pytest
import safetensors.torch
import scipy.sparse as sp
import torch

from edhnn import DataError, Hypergraph, NodeDataset, TrainConfig, UsageError, fit, from_pretrained, make_model
from edhnn.data.dataset import Provenance, sparse_features
from edhnn.data.ids import Ids
from edhnn.runs.predict import Ensemble, load_models, with_classes
from edhnn.runs.results import id_column, prediction_table
from edhnn.training.inputs import make_inputs, measure_range
from edhnn.training.pretrained import Pretrained


@pytest.fixture(scope="module")
def named(tiny):
    return replace(tiny, feature_names=tuple("abcdef"))


@pytest.fixture(scope="module")
def trained(named, split):
    config = TrainConfig(epochs=4, feature_scaling="standard")
    model = make_model("ed-hnn", in_features=6, num_classes=2, hidden=8, classifier_hidden=8)
    result = fit(model, named, split, config)
    return Pretrained(
        name="ed-hnn",
        model=model,
        objective=result.objective,
        config=config,
        class_names=named.class_names,
        feature_names=named.feature_names,
        scaling=make_inputs(named, config.for_model(model)).scaling,
        feature_range=measure_range(named.x),
    ), result


def test_a_saved_model_gives_the_same_bits(trained, named, tmp_path):
    pretrained, result = trained
    folder = pretrained.save_pretrained(tmp_path / "model")
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "config.json"}
    again = from_pretrained(folder)
    assert torch.equal(again.answers(named), result.outputs.softmax(dim=1))
    assert (again.class_names, again.feature_names) == (("blue", "red"), tuple("abcdef"))
    assert again.config == pretrained.config
    assert again.objective == pretrained.objective
    with pytest.raises(UsageError, match="exists already"):
        pretrained.save_pretrained(folder)
    pretrained.save_pretrained(folder, overwrite=True)


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_a_model_of_another_float_type_keeps_its_type(trained, named, tmp_path, kind):
    other = replace(trained[0], model=copy.deepcopy(trained[0].model).to(kind))
    again = from_pretrained(other.save_pretrained(tmp_path / "model"))
    assert torch.equal(again.answers(named), other.answers(named))
    assert {parameter.dtype for parameter in again.model.parameters()} == {kind}


def test_only_a_model_is_replaced(trained, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").write_text("text")
    for overwrite in (True, False):
        with pytest.raises(UsageError, match="is not a model folder, so it is not replaced"):
            trained[0].save_pretrained(tmp_path / "thesis", overwrite=overwrite)
    assert (tmp_path / "thesis/chapter.tex").read_text() == "text"
    (tmp_path / "empty").mkdir()
    assert trained[0].save_pretrained(tmp_path / "empty").is_dir()


def test_columns_are_found_by_name(trained, named, tmp_path):
    pretrained, _ = trained
    order = [3, 1, 0, 5, 4, 2]
    extra = torch.cat([torch.zeros(40, 1), named.x[:, order]], dim=1)
    names = ("nonsense", *("abcdef"[column] for column in order))
    shuffled = replace(named, x=extra, feature_names=names)
    assert torch.equal(pretrained.answers(shuffled), pretrained.answers(named))
    with pytest.raises(DataError, match=r"6 feature columns of its training. 'tiny' lacks 'f'"):
        pretrained.answers(replace(named, x=named.x[:, :5], feature_names=tuple("abcde")))
    with pytest.raises(DataError, match="trained on 6 feature columns. 'tiny' has 5"):
        pretrained.answers(replace(named, x=named.x[:, :5], feature_names=None))


def test_sparse_columns_are_found_by_name_too(named, split):
    config = TrainConfig(epochs=1)
    words = replace(named, x=sparse_features(sp.csr_array(named.x.numpy())))
    model = make_model("ed-hnn", in_features=6, num_classes=2, hidden=8, classifier_hidden=8)
    result = fit(model, words, split, config)
    pretrained = Pretrained(
        name="ed-hnn", model=model, objective=result.objective, config=config, feature_names=words.feature_names
    )
    backwards = sparse_features(sp.csr_array(named.x.numpy()[:, ::-1]))
    other = replace(words, x=backwards, feature_names=tuple("fedcba"))
    assert torch.allclose(pretrained.answers(other), pretrained.answers(words), atol=1e-6)


def test_a_model_predicts_for_another_hypergraph(trained):
    pretrained, _ = trained
    other = NodeDataset(name="o", hypergraph=Hypergraph.from_hyperedges([[0, 1, 2]], num_nodes=4), x=torch.ones(4, 6))
    answers = pretrained.answers(other)
    assert answers.shape == (4, 2)
    assert torch.allclose(answers.sum(dim=1), torch.ones(4))


def test_classes_are_matched_by_name(trained, named):
    pretrained, _ = trained
    y = torch.tensor([0, 1, 2, -1] + [-1] * 36)
    other = replace(named, y=y, class_names=("red", "blue", "green"))
    with pytest.raises(DataError, match="Got 'green'"):
        with_classes(other, pretrained)
    y[2] = -1
    assert with_classes(other, pretrained).y[:4].tolist() == [1, 0, -1, -1]
    with pytest.raises(DataError, match="trained for classification"):
        with_classes(replace(other, y=y.float(), task="regression", class_names=None), pretrained)


def several(named, split, task, y, columns):
    """Return a dataset and a model with two labels or targets."""
    names = columns if task == "multilabel" else None
    provenance = Provenance("f.csv", "csv", details={"label_columns": list(columns)})
    data = replace(named, y=y, task=task, class_names=names, provenance=provenance)
    model = make_model("ed-hnn", in_features=6, num_classes=2, hidden=8, classifier_hidden=8)
    result = fit(model, data, split, TrainConfig(epochs=1))
    return data, Pretrained(
        name="ed-hnn", model=model, objective=result.objective, config=TrainConfig(epochs=1), class_names=names,
        reading=data.reading,
    )  # fmt: skip


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_label_columns_are_matched_by_name_and_number(named, split, task):
    y = torch.stack([torch.arange(40) % 2, torch.arange(40) // 20], dim=1).float()
    data, model = several(named, split, task, y, ("a", "b"))
    assert torch.equal(with_classes(data, model).y, y)
    swapped, _ = several(named, split, task, y.flip(1), ("b", "a"))
    assert torch.equal(with_classes(swapped, model).y, y)
    other, _ = several(named, split, task, y, ("a", "c"))
    with pytest.raises(DataError, match=r"the 2 of the training \(a, b\). 'tiny' has 2 \(a, c\)"):
        with_classes(other, model)
    names = ("a",) if task == "multilabel" else None
    with pytest.raises(DataError, match=r"the 2 of the training \(a, b\). 'tiny' has 1"):
        with_classes(replace(data, y=y[:, :1], class_names=names), model)


def test_prediction_columns_have_the_names_of_the_targets(named, split, tmp_path):
    y = torch.randn(40, 2, generator=torch.Generator().manual_seed(0))
    data, model = several(named, split, "regression", y, ("height", "age"))
    table = prediction_table(data, model.answers(data), model, labels=True)
    assert table.column_names == ["node", "label_height", "label_age", "prediction_height", "prediction_age"]
    model.save_pretrained(tmp_path / "model")
    assert from_pretrained(tmp_path / "model").label_names == ("height", "age")


@pytest.mark.parametrize(
    ("ids", "written"),
    [
        (range(2), [0, 1]),
        ([7, -1], [7, -1]),
        (["b", "a"], ["b", "a"]),
        ([1, "a"], ["1", "a"]),
        ([10**30, 2], [str(10**30), "2"]),
        ([1, "a", "1", '"1"'], ["1", '"a"', '"1"', '"\\"1\\""']),
        ([10**30, str(10**30)], [str(10**30), f'"{10**30}"']),
    ],
)
def test_no_two_ids_are_written_the_same(ids, written):
    assert id_column(Ids(ids)).to_pylist() == written


def test_damaged_folders_raise(trained, tmp_path):
    folder = trained[0].save_pretrained(tmp_path / "model")
    with pytest.raises(UsageError, match="must be a model folder"):
        from_pretrained(tmp_path)
    with pytest.raises(UsageError, match="`split=` does not apply"):
        load_models(folder, split=0)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "in_features": 7}))
    with pytest.raises(DataError, match="does not match its configuration"):
        from_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({**config, "format": 2}))
    with pytest.raises(DataError, match="format must be 1. Got 2"):
        from_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"no")
    with pytest.raises(DataError, match=r"intact safetensors.*Copy the model folder"):
        from_pretrained(folder)


def with_value(named, node, column, value):
    x = named.x.clone()
    x[node, column] = value
    return replace(named, x=x, node_ids=Ids([f"n{number}" for number in range(40)]))


def test_outputs_that_are_not_finite_raise_and_name_the_node_and_the_column(trained, named):
    model = copy.deepcopy(trained[0].model)
    with torch.no_grad():
        next(model.parameters()).mul_(1e3)  # so that the product with a huge feature overflows for sure
    pretrained = replace(trained[0], model=model)
    huge = with_value(named, 7, 3, 1.5e38)
    for kind, words in (
        ({}, r"'d', with the value 1.5e\+38 \(training: -?[0-9.]+ to [0-9.]+\), at node 'n7'"),
        ({"feature_range": None}, r"'d', with the value 1.5e\+38 \(training: .*\), at node 'n7'"),
        ({"feature_range": None, "scaling": None, "config": TrainConfig()}, r"'d', with the value 1.5e\+38, at node"),
    ):
        model = replace(pretrained, **kind)
        ensemble = Ensemble((model, pretrained))
        for answers in (model.answers, ensemble.answers):
            with (
                pytest.raises(DataError, match=rf"They are not for \d+ of 40 nodes of 'tiny', first 'n.*{words}"),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                answers(huge)


def test_outputs_that_are_not_finite_name_no_column_within_the_range(trained, named):
    model = copy.deepcopy(trained[0].model)
    with torch.no_grad():
        next(model.parameters()).fill_(torch.nan)
    with pytest.raises(DataError, match="not for 40 of 40 nodes.*All features are in the range of the training"):
        replace(trained[0], model=model).answers(named)


def test_features_far_outside_the_training_warn_once(trained, named, tmp_path):
    saved = from_pretrained(trained[0].save_pretrained(tmp_path / "model"))
    assert saved.feature_range == trained[0].feature_range
    far = with_value(named, 7, 3, 1e4)
    for answers in (saved.answers, Ensemble((saved, trained[0])).answers):
        with pytest.warns(UserWarning, match=r"1 of 40 nodes of 'tiny' .* in 1 of 6 columns.*'d'") as caught:
            answers(far)
        assert len(caught) == 1
    saved.answers(named)  # pytest turns warnings into errors
    config = json.loads((tmp_path / "model/config.json").read_text())
    config.pop("feature_range")
    (tmp_path / "model/config.json").write_text(json.dumps(config))
    old = from_pretrained(tmp_path / "model")
    assert torch.equal(old.answers(named), saved.answers(named))
    assert old.answers(far).isfinite().all()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda tensor: tensor.where(torch.arange(len(tensor)) > 0, torch.nan), "has 1 values that are not"),
        (lambda tensor: tensor.fill_(torch.inf), "must be finite"),
        (lambda tensor: tensor.to(torch.int64), r"of type float16, bfloat16, float32, float64. '.*' is of type int64"),
        (lambda tensor: tensor > 0, "is of type bool"),
        (lambda tensor: tensor.to(torch.float8_e4m3fn), "is of type F8_E4M3"),
    ],
)
def test_weights_that_are_not_finite_or_not_floating_point_are_refused(trained, tmp_path, edit, words):
    path = trained[0].save_pretrained(tmp_path / "model") / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    name = next(name for name in tensors if name.endswith("bias"))
    tensors[name] = edit(tensors[name])
    safetensors.torch.save_file(tensors, path)
    with pytest.raises(DataError, match=rf"model.safetensors: .*{words}.*Copy") as caught:
        from_pretrained(tmp_path / "model")
    assert f"'{name}'" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"class_names": ["red", "red"]}, "must be unique. 'red' occurs twice"),
        ({"class_names": ["red", 1.5]}, "got `float` - at `\\$.class_names"),
        ({"class_names": ["red", None]}, "got `null` - at `\\$.class_names"),
        ({"class_names": [True, "red"]}, "got `bool` - at `\\$.class_names"),
        ({"class_names": [["red"], "blue"]}, "got `array` - at `\\$.class_names"),
        ({"class_names": "ab"}, "got `str` - at `\\$.class_names"),
        ({"feature_names": [1, 2, 3, 4, 5, 6]}, "got `int` - at `\\$.feature_names"),
        ({"feature_range": {"low": [0.0, 1.0], "high": [1.0]}}, "'feature_range' must have 6 entries. Got 2"),
        ({"feature_scaling": {"mean": [0.0] * 6, "scale": [1.0] * 5 + [0.0]}}, "must be more than 0. Got 0.0"),
        ({"feature_scaling": {"mean": [0.0] * 5 + [float("inf")], "scale": [1.0] * 6}}, "must be finite|must be JSON"),
        ({"objective": {"task": "classification", "num_outputs": 3}}, "the 3 outputs of its objective. It has 2"),
    ],
)
def test_records_that_no_training_writes_are_refused(trained, tmp_path, change, words):
    path = trained[0].save_pretrained(tmp_path / "model") / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=words):
        from_pretrained(tmp_path / "model")


def test_an_ensemble_needs_models_of_the_same_classes_and_features(trained):
    model, _ = trained
    with pytest.raises(UsageError, match="at least 1 model"):
        Ensemble(())
    for change in ({"class_names": ("red", "blue")}, {"feature_names": tuple("fedcba")}):
        with pytest.raises(UsageError, match="The models of an ensemble must have the same"):
            Ensemble((model, replace(model, **change)))
