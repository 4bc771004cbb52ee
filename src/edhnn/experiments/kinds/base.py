"""The base class of all kinds of jobs, and the settings of a model in a cell.

A kind says how its jobs are resolved and done, and how its numbers are compared and shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, final

from edhnn.configuration import configure
from edhnn.errors import UsageError, unknown_name
from edhnn.experiments.spec import Column, Row
from edhnn.models.registry import MODELS, make_config
from edhnn.runs.presets import Preset, list_presets, recorded_preset
from edhnn.training.config import TrainConfig
from edhnn.typing import JsonObject

LineKind = Literal["floor", "network", "ceiling"]
"""A floor knows nothing of the hypergraph; a ceiling knows how the data were made."""


@final
@dataclass(frozen=True, slots=True)
class MetricFloor:
    """A floor that every record of a column holds beside its score.

    Attributes:
        label: The label of its row.
        metric: The name of the number in a record.
        source: What the number is.
    """

    label: str
    metric: str
    source: str


class Kind(ABC):
    """A kind of job.

    Attributes:
        name: The value of ``kind`` in an experiment's file.
        note: The sentence under a table that says what its numbers are.
        axis: The vertical axis of a figure; empty if the kind is not drawn as lines.
        mean_heading: The heading of a mean in the table of all cells.
        trains: Whether jobs train for epochs, which may be changed for a run.
        alone: Whether jobs need the whole machine, because they measure time.
        max_splits: The largest number of splits that makes sense.
        higher_is_better: Whether a larger number is a better one.
        exact: Whether numbers are facts: they have no spread and nothing competes.
        test_to_train: Size of the test part over that of the training part; ``None`` if no tests are made.
        groups: The heading of each group of rows in a table.
        floors: Models whose rows are floors.
        ceilings: Models whose rows are ceilings.
        lent: Rows that every experiment of the kind is shown with: they depend on nothing but the data.
        metric_floor: A floor that the records hold, if there is one.
    """

    name: ClassVar[str]
    note: ClassVar[str] = ""
    axis: ClassVar[str] = ""
    mean_heading: ClassVar[str] = "mean"
    trains: ClassVar[bool] = False
    alone: ClassVar[bool] = False
    max_splits: ClassVar[int] = 1
    higher_is_better: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    test_to_train: ClassVar[float | None] = None
    groups: ClassVar[Mapping[LineKind, str]] = {"floor": "Floors", "network": "Networks", "ceiling": "Ceiling"}
    floors: ClassVar[tuple[str, ...]] = ()
    ceilings: ClassVar[tuple[str, ...]] = ()
    lent: ClassVar[tuple[Row, ...]] = ()
    metric_floor: ClassVar[MetricFloor | None] = None

    @abstractmethod
    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """Return the settings of a cell and their source; ``None`` where there is no such cell.

        Settings have ``dataset`` and ``model``; everything that decides the numbers is in them.
        """

    @abstractmethod
    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Do the job and return its numbers: ``value`` in the experiment's unit, and more.

        Args:
            settings: The settings.
            split: The split.
            work: A folder for what is needed to resume after a kill; removed when the job is done.
            should_stop: Asked now and then; if it returns true, the job raises `StoppedError`.
        """

    def shown(self, value: float) -> str:
        """Write a number with as many digits as the kind deserves."""
        return f"{value:.3g}"


def refuse_settings(who: str, given: Mapping[str, Any]) -> None:
    """Refuse settings of something that has none: they would be ignored."""
    if given:
        raise UsageError(f"{who} has no settings. Got: {', '.join(sorted(given))}.")


_TRAINING = tuple(option.name for option in fields(TrainConfig))
_OWN_NAMES = {"depth": ("num_iterations", "layers"), "width": ("hidden", "classifier_hidden")}


def model_settings(
    row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
) -> tuple[JsonObject, JsonObject, str]:
    """Merge the preset's, the row's, the column's and the change's settings, later ones winning.

    Returns:
        All options of the model with its name, all of its training configuration, and where they come from.
    """
    for key in train:
        if key not in _TRAINING:
            raise unknown_name("training setting", key, _TRAINING)
    preset = _preset(row, column)
    given = {**row.options, **own_names(preset.model, column.options), **options}
    config = make_config(preset.model, **{**preset.options, **given})
    training = configure(TrainConfig, {**preset.train, **train}).for_model(preset.model)
    changed = ", ".join(sorted({*given, *train}))
    source = preset.origin + (f"; this experiment: {changed}" if changed else "")
    model: JsonObject = {"name": preset.model, **asdict(config)}
    return model, {**asdict(training), "transforms": list(training.transforms or ())}, source


def _preset(row: Row, column: Column) -> Preset:
    """Find the recorded sizes; a model of a user's own has none and gets its defaults."""
    try:
        return recorded_preset(column.dataset, row.model, row.preset)
    except UsageError:
        if row.model not in MODELS or list_presets(row.model):
            raise
        return Preset(model=row.model)


def own_names(model: str, options: dict[str, Any]) -> dict[str, Any]:
    """Replace ``depth`` and ``width`` by the model's own names for them.

    Raises:
        UsageError: if the model has neither.
    """
    known = [option.name for option in fields(MODELS[model].config)]
    renamed = {}
    for name, value in options.items():
        own = next((choice for choice in _OWN_NAMES.get(name, (name,)) if choice in known), None)
        if own is None:
            raise UsageError(f"The model '{model}' must have an option for '{name}'. It has: {', '.join(known)}.")
        renamed[own] = value
    return renamed
