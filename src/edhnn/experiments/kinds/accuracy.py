"""Test accuracy of a model on a split, trained by the paper's protocol; or of a bound. Paper: Section 4.1."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, final

from edhnn.data.catalog import find_entry, load_dataset
from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.experiments.bounds import BOUNDS
from edhnn.experiments.kinds.contract import refuse_settings
from edhnn.experiments.kinds.model_settings import model_settings
from edhnn.experiments.spec import Column, Row
from edhnn.models.written_values import declared
from edhnn.training.config import TrainConfig
from edhnn.training.inputs import Inputs, make_inputs
from edhnn.training.json_file import read_json
from edhnn.training.plan import Plan, choose_splits
from edhnn.training.run_folder import SplitFolder
from edhnn.training.split_run import train_split
from edhnn.typing import JsonObject

_EVER_MORE = 10**6


@final
class Accuracy:
    """Accuracy in per cent."""

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """The settings; floors and ceilings have none, and some exist only where it is known how data were made."""
        entry = find_entry(column.dataset)
        data = {"splits_sha256": entry.splits_sha256, "features_sha256": entry.features_sha256}
        settings: JsonObject = {"dataset": column.dataset, "data": data, "seed": 0}
        if row.model in BOUNDS:
            bound = BOUNDS[row.model]
            refuse_settings(f"The row '{row.label}'", {**row.options, **row.train})
            own = {**settings, "model": row.model, "options": {}, "train": {}}
            return (own, bound.source) if bound.applies(column.dataset) else None
        model, training, source = model_settings(row, column, options, train)
        return {**settings, "model": model.pop("name"), "options": model, "train": training}, source

    def most_splits(self, settings: JsonObject) -> int:
        """As many as asked for."""
        del settings
        return _EVER_MORE

    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Train, select by validation, and evaluate the test nodes once."""
        dataset, parts = split_data(settings["dataset"], split)
        if settings["model"] in BOUNDS:
            return BOUNDS[settings["model"]].measure(dataset, parts)
        config = TrainConfig(**declared(TrainConfig, settings["train"]))
        plan = Plan(
            model=settings["model"], options=settings["options"], train=config, num_splits=1, seed=settings["seed"]
        )
        folder = SplitFolder(work)
        if not folder.finished:
            train_split(
                folder, split, plan, dataset, _inputs(settings["dataset"], config), parts, should_stop=should_stop
            )
        found = read_json(folder.result)
        return {
            "value": 100 * found["test"]["accuracy"],
            "valid": 100 * found["valid"]["accuracy"],
            "train": 100 * found["train"]["accuracy"],
            "best_epoch": found["best_epoch"],
            "num_parameters": found["num_parameters"],
            "train_seconds": found["seconds"],
        }


def split_data(name: str, split: int) -> tuple[NodeDataset, Split]:
    """A dataset of the catalogue and one of its splits."""
    dataset = _dataset(name)
    return dataset, choose_splits(dataset, split + 1)[split]


@lru_cache(maxsize=2)
def _dataset(name: str) -> NodeDataset:
    return load_dataset(name)


@lru_cache(maxsize=2)
def _inputs(name: str, config: TrainConfig) -> Inputs:
    return make_inputs(_dataset(name), config)
