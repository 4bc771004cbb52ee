"""Print results on standard output and messages on standard error."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edhnn.cli.flags import translate_arguments

if TYPE_CHECKING:
    from edhnn.typing import JsonObject  # which loads numpy, and `edhnn --help` must be quick

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def print_json(content: JsonObject | list[JsonObject]) -> None:
    """Print JSON on standard output."""
    json.dump(content, sys.stdout, indent=2, ensure_ascii="utf" not in sys.stdout.encoding.lower(), allow_nan=False)
    sys.stdout.write("\n")


def console() -> Console:
    """Return a console for text on standard output."""
    return Console(highlight=False, emoji=False)


def print_message(message: str, *, style: str | None = None) -> None:
    """Print a message on standard error, with Python arguments translated into options."""
    errors = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)
    errors.print(translate_arguments(message), style=style, markup=False)


def print_notes(notes: Iterable[str]) -> None:
    """Print the notes of a reader: what it guessed or repaired."""
    for note in notes:
        print_message(f"note: {note}")


def open_closed_streams() -> bool:
    """Open closed standard streams on the null device; return whether standard output was open.

    Otherwise the next file that is opened would get the number of a closed stream, and messages would be written to it.
    """
    had_output = sys.stdout is not None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    return had_output


def escape_unencodable_characters() -> None:
    """Write unencodable characters as backslash escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def facts_table(title: str, rows: list[tuple[str, str]]) -> Table:
    """Return a table of two columns: a name and a value."""
    table = Table(title=Text(title, style="bold"), show_header=False, title_justify="left")
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table


def number(value: object) -> str:
    """Format a fact: thousands separated, three decimals, a dash for ``None``."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
