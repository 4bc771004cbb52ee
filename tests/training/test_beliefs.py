"""Base predictions and labels as inputs: no label reaches the loss of its own node, and files and prediction agree."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from edhnn import DataError, NodeDataset, TrainConfig, fit, from_pretrained, make_model
from edhnn.data.dataset import sparse_features
from edhnn.data.fingerprints import node_hashes
from edhnn.data.ids import Ids
from edhnn.nn.features import append_columns, links_of
from edhnn.training import base_predictor
from edhnn.training.beliefs import added_columns, learn_knowledge, start_small, told_of
from edhnn.training.inputs import make_inputs, outputs_of
from edhnn.training.objective import labels_of, make_objective
from edhnn.training.pretrained import Pretrained

CONFIG = TrainConfig(epochs=6, learning_rate=0.01, label_inputs=0.6, base="linear", clip=1.0, schedule="warmup-cosine")
TASKS = ("classification", "multilabel", "regression")
MODELS = ("belief-diffusion", "ed-hnn", "hgnn")
FILLED = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")


def dataset_for(task: str, tiny: NodeDataset) -> NodeDataset:
    if task == "classification":
        return tiny
    noise = torch.randn(tiny.hypergraph.num_nodes, 2, generator=torch.Generator().manual_seed(1))
    values = tiny.y[:, None] + 0.3 * noise
    y = (values > 0.5).float() if task == "multilabel" else 1e6 + values.double()
    y[3, 0] = torch.nan
    return replace(tiny, y=y, task=task, class_names=None)


def model_for(name: str, dataset: NodeDataset, outputs: int, config: TrainConfig):
    columns = dataset.num_features + added_columns(make_class(name), outputs, config)
    return make_model(name, in_features=columns, num_classes=outputs, hidden=8)


def make_class(name: str):
    from edhnn.models.registry import MODELS as REGISTERED

    return REGISTERED[name].model


def told(dataset, split, config=CONFIG, seed=0, objective=None):
    objective = objective or make_objective(dataset, split.train)
    inputs = make_inputs(dataset, config.for_model("ed-hnn"))
    knowledge = learn_knowledge(config, inputs, split, labels_of(dataset), objective, seed)
    return told_of(knowledge, inputs, objective, config, found=(split.train, torch.arange(len(split.train))))


def flipped(dataset: NodeDataset, nodes: torch.Tensor) -> NodeDataset:
    y = dataset.y.clone()
    y[nodes] = 1e6 + 5 * (y[nodes] - 1e6) if dataset.task == "regression" else 1 - y[nodes]
    return replace(dataset, y=y)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", MODELS)
def test_a_label_never_reaches_the_loss_of_its_own_node(task, name, tiny, split):
    """The labels of the loss of an epoch do not change its logits; those that are given do."""
    dataset, config = dataset_for(task, tiny), replace(CONFIG, base="none")
    objective = make_objective(dataset, split.train)
    model = model_for(name, dataset, objective.num_outputs, config)
    plain = told(dataset, split, config, objective=objective)
    drawn_nodes = set()
    for epoch in range(1, 8):
        inputs, nodes = plain.drawn(5, epoch)
        drawn_nodes |= set(nodes.tolist())
        assert len(nodes) == 8 and set(nodes.tolist()) <= set(split.train.tolist())  # 40 % of 20
        before = outputs_of(model, inputs)[nodes]
        again, same = told(flipped(dataset, nodes), split, config, objective=objective).drawn(5, epoch)
        assert torch.equal(nodes, same) and torch.equal(before, outputs_of(model, again)[nodes])
        given = split.train[~torch.isin(split.train, nodes)]
        other, _ = told(flipped(dataset, given), split, config, objective=objective).drawn(5, epoch)
        assert not torch.equal(before, outputs_of(model, other)[nodes])
    assert len(drawn_nodes) > 15  # other nodes every epoch


@pytest.mark.parametrize("task", TASKS)
def test_the_base_of_a_training_node_does_not_depend_on_its_label(task, tiny, split, monkeypatch):
    monkeypatch.setattr(base_predictor, "_STRENGTHS", {"l2": (0.1,)})  # a penalty is chosen on all nodes
    monkeypatch.setattr(base_predictor, "_ALPHAS", (1.0,))
    dataset = dataset_for(task, tiny)
    objective = make_objective(dataset, split.train)
    config = replace(CONFIG, label_inputs=0.0)
    before = told(dataset, split, config, objective=objective).base
    node = split.train[4:5]
    after = told(flipped(dataset, node), split, config, objective=objective).base
    if task == "classification":  # folds are dealt by class, so the flip may deal them anew
        after = before if not torch.equal(_folds(dataset, split), _folds(flipped(dataset, node), split)) else after
    assert torch.equal(before[node], after[node])
    valid = told(flipped(dataset, torch.cat([split.valid, split.test])), split, config, objective=objective).base
    assert torch.equal(before, valid)


def _folds(dataset, split):
    return torch.from_numpy(base_predictor._draw_folds(dataset.y.numpy(), split.train.numpy(), 0))


@pytest.mark.parametrize("name", MODELS)
def test_labels_of_other_parts_do_not_enter(name, tiny, split):
    """Test labels change no bit of the training, validation labels no bit of the inputs."""
    model, other = (model_for(name, tiny, 2, CONFIG) for _ in range(2))
    a, b = fit(model, tiny, split, CONFIG), fit(other, flipped(tiny, split.test), split, CONFIG)
    assert torch.equal(a.outputs, b.outputs) and a.valid == b.valid and a.train == b.train
    assert a.test["accuracy"] == pytest.approx(1 - b.test["accuracy"])
    plain, changed = told(tiny, split), told(flipped(tiny, split.test), split)
    tables = (each.everything().beliefs.table(2) for each in (plain, changed))
    assert torch.equal(*tables)
    rows = plain.everything().beliefs.labels.abs().sum(dim=1).nonzero()[:, 0]
    assert torch.equal(rows, split.train.sort().values)


def test_resuming_gives_the_same_bits(tiny, split):
    snapshots = []
    whole = fit(
        model_for("belief-diffusion", tiny, 2, CONFIG), tiny, split, CONFIG,
        watch=lambda record, snapshot: snapshots.append(snapshot()),
    )  # fmt: skip
    resumed = fit(model_for("belief-diffusion", tiny, 2, CONFIG), tiny, split, CONFIG, state=snapshots[2])
    assert torch.equal(whole.outputs, resumed.outputs) and whole.valid == resumed.valid


def test_a_correction_starts_near_zero(tiny, split):
    model, plain = model_for("ed-hnn", tiny, 2, CONFIG), told(tiny, split)
    start_small(model, 2)
    correction = outputs_of(model, plain.everything()) - plain.base
    assert 0 < correction.abs().max() < 0.05


@FILLED
def test_columns_beside_sparse_features():
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand(7, 5, generator=generator) * (torch.rand(7, 5, generator=generator) > 0.6)
    x = sparse_features(sp.csr_array(dense.numpy()))
    for columns in (torch.rand(7, 3, generator=generator), torch.zeros(7, 3)):
        wide = append_columns(x, columns)
        assert torch.equal(wide.to_dense(), torch.cat([dense, columns], dim=1))
        assert links_of(wide) is links_of(append_columns(x, columns))  # found once for all values
    assert torch.equal(x.to_dense(), dense)


@FILLED
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["belief-diffusion", "ed-hnn"])
def test_a_saved_model_recognises_its_training_nodes(name, task, sparse, tiny, split, tmp_path):
    dataset = dataset_for(task, tiny)
    if sparse:
        dataset = replace(dataset, x=sparse_features(sp.csr_array(dataset.x.numpy())))
    outputs = make_objective(dataset, split.train).num_outputs
    model = model_for(name, dataset, outputs, CONFIG)
    result = fit(model, dataset, split, CONFIG)
    hashes = node_hashes(dataset)
    saved = Pretrained(
        name=name, model=model, objective=result.objective, config=CONFIG,
        knowledge=replace(result.knowledge, hashes=hashes[split.train.numpy()]),
    ).save_pretrained(tmp_path / "model")  # fmt: skip
    again = from_pretrained(saved)
    unlabelled = replace(dataset, y=None, task=None, class_names=None)
    answers = result.objective.answers(result.outputs)
    assert torch.equal(again.answers(unlabelled), answers)  # it keeps the labels of its training nodes
    new_ids = Ids([f"new {number}" for number in range(len(answers))])
    assert not torch.equal(again.answers(replace(unlabelled, node_ids=new_ids)), answers)
    assert len(again.knowledge.recognise(np.array([1], dtype=np.uint64))[0]) == 0


def test_a_damaged_knowledge_is_refused(tiny, split, tmp_path):
    import safetensors.torch

    model = model_for("belief-diffusion", tiny, 2, CONFIG)
    result = fit(model, tiny, split, CONFIG)
    hashes = node_hashes(tiny)[split.train.numpy()]
    knowledge = replace(result.knowledge, hashes=hashes)
    saved = Pretrained(
        name="belief-diffusion", model=model, objective=result.objective, config=CONFIG, knowledge=knowledge
    ).save_pretrained(tmp_path / "model")
    weights = saved / "model.safetensors"
    whole = safetensors.torch.load_file(weights)
    for name, value, words in (
        ("folds", whole["knowledge/folds"] + 9, "out of range"),
        ("labels", whole["knowledge/labels"] + 9, "out of range"),
        ("bias", whole["knowledge/bias"] * torch.nan, "must be finite"),
        ("weight", whole["knowledge/weight"][:2].contiguous(), "of shape"),
        ("weight", None, "is missing"),
        ("more", torch.zeros(1), "not one of this model"),
    ):
        changed = {**whole, f"knowledge/{name}": value}
        safetensors.torch.save_file({key: value for key, value in changed.items() if value is not None}, weights)
        with pytest.raises(DataError, match=words):
            from_pretrained(saved)
