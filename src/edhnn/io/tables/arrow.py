"""CSV, TSV, Excel and Parquet tables, read with Arrow. Errors of Arrow become `DataError` with file, line and value.

Text files have no types, and Arrow infers one for each column. The inferred type is used if it loses nothing: ``7`` is
the integer 7, ``1.50`` the number 1.5. A column stays text if the type would lose information:

    integers           if one is not in canonical form (``007``, ``0x10``) or is beyond 64 bits
    booleans           in several spellings (``1`` and ``true``), and every label, because its classes have names
    labels             integers in several spellings, or with an exponent: ``1e1`` and ``10``
    dates and times    always
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from edhnn.data.ids import canonical_integers
from edhnn.data.limits import FREE_COLUMNS, Limits
from edhnn.errors import DataError, MissingDependencyError
from edhnn.io.files import (
    TEXT_TABLE,
    LimitedReader,
    line_too_long,
    need_bytes,
    need_utf8,
    need_utf8_lines,
    open_existing,
    open_limited,
)
from edhnn.io.tables.lines import first_lines, guess_separator
from edhnn.io.tables.names import TableKind, TableName, table_to_read

_BLOCK_BYTES, _SAMPLE_BYTES = 4 * 2**20, 2**16
_RAGGED = re.compile(r"Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
_DIGITS = r"^[+-]?[0-9]+$"
_PLAIN_WHOLE = r"^-?(0|[1-9][0-9]*)(\.0*)?$"
_NAN = r"(?i)^[+-]?nan$"


class Header(NamedTuple):
    """The columns of a table and, for text tables, their notation.

    Attributes:
        columns: The names of the columns.
        delimiter: The character between fields.
        note: A note if the delimiter was guessed.
        quoted: Whether the first block contains a quote, so that fields may contain line ends.
        alone: Whether the file ends with its first line, without a line end.
    """

    columns: list[str]
    delimiter: str = ""
    note: str | None = None
    quoted: bool = False
    alone: bool = False


@final
@dataclass(frozen=True, slots=True)
class TableFile:
    """A table whose name and header were read.

    Attributes:
        path: The file.
        name: The parts of its name.
        header: Its columns.
        limits: Size limits.
        content: The cells of a workbook as CSV text.
    """

    path: Path
    name: TableName
    header: Header
    limits: Limits
    content: bytes | None = None

    @classmethod
    def open(cls, path: Path, limits: Limits, name: TableName | None = None) -> TableFile:
        """Read the header of a table. If its ending is unknown, its first bytes show whether it is Parquet."""
        name = name or table_to_read(path)
        if name.kind != "xlsx":
            return cls(path, name, _read_header(path, name.kind, limits), limits)
        try:
            from edhnn.io.tables.excel import sheet_as_csv
        except ModuleNotFoundError as error:
            raise MissingDependencyError("openpyxl", "Reading .xlsx", "excel") from error
        content, note = sheet_as_csv(path, limits)
        header = _read_header(path, name.kind, limits, content)
        return cls(path, name, header._replace(note=note), limits, content)

    @property
    def is_text(self) -> bool:
        """Whether it is CSV or TSV, which have no types, or a workbook, whose cells are read as text."""
        return self.name.kind != "parquet"

    def read(self, columns: Sequence[str], *, as_text: Collection[str], quotes_checked: bool = False) -> pa.Table:
        """Read some columns.

        Args:
            columns: The columns to read.
            as_text: Columns that stay text (text tables only). The types of the others are inferred.
            quotes_checked: Whether an earlier call has checked that all quotes close.

        Returns:
            The Arrow table. An empty field of a text table is null.
        """
        if not self.is_text:
            return _read_parquet(self.path, self.limits, list(columns))
        if self.header.alone:
            return pa.table({name: pa.array([], pa.string()) for name in columns})
        for newlines in (False, True)[self.header.quoted :]:
            try:
                table, quoted = self._parse(columns, as_text, threads=True, newlines=newlines)
            except pa.ArrowInvalid:
                break
            if quoted and newlines and not quotes_checked:
                need_closed_quotes(self.path, self.header.delimiter, self.limits, self.content)
            if newlines or not quoted:
                return table
        need_closed_quotes(self.path, self.header.delimiter, self.limits, self.content)
        try:  # parse again on one thread: only then does Arrow report the row
            return self._parse(columns, as_text, threads=False, newlines=True)[0]
        except pa.ArrowInvalid as error:
            raise self._parse_error(error) from error

    def read_listing(
        self,
        names: Sequence[str],
        *,
        ids: Collection[str],
        labels: Collection[str],
        numbers: Collection[str],
        texts: Collection[str] = (),
    ) -> pa.Table:
        """Read some columns, with inferred types where these lose no information.

        Args:
            names: The columns.
            ids: Those that are ids, which stay text.
            labels: Those that are labels.
            numbers: Those that are numbers in any spelling.
            texts: Those that stay text for another reason.

        Returns:
            The Arrow table.
        """
        kept = [name for name in names if name in ids or name in texts]
        table = self.read(names, as_text=kept)
        doubtful = [
            name
            for name in names
            if self.is_text
            and name not in kept
            and inference_may_lose(table[name])
            and (name not in numbers or pa.types.is_temporal(table[name].type))
        ]
        if doubtful:
            as_written = self.read(doubtful, as_text=doubtful, quotes_checked=True)
            for name in doubtful:
                if must_stay_text(as_written[name], table[name].type, label=name in labels):
                    table = table.set_column(names.index(name), name, as_written[name])
        return table

    def locate(self, row: int) -> str:
        """Return the position of a row of data (from 0) for a message; read a text table again to count its lines."""
        if not self.is_text:
            return f"row {row + 1}"
        with _csv_rows(self.path, self.header.delimiter, self.limits, self.content, strict=False) as lines:
            numbered = enumerate(lines, start=1)
            rows = numbered if len(self.header.columns) == 1 else (line for line in numbered if line[1])
            try:
                found = next(islice(rows, row + 1, None), None)
            except csv.Error:  # a field exceeds the limits
                return f"row {row + 1}"
            if self.content is not None and found is not None:
                return f"row {found[0]} of the sheet"
            return f"line {lines.line_num}"

    def _parse(
        self, columns: Sequence[str], as_text: Collection[str], *, threads: bool, newlines: bool
    ) -> tuple[pa.Table, bool]:
        """Return the table and whether it contains a quote. With quotes it is correct only if ``newlines``."""
        header = self.header
        with _WatchedReader(self.path, self.limits, self.content) as stream:
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
                    include_columns=list(columns),
                    column_types={name: pa.string() for name in as_text},
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    timestamp_parsers=[],
                ),
            )
            return table, stream.quoted

    def _parse_error(self, error: pa.ArrowInvalid) -> DataError:
        if "UTF8" in str(error):
            need_utf8_lines(self.path, self.limits)
        row, ragged = re.search(r"Row #(\d+)", str(error)), _RAGGED.search(str(error))
        problem = f"The table is malformed. Cause: {first_line(error)}."
        if ragged is not None:
            problem = f"Every line must have {ragged[1]} fields, as line 1 has. Got {ragged[2]}: '{ragged[3][:60]}'."
        where = None if row is None else self.locate(int(row[1]) - 2)
        remedy = "The command edhnn data doctor lists all such lines, and how to clean the file."
        return DataError(problem, path=self.path, where=where, remedy=remedy)


def need_closed_quotes(path: Path, delimiter: str, limits: Limits, content: bytes | None = None) -> None:
    """Raise a `DataError` if a quote does not close at the end of its field, which Arrow ignores."""
    with _csv_rows(path, delimiter, limits, content, strict=True) as rows:
        line = 1
        try:
            for _ in rows:
                line = rows.line_num + 1
        except csv.Error as error:
            raise DataError(
                f"A field that begins with a quote must end with one. Cause: {error}.",
                path=path,
                where=f"line {line}",
                remedy="Close the quote. If it belongs to the text, put the field in quotes and double this quote.",
            ) from error


def must_stay_text(texts: pa.ChunkedArray, guess: pa.DataType, *, label: bool) -> bool:
    """Return whether the inferred type of a column would lose information that its texts have.

    Args:
        texts: The column as text, null where it is empty.
        guess: The inferred type, for which `inference_may_lose` is true.
        label: Whether the column is a label.
    """
    if pa.types.is_temporal(guess):
        return True
    known = pc.ascii_trim_whitespace(texts.drop_null())
    if pa.types.is_integer(guess):
        return not _plain_integers(known)
    if pa.types.is_boolean(guess):
        return label or pc.count_distinct(known).as_py() > pc.count_distinct(pc.cast(known, pa.bool_())).as_py()
    known = known.filter(pc.invert(pc.match_substring_regex(known, _NAN)))
    if not pa.types.is_floating(guess) or not len(known):
        return False
    if pc.all(pc.match_substring_regex(known, _DIGITS)).as_py():
        return not _plain_integers(known)
    plain = pc.all(pc.match_substring_regex(known, _PLAIN_WHOLE)).as_py()
    return label and not (plain and pc.count_distinct(known) == pc.count_distinct(pc.cast(known, pa.float64())))


def inference_may_lose(column: pa.ChunkedArray) -> bool:
    """Return whether type inference could have lost information (``007`` becomes 7); text and fractions lose none."""
    kind = column.type
    if pa.types.is_floating(kind):
        values = column.drop_null().to_numpy()
        return bool(((values == np.trunc(values)) | np.isnan(values)).all())
    return bool(pa.types.is_temporal(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class if there is no message."""
    return str(error).splitlines()[0][:200].rstrip(". ") if str(error) else type(error).__name__


