"""One training: the epoch it selects, the same bits every time, and the same bits after a resumption."""

import copy
import math
from dataclasses import replace

import pytest
import scipy.sparse as sp
import torch

from edhnn import DataError, NodeDataset, Split, TrainConfig, UsageError, fit, make_model
from edhnn.data.dataset import sparse_features
from edhnn.errors import DivergedError
from edhnn.training.checkpoint import read_state, write_state
from edhnn.training.inputs import Batch, make_inputs, outputs_of
from edhnn.training.loop import Evaluation, make_adam, run_epochs
from edhnn.training.objective import make_objective

NAN = float("nan")
GOLDEN_LOSSES, GOLDEN_EPOCH = [0.614, 0.856, 0.71, 0.667, 0.719], 4


def model_for(dataset, outputs=2, **options):
    options = {"hidden": 8, "classifier_hidden": 8, **options}
    return make_model("ed-hnn", in_features=dataset.num_features, num_classes=outputs, **options)


def sparse(x):
    return sparse_features(sp.csr_array(x.numpy()))


def records_of(model, dataset, split, config, **options):
    records = []
    result = fit(model, dataset, split, config, watch=lambda record, _: records.append(record), **options)
    return records, result


def test_golden_run(tiny, split):
    records, result = records_of(model_for(tiny), tiny, split, TrainConfig(epochs=5, learning_rate=0.01), seed=3)
    assert [record.loss for record in records] == pytest.approx(GOLDEN_LOSSES, abs=6e-4)  # three decimals recorded
    assert result.best_epoch == GOLDEN_EPOCH


def test_selects_the_first_epoch_of_the_best_validation_score(tiny, split):
    records, result = records_of(model_for(tiny), tiny, split, TrainConfig(epochs=12, learning_rate=0.01))
    scores = [record.valid["accuracy"] for record in records]
    assert result.best_epoch == 1 + scores.index(max(scores))
    assert result.valid["accuracy"] == max(scores)
    assert [record.epoch for record in records] == list(range(1, 13))


def test_the_model_holds_the_reported_parameters(tiny, split):
    model = model_for(tiny)
    config = TrainConfig(epochs=8)
    result = fit(model, tiny, split, config)
    again = model(tiny.x, config.for_model(model).transformed(tiny.hypergraph))
    assert not model.training
    assert torch.equal(again, result.outputs)
    hits = again.argmax(dim=1)[split.test] == tiny.y[split.test]
    assert result.test["accuracy"] == hits.double().mean().item()


def test_labels_of_test_nodes_do_not_change_the_training(tiny, split):
    y = tiny.y.clone()
    y[split.test] = 1 - y[split.test]
    config = TrainConfig(epochs=8)
    a, b = (fit(model_for(tiny), dataset, split, config) for dataset in (tiny, replace(tiny, y=y)))
    assert (a.best_epoch, a.valid) == (b.best_epoch, b.valid)
    assert torch.equal(a.outputs, b.outputs)
    assert a.test["accuracy"] == pytest.approx(1 - b.test["accuracy"])


def test_the_same_seed_gives_the_same_bits_and_another_seed_gives_others(tiny, split):
    config = TrainConfig(epochs=5)
    first, second, third = (records_of(model_for(tiny), tiny, split, config, seed=seed) for seed in (1, 1, 2))
    assert first[0] == second[0]
    assert torch.equal(first[1].outputs, second[1].outputs)
    assert first[0] != third[0]


def test_thread_counts_agree(tiny, split):
    config = TrainConfig(epochs=5)
    runs = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        runs.append(records_of(model_for(tiny), tiny, split, config))
    assert runs[0][1].best_epoch == runs[1][1].best_epoch
    for one, two in zip(runs[0][0], runs[1][0], strict=True):
        assert one.loss == pytest.approx(two.loss, rel=1e-6)
        assert one.valid == pytest.approx(two.valid, abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"norm": "batch"}, {"dropout": 0.0, "input_dropout": 0.0}])
def test_resuming_from_a_snapshot_gives_the_same_bits(tiny, split, tmp_path, options):
    config = TrainConfig(epochs=9, schedule="cosine", weight_decay=1e-3)
    whole, expected = records_of(model_for(tiny, **options), tiny, split, config)

    def at_four(record, snapshot):
        if record.epoch == 4:
            write_state(snapshot(), tmp_path / "state.safetensors")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(model_for(tiny, **options), tiny, split, config, watch=at_four)
    state = read_state(tmp_path / "state.safetensors", model_for(tiny, **options))
    rest, result = records_of(model_for(tiny, **options), tiny, split, config, state=state)
    assert rest == whole[4:]
    assert torch.equal(result.outputs, expected.outputs)
    assert (result.test, result.best_epoch) == (expected.test, expected.best_epoch)


