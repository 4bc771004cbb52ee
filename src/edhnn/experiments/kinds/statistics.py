"""A dataset's statistics: the rows are facts, the columns datasets. Paper: Tables 1, 5 and 7."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, final

from edhnn.data.catalog import find_entry, load_dataset
from edhnn.data.doctor.facts import facts
from edhnn.errors import unknown_name
from edhnn.experiments.kinds.contract import refuse_settings
from edhnn.experiments.spec import Column, Row
from edhnn.typing import JsonObject


@final
class Statistics:
    """A number that `edhnn data info` prints; the row's ``model`` is its name."""

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """The dataset and the fact."""
        refuse_settings(f"The statistic '{row.label}'", {**row.options, **column.options, **options, **train})
        entry = find_entry(column.dataset)
        settings: JsonObject = {"dataset": column.dataset, "model": row.model, "num_incidences": entry.num_incidences}
        return settings, "measured on the data"

    def most_splits(self, settings: JsonObject) -> int:
        """Data has no splits."""
        del settings
        return 1

    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Measure."""
        del split, work, should_stop
        found = facts(load_dataset(settings["dataset"]))
        if settings["model"] not in found:
            raise unknown_name("fact", settings["model"], found)
        return {"value": found[settings["model"]]}