class _WatchedReader(LimitedReader):
    """A reader that detects quotes and never cuts between CR and LF, as Arrow would read the LF as another line end."""

    def __init__(self, path: Path, limits: Limits, content: bytes | None = None) -> None:
        super().__init__(path, limits, content)
        self.quoted, self._pending = False, b""

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, but keep a CR at its end for the next call."""
        pending, self._pending = self._pending, b""
        buffer[: len(pending)] = pending
        count = len(pending) + super().readinto(memoryview(buffer)[len(pending) :])
        text = bytes(memoryview(buffer)[:count])
        self.quoted = self.quoted or b'"' in text
        if count > 1 and text.endswith(b"\r"):
            self._pending = b"\r"
            count -= 1
        return count


def _read_header(path: Path, kind: TableKind, limits: Limits, content: bytes | None = None) -> Header:
    if kind == "parquet":
        try:
            columns = list(_open_parquet(path).schema_arrow.names)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise _not_parquet(path, error) from error
        if not columns:
            raise DataError("A table must have columns. It has none.", path=path)
        _need_unique(columns, path)
        return Header(columns)
    with open_limited(path, limits, content=content) as stream:
        start = stream.peek()
        quoted = b'"' in start
        line = stream.readline(limits.max_record_bytes + 1)
    if len(line) > limits.max_record_bytes:
        raise line_too_long(path, limits, 1)
    text = need_utf8(line.removeprefix(b"\xef\xbb\xbf"), TEXT_TABLE, path).rstrip("\r\n")
    if not text.strip():
        raise DataError("The first line must name the columns. It is empty.", path=path, where="line 1")
    usual = "\t" if kind == "tsv" else ","
    delimiter = usual
    if content is None:
        delimiter = guess_separator([text, *first_lines(start[: _SAMPLE_BYTES + len(line)])[1:]], usual)
    note = None if delimiter == usual else f"columns are separated by {delimiter!r}"
    try:
        columns = next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        if "\r" in text:
            raise DataError(
                "Lines must end in LF or CR LF. Got CR alone.",
                path=path,
                where="line 1",
                remedy="Convert the file, for example with tr '\\r' '\\n'.",
            ) from error
        raise DataError(f"The first line must name the columns. Cause: {error}.", path=path, where="line 1") from error
    _need_unique(columns, path, where="line 1")
    if columns and all(_is_number(name) for name in columns):
        raise DataError(
            f"The first line must name the columns. Got numbers: '{text[:60]}'.",
            path=path,
            where="line 1",
            remedy="Insert a first line such as 'node,hyperedge'.",
        )
    return Header(columns, delimiter, note, quoted, alone=not line.endswith((b"\n", b"\r")))


@contextmanager
def _csv_rows(
    path: Path, delimiter: str, limits: Limits, content: bytes | None = None, *, strict: bool
) -> Iterator[Any]:
    """Open a text table with Python's csv module, which counts lines."""

    def lines(text: io.TextIOWrapper) -> Iterator[str]:
        for number, line in enumerate(iter(lambda: text.readline(limits.max_record_bytes + 1), ""), start=1):
            if len(line) > limits.max_record_bytes:
                raise line_too_long(path, limits, number)
            yield line

    longest = csv.field_size_limit(limits.max_record_bytes)
    try:
        with open_limited(path, limits, content=content) as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", "replace", newline="")
            yield csv.reader(lines(text), delimiter=delimiter, strict=strict)
    finally:
        csv.field_size_limit(longest)


