"""Recorded sizes as a table: a line per dataset, a column per option that differs, and what is the same for all.

For ED-HNN and the preset ``paper`` this is the paper's Table 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from edhnn.training.presets import Preset

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
    """The table of presets by dataset."""
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
