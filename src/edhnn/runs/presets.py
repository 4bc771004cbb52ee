"""Sizes of a model for a dataset: as the paper prints them, as the released commands have them, or by rule.

``paper`` and ``official`` are kept in ``presets.toml`` with the origin of every number. The baselines belong to
``paper``, in ``presets_baselines.toml``: there a model has the same sizes on every dataset of the catalogue that has no
section of its own. ``auto`` is for everything else: the width follows from the memory that a step keeps, which is the
same on every machine. `tabulate` makes a table of recorded sizes; for ED-HNN and ``paper`` the paper's Table 6.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any, Literal, final, get_args

import torch

from edhnn.data.dataset import NodeDataset
from edhnn.datasets.registry import catalog, is_catalogued
from edhnn.doctor.cost import count
from edhnn.errors import UsageError, unknown_name
from edhnn.models.registry import MODELS

PresetName = Literal["paper", "official", "auto"]
_VARIANTS = ("invariant", "mean-deg", "jump-link")  # `paper` gives them ED-HNN's sizes, as far as they have such
_TRAINING = ("learning_rate", "weight_decay")
_WIDTHS = (256, 128, 64, 32)
_STEP_BYTES = 112 * 2**20  # well below a second a step on two cores; gives the recorded widths of the catalogue
_NODES_PER_CHANNEL = 8
_ODD_SCALE = 30.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A model with sizes.

    Attributes:
        model: Name in the registry.
        options: Its options.
        train: Fields of the training configuration.
        origin: Where the numbers come from.
    """

    model: str
    options: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    origin: str = "the model's defaults"


@cache
def recorded_presets() -> dict[str, dict[str, dict[str, Any]]]:
    """Read ``presets.toml``: preset, model, dataset."""
    return _table("presets.toml")


@cache
def baseline_presets() -> dict[str, dict[str, dict[str, Any]]]:
    """Read ``presets_baselines.toml``: model, dataset or ``default``."""
    return _table("presets_baselines.toml")


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("edhnn.runs").joinpath(name).read_text("utf-8"))


def find_preset(
    dataset: NodeDataset, model: str = "ed-hnn", name: PresetName | None = None, *, heads: int | None = None
) -> Preset:
    """Find the sizes of a model for a dataset.

    Args:
        dataset: The dataset; ``paper`` and ``official`` go by its catalogue name.
        model: The model.
        name: The preset; if not given ``paper`` where it has the dataset of the catalogue, else ``auto``.
        heads: Heads that the model will have, if not its own number of them; ``auto`` shares its width out to them.

    Returns:
        The preset.

    Raises:
        UsageError: if a preset is asked for that has no entry for this model and dataset; the message lists those that
            do.
    """
    if model not in MODELS:
        raise unknown_name("model", model, MODELS)
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
        name: Which record.

    Returns:
        The preset.

    Raises:
        UsageError: if there is no entry for this model and dataset; the message lists those that there are.
    """
    if model not in MODELS:
        raise unknown_name("model", model, MODELS)
    known = _datasets(name, model)
    if dataset not in known:
        listed = ", ".join(known) if known else "none"
        raise UsageError(
            f"The preset '{name}' must have sizes of '{model}' for '{dataset}'. It has them for: {listed}. "
            "Give sizes of your own, or use --preset auto with `edhnn train`."
        )
    values = _recorded(name, model, dataset)
    train, origin, chosen = values.pop("train", {}), values.pop("origin"), values.pop("model", model)
    train |= {key: values.pop(key) for key in _TRAINING if key in values}
    return Preset(model=chosen, options=values, train=_transforms(chosen) | train, origin=f"preset {name}: {origin}")


def list_presets(model: str) -> dict[str, dict[str, Preset]]:
    """List all recorded sizes of a model, by preset and dataset: for ED-HNN Table 6 and the released commands."""
    if model not in MODELS:
        raise unknown_name("model", model, MODELS)
    names: tuple[Literal["paper", "official"], ...] = ("paper", "official")
    found = {
        name: {dataset: recorded_preset(dataset, model, name) for dataset in _datasets(name, model)} for name in names
    }
    return {name: presets for name, presets in found.items() if presets}


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
    """Choose sizes by rule.

    Width: the largest of 256, 128, 64 and 32 with which a step of two iterations keeps at most 112 MiB
    (`edhnn.doctor.cost`), and which gives at least eight nodes per channel, shared out to the heads of a model that has
    them side by side. Features: scaled where a column's spread is far from 1.
    """
    options: dict[str, Any] = {}
    for name in _option_names(model) & {"hidden", "classifier_hidden"}:
        options[name] = _width(dataset)
    own = getattr(MODELS[model].config(), "heads", 1)
    if own > 1:  # then the width is that of a head
        options["hidden"] = max(options["hidden"] // (heads or own), 1)
    train: dict[str, Any] = {"feature_scaling": "standard"} if _oddly_scaled(dataset) else {}
    return Preset(
        model=model, options=options, train=_transforms(model) | train, origin="preset auto: by the size of the data"
    )


def _transforms(model: str) -> dict[str, Any]:
    """Leave singletons out for a model that is trained without them."""
    return {} if MODELS[model].singletons else {"transforms": ()}


def _width(dataset: NodeDataset) -> int:
    counts = count(dataset)
    for width in _WIDTHS[:-1]:
        if counts.nodes >= _NODES_PER_CHANNEL * width and counts.step_bytes(width, 2) <= _STEP_BYTES:
            return width
    return _WIDTHS[-1]


def _oddly_scaled(dataset: NodeDataset) -> bool:
    x = dataset.x
    if x is None or x.layout != torch.strided or len(x) < 2:
        return False
    deviation = x.double().std(dim=0)
    spread = deviation[deviation > 0]
    return bool(((spread > _ODD_SCALE) | (spread < 1 / _ODD_SCALE)).any()) or bool(
        (x.double().mean(dim=0).abs() > _ODD_SCALE).any()
    )


_NONE = object()


@final
@dataclass(frozen=True, slots=True)
class PresetTable:
    """Sizes of a model on several datasets.

    Attributes:
        headings: ``dataset`` and the options that differ.
        rows: Their values.
        common: The options that are the same for all datasets.
        origins: Where the numbers come from, each once.
    """

    headings: list[str]
    rows: list[list[str]]
    common: dict[str, Any]
    origins: list[str]


def tabulate(presets: Mapping[str, Preset]) -> PresetTable:
    """Make a table of presets: a line per dataset, a column per option that differs, and what all share."""
    values = {name: {"model": preset.model, **preset.options, **preset.train} for name, preset in presets.items()}
    options = list(dict.fromkeys(option for found in values.values() for option in found))
    common: dict[str, Any] = {}
    for option in options:
        seen = [found.get(option, _NONE) for found in values.values()]
        if all(value is not _NONE and value == seen[0] for value in seen):
            common[option] = seen[0]
    differing = [option for option in options if option not in common]
    return PresetTable(
        headings=["dataset", *differing],
        rows=[[name, *(_shown(found, option) for option in differing)] for name, found in values.items()],
        common=common,
        origins=list(dict.fromkeys(preset.origin for preset in presets.values())),
    )


def _shown(values: Mapping[str, Any], option: str) -> str:
    return str(values[option]) if option in values else "default"
