"""Sizes of a model for a dataset: those of the paper, those of the released commands, or sizes chosen by rule.

``presets.toml`` records ``paper`` and ``official`` with the origin of every number. ``presets_baselines.toml`` records
``paper`` for the baselines: a model has default sizes, which a dataset of the catalogue may override. ``auto`` is for
all other datasets: the rule of `edhnn.training.defaults`. `tabulate`
makes a table of recorded sizes; for ED-HNN and ``paper`` this is the paper's Table 6.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any, Literal, final, get_args

from edhnn.data.dataset import NodeDataset
from edhnn.datasets.registry import catalog, is_catalogued
from edhnn.errors import UsageError, unknown_name
from edhnn.models.registry import MODELS
from edhnn.training.defaults import choose_defaults

PresetName = Literal["paper", "official", "auto"]
_VARIANTS = ("invariant", "mean-deg", "jump-link")  # in `paper` they have ED-HNN's sizes, for the options they have
_TRAINING = ("learning_rate", "weight_decay")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A model with sizes.

    Attributes:
        model: Name in the registry.
        options: Its options.
        train: Fields of the training configuration.
        origin: Source of the numbers.
    """

    model: str
    options: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    origin: str = "the model's defaults"


@cache
def recorded_presets() -> dict[str, dict[str, dict[str, Any]]]:
    """Read ``presets.toml``: preset, model, dataset."""
    return _read_table("presets.toml")


@cache
def baseline_presets() -> dict[str, dict[str, dict[str, Any]]]:
    """Read ``presets_baselines.toml``: model, dataset or ``default``."""
    return _read_table("presets_baselines.toml")


def _read_table(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("edhnn.runs").joinpath(name).read_text("utf-8"))


def find_preset(
    dataset: NodeDataset, model: str = "ed-hnn", name: PresetName | None = None, *, heads: int | None = None
) -> Preset:
    """Find the sizes of a model for a dataset.

    Args:
        dataset: The dataset; ``paper`` and ``official`` use its catalogue name.
        model: The model.
        name: The preset; by default ``paper`` if it has the dataset of the catalogue, else ``auto``.
        heads: Number of heads, if it is not the model's default; ``auto`` divides the width among them.

    Raises:
        UsageError: if the preset has no entry for this model and dataset; the message lists the entries.
    """
    _check_model(model)
    if name is not None and name not in get_args(PresetName):
        raise unknown_name("preset", name, get_args(PresetName))
    if name is None:
        name = "paper" if is_catalogued(dataset) and dataset.name in _datasets("paper", model) else "auto"
    if name == "auto":
        return auto_preset(dataset, model, heads)
    return recorded_preset(dataset.name, model, name)


def recorded_preset(dataset: str, model: str, name: Literal["paper", "official"]) -> Preset:
    """Find the recorded sizes of a model for a dataset of the catalogue.

    Args:
        dataset: Name of the dataset.
        model: The model.
        name: The preset.

    Raises:
        UsageError: if there is no entry for this model and dataset; the message lists the entries.
    """
    _check_model(model)
    known = _datasets(name, model)
    if dataset not in known:
        raise UsageError(
            f"The preset '{name}' has no sizes of '{model}' for '{dataset}'. It has them for: "
            f"{', '.join(known) or 'none'}. Set the sizes, or use `preset='auto'`."
        )
    values = _recorded(name, model, dataset)
    train, origin, chosen = values.pop("train", {}), values.pop("origin"), values.pop("model", model)
    train |= {key: values.pop(key) for key in _TRAINING if key in values}
    return Preset(model=chosen, options=values, train=_transforms(chosen) | train, origin=f"preset {name}: {origin}")


def list_presets(model: str) -> dict[str, dict[str, Preset]]:
    """List all recorded sizes of a model, by preset and dataset: for ED-HNN Table 6 and the released commands."""
    _check_model(model)
    names: tuple[Literal["paper", "official"], ...] = ("paper", "official")
    presets = {
        name: {dataset: recorded_preset(dataset, model, name) for dataset in _datasets(name, model)} for name in names
    }
    return {name: by_dataset for name, by_dataset in presets.items() if by_dataset}


def _check_model(model: str) -> None:
    if model not in MODELS:
        raise unknown_name("model", model, MODELS)


def _datasets(name: str, model: str) -> list[str]:
    if name == "paper" and model in baseline_presets():
        return list(catalog())
    recorded = "ed-hnn" if name == "paper" and model in _VARIANTS else model
    return [key for key in recorded_presets().get(name, {}).get(recorded, {}) if key != "common"]


def _recorded(name: str, model: str, dataset: str) -> dict[str, Any]:
    if name == "paper" and model in baseline_presets():
        sections = baseline_presets()[model]
        return {**sections["default"], **sections.get(dataset, {})}
    if name == "paper" and model in _VARIANTS:
        sizes = _recorded(name, "ed-hnn", dataset)
        known = {"train", *_option_names(model)}
        return {key: value for key, value in sizes.items() if key in known} | {
            "origin": f"as ED-HNN's: {sizes['origin']}"
        }
    sections = recorded_presets()[name][model]
    return {**sections["common"], **sections[dataset], "train": dict(sections[dataset].get("train", {}))}


def _option_names(model: str) -> set[str]:
    return {option.name for option in fields(MODELS[model].config)}


def auto_preset(dataset: NodeDataset, model: str, heads: int | None = None) -> Preset:
    """Choose settings by the rule of `edhnn.training.defaults`."""
    chosen = choose_defaults(dataset, model, heads)
    return Preset(
        model=model, options=chosen.options, train=chosen.train, origin="preset auto: by the rule for other data"
    )


def _transforms(model: str) -> dict[str, Any]:
    """Return no transforms for a model that is trained without singletons."""
    return {} if MODELS[model].singletons else {"transforms": ()}


@final
@dataclass(frozen=True, slots=True)
class PresetTable:
    """Sizes of a model on several datasets.

    Attributes:
        headings: ``dataset`` and the options that differ.
        rows: Their values.
        common: The options that are the same for all datasets.
        origins: Sources of the numbers, without duplicates.
    """

    headings: list[str]
    rows: list[list[str]]
    common: dict[str, Any]
    origins: list[str]


def tabulate(presets: Mapping[str, Preset]) -> PresetTable:
    """Make a table of presets: a row per dataset, a column per option that differs, and the common options."""
    sizes = {name: {"model": preset.model, **preset.options, **preset.train} for name, preset in presets.items()}
    options = list(dict.fromkeys(option for values in sizes.values() for option in values))
    common: dict[str, Any] = {}
    for option in options:
        given = [values[option] for values in sizes.values() if option in values]
        if len(given) == len(sizes) and all(value == given[0] for value in given):
            common[option] = given[0]
    differing = [option for option in options if option not in common]
    return PresetTable(
        headings=["dataset", *differing],
        rows=[[name, *(str(values.get(option, "default")) for option in differing)] for name, values in sizes.items()],
        common=common,
        origins=list(dict.fromkeys(preset.origin for preset in presets.values())),
    )
