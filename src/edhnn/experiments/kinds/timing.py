"""Seconds of a training step and of an inference. Paper: Table 2 (times), Table 8.

A step is forward, backward and Adam on all nodes; an inference one forward pass in evaluation. Structure that is made
once (clique graphs, the diffusion of HyperND) is made before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, final

import torch
from torch import nn

from edhnn.data.catalog import load_dataset
from edhnn.experiments.kinds.contract import refuse_settings
from edhnn.experiments.kinds.model_settings import model_settings
from edhnn.experiments.spec import Column, Row
from edhnn.models.written_values import declared
from edhnn.training.config import TrainConfig
from edhnn.training.fit import make_adam
from edhnn.training.inputs import Inputs, make_inputs
from edhnn.training.plan import Plan, choose_splits
from edhnn.training.tasks import labels_of, make_objective
from edhnn.typing import JsonObject

_LEAST, _MOST, _SECONDS = 3, 100, 3.0


@final
class Timing:
    """Seconds of a training step as ``value``, of an inference as ``inference``."""

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """The model's settings; of a training's nothing but what is done to the hypergraph before."""
        refuse_settings("A timing", {key: value for key, value in train.items() if key != "transforms"})
        model, training, source = model_settings(row, column, options, train)
        settings: JsonObject = {"dataset": column.dataset, "model": model.pop("name"), "options": model}
        return {**settings, "transforms": training["transforms"]}, source

    def most_splits(self, settings: JsonObject) -> int:
        """One measurement, of many steps."""
        del settings
        return 1

    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Measure medians."""
        del work, should_stop
        dataset = load_dataset(settings["dataset"])
        config = TrainConfig(**declared(TrainConfig, {"transforms": settings["transforms"]}))
        parts = choose_splits(dataset, split + 1)[split]
        objective = make_objective(dataset, parts.train)
        plan = Plan(model=settings["model"], options=settings["options"], train=config)
        model = plan.make_model(dataset, objective, split)
        inputs, y = make_inputs(dataset, config), labels_of(dataset)[parts.train]
        optimiser = make_adam(model, config)

        def step() -> None:
            model.train()
            optimiser.zero_grad(set_to_none=True)
            objective.loss(model(inputs.x, inputs.hypergraph)[parts.train], y).backward()  # type: ignore[no-untyped-call]
            optimiser.step()

        steps, inferences = timed(step), timed(lambda: _infer(model, inputs))
        return {
            "value": median(steps),
            "spread": _spread(steps),
            "inference": median(inferences),
            "inference_spread": _spread(inferences),
            "num_parameters": model.num_parameters(),
            "threads": torch.get_num_threads(),
        }


def timed(work: Callable[[], None]) -> list[float]:
    """Seconds of each call after the first, for about three seconds."""
    work()
    spent: list[float] = []
    while len(spent) < _LEAST or (sum(spent) < _SECONDS and len(spent) < _MOST):
        begun = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begun)
    return spent


def _spread(values: list[float]) -> float:
    return float(torch.tensor(values).std())


def _infer(model: nn.Module, inputs: Inputs) -> None:
    model.eval()
    with torch.inference_mode():
        model(inputs.x, inputs.hypergraph)
