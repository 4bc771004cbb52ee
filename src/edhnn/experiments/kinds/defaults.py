"""Test scores of the default settings on the suite (`edhnn.datasets.suite`), beside the floors.

A network has the settings of `edhnn.training.defaults`; an experiment may change them, to compare. The floors are those
of `edhnn.training.floors`: a linear model of the features alone, and the neighbours' vote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, final

from edhnn.configuration import configure
from edhnn.data.dataset import NodeDataset
from edhnn.datasets.suite import load_suite_dataset, suite, suite_splits
from edhnn.errors import unknown_name
from edhnn.experiments.kinds.base import Kind, LineKind, check_no_settings
from edhnn.experiments.spec import Column, Row
from edhnn.io.json_files import read_json
from edhnn.models.registry import MODELS, make_config
from edhnn.runs.folder import SplitFolder
from edhnn.runs.plan import Plan
from edhnn.runs.run import train_split
from edhnn.training.config import TrainConfig
from edhnn.training.defaults import Defaults, choose_defaults
from edhnn.training.floors import features_alone, neighbours_vote
from edhnn.training.inputs import Inputs, make_inputs
from edhnn.training.objective import Metrics, make_objective
from edhnn.training.structural_features import with_features
from edhnn.typing import JsonObject

_FLOORS = {
    "linear": "logistic or ridge regression of the features alone; its penalty is chosen by validation",
    "neighbours": "vote or mean of the training nodes in the same hyperedges",
}


@final
class DefaultSettings(Kind):
    """Accuracy in per cent, and 100 R² for real values."""

    name = "defaults"
    note = (
        "Test accuracy in per cent, 100 R² where the labels are real values; mean ± sample standard deviation over "
        "splits."
    )
    trains = True
    max_splits = 10_000
    higher_is_better = True
    test_to_train = 0.25 / 0.50
    groups: ClassVar[dict[LineKind, str]] = {"floor": "Floors: without a network", "network": "Networks"}
    floors = tuple(_FLOORS)

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """Resolve the settings: the rule's, and what row and experiment change."""
        if column.dataset not in suite():
            raise unknown_name("dataset of the suite", column.dataset, suite())
        settings: JsonObject = {"dataset": column.dataset, "sha256": suite()[column.dataset].sha256, "seed": 0}
        if row.model in _FLOORS:
            check_no_settings(f"The row '{row.label}'", {**row.options, **row.train})
            return {**settings, "model": row.model, "options": {}, "train": {}}, _FLOORS[row.model]
        if row.model not in MODELS:
            raise unknown_name("model or floor", row.model, (*_FLOORS, *MODELS))
        chosen = _chosen(column.dataset, row.model)
        changes = {**row.options, **column.options, **options}
        config = make_config(row.model, **{**chosen.options, **changes})
        training = configure(TrainConfig, {**chosen.train, **train}).for_model(row.model)
        record = {**training.to_json(), "transforms": list(training.transforms or ())}
        changed = ", ".join(sorted({*changes, *train}))
        source = "the rule" + (f"; this experiment: {changed}" if changed else "")
        return {**settings, "model": row.model, "options": asdict(config), "train": record}, source

    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Train and select the epoch on the validation nodes, or measure the floor; evaluate the test nodes once."""
        dataset = _dataset(settings["dataset"])
        parts = suite_splits(dataset, split + 1)[split]
        if settings["model"] in _FLOORS:
            objective = make_objective(dataset, parts.train)
            if settings["model"] == "linear":
                answers = features_alone(dataset, parts, objective)
            else:
                answers = neighbours_vote(dataset, parts)
            assert dataset.y is not None
            y = dataset.y[parts.test]
            return {
                "value": _score(objective.answer_metrics(answers, y[:, None] if dataset.task == "regression" else y))
            }
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
            "value": _score(result["test"]),
            "valid": _score(result["valid"]),
            "train": _score(result["train"]),
            "best_epoch": result["best_epoch"],
            "epochs": result["epochs"],
            "num_parameters": result["num_parameters"],
            "train_seconds": result["seconds"],
        }

    def format(self, value: float) -> str:
        """Format a number with one decimal."""
        return f"{value:.1f}"


def _score(metrics: Metrics) -> float:
    return 100 * metrics["accuracy" if "accuracy" in metrics else "r2"]


@lru_cache(maxsize=2)
def _dataset(name: str) -> NodeDataset:
    return with_features(load_suite_dataset(name))


@lru_cache(maxsize=256)
def _chosen(name: str, model: str) -> Defaults:
    return choose_defaults(_dataset(name), model)


@lru_cache(maxsize=2)
def _inputs(name: str, config: TrainConfig) -> Inputs:
    return make_inputs(_dataset(name), config)
