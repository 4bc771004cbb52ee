"""Test accuracy of a bound, or of a model trained by the paper's protocol. Paper: Section 4.1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, final

from edhnn.configuration import configure
from edhnn.data.dataset import NodeDataset
from edhnn.datasets.registry import find_entry, load_dataset
from edhnn.experiments.kinds.base import Kind, LineKind, check_no_settings, model_settings
from edhnn.experiments.kinds.bounds import BOUNDS, CEILINGS, FLOORS
from edhnn.experiments.spec import Column, Row
from edhnn.io.json_files import read_json
from edhnn.runs.folder import SplitFolder
from edhnn.runs.plan import Plan, choose_splits
from edhnn.runs.run import train_split
from edhnn.training.config import TrainConfig
from edhnn.training.inputs import Inputs, make_inputs
from edhnn.training.objective import make_objective
from edhnn.typing import JsonObject


@final
class Accuracy(Kind):
    """Accuracy in per cent."""

    name = "accuracy"
    note = "Test accuracy in per cent; mean ± sample standard deviation over splits."
    axis = "test accuracy, %"
    trains = True
    max_splits = 10**6
    higher_is_better = True
    test_to_train = 0.25 / 0.50
    groups: ClassVar[Mapping[LineKind, str]] = {
        "floor": "Floors: without the hypergraph",
        "network": "Networks",
        "ceiling": "Ceiling: the generator of the data is known",
    }
    floors = (*FLOORS, "mlp")
    ceilings = tuple(CEILINGS)
    shared_floors = (
        Row(label="Features alone: L1 logistic", model="l1-logistic"),
        Row(label="Features alone: true class means", model="class-means"),
        Row(label="MLP", model="mlp"),
    )

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """Resolve the settings; a bound has none, and some bounds exist only for data with a known generator."""
        entry = find_entry(column.dataset)
        data = {"splits_sha256": entry.splits_sha256, "features_sha256": entry.features_sha256}
        settings: JsonObject = {"dataset": column.dataset, "data": data, "seed": 0}
        if row.model in BOUNDS:
            bound = BOUNDS[row.model]
            check_no_settings(f"The row '{row.label}'", {**row.options, **row.train})
            bound_settings = {**settings, "model": row.model, "options": {}, "train": {}}
            return (bound_settings, bound.source) if bound.applies(column.dataset) else None
        model, training, source = model_settings(row, column, options, train)
        return {**settings, "model": model.pop("name"), "options": model, "train": training}, source

    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Train, select the epoch on the validation nodes, and evaluate the test nodes once."""
        dataset = _dataset(settings["dataset"])
        parts = choose_splits(dataset, split + 1)[split]
        if settings["model"] in BOUNDS:
            return BOUNDS[settings["model"]].measure(dataset, parts)
        config = configure(TrainConfig, settings["train"])
        plan = Plan(
            model=settings["model"], options=settings["options"], train=config, num_splits=1, seed=settings["seed"]
        )
        folder = SplitFolder(work)
        if folder.finished:
            result = read_json(folder.result)
        else:
            objective = make_objective(dataset, parts.train, config.regression_loss)
            inputs = _inputs(settings["dataset"], config)
            result = train_split(folder, split, plan, dataset, inputs, parts, objective, should_stop=should_stop).result
        return {
            "value": 100 * result["test"]["accuracy"],
            "valid": 100 * result["valid"]["accuracy"],
            "train": 100 * result["train"]["accuracy"],
            "best_epoch": result["best_epoch"],
            "num_parameters": result["num_parameters"],
            "train_seconds": result["seconds"],
            **({"parts": result["parts"]} if "parts" in result else {}),
        }

    def format(self, value: float) -> str:
        """Format a number with two decimals."""
        return f"{value:.2f}"


@lru_cache(maxsize=2)
def _dataset(name: str) -> NodeDataset:
    return load_dataset(name)


@lru_cache(maxsize=2)
def _inputs(name: str, config: TrainConfig) -> Inputs:
    return make_inputs(_dataset(name), config)
