"""What goes to standard output and what to standard error."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from edhnn.typing import JsonObject  # which loads numpy, and `edhnn --help` must be quick


def print_json(content: JsonObject | list[JsonObject]) -> None:
    """JSON on standard output."""
    json.dump(content, sys.stdout, indent=2, ensure_ascii="utf" not in sys.stdout.encoding.lower(), allow_nan=False)
    sys.stdout.write("\n")


def console() -> Console:
    """Text for people, on standard output."""
    return Console(highlight=False, emoji=False)


def say(message: str, *, style: str | None = None) -> None:
    """A remark beside the results, on standard error."""
    Console(stderr=True, highlight=False, emoji=False, soft_wrap=True).print(message, style=style, markup=False)


def say_notes(notes: Iterable[str]) -> None:
    """What a reader guessed or mended."""
    for note in notes:
        say(f"note: {note}")


def spell_out_what_cannot_be_shown() -> None:
    """Let both streams write letters that their encoding does not have as backslash escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def facts_table(title: str, rows: list[tuple[str, str]]) -> Table:
    """Two columns: a name and a value."""
    table = Table(title=Text(title, style="bold"), show_header=False, title_justify="left")
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table


def number(value: object) -> str:
    """A fact for people: thousands separated, three decimals, a dash for nothing."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
