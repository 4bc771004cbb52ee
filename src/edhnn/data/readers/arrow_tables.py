"""CSV, TSV and Parquet through Arrow, with its errors turned into ours: file, line, what was found."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

from edhnn.data.files import (
    LimitedReader,
    Limits,
    need_utf8,
    need_utf8_lines,
    open_limited,
    size_in_words,
)
from edhnn.data.readers.parquet import arrow_said, parquet_columns, read_parquet
from edhnn.data.readers.quotes import need_closed_quotes
from edhnn.data.table_names import TableKind, table_to_read
from edhnn.errors import DataError, LimitError

_BLOCK_BYTES = 4 * 2**20
_RAGGED = re.compile(r"Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


class Header(NamedTuple):
    """The columns of a table and, for text tables, how it is written.

    Attributes:
        columns: The names of the columns.
        delimiter: The character between fields.
        note: Says that the delimiter was guessed.
        quoted: Whether a quote stands in the first block, so that line ends may stand inside fields.
        alone: Whether the file ends with its first line, before a line end.
        closed: Whether its quotes are known to close.
    """

    columns: list[str]
    delimiter: str
    note: str | None = None
    quoted: bool = False
    alone: bool = False
    closed: bool = False


class _WatchedReader(LimitedReader):
    """Says whether a quote went by, and never cuts between CR and LF: Arrow would take the LF for a line end."""

    def __init__(self, path: Path, limits: Limits) -> None:
        super().__init__(path, limits)
        self.quoted, self._held = False, b""

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; a CR at its end waits for the next one."""
        held, self._held = self._held, b""
        buffer[: len(held)] = held
        count = len(held) + super().readinto(memoryview(buffer)[len(held) :])
        text = bytes(memoryview(buffer)[:count])
        self.quoted = self.quoted or b'"' in text
        if count > 1 and text.endswith(b"\r"):
            self._held = b"\r"
            count -= 1
        return count


def read_header(path: Path, kind: TableKind, limits: Limits) -> Header:
    """The column names of a table; for text tables its first line."""
    if kind == "parquet":
        columns = parquet_columns(path)
        _need_different(columns, path)
        return Header(columns, "")
    with open_limited(path, limits) as stream:
        quoted = b'"' in stream.peek()
        line = stream.readline(limits.max_record_bytes + 1)
    if len(line) > limits.max_record_bytes:
        raise LimitError(
            f"The first line must be at most {size_in_words(limits.max_record_bytes)}.", path=path, where="line 1"
        )
    text = need_utf8(line.removeprefix(b"\xef\xbb\xbf"), "A text table", path).rstrip("\r\n")
    if not text.strip():
        raise DataError("The first line must name the columns. It is empty.", path=path, where="line 1")
    delimiter, note = ("\t", None) if kind == "tsv" else (",", None)
    if delimiter not in text:
        other = next((mark for mark in ";\t,|" if mark in text), None)
        if other is not None:
            delimiter, note = other, f"columns are separated by {other!r}"
    try:
        columns = next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        if "\r" in text:
            raise DataError(
                "Lines must end in LF, or CR and LF. Got CR alone.",
                path=path,
                where="line 1",
                remedy="Convert the file, for example with tr '\\r' '\\n'.",
            ) from error
        raise DataError(f"The first line must name the columns: {error}.", path=path, where="line 1") from error
    _need_different(columns, path, where="line 1")
    if columns and all(_is_number(name) for name in columns):
        raise DataError(
            f"The first line must name the columns. Got numbers: '{text[:60]}'.",
            path=path,
            where="line 1",
            remedy="Put a line such as 'node,hyperedge' first.",
        )
    return Header(columns, delimiter, note, quoted, alone=not line.endswith((b"\n", b"\r")))


def read_columns(
    path: Path, kind: TableKind, header: Header, limits: Limits, *, columns: list[str], text_columns: list[str]
) -> pa.Table:
    """Some columns of a table.

    Args:
        path: The file.
        kind: CSV, TSV or Parquet.
        header: What `read_header` returned.
        limits: Size limits.
        columns: The columns wanted.
        text_columns: Those to be left as text (text tables only); the types of the others are inferred.

    Returns:
        The Arrow table; an empty field of a text table is null.
    """
    if kind == "parquet":
        return read_parquet(path, limits, columns)
    if header.alone:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    for newlines in (False, True)[header.quoted :]:
        try:
            table, quoted = _read_text(path, header, limits, columns, text_columns, threads=True, newlines=newlines)
        except pa.ArrowInvalid:
            break
        if quoted and newlines and not header.closed:
            need_closed_quotes(path, header.delimiter, limits)
        if newlines or not quoted:
            return table
    need_closed_quotes(path, header.delimiter, limits)
    try:  # once more on one thread: only so does Arrow know the line
        return _read_text(path, header, limits, columns, text_columns, threads=False, newlines=True)[0]
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            need_utf8_lines(path, limits)
        row, ragged = re.search(r"Row #(\d+)", str(error)), _RAGGED.search(str(error))
        where = None if row is None else place_of_row(path, int(row[1]) - 2, limits)
        problem = f"The table must be well-formed. {arrow_said(error)}."
        if ragged is not None:
            problem = f"Every line must have {ragged[1]} fields, as the first has. Got {ragged[2]}: '{ragged[3][:60]}'."
        raise DataError(problem, path=path, where=where) from error


def place_of_row(path: Path, row: int, limits: Limits) -> str:
    """Where the n-th row of data (from 0) stands: its line in a text table, found by reading again."""
    kind = table_to_read(path).kind
    if kind == "parquet":
        return f"row {row + 1}"
    header = read_header(path, kind, limits)
    with open_limited(path, limits) as stream:
        lines = csv.reader(io.TextIOWrapper(stream, "utf-8", "replace", newline=""), delimiter=header.delimiter)
        rows = lines if len(header.columns) == 1 else (line for line in lines if line)
        try:
            next(islice(rows, row + 1, None), None)
        except csv.Error:  # a field beyond what the csv module takes
            return f"row {row + 1}"
        return f"line {lines.line_num}"


def _read_text(
    path: Path,
    header: Header,
    limits: Limits,
    columns: list[str],
    text_columns: list[str],
    *,
    threads: bool,
    newlines: bool,
) -> tuple[pa.Table, bool]:
    """The table, and whether a quote was in it; if so it is right only if line ends inside fields were expected."""
    with _WatchedReader(path, limits) as stream:
        table = pa.csv.read_csv(
            stream,
            read_options=pa.csv.ReadOptions(
                block_size=_BLOCK_BYTES, use_threads=threads, column_names=header.columns, skip_rows=1
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=header.delimiter,
                newlines_in_values=newlines,
                ignore_empty_lines=len(header.columns) > 1,
            ),
            convert_options=pa.csv.ConvertOptions(
                include_columns=columns,
                column_types={name: pa.string() for name in text_columns},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                timestamp_parsers=[],
            ),
        )
        return table, stream.quoted


def _need_different(columns: list[str], path: Path, where: str | None = None) -> None:
    if len(set(columns)) < len(columns):
        twice = Counter(columns).most_common(1)[0][0]
        raise DataError(f"Column names must differ. Got '{twice}' twice.", path=path, where=where)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
