"""Sizes of a model for a dataset: those of the paper, those of the released commands, or sizes chosen by rule.

``presets.toml`` records ``paper`` and ``official`` with the origin of every number. ``presets_baselines.toml`` records
``paper`` for the baselines: a model has default sizes, which a dataset of the catalogue may override. ``auto`` is for
all other datasets: the width follows from the memory that a step keeps, which is the same on every machine. `tabulate`
makes a table of recorded sizes; for ED-HNN and ``paper`` this is the paper's Table 6.
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
_VARIANTS = ("invariant", "mean-deg", "jump-link")  # in `paper` they have ED-HNN's sizes, for the options they have
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
    """Choose sizes by rule.

    Width: the largest of 256, 128, 64 and 32 with which a step of two iterations keeps at most 112 MiB
    (`edhnn.doctor.cost`) and which leaves at least eight nodes per channel; divided among the heads if the model has
    several. Features: scaled if a column's mean or deviation is far from those of standardised features.
    """
    counts = count(dataset)
    fitting = (
        width
        for width in _WIDTHS[:-1]
        if counts.nodes >= _NODES_PER_CHANNEL * width and counts.step_bytes(width, 2) <= _STEP_BYTES
    )
    width = next(fitting, _WIDTHS[-1])
    options = dict.fromkeys(_option_names(model) & {"hidden", "classifier_hidden"}, width)
    default_heads = getattr(MODELS[model].config(), "heads", 1)
    if default_heads > 1:  # then `hidden` is the width of one head
        options["hidden"] = max(width // (heads or default_heads), 1)
    if model == "belief-diffusion":  # a state holds beliefs about classes, and words where features are words
        options = {"features": dataset.x is not None and dataset.x.layout == torch.sparse_csr}
    train: dict[str, Any] = {"feature_scaling": "standard"} if _needs_scaling(dataset) else {}
    train |= MODELS[model].training
    return Preset(
        model=model, options=options, train=_transforms(model) | train, origin="preset auto: by the size of the data"
    )


def _transforms(model: str) -> dict[str, Any]:
    """Return no transforms for a model that is trained without singletons."""
    return {} if MODELS[model].singletons else {"transforms": ()}


def _needs_scaling(dataset: NodeDataset) -> bool:
    if dataset.x is None or dataset.x.layout != torch.strided or len(dataset.x) < 2:
        return False
    x = dataset.x.double()
    deviation = x.std(dim=0)
    spread = deviation[deviation > 0]
    odd_spread = (spread > _ODD_SCALE) | (spread < 1 / _ODD_SCALE)
    return bool(odd_spread.any()) or bool((x.mean(dim=0).abs() > _ODD_SCALE).any())


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