@pytest.mark.parametrize("part", ["model", "adam", "best"])
def test_a_state_that_is_not_finite_is_refused(tiny, split, tmp_path, part):
    def damage(record, snapshot):
        state = snapshot()
        next(iter(getattr(state, part).values())).view(-1)[0] = math.inf
        write_state(state, tmp_path / "state.safetensors")

    fit(model_for(tiny), tiny, split, TrainConfig(epochs=1), watch=damage)
    with pytest.raises(DataError, match=f"the tensor '{part}/.*' holds a value that is not finite"):
        read_state(tmp_path / "state.safetensors", model_for(tiny))


def test_a_snapshot_does_not_change_while_training_continues(tiny, split):
    config, snapshots = TrainConfig(epochs=6), []
    watch = lambda record, snapshot: snapshots.append(snapshot()) if record.epoch == 3 else None  # noqa: E731
    expected = fit(model_for(tiny), tiny, split, config, watch=watch)
    assert snapshots[0].epoch == 3
    for _ in range(2):  # resuming from it does not change it either
        result = fit(model_for(tiny), tiny, split, config, state=snapshots[0])
        assert torch.equal(result.outputs, expected.outputs)
        assert snapshots[0].epoch == 3


def test_patience_stops_a_training_early(tiny, split):
    records, result = records_of(model_for(tiny), tiny, split, TrainConfig(epochs=200, patience=3))
    assert len(records) == result.epochs < 200
    assert result.epochs - result.best_epoch == 3


def test_plain_torch_modules_can_be_trained(tiny, split):
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(6, 2)

        def forward(self, x, hypergraph):
            return self.linear(x)

    assert fit(Plain(), tiny, split, TrainConfig(epochs=3)).outputs.shape == (40, 2)


class Modes(torch.nn.Module):
    """A module that records the mode of every forward pass."""

    def __init__(self):
        super().__init__()
        self.linear, self.modes = torch.nn.Linear(6, 2), []

    def forward(self, x, hypergraph):
        self.modes.append((self.training, torch.is_grad_enabled()))
        return self.linear(x)


def test_every_epoch_is_a_training_pass_and_an_evaluation(tiny, split):
    model = Modes()
    fit(model, tiny, split, TrainConfig(epochs=5))
    assert model.modes == [(True, True), (False, False)] * 5 + [(False, False)]


def test_several_batches_make_an_epoch(tiny, split):
    """Two batches in an epoch are two steps of Adam, with the learning rates that `batches` sets."""
    model, rates = Modes(), []
    inputs = make_inputs(tiny, TrainConfig().for_model(model))
    optimiser = make_adam(model, TrainConfig(learning_rate=0.1))
    halves = [split.train[::2], split.train[1::2]]
    objective = make_objective(tiny, split.train)

    def batches(epoch):
        for number, rows in enumerate(halves):
            optimiser.param_groups[0]["lr"] = 0.1 / (epoch + number)
            yield Batch(inputs, tiny.y[rows], rows)
            rates.append(optimiser.param_groups[0]["lr"])

    def evaluate():
        metrics = objective.metrics(outputs_of(model, inputs), tiny.y)
        return Evaluation(train=metrics, valid=metrics, score=metrics["accuracy"], finite=True)

    state = run_epochs(model, optimiser, batches, objective.loss, evaluate, epochs=3)
    assert (state.epoch, rates) == (3, [0.1 / n for n in (1, 2, 2, 3, 3, 4)])
    assert optimiser.state[model.linear.weight]["step"] == 6
    assert 1 <= state.best_epoch <= 3
    assert torch.equal(model.linear.weight, state.best["linear.weight"])


def test_the_models_entry_sets_its_singletons(tiny, split):
    """HyperGCN is trained without singletons. With them, the released form with two layers divides by zero degrees."""
    assert TrainConfig().for_model("hypergcn").transforms == ()
    assert TrainConfig().for_model("ed-hnn").transforms == ("add_singletons",)
    assert TrainConfig().for_model(torch.nn.Identity()).transforms == ("add_singletons",)
    assert TrainConfig(transforms=["add_singletons"]).for_model("hypergcn").transforms == ("add_singletons",)
    make = lambda: make_model(  # noqa: E731
        "hypergcn", in_features=6, num_classes=2, layers=2, singletons="released"
    )
    result = fit(make(), tiny, split, TrainConfig(epochs=3))
    alone = fit(make(), tiny, split, TrainConfig(epochs=3, transforms=()))
    assert torch.equal(result.outputs, alone.outputs)
    with pytest.raises(DivergedError):
        fit(make(), tiny, split, TrainConfig(epochs=3, transforms=("add_singletons",)))
    with pytest.raises(UsageError, match="depend on the model"):
        TrainConfig().transformed(tiny.hypergraph)


