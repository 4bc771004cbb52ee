"""`edhnn models` and `edhnn presets`: list the models with their options, and the recorded settings."""

from __future__ import annotations

import json
import os
from dataclasses import MISSING, fields
from importlib.metadata import entry_points
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from edhnn.cli.output import Json, console, print_json

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
    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "description", "options and their defaults"):
        table.add_column(heading)
    for row in rows:
        options = ", ".join(f"{key}={value}" for key, value in row["options"].items())
        table.add_row(row["name"], row["summary"], options)
    console().print(table)


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
        table = Table(box=SIMPLE_HEAD, title=f"--preset {name}", title_justify="left")
        table.add_column("dataset")
        table.add_column("sizes")
        for dataset, *values in sizes.rows:
            pairs = zip(sizes.headings[1:], values, strict=True)
            table.add_row(dataset, ", ".join(f"{option}={value}" for option, value in pairs))
        console().print(table)
        console().print(f"For all: {', '.join(f'{key}={value}' for key, value in sizes.common.items())}")
        console().print(*sizes.origins, "", sep="\n")
