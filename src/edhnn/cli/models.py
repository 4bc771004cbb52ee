"""`edhnn models`: the registry, with every option and its default."""

from __future__ import annotations

from dataclasses import MISSING, fields

from rich.box import SIMPLE_HEAD
from rich.table import Table

from edhnn.cli.options import Json
from edhnn.cli.output import console, print_json
from edhnn.models.registry import MODELS
from edhnn.typing import JsonObject


def models_command(*, as_json: Json = False) -> None:
    """List the models and their options, which `edhnn train --set KEY=VALUE` sets."""
    rows: list[JsonObject] = [
        {"name": name, "summary": entry.summary, "options": _options(entry.config)} for name, entry in MODELS.items()
    ]
    if as_json:
        print_json(rows)
        return
    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "what", "options and their defaults"):
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
