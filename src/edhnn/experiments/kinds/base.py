"""The base class of all kinds of cells, and the settings of a model in a cell.

A kind defines how its cells are resolved and measured, and how its numbers are compared and formatted.
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
"""A floor does not use the hypergraph; a ceiling uses the generator of the data."""


@final
@dataclass(frozen=True, slots=True)
class MetricFloor:
    """A floor that is a metric of every record.

    Attributes:
        label: The label of its row.
        metric: The name of the metric.
        source: A description of the metric.
    """

    label: str
    metric: str
    source: str


class Kind(ABC):
    """A kind of cell.

    Attributes:
        name: The value of ``kind`` in an experiment's file.
        note: The sentence under a table that explains its numbers.
        axis: The label of the vertical axis of a figure; empty if the kind is not drawn as lines.
        mean_heading: The heading of the means in the table of all cells.
        trains: Whether jobs train for a number of epochs, which a run may replace.
        exclusive: Whether jobs need the whole machine, because they measure time.
        max_splits: The largest useful number of splits.
        higher_is_better: Whether larger numbers are better.
        exact: Whether numbers are facts, which have no spread and are not compared.
        test_to_train: Size of the test part over that of the training part; ``None`` if rows are not tested.
        groups: The heading of each group of rows in a table.
        floors: Models whose rows are floors.
        ceilings: Models whose rows are ceilings.
        shared_floors: Rows added to every experiment of the kind, because they depend only on the data.
        metric_floor: A floor that is a metric of the records, if there is one.
    """

    name: ClassVar[str]
    note: ClassVar[str] = ""
    axis: ClassVar[str] = ""
    mean_heading: ClassVar[str] = "mean"
    trains: ClassVar[bool] = False
    exclusive: ClassVar[bool] = False
    max_splits: ClassVar[int] = 1
    higher_is_better: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    test_to_train: ClassVar[float | None] = None
    groups: ClassVar[Mapping[LineKind, str]] = {"floor": "Floors", "network": "Networks", "ceiling": "Ceiling"}
    floors: ClassVar[tuple[str, ...]] = ()
    ceilings: ClassVar[tuple[str, ...]] = ()
    shared_floors: ClassVar[tuple[Row, ...]] = ()
    metric_floor: ClassVar[MetricFloor | None] = None

    @abstractmethod
    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """Return the settings of a cell and their source; ``None`` if there is no such cell.

        The settings include ``dataset``, ``model`` and everything else that decides the numbers.
        """

    @abstractmethod
    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Do the job and return its metrics: ``value`` in the experiment's unit, and others.

        Args:
            settings: The settings.
            split: The split.
            work: A folder for the files needed to resume; removed when the job is done.
            should_stop: Called repeatedly; if it returns true, the job raises `StoppedError`.
        """

    def format(self, value: float) -> str:
        """Format a number."""
        return f"{value:.3g}"


def check_no_settings(what: str, settings: Mapping[str, Any]) -> None:
    """Raise an error for settings that would be ignored."""
    if settings:
        raise UsageError(f"{what} has no settings. Got: {', '.join(sorted(settings))}.")


_TRAINING = tuple(option.name for option in fields(TrainConfig))
_OPTION_NAMES = {"depth": ("num_iterations", "layers"), "width": ("hidden", "classifier_hidden")}


def model_settings(
    row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
) -> tuple[JsonObject, JsonObject, str]:
    """Merge the settings of preset, row, column and change; later ones override earlier ones.

    Returns:
        The name and all options of the model, its whole training configuration, and the origin of the settings.
    """
    for key in train:
        if key not in _TRAINING:
            raise unknown_name("training setting", key, _TRAINING)
    preset = _preset(row, column)
    overrides = {**row.options, **_rename_sizes(preset.model, column.options), **options}
    config = make_config(preset.model, **{**preset.options, **overrides})
    training = configure(TrainConfig, {**preset.train, **train}).for_model(preset.model)
    changed = ", ".join(sorted({*overrides, *train}))
    source = preset.origin + (f"; this experiment: {changed}" if changed else "")
    model: JsonObject = {"name": preset.model, **asdict(config)}
    return model, {**training.to_json(), "transforms": list(training.transforms or ())}, source


def _preset(row: Row, column: Column) -> Preset:
    """Find the preset of a row; a user's model without presets gets its defaults."""
    try:
        return recorded_preset(column.dataset, row.model, row.preset)
    except UsageError:
        if row.model not in MODELS or list_presets(row.model):
            raise
        return Preset(model=row.model, train=dict(MODELS[row.model].training))


def _rename_sizes(model: str, options: dict[str, Any]) -> dict[str, Any]:
    """Replace ``depth`` and ``width`` by the names of the model's options.

    Raises:
        UsageError: if the model has no such option.
    """
    known = [option.name for option in fields(MODELS[model].config)]
    renamed = {}
    for name, value in options.items():
        option = next((choice for choice in _OPTION_NAMES.get(name, (name,)) if choice in known), None)
        if option is None:
            raise UsageError(f"The model '{model}' has no option '{name}'. Its options are {', '.join(known)}.")
        renamed[option] = value
    return renamed