@pytest.mark.parametrize("name", ["cuda:9", "meta", "gpu"])
def test_an_unavailable_device_raises(tiny, split, name):
    with pytest.raises(UsageError, match=f"device, on this machine, must be one of auto.*cpu. Got '{name}'"):
        fit(model_for(tiny), tiny, split, device=name)


@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_a_device_given_by_name_gives_the_same_training(tiny, split, features):
    dataset = tiny if features == "dense" else replace(tiny, x=sparse(tiny.x))
    plain = fit(model_for(tiny), dataset, split, TrainConfig(epochs=3))
    named = fit(model_for(tiny), dataset, split, TrainConfig(epochs=3), device=torch.device("cpu"))
    assert torch.equal(plain.outputs, named.outputs)


def regression(tiny, targets=1):
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(6, targets, generator=generator)
    y = 1000 + 50 * (tiny.x @ weights)
    y[5, 0] = NAN
    return replace(tiny, y=y if targets > 1 else y[:, 0], task="regression", class_names=None)


class Linear(torch.nn.Module):
    """A linear model, like the labels of `regression`, so that it always learns them."""

    def __init__(self, targets):
        super().__init__()
        self.linear = torch.nn.Linear(6, targets)
        for parameter in self.parameters():
            torch.nn.init.zeros_(parameter)

    def forward(self, x, hypergraph):
        return self.linear(x)


@pytest.mark.parametrize("loss", ["mse", "mae"])
@pytest.mark.parametrize("targets", [1, 2])
def test_regression_answers_are_in_the_units_of_the_labels(tiny, split, loss, targets):
    dataset = regression(tiny, targets)
    config = TrainConfig(epochs=60, learning_rate=0.1, regression_loss=loss)
    result = fit(Linear(targets), dataset, split, config)
    assert min(result.train["r2"], result.test["r2"]) > 0.95
    assert 800 < result.objective.answers(result.outputs).mean() < 1200
    assert result.objective.metric == ("rmse" if loss == "mse" else "mae")


@pytest.mark.parametrize("value", [1e25, 3e38])
def test_a_validation_label_whose_square_overflows_32_bits_still_selects(tiny, split, value):
    dataset = regression(tiny)
    y = dataset.y.clone()
    y[split.valid[0]] = value
    model = model_for(dataset, outputs=1, dropout=0.0, input_dropout=0.0)
    result = fit(model, replace(dataset, y=y), split, TrainConfig(epochs=3))
    assert result.best_epoch >= 1
    assert math.isfinite(result.valid["rmse"])


def test_several_labels_with_unknown_entries(tiny, split):
    y = torch.stack([tiny.y.float(), 1 - tiny.y.float()], dim=1)
    y[split.train[:3], 0] = NAN
    dataset = replace(tiny, y=y, task="multilabel")
    model = model_for(dataset, dropout=0.0, input_dropout=0.0)
    result = fit(model, dataset, split, TrainConfig(epochs=15, learning_rate=0.05))
    assert result.train["micro_f1"] > 0.8
    assert set(result.test) == {"micro_f1", "accuracy"}


def test_a_diverging_loss_raises_and_names_a_parameter_or_module(tiny, split):
    dataset = replace(tiny, x=tiny.x * 1e30)
    for select in ("metric", "loss", "metric-then-loss"):
        model = model_for(dataset, norm="none")
        with pytest.raises(DivergedError, match=r"epoch \d+.*'.*learning_rate="):
            fit(model, dataset, split, TrainConfig(epochs=50, learning_rate=1e10, select=select))


def test_diverging_later_keeps_the_best_parameters(tiny, split):
    model, best = model_for(tiny), []

    def watch(record, snapshot):
        best.append(copy.deepcopy(snapshot().best))
        if record.epoch == 3:
            with torch.no_grad():
                model.classifier.last.bias.fill_(NAN)

    with pytest.raises(
        DivergedError, match=r"epoch 4.*parameter '.*The model holds the parameters of epoch \d, the best before"
    ):
        fit(model, tiny, split, TrainConfig(epochs=9), watch=watch)
    assert all(torch.equal(tensor, best[-1][name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(x=None), r"needs node features.*`features=`"),
        (dict(y=None, task=None, class_names=None), r"needs labels.*`label=`"),
        (dict(y=torch.zeros(40, dtype=torch.int64)), r"at least 2 classes. Only 'blue'"),
        (dict(y=-torch.ones(40, dtype=torch.int64)), r"All nodes are unlabelled"),
    ],
)
def test_untrainable_data_raises(tiny, split, change, words):
    with pytest.raises(DataError, match=words):
        fit(model_for(tiny), replace(tiny, **change), split)


