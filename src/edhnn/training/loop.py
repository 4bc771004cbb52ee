r"""The training loop: steps of Adam, an evaluation after every epoch, and the first epoch of the best validation score.

`run_epochs` is the one loop. `fit` gives it the whole hypergraph as the only batch of an epoch; other callers give it
several (`edhnn.experiments.kinds.diffusion_steps`).

Random numbers are derived, not stored: epoch t draws its dropout masks from ``derive_seed(seed, "epoch", t)``. So a
training resumes after a kill from the parameters, Adam's moments, the number of the epoch and the best epoch so far.

Labels of test nodes are read once, at the end: the selected parameters are loaded, the model is evaluated once more,
and that evaluation gives the test metrics and the predictions. So what is reported is what the saved parameters say;
nothing about the test nodes can reach the selection.
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

from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.errors import DivergedError, UsageError
from edhnn.models.base import HypergraphModel
from edhnn.seeding import derive_seed
from edhnn.training.checkpoint import FitState, adam_tensors, copied, load_adam
from edhnn.training.config import TrainConfig
from edhnn.training.inputs import Batch, Device, Inputs, find_device, make_inputs, outputs_of
from edhnn.training.objective import Metrics, Objective, check_splits, check_trainable, labels_of, make_objective


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """One epoch: the mean loss of its steps (dropout on), then training and validation metrics (dropout off)."""

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
        score: What selects the epoch; larger is better.
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
        epochs: Epochs trained; fewer than asked for after an early stop.
        train: Training metrics of the selected epoch.
        valid: Its validation metrics.
        test: Its test metrics.
        outputs: Its outputs for all nodes.
        objective: The task; turns outputs into probabilities or values.
        seconds: Time spent, that before a resumption included.
    """

    best_epoch: int
    epochs: int
    train: Metrics
    valid: Metrics
    test: Metrics
    outputs: Float[Tensor, "N C"]
    objective: Objective
    seconds: float


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
        config: How to train; the paper's protocol if not given, with the transforms that the model's entry in the
            registry names.
        seed: Of the dropout masks.
        watch: Sees every epoch.
        state: A snapshot that ``watch`` took, to resume from.
        device: Where to train: ``cpu``, ``cuda``, ``mps``, ... or ``auto``. The model stays there; results, snapshots
            and files are on the CPU.

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
    config = (config or TrainConfig()).for_model(model)
    place = find_device(device)
    check_trainable(dataset)
    check_splits(dataset, [split])
    objective = make_objective(dataset, split.train, config.regression_loss)
    inputs = make_inputs(dataset, config).to(place)
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
) -> FitResult:
    """Do what `fit` does with inputs made before, for several splits of one dataset; nothing is checked again.

    The model is moved to the device of the inputs.
    """
    _check_sizes(model, inputs, objective)
    device = inputs.x.device
    model.to(device)
    optimiser = make_adam(model, config)
    y = labels_of(dataset).cpu()
    y_train, y_valid = y[split.train], y[split.valid]  # test labels are not touched before the end
    whole = Batch(inputs, objective.targets(y_train).to(device), split.train.to(device))

    def batches(epoch: int) -> Iterable[Batch]:
        if isinstance(model, HypergraphModel):
            model.seeds.restart(derive_seed(seed, "epoch", epoch))
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate_at(epoch)
        return (whole,)

    def evaluate() -> Evaluation:
        outputs = outputs_of(model, inputs).cpu()
        train = objective.metrics(outputs[split.train], y_train)
        valid = objective.metrics(outputs[split.valid], y_valid)
        score = objective.score(valid, outputs[split.valid], y_valid)
        return Evaluation(train=train, valid=valid, score=score, finite=bool(outputs.isfinite().all()))

    best = run_epochs(
        model,
        optimiser,
        batches,
        objective.loss,
        evaluate,
        epochs=config.epochs,
        patience=config.patience,
        watch=watch,
        state=state,
    )
    outputs = outputs_of(model, inputs).cpu()
    return FitResult(
        best_epoch=best.best_epoch,
        epochs=best.epoch,
        train=best.best_train,
        valid=best.best_valid,
        test=objective.metrics(outputs[split.test], y[split.test]),
        outputs=outputs,
        objective=objective,
        seconds=best.seconds,
    )


