"""What goes to standard output and what to standard error."""

from __future__ import annotations

import json
import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edhnn.typing import JsonObject


def print_json(content: JsonObject | list[JsonObject]) -> None:
    """JSON on standard output."""
    json.dump(content, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def console() -> Console:
    """Text for people, on standard output."""
    return Console(highlight=False)


def say(message: str, *, style: str | None = None) -> None:
    """A remark beside the results, on standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, style=style, markup=False)


def facts_table(title: str, rows: list[tuple[str, str]]) -> Table:
    """Two columns: a name and a value."""
    table = Table(title=escape(title), show_header=False, title_justify="left", title_style="bold")
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for name, value in rows:
        table.add_row(escape(name), escape(value))
    return table


def number(value: object) -> str:
    """A fact for people: thousands separated, three decimals, a dash for nothing."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