def _open_parquet(path: Path) -> pa.parquet.ParquetFile:
    open_existing(path).close()
    try:
        return pa.parquet.ParquetFile(pa.OSFile(os.fsencode(path)))  # Arrow decodes names of text as UTF-8
    except (pa.ArrowException, OSError) as error:
        raise _not_parquet(path, error) from error


def _not_parquet(path: Path, error: Exception) -> DataError:
    return DataError(f"The file must be Parquet. Cause: {first_line(error)}.", path=path)


def _read_parquet(path: Path, limits: Limits, columns: list[str]) -> pa.Table:
    """Read some columns in batches, because repeated values take far more bytes in memory than in the file."""
    file = _open_parquet(path)
    try:
        groups = [file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups)]
        if min(groups, default=0) < 0:
            raise pa.ArrowInvalid("a row group has a negative size")
        stored = path.stat().st_size
        need_bytes(max(sum(groups), file.metadata.num_rows), stored, path, limits, FREE_COLUMNS)
        rows = min(max(limits.most_bytes(stored, FREE_COLUMNS) // max([1, *groups]), 2**10), 2**17)
        size, batches = 0, []
        for batch in file.iter_batches(rows, columns=columns):
            size += batch.nbytes
            need_bytes(size, stored, path, limits, FREE_COLUMNS)
            batches.append(batch)
        fields = [file.schema_arrow.field(name) for name in columns]
        table = pa.Table.from_batches(batches, batches[0].schema if batches else pa.schema(fields))
        table.validate(full=True)  # text may not be UTF-8
        return table
    except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
        raise DataError(f"The Parquet data must be intact. Cause: {first_line(error)}.", path=path) from error


def _need_unique(columns: list[str], path: Path, where: str | None = None) -> None:
    if len(set(columns)) < len(columns):
        duplicate = Counter(columns).most_common(1)[0][0]
        raise DataError(f"Column names must be unique. Got '{duplicate}' twice.", path=path, where=where)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain_integers(texts: pa.ChunkedArray) -> bool:
    return all(canonical_integers(chunk) is not None for chunk in texts.chunks)
