"""The settings of a model in a cell: the preset's, the row's, the column's, the change's, each over the one before."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from edhnn.errors import UsageError, unknown_name
from edhnn.experiments.spec import Column, Row
from edhnn.models.registry import MODELS, make_config
from edhnn.models.written_values import declared
from edhnn.training.config import TrainConfig
from edhnn.training.presets import recorded_preset
from edhnn.typing import JsonObject

_TRAINING = tuple(option.name for option in fields(TrainConfig))
_OWN_NAMES = {"depth": ("num_iterations", "layers"), "width": ("hidden", "classifier_hidden")}


def model_settings(
    row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
) -> tuple[JsonObject, JsonObject, str]:
    """All options of the model, all of its training configuration, and where they come from."""
    for key in train:
        if key not in _TRAINING:
            raise unknown_name("training setting", key, _TRAINING)
    preset = recorded_preset(column.dataset, row.model, row.preset)
    given = {**row.options, **own_names(preset.model, column.options), **options}
    config = make_config(preset.model, **{**preset.options, **given})
    training = TrainConfig(**declared(TrainConfig, {**preset.train, **train}))
    changed = ", ".join(sorted({*given, *train}))
    source = preset.origin + (f"; this experiment: {changed}" if changed else "")
    facts: JsonObject = {"name": preset.model, **asdict(config)}
    return facts, {**asdict(training), "transforms": list(training.transforms)}, source


def own_names(model: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options with ``depth`` and ``width`` under the model's own names.

    Raises:
        UsageError: if the model has neither.
    """
    known = [option.name for option in fields(MODELS[model].config)]  # type: ignore[arg-type]
    found = {}
    for name, value in options.items():
        own = next((choice for choice in _OWN_NAMES.get(name, (name,)) if choice in known), None)
        if own is None:
            raise UsageError(f"The model '{model}' must have an option for '{name}'. It has: {', '.join(known)}.")
        found[own] = value
    return found
