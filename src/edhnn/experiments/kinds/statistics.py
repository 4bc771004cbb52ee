"""Statistics of datasets: rows are facts, columns are datasets. Paper: Tables 1, 5 and 7."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, final

from edhnn.datasets.registry import find_entry, load_dataset
from edhnn.doctor.summary import facts
from edhnn.errors import unknown_name
from edhnn.experiments.kinds.base import Kind, check_no_settings
from edhnn.experiments.spec import Column, Row
from edhnn.typing import JsonObject


@final
class Statistics(Kind):
    """A number of `edhnn.doctor.summary.facts`; the row's ``model`` is its name."""

    name = "statistics"
    exact = True

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """Resolve the dataset and the fact."""
        check_no_settings(f"The statistic '{row.label}'", {**row.options, **column.options, **options, **train})
        entry = find_entry(column.dataset)
        settings: JsonObject = {"dataset": column.dataset, "model": row.model, "num_incidences": entry.num_incidences}
        return settings, "measured on the data"

    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Measure the fact."""
        del split, work, should_stop
        measured = facts(load_dataset(settings["dataset"]))
        if settings["model"] not in measured:
            raise unknown_name("fact", settings["model"], measured)
        return {"value": measured[settings["model"]]}

    def format(self, value: float) -> str:
        """Format an integer without decimals, any other number with three."""
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
