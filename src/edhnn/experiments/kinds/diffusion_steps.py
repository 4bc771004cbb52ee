r"""Mean absolute error of a one-layer model that learns a diffusion step. Paper: Section 4.4, Appendix F.5.

Data: `gradient_pairs` on the Senate hypergraph (Figure 3), or `admm_pairs` on a random uniform one (Figure 5). Every
model has the same skip connection, $\hat H = a H + \mathrm{model}(H)$ with one learned number $a$, and neither dropout
nor norms. States are divided by the standard deviation of the training inputs, and the error is reported in the data's
unit. The loss is the error itself. The epoch is selected on validation pairs, and the test pairs are evaluated once.
The paper gives neither the split nor the training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from edhnn.datasets.diffusion_pairs import admm_pairs, gradient_pairs, read_pairs, uniform_hypergraph
from edhnn.datasets.registry import load_dataset
from edhnn.errors import StoppedError, UsageError, unknown_name
from edhnn.experiments.kinds.base import Kind, LineKind, MetricFloor
from edhnn.experiments.spec import Column, Row
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.models.diffusion_step import DiffusionRegression, DiffusionRegressionConfig, copies_of
from edhnn.models.registry import make_model
from edhnn.parallel import locked
from edhnn.seeding import derive_seed
from edhnn.training.inputs import Batch, Inputs, outputs_of
from edhnn.training.loop import Evaluation, run_epochs
from edhnn.typing import JsonObject

DATASETS = ("gradient-ce", "gradient-tv", "gradient-lec", "admm-tv", "admm-lec")
_PLAIN: dict[str, Any] = {"norm": "none", "dropout": 0.0, "input_dropout": 0.0}
_PRINTED: dict[str, Any] = {
    "num_iterations": 1,
    "phi_layers": 1,
    "update_layers": 1,
    "classifier_layers": 1,
    "aggregate": "sum",
    "update": "concat",
}
_LAYERS = ("ed-hnn", "invariant")
_NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "ed-hnn-algorithm-1": ("ed-hnn", {**_PLAIN, **_PRINTED}),
    "invariant-algorithm-1": ("invariant", {**_PLAIN, **_PRINTED}),
    "alldeepsets": ("alldeepsets", {**_PLAIN, "input_norm": False}),
    "allsettransformer": ("allsettransformer", _PLAIN),
}
MODELS = (*_LAYERS, *_NETWORKS)
_MIN_PAIRS = 10  # a tenth of the pairs is the test part
_TRAIN = {"epochs": 40, "batch": 20, "learning_rate": 3e-3, "count": 1000}


class DiffusionLayer(nn.Module):
    """A one-layer model on a batch of states.

    ``ed-hnn`` and ``invariant`` are the bare layer that was released for this task (`DiffusionRegression`). The others
    are whole networks of the registry with one iteration: encoder, layer, classifier. Among them ED-HNN is Algorithm 1
    as printed, with about as many parameters as AllDeepSets. The bare layer has less than a third of them.

    Args:
        model: One of `MODELS`.
        width: The hidden width.
        seed: The seed of the initial weights.
    """

    def __init__(self, model: str, width: int, seed: int) -> None:
        super().__init__()
        self.skip = nn.Parameter(torch.ones(()))
        self.model: nn.Module
        if model in _LAYERS:
            config = DiffusionRegressionConfig(hidden=width, restart=0.0, norm="none", equivariant=model == "ed-hnn")
            self.model = DiffusionRegression(config, seed=seed)
        else:
            name, options = _NETWORKS[model]
            self.model = make_model(name, in_features=1, num_classes=1, seed=seed, hidden=width, **options)

    def forward(self, h: Tensor, hypergraph: Hypergraph) -> Tensor:
        """Predict the next states of a batch, [B, N]."""
        out: Tensor
        if isinstance(self.model, DiffusionRegression):
            out = self.model(h[..., None], hypergraph)[..., 0]
        else:
            out = self.model(h.reshape(-1, 1), copies_of(hypergraph, len(h))).view(h.shape)
        return self.skip * h + out


@final
class DiffusionSteps(Kind):
    """Mean absolute error on test pairs; a split is a seed."""

    name = "diffusion"
    note = "Mean absolute error on test pairs, lower is better; mean ± sample standard deviation over seeds."
    axis = "mean absolute error"
    trains = True
    max_splits = 100
    test_to_train = 0.10 / 0.80
    groups: ClassVar[Mapping[LineKind, str]] = {"floor": "Floor: nothing learned", "network": "Learned"}
    metric_floor = MetricFloor("No step at all", "mean_absolute_change", "the mean absolute change of the test pairs")

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """Resolve the data, the model, its width and its training."""
        for name, value, choices in (("dataset", column.dataset, DATASETS), ("model", row.model, MODELS)):
            if value not in choices:
                raise unknown_name(f"{name} of a diffusion experiment", value, choices)
        for key in train:
            if key not in _TRAIN:
                raise unknown_name("training setting of a diffusion experiment", key, _TRAIN)
            if type(train[key]) is not type(_TRAIN[key]) or train[key] <= 0:
                kind = type(_TRAIN[key]).__name__
                raise UsageError(f"'{key}' of a diffusion experiment must be a positive {kind}. Got {train[key]!r}.")
        sizes = {**row.options, **column.options, **options}
        for key in sizes:
            if key != "width":
                raise unknown_name("option of a diffusion experiment", key, ["width"])
        width = sizes.get("width")
        if type(width) is not int or width < 1:
            raise UsageError(
                f"A diffusion experiment must have options = {{ width = ... }} with a positive int. Got {width!r}."
            )
        if train.get("count", _MIN_PAIRS) < _MIN_PAIRS:
            raise UsageError(f"'count' of a diffusion experiment must be at least {_MIN_PAIRS}. Got {train['count']}.")
        settings: JsonObject = {"dataset": column.dataset, "model": row.model, "options": {"width": width}}
        return {**settings, "train": {**_TRAIN, **train}}, "ours, because the paper gives neither sizes nor training"

    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Train on 80 % of the pairs, select on 10 %, test on 10 %."""
        train = settings["train"]
        hypergraph, pairs = _data(settings["dataset"], train["count"], work.parent)
        order = torch.randperm(train["count"], generator=_generator(split, "pairs"))
        first, second = int(0.8 * len(order)), int(0.9 * len(order))
        scale = pairs[0][order[:first]].std()
        x, y = (part / scale for part in pairs)
        model = DiffusionLayer(settings["model"], settings["options"]["width"], derive_seed(split, "model"))
        optimiser = torch.optim.Adam(model.parameters(), lr=train["learning_rate"], fused=True)
        steps = train["epochs"] * -(-first // train["batch"])
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)

        def batches(which: Tensor) -> Iterator[Batch]:
            return (Batch(Inputs(hypergraph, x[part]), y[part]) for part in torch.split(which, train["batch"]))

        def shuffled(epoch: int) -> Iterator[Batch]:
            for batch in batches(order[torch.randperm(first, generator=_generator(split, "epoch", epoch))]):
                if should_stop():
                    raise StoppedError(f"Stopped at epoch {epoch}. The next run starts this job again.")
                yield batch
                schedule.step()

        def error(which: Tensor) -> float:
            differences = (outputs_of(model, batch.inputs) - batch.targets for batch in batches(which))
            return sum(float(difference.abs().sum()) for difference in differences) / (len(which) * x.shape[1])

        def evaluate() -> Evaluation:
            valid = error(order[first:second])
            return Evaluation(train={}, valid={"mae": valid}, score=-valid, finite=math.isfinite(valid))

        best = run_epochs(model, optimiser, shuffled, _mean_error, evaluate, epochs=train["epochs"])
        return {
            "value": float(scale) * error(order[second:]),
            "valid": float(scale) * best.best_valid["mae"],
            "best_epoch": best.best_epoch,
            "num_parameters": sum(parameter.numel() for parameter in model.parameters()),
            "mean_absolute_change": float((pairs[1] - pairs[0])[order[second:]].abs().mean()),
        }

    def format(self, value: float) -> str:
        """Format a number with four decimals."""
        return f"{value:.4f}"


def _mean_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).abs().mean()


def _generator(split: int, *names: object) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(split, *map(str, names)))


def _data(name: str, count: int, folder: Path) -> tuple[Hypergraph, tuple[Tensor, Tensor]]:
    """Return the hypergraph and the pairs, which are created once per results folder."""
    step, potential = name.split("-")
    hypergraph = load_dataset("senate").hypergraph if step == "gradient" else uniform_hypergraph()
    target = folder / f"pairs-{name}-{count}"
    with locked(folder / f"{target.name}.lock", wait=3600.0):
        if not target.is_dir():
            if step == "gradient":
                gradient_pairs(hypergraph, potential, target, count=count)  # type: ignore[arg-type]
            else:
                admm_pairs(hypergraph, potential, target, count=count)  # type: ignore[arg-type]
    x, y, _ = read_pairs(target)
    return hypergraph, (torch.from_numpy(x.copy()), torch.from_numpy(y.copy()))
