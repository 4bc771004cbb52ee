r"""Training: full-batch Adam, an evaluation after every step, and the first epoch of the best validation score.

Randomness is named, not stored: epoch t draws its dropout masks from ``derive_seed(seed, "epoch", t)``. So what is
needed to go on after a kill is the parameters, Adam's moments, the number of the epoch and the best so far.

Labels of test nodes are read once, at the end, for the selected parameters: those are loaded back, evaluated once more,
and that one evaluation gives the test metric and the predictions. What is reported is therefore what the saved
parameters say, and nothing about the test nodes can reach the choice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.errors import UsageError
from edhnn.models.contract import HypergraphModel
from edhnn.seeding import derive_seed
from edhnn.training.checks import check_splits, check_trainable
from edhnn.training.config import TrainConfig
from edhnn.training.divergence import DivergedError, first_culprit
from edhnn.training.inputs import Inputs, make_inputs
from edhnn.training.metrics import Metrics
from edhnn.training.state import FitState, adam_tensors, load_adam
from edhnn.training.tasks import Objective, labels_of, make_objective


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """One epoch: the loss of its step (dropout on), then training and validation metrics (dropout off)."""

    epoch: int
    loss: float
    train: Metrics
    valid: Metrics
    best_epoch: int


Watch = Callable[[EpochRecord, Callable[[], FitState]], None]
"""Called after every epoch with its record and a function that takes a snapshot; may raise to stop."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitResult:
    """A trained model's numbers; the model itself holds the selected parameters, in evaluation mode.

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
) -> FitResult:
    """Train a model on a split and select its best epoch. Paper: Appendix F.3 (the protocol), Section 4.1.

    Args:
        model: Any module ``model(x, hypergraph) -> [N, outputs]``. One of ours draws its dropout masks from ``seed``;
            another's own randomness is its own.
        dataset: Features, labels and hypergraph.
        split: The three parts.
        config: How to train; the paper's protocol if not given.
        seed: Of the dropout masks.
        watch: Sees every epoch.
        state: Where to go on from: a snapshot that ``watch`` took.

    Returns:
        The numbers and outputs of the selected epoch; the model holds its parameters.

    Raises:
        DataError: if the dataset or the split cannot be trained on.
        DivergedError: if the loss stops being finite; the model then holds the best parameters so far.

    Example:
        >>> from edhnn import TrainConfig, contextual_sbm, fit, make_model, random_splits
        >>> data = contextual_sbm(1, nodes_per_class=50, num_hyperedges=60)
        >>> model = make_model("ed-hnn", in_features=100, num_classes=2, hidden=16, dropout=0.0, input_dropout=0.0)
        >>> result = fit(model, data, random_splits(100, 1)[0], TrainConfig(epochs=20, learning_rate=0.01))
        >>> result.test["accuracy"] > 0.8
        True
    """
    config = config or TrainConfig()
    check_trainable(dataset)
    check_splits(dataset, [split])
    return fit_inputs(model, make_inputs(dataset, config), dataset, split, config, seed=seed, watch=watch, state=state)


def fit_inputs(
    model: nn.Module,
    inputs: Inputs,
    dataset: NodeDataset,
    split: Split,
    config: TrainConfig,
    *,
    seed: int,
    watch: Watch | None,
    state: FitState | None,
) -> FitResult:
    """`fit` with inputs made before, for several splits of one dataset; nothing is checked again."""
    objective = make_objective(dataset, split.train, config.regression_loss)
    _check_sizes(model, inputs, objective)
    y = labels_of(dataset)
    y_train, y_valid = y[split.train], y[split.valid]  # test labels are not touched before the end
    x, hypergraph = inputs.x, inputs.hypergraph
    optimiser = make_adam(model, config)
    now = FitState() if state is None else replace(state)
    if now.epoch:
        model.load_state_dict(now.model)
        load_adam(optimiser, model, now.adam)
    begun, before = time.perf_counter(), now.seconds
    outputs: Tensor | None = None
    noiseless: bool | None = None if isinstance(model, HypergraphModel) else False

    def snapshot() -> FitState:
        return replace(
            now,
            model={name: tensor.detach().clone() for name, tensor in model.state_dict().items()},
            adam={name: tensor.clone() for name, tensor in adam_tensors(optimiser, model).items()},
            seconds=before + time.perf_counter() - begun,
        )

    for epoch in range(now.epoch + 1, config.epochs + 1):
        if config.patience is not None and now.epoch - now.best_epoch >= config.patience:
            break
        if isinstance(model, HypergraphModel):
            model.seeds.restart(derive_seed(seed, "epoch", epoch))
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate_at(epoch)
        model.train()
        outputs = model(x, hypergraph) if outputs is None else outputs
        if noiseless is None:
            # A training pass of ours that equals the evaluation pass in every bit has neither dropout nor batch
            # statistics: then the evaluation of one epoch is the training pass of the next, and a pass is saved.
            # Of another's module one pass proves nothing: a last layer of zeros hides its dropout.
            noiseless = torch.equal(outputs, model.eval()(x, hypergraph))
            model.train()
        loss = objective.loss(outputs[split.train], y_train)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        model.eval()
        with torch.set_grad_enabled(noiseless):
            fresh = model(x, hypergraph)
        seen = fresh.detach()
        if not (math.isfinite(loss.item()) and bool(seen.isfinite().all())):
            where = first_culprit(model, x, hypergraph)
            if now.best_epoch:
                model.load_state_dict(now.best)
            raise DivergedError(epoch, where, f"Lower the learning rate (now {config.learning_rate:g}), or scale the "
                                "features (feature_scaling standard).", best_epoch=now.best_epoch)  # fmt: skip
        outputs = fresh if noiseless else None
        train = objective.metrics(seen[split.train], y_train)
        valid = objective.metrics(seen[split.valid], y_valid)
        score = objective.score(valid, seen[split.valid], y_valid)
        now.epoch = epoch
        if score > now.best_score:  # strictly: the first epoch of the best score
            now.best_epoch, now.best_score, now.best_train, now.best_valid = epoch, score, train, valid
            now.best = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        if watch is not None:
            record = EpochRecord(epoch=epoch, loss=loss.item(), train=train, valid=valid, best_epoch=now.best_epoch)
            watch(record, snapshot)
    model.load_state_dict(now.best)
    model.eval()
    with torch.no_grad():
        chosen = model(x, hypergraph)
    return FitResult(
        best_epoch=now.best_epoch,
        epochs=now.epoch,
        train=now.best_train,
        valid=now.best_valid,
        test=objective.metrics(chosen[split.test], y[split.test]),
        outputs=chosen,
        objective=objective,
        seconds=before + time.perf_counter() - begun,
    )


def make_adam(model: nn.Module, config: TrainConfig) -> torch.optim.Adam:
    """Adam; a model that decays its parameters in groups of its own (UniGCNII) does so unless a decay is asked for."""
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