def run_epochs(
    model: nn.Module,
    optimiser: torch.optim.Adam,
    batches: Callable[[int], Iterable[Batch]],
    loss: Loss,
    evaluate: Callable[[], Evaluation],
    *,
    epochs: int,
    patience: int | None = None,
    watch: Watch | None = None,
    state: FitState | None = None,
) -> FitState:
    """Train epoch by epoch, then load the parameters of the first epoch of the best score.

    Args:
        model: The model.
        optimiser: Its optimiser.
        batches: Gives the batches of an epoch, which counts from 1; may set the learning rate between them.
        loss: The loss of a batch's outputs against its targets.
        evaluate: Evaluates the model after an epoch.
        epochs: The last epoch.
        patience: Stop after so many epochs without a better score.
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
    begun, before = time.perf_counter(), now.seconds

    def snapshot() -> FitState:
        return replace(
            now,
            model=copied(model.state_dict()),
            adam=copied(adam_tensors(optimiser, model)),
            seconds=before + time.perf_counter() - begun,
        )

    for epoch in range(now.epoch + 1, epochs + 1):
        if patience is not None and now.epoch - now.best_epoch >= patience:
            break
        losses = []
        for batch in batches(epoch):
            losses.append(train_step(model, optimiser, batch, loss).item())
        found = evaluate()
        if not (found.finite and all(map(math.isfinite, losses))):
            where = _first_culprit(model, batch.inputs)
            if now.best_epoch:
                model.load_state_dict(now.best)
            raise DivergedError(
                epoch,
                where,
                f"Lower the learning rate (now {optimiser.defaults['lr']:g}), or scale the features "
                "(feature_scaling standard).",
                best_epoch=now.best_epoch,
            )
        now.epoch = epoch
        if found.score > now.best_score:  # strictly: the first epoch of the best score
            now.best_epoch, now.best_score, now.best_train, now.best_valid = (
                epoch,
                found.score,
                found.train,
                found.valid,
            )
            now.best = copied(model.state_dict())
        if watch is not None:
            mean = math.fsum(losses) / len(losses)
            record = EpochRecord(
                epoch=epoch, loss=mean, train=found.train, valid=found.valid, best_epoch=now.best_epoch
            )
            watch(record, snapshot)
    model.load_state_dict(now.best)
    model.eval()
    now.seconds = before + time.perf_counter() - begun
    return now


def train_step(model: nn.Module, optimiser: torch.optim.Optimizer, batch: Batch, loss: Loss) -> Tensor:
    """Take one step: forward pass, loss, backward pass, update of the parameters. Return the loss."""
    outputs = outputs_of(model, batch.inputs, training=True)
    value = loss(outputs if batch.rows is None else outputs[batch.rows], batch.targets)
    optimiser.zero_grad(set_to_none=True)
    value.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return value.detach()


def make_adam(model: nn.Module, config: TrainConfig) -> torch.optim.Adam:
    """Build Adam. A model may define its own parameter groups (UniGCNII); ``weight_decay`` overrides them."""
    own = getattr(model, "parameter_groups", None)
    groups = model.parameters() if own is None or config.weight_decay else own()
    return torch.optim.Adam(groups, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)


def _check_sizes(model: nn.Module, inputs: Inputs, objective: Objective) -> None:
    if not isinstance(model, HypergraphModel):
        return
    have, want = (model.in_features, model.num_classes), (inputs.x.shape[1], objective.num_outputs)
    if have != want:
        raise UsageError(
            f"The model must take {want[0]} features and give {want[1]} outputs for this dataset. "
            f"It takes {have[0]} and gives {have[1]}."
        )


def _first_culprit(model: nn.Module, inputs: Inputs) -> str:
    """Name the first parameter that is not finite; if all are, the first module whose output is not."""
    bad = [name for name, parameter in model.named_parameters() if not bool(parameter.isfinite().all())]
    if bad:
        return f"parameter '{bad[0]}' holds a value that is not" + (f" ({len(bad)} do)" if len(bad) > 1 else "")
    overflowing: list[str] = []

    def note(name: str, output: object) -> None:
        if isinstance(output, Tensor) and not bool(output.isfinite().all()):
            overflowing.append(name)

    hooks = [
        module.register_forward_hook(lambda _, __, output, name=name: note(name, output))
        for name, module in model.named_modules()
        if name
    ]
    try:
        outputs_of(model, inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return f"the output of '{overflowing[0]}' overflows" if overflowing else "the outputs overflow"
