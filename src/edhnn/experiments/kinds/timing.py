"""Seconds of a training step and of an inference. Paper: Table 2 (times), Table 8.

A step is forward, backward and Adam on all nodes; an inference is one forward pass in evaluation mode. Structures that
are computed once (clique graphs, the diffusion of HyperND) are computed before the clock starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, final

import torch

from edhnn.configuration import configure
from edhnn.datasets.registry import load_dataset
from edhnn.experiments.kinds.base import Kind, check_no_settings, model_settings
from edhnn.experiments.spec import Column, Row
from edhnn.runs.plan import Plan, choose_splits
from edhnn.training.config import TrainConfig
from edhnn.training.inputs import Batch, make_inputs, outputs_of
from edhnn.training.loop import make_adam, train_step
from edhnn.training.objective import labels_of, make_objective
from edhnn.typing import JsonObject

_MIN_CALLS, _MAX_CALLS, _SECONDS = 3, 100, 3.0


@final
class Timing(Kind):
    """Median seconds of a training step (``value``) and of an inference (``inference``)."""

    name = "timing"
    note = "Milliseconds of a training step / of an inference: medians of repeated calls."
    mean_heading = "mean, s"
    exclusive = True

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """Resolve the model's settings; the only training setting that matters is ``transforms``."""
        check_no_settings("A timing", {key: value for key, value in train.items() if key != "transforms"})
        model, training, source = model_settings(row, column, options, train)
        settings: JsonObject = {"dataset": column.dataset, "model": model.pop("name"), "options": model}
        return {**settings, "transforms": training["transforms"]}, source

    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Measure the medians."""
        del work, should_stop
        dataset = load_dataset(settings["dataset"])
        config = configure(TrainConfig, {"transforms": settings["transforms"]})
        parts = choose_splits(dataset, split + 1)[split]
        objective = make_objective(dataset, parts.train)
        plan = Plan(model=settings["model"], options=settings["options"], train=config)
        model = plan.make_model(dataset, objective, split)
        batch = Batch(
            make_inputs(dataset, config), objective.targets(labels_of(dataset)[parts.train]), rows=parts.train
        )
        optimiser = make_adam(model, config)
        steps = timed(lambda: train_step(model, optimiser, batch, objective.loss))
        inferences = timed(lambda: outputs_of(model, batch.inputs))
        return {
            "value": median(steps),
            "spread": _spread(steps),
            "inference": median(inferences),
            "inference_spread": _spread(inferences),
            "num_parameters": model.num_parameters(),
            "threads": torch.get_num_threads(),
        }


def timed(work: Callable[[], object]) -> list[float]:
    """Time repeated calls for about three seconds, after one call that is not timed."""
    work()
    seconds: list[float] = []
    while len(seconds) < _MIN_CALLS or (sum(seconds) < _SECONDS and len(seconds) < _MAX_CALLS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def _spread(values: list[float]) -> float:
    return float(torch.tensor(values).std())
