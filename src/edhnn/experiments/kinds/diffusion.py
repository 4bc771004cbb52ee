r"""Mean absolute error of a one-layer model that learns a diffusion step. Paper: Section 4.4, Appendix F.5.

Data: `gradient_pairs` on the Senate hypergraph (Figure 3), or `admm_pairs` on a random uniform one (Figure 5). Every
model gets the same skip, $\hat H = a H + \mathrm{model}(H)$ with one learned number $a$, and neither dropout nor norms.
States are divided by the deviation of the training inputs, and the error is given back in the data's unit. The loss is
the error itself; the epoch is selected on validation pairs, and test pairs are read once. The paper gives neither the
split nor the training.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from edhnn.data.catalog import load_dataset
from edhnn.data.diffusion_pairs import admm_pairs, gradient_pairs, read_pairs, uniform_hypergraph
from edhnn.errors import UsageError, unknown_name
from edhnn.experiments.spec import Column, Row
from edhnn.hypergraph import Hypergraph
from edhnn.models.diffusion_regression import DiffusionRegression, DiffusionRegressionConfig, copies_of
from edhnn.models.registry import make_model
from edhnn.seeding import derive_seed
from edhnn.training.locks import locked
from edhnn.training.split_run import StoppedError
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
_LEAST = 10  # pairs, of which a tenth is tested
_TRAIN = {"epochs": 40, "batch": 20, "learning_rate": 3e-3, "count": 1000}


class DiffusionLayer(nn.Module):
    """A model as one layer on a batch of states.

    ``ed-hnn`` and ``invariant`` are the bare layer that was released for this (`DiffusionRegression`), the others whole
    networks of the registry with one iteration: encoder, layer, classifier. Of these ED-HNN is Algorithm 1 as printed,
    with perceptrons that give it as many parameters as AllDeepSets has; the bare layer has less than a third of them.

    Args:
        model: One of `MODELS`.
        width: Its width.
        seed: Of the initial weights.
    """

    def __init__(self, model: str, width: int, seed: int) -> None:
        super().__init__()
        self.skip = nn.Parameter(torch.ones(()))
        self.own: nn.Module
        if model in _LAYERS:
            config = DiffusionRegressionConfig(hidden=width, restart=0.0, norm="none", equivariant=model == "ed-hnn")
            self.own = DiffusionRegression(config, seed=seed)
        else:
            name, options = _NETWORKS[model]
            self.own = make_model(name, in_features=1, num_classes=1, seed=seed, hidden=width, **options)

    def forward(self, h: Tensor, hypergraph: Hypergraph) -> Tensor:
        """The next states of a batch, [B, N]."""
        out: Tensor
        if isinstance(self.own, DiffusionRegression):
            out = self.own(h[..., None], hypergraph)[..., 0]
        else:
            out = self.own(h.reshape(-1, 1), copies_of(hypergraph, len(h))).view(h.shape)
        return self.skip * h + out


@final
class Diffusion:
    """Mean absolute error on test pairs."""

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """The data, the model, its width and its training."""
        for name, given, choices in (("dataset", column.dataset, DATASETS), ("model", row.model, MODELS)):
            if given not in choices:
                raise unknown_name(f"{name} of a diffusion experiment", given, choices)
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
                f"A diffusion experiment must set options = {{ width = ... }}, a positive int. Got {width!r}."
            )
        if train.get("count", _LEAST) < _LEAST:
            raise UsageError(f"'count' of a diffusion experiment must be at least {_LEAST}. Got {train['count']}.")
        settings: JsonObject = {"dataset": column.dataset, "model": row.model, "options": {"width": width}}
        return {**settings, "train": {**_TRAIN, **train}}, "ours: the paper gives neither sizes nor training"

    def most_splits(self, settings: JsonObject) -> int:
        """As many seeds as asked for."""
        del settings
        return 100

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
        batches = -(-first // train["batch"])
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, train["epochs"] * batches)
        best, best_epoch, kept = float("inf"), 0, model.state_dict()
        for epoch in range(1, train["epochs"] + 1):
            model.train()
            shuffled = order[torch.randperm(first, generator=_generator(split, "epoch", epoch))]
            for batch in torch.split(shuffled, train["batch"]):
                if should_stop():
                    raise StoppedError(f"Stopped at epoch {epoch}; this job begins anew.")
                optimiser.zero_grad(set_to_none=True)
                (model(x[batch], hypergraph) - y[batch]).abs().mean().backward()
                optimiser.step()
                schedule.step()
            error = _error(model, x, y, order[first:second], hypergraph, train["batch"])
            if error < best:
                best, best_epoch = error, epoch
                kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        model.load_state_dict(kept)
        test = _error(model, x, y, order[second:], hypergraph, train["batch"])
        return {
            "value": float(scale) * test,
            "valid": float(scale) * best,
            "best_epoch": best_epoch,
            "num_parameters": sum(parameter.numel() for parameter in model.parameters()),
            "mean_absolute_change": float((pairs[1] - pairs[0])[order[second:]].abs().mean()),  # of the test pairs too
        }


def _error(model: nn.Module, x: Tensor, y: Tensor, which: Tensor, hypergraph: Hypergraph, batch: int) -> float:
    model.eval()
    with torch.no_grad():
        total = sum(float((model(x[part], hypergraph) - y[part]).abs().sum()) for part in torch.split(which, batch))
    return total / (len(which) * x.shape[1])


def _generator(split: int, *names: object) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(split, *map(str, names)))


def _data(name: str, count: int, folder: Path) -> tuple[Hypergraph, tuple[Tensor, Tensor]]:
    """The hypergraph and the pairs, made once per results folder."""
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
