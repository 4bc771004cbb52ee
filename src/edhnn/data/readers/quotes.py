"""Quotes of text tables: Arrow reads on over one that is never closed, and over text that follows a closing one."""

from __future__ import annotations

import io
import re
from pathlib import Path

from edhnn.data.files import Limits, open_limited, size_in_words
from edhnn.errors import DataError, LimitError

_REST = r'[^"]*+(?:""[^"]*+)*+"'


def need_closed_quotes(path: Path, delimiter: str, limits: Limits) -> None:
    """A data error at the line where a quote opens that does not close at the end of its field.

    Args:
        path: A text table.
        delimiter: What stands between its fields.
        limits: Size limits.
    """
    mark = re.escape(delimiter)
    field = rf'(?:"{_REST}|(?!")[^{mark}\r\n]*+)'
    whole_line = re.compile(rf"{field}(?:{mark}{field})*+[\r\n]*")
    opening, rest = re.compile(rf'(?:^|{mark})"'), re.compile(_REST)
    opened = 0  # the line of the quote that is open
    with open_limited(path, limits) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", "replace", newline="")
        for number, line in enumerate(iter(lambda: text.readline(limits.max_record_bytes + 1), ""), start=1):
            if len(line) > limits.max_record_bytes:
                raise LimitError(
                    f"A line must be at most {size_in_words(limits.max_record_bytes)}.",
                    path=path,
                    where=f"line {number}",
                )
            if not opened and ('"' not in line or whole_line.fullmatch(line)):
                continue
            place = 0
            while True:
                if not opened:
                    found = opening.search(line, place)
                    if found is None:
                        break
                    opened, place = number, found.end()
                closed = rest.match(line, place)
                if closed is None:
                    break
                place = closed.end()
                after = line[place : place + 1]
                if after not in ("", delimiter, "\r", "\n"):
                    raise _not_closed(path, opened, f"{after!r} follows its closing quote")
                opened = 0
    if opened:
        raise _not_closed(path, opened, "It is not closed before the file ends")


def _not_closed(path: Path, line: int, found: str) -> DataError:
    return DataError(
        f"A field that begins with a quote must end with one. {found}.",
        path=path,
        where=f"line {line}",
        remedy="Close the quote; one that belongs to the text is written twice, in a field within quotes.",
    )
