r"""The training loop: steps of Adam, an evaluation after every epoch, and the first epoch of the best validation score.

`run_epochs` is the only loop. `fit` calls it with the whole hypergraph as the only batch of an epoch. Other callers
use several batches (`edhnn.experiments.kinds.diffusion_steps`).

Random numbers are derived, not stored: epoch t draws its dropout masks from ``derive_seed(seed, "epoch", t)``. So a
training resumes after a kill from the parameters, Adam's moments, the number of the epoch and the best epoch so far.

Labels of test nodes are read once, at the end: the selected parameters are loaded and the model is evaluated once
more. That evaluation gives the test metrics and the predictions. So the reported numbers are those of the saved
parameters, and the selection cannot depend on the test nodes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn import kernels
from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.errors import DivergedError, UsageError
from edhnn.io.tensors import Tensors
from edhnn.models.auto import PARTS, Auto
from edhnn.models.base import HypergraphModel
from edhnn.models.belief_diffusion import TRAINING, BeliefDiffusion
from edhnn.seeding import derive_seed
from edhnn.training.beliefs import (
    Knowledge,
    added_columns,
    learn_knowledge,
    outputs_told,
    start_small,
    told_of,
)
from edhnn.training.blend import calibration_error, fit_blend
from edhnn.training.checkpoint import FitState, adam_tensors, copied, load_adam
from edhnn.training.config import TrainConfig
from edhnn.training.defaults import default_training
from edhnn.training.inputs import Batch, Device, Inputs, find_device, make_inputs, outputs_of
from edhnn.training.objective import Metrics, Objective, check_split, check_trainable, labels_of, make_objective
from edhnn.typing import JsonObject


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """One epoch: the mean loss of its steps (dropout on), then training and validation metrics (dropout off).

    If labels are inputs, the training metrics are those of the step itself, on the nodes of its loss.
    """

    epoch: int
    loss: float
    train: Metrics
    valid: Metrics
    best_epoch: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A model after an epoch.

    Attributes:
        train: Training metrics.
        valid: Validation metrics.
        score: The score that selects the epoch; larger is better.
        finite: Whether all outputs are finite.
    """

    train: Metrics
    valid: Metrics
    score: float
    finite: bool


