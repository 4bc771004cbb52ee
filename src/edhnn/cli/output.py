"""Print results on standard output and messages on standard error.

Text can quote any file, so that everything passes `edhnn.errors.shown` on its way to the terminal: no name can move the
cursor, change colours, reverse the direction of writing or begin a line. In JSON, the same characters are escaped.
"""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edhnn.cli.flags import translate_arguments
from edhnn.errors import shown

if TYPE_CHECKING:
    from edhnn.typing import JsonObject  # which loads numpy, and `edhnn --help` must be quick

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def print_json(content: JsonObject | list[JsonObject]) -> None:
    """Print JSON on standard output. Characters that `shown` escapes are written as JSON escapes."""
    only_ascii = "utf" not in sys.stdout.encoding.lower()
    for line in json.dumps(content, indent=2, ensure_ascii=only_ascii, allow_nan=False).split("\n"):
        safe = line if line.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
        sys.stdout.write(f"{safe}\n")


def console() -> Console:
    """Return a console for text on standard output."""
    return Console(highlight=False, emoji=False, markup=False)


def print_line(text: str) -> None:
    """Print a line on standard output."""
    console().print(shown(text), soft_wrap=True)


def print_message(message: str, *, style: str | None = None) -> None:
    """Print a line on standard error, with Python arguments translated into options."""
    errors = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
    errors.print(shown(translate_arguments(message)), style=style)


def print_notes(notes: Iterable[str]) -> None:
    """Print the notes of a reader: what it guessed or repaired."""
    for note in notes:
        print_message(f"note: {note}")


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print warnings of the block as notes on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: print_notes([str(message)])
        yield


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


def facts_table(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    """Return a table of two columns: a name and a value."""
    table = Table(title=Text(shown(title), style="bold"), show_header=False, title_justify="left")
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*map(shown, row))
    return table


def print_table(
    headings: Sequence[str], rows: Iterable[Iterable[object]], *, right: Sequence[str] = (), title: str | None = None
) -> None:
    """Print a table on standard output; the columns named in ``right`` are aligned to the right."""
    table = Table(box=SIMPLE_HEAD, title=title and Text(shown(title), style="bold"), title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(*(shown(str(cell)) for cell in row))
    console().print(table)


def number(value: object) -> str:
    """Format a fact: thousands separated, three decimals, a dash for ``None``."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
