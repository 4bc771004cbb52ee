"""`edhnn models` and `edhnn presets`: list the models with their options, and the recorded settings."""

from __future__ import annotations

import json
import os
from dataclasses import MISSING, fields
from importlib.metadata import entry_points
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated

import typer

from edhnn.cli.output import Json, print_json, print_line, print_table

if TYPE_CHECKING:
    from edhnn.typing import JsonObject


def models_command(*, as_json: Json = False) -> None:
    """List the models and their options. `edhnn train --set KEY=VALUE` sets an option."""
    has_plugins = bool(os.environ.get("EDHNN_PLUGINS") or entry_points(group="edhnn.models"))
    packaged = files("edhnn.models") / "models.json"  # the same list, so that PyTorch need not be loaded
    rows: list[JsonObject] = list_models() if has_plugins else json.loads(packaged.read_text(encoding="utf-8"))
    if as_json:
        print_json(rows)
        return
    lines = [
        (row["name"], row["summary"], ", ".join(f"{key}={value}" for key, value in row["options"].items()))
        for row in rows
    ]
    print_table(("name", "description", "options and their defaults"), lines)


def list_models() -> list[JsonObject]:
    """Return name, summary and options of every registered model; imports their modules."""
    from edhnn.models.registry import MODELS

    return [
        {
            "name": name,
            "summary": entry.summary,
            "options": {
                option.name: None if option.default is MISSING else option.default for option in fields(entry.config)
            },
        }
        for name, entry in MODELS.items()
    ]


def presets_command(
    *,
    model: Annotated[str, typer.Option("--model", help="Model name; `edhnn models` lists them.")] = "ed-hnn",
    as_json: Json = False,
) -> None:
    """List the settings of the presets `paper` and `official` for each dataset, with their sources."""
    from edhnn.runs.presets import list_presets, tabulate

    listed = list_presets(model)
    if as_json:
        print_json(
            [
                {
                    "preset": name,
                    "dataset": dataset,
                    "model": preset.model,
                    "options": preset.options,
                    "train": preset.train,
                    "origin": preset.origin,
                }
                for name, presets in listed.items()
                for dataset, preset in presets.items()
            ]
        )
        return
    for name, presets in listed.items():
        sizes = tabulate(presets)
        lines = [
            (
                dataset,
                ", ".join(f"{option}={value}" for option, value in zip(sizes.headings[1:], values, strict=True)),
            )
            for dataset, *values in sizes.rows
        ]
        print_table(("dataset", "sizes"), lines, title=f"--preset {name}")
        print_line(f"For all: {', '.join(f'{key}={value}' for key, value in sizes.common.items())}")
        for origin in (*sizes.origins, ""):
            print_line(origin)