Loss = Callable[[Tensor, Tensor], Tensor]
"""The loss of outputs against targets."""
Watch = Callable[[EpochRecord, Callable[[], FitState]], None]
"""Called after every epoch with its record and a function that takes a snapshot; may raise to stop."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitResult:
    """The metrics of a trained model; the model itself holds the selected parameters, in evaluation mode.

    Attributes:
        best_epoch: The selected epoch.
        epochs: Number of trained epochs; after an early stop less than the configured number.
        train: Training metrics of the selected epoch.
        valid: Its validation metrics.
        test: Its test metrics.
        outputs: Its outputs for all nodes. If labels are inputs, the output of a training node does not use its label.
        objective: The task; turns outputs into probabilities or values.
        seconds: Training time, including the time before a resumption.
        knowledge: The base predictor and the training labels, if they are inputs.
        parts: For a model of several parts: the worth and the weight of each, and the calibration of the answer.
    """

    best_epoch: int
    epochs: int
    train: Metrics
    valid: Metrics
    test: Metrics
    outputs: Float[Tensor, "N C"]
    objective: Objective
    seconds: float
    knowledge: Knowledge | None = None
    parts: JsonObject | None = None


def fit(
    model: nn.Module,
    dataset: NodeDataset,
    split: Split,
    config: TrainConfig | None = None,
    *,
    seed: int = 0,
    watch: Watch | None = None,
    state: FitState | None = None,
    device: Device = "cpu",
) -> FitResult:
    """Train a model on a split and select its best epoch. Paper: Appendix F.3 (the protocol), Section 4.1.

    Args:
        model: Any module ``model(x, hypergraph) -> [N, outputs]``. A `HypergraphModel` draws its dropout masks from
            ``seed``; any other module has its own source of random numbers.
        dataset: Features, labels and hypergraph.
        split: The three parts.
        config: The training configuration; by default that of the rule in `edhnn.training.defaults`. ``TrainConfig()``
            is the paper's protocol.
        seed: Seed of the dropout masks.
        watch: Called after every epoch.
        state: A snapshot taken by ``watch``, to resume from.
        device: The device: ``cpu``, ``cuda``, ``mps``, ... or ``auto``. The model stays on it; results, snapshots and
            files are on the CPU.

    Returns:
        The metrics and outputs of the selected epoch; the model holds its parameters.

    Raises:
        DataError: if the dataset or the split cannot be trained on.
        UsageError: if the model does not fit the dataset, or the device is not available.
        DivergedError: if the loss stops being finite; the model then holds the best parameters so far.

    Example:
        >>> from edhnn import TrainConfig, contextual_sbm, fit, make_model, random_splits
        >>> data = contextual_sbm(1, nodes_per_class=50, num_hyperedges=60)
        >>> model = make_model("ed-hnn", in_features=100, num_classes=2, hidden=16, dropout=0.0, input_dropout=0.0)
        >>> result = fit(model, data, random_splits(100, 1)[0], TrainConfig(epochs=20, learning_rate=0.01))
        >>> result.test["accuracy"] > 0.8
        True
    """
    config = (config or default_training(dataset, model)).for_model(model)
    target = find_device(device)
    check_trainable(dataset)
    check_split(dataset, split, 0)
    objective = make_objective(dataset, split.train, config.regression_loss)
    inputs = make_inputs(dataset, config).to(target)
    return fit_inputs(model, inputs, dataset, split, objective, config, seed=seed, watch=watch, state=state)


def fit_inputs(
    model: nn.Module,
    inputs: Inputs,
    dataset: NodeDataset,
    split: Split,
    objective: Objective,
    config: TrainConfig,
    *,
    seed: int = 0,
    watch: Watch | None = None,
    state: FitState | None = None,
    knowledge: Knowledge | None = None,
) -> FitResult:
    """Train like `fit`, with inputs and an objective that the caller has made and checked.

    So several splits of one dataset share their inputs. The model is moved to the device of the inputs. What the split
    knows (`learn_knowledge`, with the same seed) is learned here if it is not given.
    """
    if isinstance(model, HypergraphModel):
        columns = inputs.x.shape[1] + added_columns(model, objective.num_outputs, config)
        actual, expected = (model.in_features, model.num_classes), (columns, objective.num_outputs)
        if actual != expected:
            raise UsageError(
                f"The model must have {expected[0]} input features and {expected[1]} outputs for this dataset. "
                f"It has {actual[0]} and {actual[1]}."
            )
    device = inputs.x.device
    model.to(device)
    optimiser = make_adam(model, config)
    y = labels_of(dataset).cpu()
    y_train, y_valid = y[split.train], y[split.valid]  # test labels are not read before the end
    knowledge = knowledge or learn_knowledge(config, inputs, split, y, objective, seed)
    if isinstance(model, Auto):
        return _fit_parts(model, inputs, dataset, split, objective, config, seed, watch, state, knowledge)
    told = None
    if knowledge is not None:
        found = split.train, torch.arange(len(split.train))
        told = told_of(knowledge, inputs, objective, config, found=found)
        inputs = told.everything()
    if config.base != "none":
        start_small(model, objective.num_outputs)
    whole = Batch(inputs, objective.targets(y_train).to(device), split.train.to(device))
    held_out: dict[str, Tensor] = {}

    def batches(epoch: int) -> Iterable[Batch]:
        if isinstance(model, HypergraphModel):
            model.seeds.restart(derive_seed(seed, "epoch", epoch))
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate_at(epoch)
        if told is None or not config.label_inputs:
            return (whole,)
        drawn, nodes = told.drawn(seed, epoch)
        held_out["y"] = y[nodes]
        return (Batch(drawn, objective.targets(y[nodes]).to(device), nodes.to(device)),)

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        held_out["outputs"] = outputs.detach()
        return objective.loss(outputs, targets)

    def evaluate() -> Evaluation:
        outputs = outputs_of(model, inputs).cpu()
        if "y" in held_out:  # a metric on nodes whose labels are inputs would say nothing
            train = objective.metrics(held_out["outputs"].cpu(), held_out["y"])
        else:
            train = objective.metrics(outputs[split.train], y_train)
        valid = objective.metrics(outputs[split.valid], y_valid)
        score = objective.score(valid, outputs[split.valid], y_valid, select=config.select)
        return Evaluation(train=train, valid=valid, score=score, finite=bool(outputs.isfinite().all()))

    best = run_epochs(
        model,
        optimiser,
        batches,
        loss,
        evaluate,
        epochs=config.epochs,
        patience=config.patience,
        clip=config.clip,
        watch=watch,
        state=state,
    )
    outputs = outputs_of(model, inputs).cpu() if told is None else outputs_told(model, told)
    labels_given = told is not None and bool(config.label_inputs)
    return FitResult(
        best_epoch=best.best_epoch,
        epochs=best.epoch,
        train=objective.metrics(outputs[split.train], y_train) if labels_given else best.best_train,
        valid=best.best_valid,
        test=objective.metrics(outputs[split.test], y[split.test]),
        outputs=outputs,
        objective=objective,
        seconds=best.seconds,
        knowledge=knowledge,
    )


def _fit_parts(
    model: Auto,
    inputs: Inputs,
    dataset: NodeDataset,
    split: Split,
    objective: Objective,
    config: TrainConfig,
    seed: int,
    watch: Watch | None,
    state: FitState | None,
    knowledge: Knowledge | None,
) -> FitResult:
    """Train the networks one after another, then find the weights of all parts on the validation nodes.

    The epochs of the networks are numbered through. A state is that of the whole model; Adam's moments in it are those
    of the network in training.
    """
    if knowledge is None or not config.label_inputs:
        raise UsageError("The model 'auto' needs `base='linear'` and `label_inputs` of more than 0.")
    found = split.train, torch.arange(len(split.train))
    told = told_of(knowledge, inputs, objective, config, found=found)
    now = _PartState() if state is None else _part_state(model, state)
    parts = list(enumerate(model.networks))
    epochs, best_epoch, seconds, before = 0, 0, 0.0, now.offset
    for number, network in parts[now.number :]:

        def watch_part(
            record: EpochRecord, snapshot: Callable[[], FitState], number: int = number, before: int = before
        ) -> None:
            assert watch is not None
            moved = replace(record, epoch=before + record.epoch, best_epoch=before + record.best_epoch)
            watch(moved, lambda: _whole_state(model, number, before, snapshot()))

        try:
            part = fit_inputs(
                network,
                inputs,
                dataset,
                split,
                objective,
                _part_config(network, config),
                seed=derive_seed(seed, "part", number),
                watch=None if watch is None else watch_part,
                state=now.state,
                knowledge=knowledge if isinstance(network, BeliefDiffusion) else None,
            )
            best, done, seconds = part.best_epoch, part.epochs, part.seconds
        except DivergedError as diverged:  # the network holds its best parameters so far, if there are any
            best, done = diverged.best_epoch, diverged.epoch - 1
            if not best:
                for parameter in network.parameters():
                    parameter.detach().zero_()
        best_epoch = before + best if best else best_epoch
        before = epochs = before + done
        now = _PartState(state=FitState(seconds=seconds))
    y, outputs, whole = labels_of(dataset).cpu(), [], told.everything()
    for position in range(len(PARTS)):
        model.coefficients.copy_(torch.eye(len(PARTS))[position])
        outputs.append(outputs_of(model, whole).cpu())  # of validation and test nodes, whose labels are not given
    blend = fit_blend([output[split.valid] for output in outputs], y[split.valid], objective)
    model.coefficients.copy_(torch.tensor(blend.coefficients))
    answer = outputs_told(model, told)
    valid, test = (objective.metrics(answer[part], y[part]) for part in (split.valid, split.test))
    facts: JsonObject = {
        "valid_loss": blend.loss,
        "add_nothing": [name for name, weight in zip(PARTS, blend.weights, strict=True) if not weight],
        "each": [
            {
                "name": name,
                "weight": blend.weights[k],
                "temperature": blend.temperatures[k],
                "valid_loss": blend.losses[k],
                "valid": objective.metrics(outputs[k][split.valid], y[split.valid]),
                "test": objective.metrics(outputs[k][split.test], y[split.test]),
            }
            for k, name in enumerate(PARTS)
        ],
    }
    if objective.task == "classification":
        error, bins = calibration_error(objective.answers(answer[split.test]), y[split.test])
        facts["calibration"] = {"error": error, "bins": bins}
    return FitResult(
        best_epoch=best_epoch,
        epochs=epochs,
        train=objective.metrics(answer[split.train], y[split.train]),
        valid=valid,
        test=test,
        outputs=answer,
        objective=objective,
        seconds=seconds,
        knowledge=knowledge,
        parts=facts,
    )


def _part_config(network: nn.Module, config: TrainConfig) -> TrainConfig:
    """Return the training of a part: the model's own settings for ED-HNN, those of `BeliefDiffusion` for the others."""
    if not isinstance(network, BeliefDiffusion):
        return replace(config, label_inputs=0.0, base="none")
    rate = TRAINING["learning_rate"] * (0.6 if network.config.norm == "none" else 1.0)
    epochs = min(config.epochs, TRAINING["epochs"])
    return replace(config, **{**TRAINING, "learning_rate": rate, "epochs": epochs}, weight_decay=0.0)


