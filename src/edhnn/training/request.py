"""What a user asks for, put together: preset, configuration file, settings by name; later ones win."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, final

from edhnn.data.dataset import NodeDataset
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.models.registry import MODELS
from edhnn.models.written_values import declared
from edhnn.training.config import TrainConfig
from edhnn.training.plan import Plan
from edhnn.training.presets import PresetName, find_preset

_TOP = ("model", "preset", "splits", "seed", "options", "train")
_TRAIN = tuple(option.name for option in fields(TrainConfig))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A wish for a run; ``None`` where nothing was said.

    Attributes:
        model: The model.
        preset: Where sizes come from.
        splits: Number of splits.
        seed: The seed.
        options: Options of the model.
        train: Fields of `TrainConfig`.
    """

    model: str | None = None
    preset: PresetName | None = None
    splits: int | None = None
    seed: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)

    def over(self, other: Request) -> Request:
        """This request where it says something, the other elsewhere."""
        single = {
            name: getattr(other, name) if getattr(self, name) is None else getattr(self, name)
            for name in ("model", "preset", "splits", "seed")
        }
        return Request(**single, options={**other.options, **self.options}, train={**other.train, **self.train})

    def plan(self, dataset: NodeDataset) -> Plan:
        """The plan for a dataset: the preset's sizes, then what was asked for.

        Raises:
            UsageError: if a name or a value cannot be meant.
        """
        heads = self.options.get("heads")
        sensible = heads if isinstance(heads, int) and heads > 0 else None  # others are refused below
        preset = find_preset(dataset, self.model or "ed-hnn", self.preset, heads=sensible)
        try:
            train = TrainConfig(**declared(TrainConfig, {**preset.train, **self.train}))
        except TypeError as error:
            raise UsageError(f"The training settings cannot be used: {error}.") from error
        changed = ", ".join(sorted({*self.options, *(set(self.train) - {"epochs"})}))
        return Plan(
            model=preset.model,
            options=declared(MODELS[preset.model].config, {**preset.options, **self.options}),
            train=train,
            num_splits=10 if self.splits is None else self.splits,
            seed=self.seed or 0,
            origin=preset.origin + (f"; given: {changed}" if changed else ""),
        )


def request_from_file(path: Path) -> Request:
    """A request from TOML: ``model``, ``preset``, ``splits``, ``seed``, and the tables ``[options]`` and ``[train]``.

    Raises:
        UsageError: if there is no such file, or a key is not known, where the message lists those that are, or a value
            cannot be meant.
        DataError: if it is not TOML.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"'{path}' cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"The configuration must be TOML. Reading it said: {error}.", path=path) from error
    for key in content:
        if key not in _TOP:
            raise unknown_name(f"key in '{path}'", key, _TOP)
    for key, kind in (
        ("model", str),
        ("preset", str),
        ("splits", int),
        ("seed", int),
        ("options", dict),
        ("train", dict),
    ):
        if key in content and (not isinstance(content[key], kind) or isinstance(content[key], bool)):
            raise UsageError(f"'{key}' in '{path}' must be of type {kind.__name__}. Got {content[key]!r}.")
    if content.get("seed", 0) < 0:
        raise UsageError(f"'seed' in '{path}' must be 0 or more. Got {content['seed']}.")
    for key in content.get("train", {}):
        if key not in _TRAIN:
            raise unknown_name(f"key in [train] of '{path}'", key, _TRAIN)
    return Request(**content)


def request_from_settings(settings: Sequence[str], model: str = "ed-hnn") -> Request:
    """A request from ``key=value`` words: keys are options of the model or fields of `TrainConfig`.

    Values are read as TOML (``0.3``, ``true``, ``["add_singletons"]``); what is not TOML is text.

    Raises:
        UsageError: if a word has no ``=`` or a key is not known; the message lists those that are.
    """
    known = _option_names(model)
    options: dict[str, Any] = {}
    train: dict[str, Any] = {}
    for word in settings:
        key, equals, text = word.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise UsageError(f"--set takes key=value. Got '{word}'.")
        if key in _TRAIN:
            train[key] = _value(text)
        elif key in known:
            options[key] = _value(text)
        else:
            raise unknown_name(f"setting of '{model}' or of its training", key, (*known, *_TRAIN))
    return Request(options=options, train=train)


def _option_names(model: str) -> list[str]:
    if model not in MODELS:
        raise unknown_name("model", model, MODELS)
    return [option.name for option in fields(MODELS[model].config)]  # type: ignore[arg-type]


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