def test_the_error_for_non_finite_features_names_column_and_node(tiny, split):
    x = tiny.x.clone()
    x[7, 2] = NAN
    dataset = replace(tiny, x=x, feature_names=tuple("abcdef"))
    with pytest.raises(DataError, match=r"Column 'c' is nan at node '7'"):
        fit(model_for(tiny), dataset, split)
    with pytest.raises(DataError, match=r"Column '2' is nan at node '7'"):
        fit(model_for(tiny), replace(tiny, x=sparse(x)), split)


def test_a_class_must_be_among_the_training_nodes(tiny, split):
    y = tiny.y.clone()
    y[split.test[0]] = 2
    dataset = replace(tiny, y=y, class_names=("blue", "red", "green"))
    with pytest.raises(DataError, match=r"Class 'green' \(1 nodes\) is missing in split 0"):
        fit(model_for(tiny, outputs=3), dataset, split)


def test_parts_must_have_labels_and_be_disjoint(tiny, split):
    with pytest.raises(DataError, match="validation part of split 0 has none"):
        fit(model_for(tiny), tiny, Split(split.train, split.valid[:0], split.test))
    with pytest.raises(DataError, match="must not share nodes"):
        fit(model_for(tiny), tiny, Split(split.train, split.train[:5], split.test))


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda part: part - 40, "The test part of split 0 contains -"),
        (lambda part: torch.cat([part, torch.tensor([77])]), "The test part of split 0 contains 77"),
        (lambda part: part.numpy(), "The test part of split 0 is a ndarray"),
        (lambda part: torch.ones(40, dtype=torch.bool), r"The test part of split 0 is torch.bool.*mask.nonzero"),
        (lambda part: part.float(), "The test part of split 0 is torch.float32"),
    ],
)
def test_parts_must_be_node_numbers(tiny, split, change, words):
    with pytest.raises(DataError, match=rf"integer tensor of node numbers in 0\.\.39. {words}"):
        fit(model_for(tiny), tiny, Split(split.train, split.valid, change(split.test)))


def test_the_model_must_match_the_data(tiny, split):
    with pytest.raises(UsageError, match="must have 6 input features and 2 outputs"):
        fit(model_for(tiny, outputs=3), tiny, split)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(epochs=0), "'epochs' must lie in"),
        (dict(learning_rate=0.0), "'learning_rate' must be more than 0"),
        (dict(weight_decay=-1.0), "'weight_decay' must be at least 0"),
        (dict(learning_rate=math.inf), "'learning_rate'"),
        (dict(patience=0), "'patience'"),
        (dict(transforms=("add_singleton",)), "Did you mean 'add_singletons'"),
    ],
)
def test_settings_are_checked(options, words):
    with pytest.raises(UsageError, match=words):
        TrainConfig(**options)


def test_scaling_removes_mean_and_deviation_of_the_features(tiny, split):
    odd = replace(tiny, x=tiny.x * 1000 + 5000)
    config = TrainConfig(epochs=3, feature_scaling="standard")
    a, b = (fit(model_for(tiny), dataset, split, config).outputs for dataset in (tiny, odd))
    assert torch.allclose(a, b, atol=1e-3)
    with pytest.raises(UsageError, match="Only dense features"):
        fit(model_for(tiny), replace(tiny, x=sparse(tiny.x)), split, config)


def test_sparse_features_train_like_dense_ones(tiny, split):
    config = TrainConfig(epochs=3)
    quiet = dict(dropout=0.0, input_dropout=0.0)
    words = NodeDataset(name="s", hypergraph=tiny.hypergraph, x=sparse(tiny.x), y=tiny.y, task=tiny.task)
    a, b = (fit(model_for(tiny, **quiet), dataset, split, config).outputs for dataset in (tiny, words))
    assert torch.allclose(a, b, atol=1e-5)


def test_a_model_with_its_own_parameter_groups_resumes(tiny, split, tmp_path):
    config = TrainConfig(epochs=4)
    make = lambda: make_model("unigcnii", in_features=6, num_classes=2, hidden=8)  # noqa: E731
    assert [group["weight_decay"] for group in make_adam(make(), config).param_groups] == [0.01, 5e-4]
    assert [group["weight_decay"] for group in make_adam(make(), TrainConfig(weight_decay=0.1)).param_groups] == [0.1]
    whole, _ = records_of(make(), tiny, split, config)
    states = []

    def at_two(record, snapshot):
        if record.epoch == 2:
            write_state(snapshot(), tmp_path / "state.safetensors")
            states.append(read_state(tmp_path / "state.safetensors", make()))

    fit(make(), tiny, split, config, watch=at_two)
    assert records_of(make(), tiny, split, config, state=states[0])[0] == whole[2:]