@dataclass(slots=True)
class _PartState:
    """The network in training, the epochs of those before it, and its state."""

    number: int = 0
    offset: int = 0
    state: FitState | None = None


def _prefix(number: int) -> str:
    return f"networks.{number}."


def _whole_state(model: Auto, number: int, before: int, part: FitState) -> FitState:
    """Return the state of the whole model from that of the network in training."""
    prefix, whole = _prefix(number), copied(model.state_dict())
    return replace(
        part,
        epoch=before + part.epoch,
        best_epoch=before + part.best_epoch if part.best_epoch else 0,
        model=whole,
        adam={name.replace("/", f"/{prefix}", 1): tensor for name, tensor in part.adam.items()},
        best={**copied(whole), **{prefix + name: tensor for name, tensor in part.best.items()}}
        if part.best_epoch
        else {},
    )


def _part_state(model: Auto, whole: FitState) -> _PartState:
    """Load a state of the whole model; return that of the network in training. Adam counts its epochs."""
    model.load_state_dict(whole.model)
    number = int(next(iter(whole.adam)).split("/")[1].split(".")[1])
    prefix = _prefix(number)
    done = int(next(tensor for name, tensor in whole.adam.items() if name.startswith("step/")))
    offset = whole.epoch - done

    def of_part(tensors: Tensors) -> Tensors:
        return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}

    part = replace(
        whole,
        epoch=done,
        best_epoch=max(whole.best_epoch - offset, 0),
        model=of_part(whole.model),
        adam={name.replace(f"/{prefix}", "/", 1): tensor for name, tensor in whole.adam.items()},
        best=of_part(whole.best),
    )
    return _PartState(number, offset, part)


