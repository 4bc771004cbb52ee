"""`edhnn models` and `edhnn presets`: list the models with their options, and the recorded settings."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from edhnn.cli.options import Json
from edhnn.cli.output import console, print_json
from edhnn.models.registry import MODELS
from edhnn.runs.presets import list_presets, tabulate
from edhnn.typing import JsonObject


def models_command(*, as_json: Json = False) -> None:
    """List the models and their options. `edhnn train --set KEY=VALUE` sets an option."""
    rows: list[JsonObject] = [
        {"name": name, "summary": entry.summary, "options": _options(entry.config)} for name, entry in MODELS.items()
    ]
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


def _options(config: object) -> JsonObject:
    return {
        option.name: None if option.default is MISSING else option.default
        for option in fields(config)  # type: ignore[arg-type]
    }


def presets_command(
    *,
    model: Annotated[str, typer.Option("--model", help="Model name; `edhnn models` lists them.")] = "ed-hnn",
    as_json: Json = False,
) -> None:
    """List the settings of the presets `paper` and `official` for each dataset, with their sources."""
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