def run_epochs(
    model: nn.Module,
    optimiser: torch.optim.Adam,
    batches: Callable[[int], Iterable[Batch]],
    loss: Loss,
    evaluate: Callable[[], Evaluation],
    *,
    epochs: int,
    patience: int | None = None,
    clip: float | None = None,
    watch: Watch | None = None,
    state: FitState | None = None,
) -> FitState:
    """Train epoch by epoch, then load the parameters of the first epoch of the best score.

    Args:
        model: The model.
        optimiser: Its optimiser.
        batches: Returns the batches of an epoch; the first epoch is 1. It may set the learning rate between them.
        loss: The loss of a batch's outputs against its targets.
        evaluate: Evaluates the model after an epoch.
        epochs: The last epoch.
        patience: Stop after this many epochs without a better score.
        clip: The largest norm of all gradients together.
        watch: Called after every epoch; may raise to stop.
        state: A snapshot to resume from.

    Returns:
        The state at the end.

    Raises:
        DivergedError: if a loss or an output is not finite; the model then holds the best parameters so far.
    """
    now = FitState() if state is None else replace(state)
    if now.epoch:
        model.load_state_dict(now.model)
        load_adam(optimiser, model, now.adam)
    start = time.perf_counter() - now.seconds

    def snapshot() -> FitState:
        return replace(
            now,
            model=copied(model.state_dict()),
            adam=copied(adam_tensors(optimiser, model)),
            seconds=time.perf_counter() - start,
        )

    for epoch in range(now.epoch + 1, epochs + 1):
        if patience is not None and now.epoch - now.best_epoch >= patience:
            break
        losses = []
        for batch in batches(epoch):
            losses.append(train_step(model, optimiser, batch, loss, clip=clip).item())
        evaluation = evaluate()
        if not (evaluation.finite and all(map(math.isfinite, losses))):
            where = _first_non_finite(model, batch.inputs)
            if now.best_epoch:
                model.load_state_dict(now.best)
            raise DivergedError(
                epoch,
                where,
                f"Use a smaller `learning_rate=` (now {optimiser.defaults['lr']:g}), or scale the features with "
                "`feature_scaling='standard'`.",
                best_epoch=now.best_epoch,
            )
        now.epoch = epoch
        if evaluation.score > now.best_score:  # strictly greater, so the first epoch of the best score is selected
            now.best_epoch, now.best_score = epoch, evaluation.score
            now.best_train, now.best_valid = evaluation.train, evaluation.valid
            now.best = copied(model.state_dict())
        if watch is not None:
            record = EpochRecord(
                epoch=epoch,
                loss=math.fsum(losses) / len(losses),
                train=evaluation.train,
                valid=evaluation.valid,
                best_epoch=now.best_epoch,
            )
            watch(record, snapshot)
    model.load_state_dict(now.best)
    model.eval()
    now.seconds = time.perf_counter() - start
    return now


def train_step(
    model: nn.Module, optimiser: torch.optim.Optimizer, batch: Batch, loss: Loss, *, clip: float | None = None
) -> Tensor:
    """Train for one step: forward pass, loss, backward pass, update of the parameters. Return the loss.

    Args:
        model: The model.
        optimiser: Its optimiser.
        batch: The data.
        loss: The loss.
        clip: The largest norm of all gradients together; longer ones are shortened to it.
    """
    outputs = outputs_of(model, batch.inputs, training=True)
    value = loss(outputs if batch.rows is None else outputs[batch.rows], batch.targets)
    optimiser.zero_grad(set_to_none=True)
    value.backward()  # type: ignore[no-untyped-call]
    if clip is not None:
        _shorten([parameter.grad for parameter in model.parameters() if parameter.grad is not None], clip)
    optimiser.step()
    return value.detach()


def _shorten(gradients: list[Tensor], clip: float) -> None:
    """Shorten gradients, all together, to a norm, whose sum does not depend on the number of threads."""
    square = sum(float(kernels.column_sum(gradient.reshape(-1, 1).square())) for gradient in gradients)
    if square > clip * clip:
        for gradient in gradients:
            gradient.mul_(clip / math.sqrt(square))


def make_adam(model: nn.Module, config: TrainConfig) -> torch.optim.Adam:
    """Build Adam. A model may define its own parameter groups (UniGCNII); ``weight_decay`` overrides them."""
    parameter_groups = getattr(model, "parameter_groups", None)
    groups = model.parameters() if parameter_groups is None or config.weight_decay else parameter_groups()
    return torch.optim.Adam(groups, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)


def _first_non_finite(model: nn.Module, inputs: Inputs) -> str:
    """Name the first parameter that is not finite, else the first module whose output is not finite."""
    bad = [name for name, parameter in model.named_parameters() if not bool(parameter.isfinite().all())]
    if bad:
        more = f" ({len(bad)} parameters do)" if len(bad) > 1 else ""
        return f"parameter '{bad[0]}' holds a value that is not finite{more}"
    overflowing: list[str] = []

    def check_output(name: str, output: object) -> None:
        if isinstance(output, Tensor) and not bool(output.isfinite().all()):
            overflowing.append(name)

    hooks = [
        module.register_forward_hook(lambda _, __, output, name=name: check_output(name, output))
        for name, module in model.named_modules()
        if name
    ]
    try:
        outputs_of(model, inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return f"the output of '{overflowing[0]}' overflows" if overflowing else "the outputs overflow"
