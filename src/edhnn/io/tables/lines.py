"""The lines of a text table one by one, so that a line that cannot be read stands in the way of no other.

`TableFile` reads a table with Arrow, which stops at the first line that is wrong. `read_rows` yields every line with
what is wrong with it, and `scan_lines` counts these problems. `find_notation` looks at the first lines only: how a file
is encoded, what separates its fields, and whether titles stand above the names of the columns.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, final

from edhnn.data.limits import Limits
from edhnn.errors import DataError
from edhnn.io.files import line_too_long, open_limited

SEPARATORS = ",;\t|"
Problem = Literal["fields", "separator", "extra", "quote", "encoding", "zero", "header", "blank"]
PROBLEMS: dict[Problem, str] = {
    "fields": "not as many fields as the header",
    "separator": "fields separated by another character than those of the header",
    "extra": "empty fields after the last column",
    "quote": "a quote that does not close",
    "encoding": "bytes that the encoding does not have",
    "zero": "zero bytes",
    "header": "the names of the columns once more",
    "blank": "nothing",
}
"""Everything that can be wrong with a line, in words that follow 'has' or 'have'."""
_SAMPLE_BYTES = 2**16
_SAMPLE_ROWS = 1_000
_MOST_TITLES = 20
_LINES_OF_A_FIELD = 1_000
"""A quoted field of more lines is a quote that someone forgot to close."""
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How the text of a table is written.

    Attributes:
        encoding: A codec of Python.
        separators: The characters between fields. A line that has the right number of fields with one of them is right.
        skip: Lines above the names of the columns.
        header: The names of the columns, if the file has no line with them.
    """

    encoding: str = "utf-8-sig"
    separators: str = ","
    skip: int = 0
    header: tuple[str, ...] | None = None


class Row(NamedTuple):
    """A line of a table, or several if a quoted field contains line ends.

    Attributes:
        line: The number of its first line, from 1.
        fields: Its fields, as well as they can be told.
        problem: What is wrong with it.
        separator: The character between its fields.
    """

    line: int
    fields: list[str]
    problem: Problem | None
    separator: str = ","


@final
@dataclass(slots=True)
class LineReport:
    """What a scan of all lines found.

    Attributes:
        notation: How the text was read.
        columns: The names of the columns.
        lines: The number of lines of the file.
        rows: The number of rows of data without a problem.
        counts: The number of lines with each problem.
        examples: Number and text of the first lines with each problem.
        widths: How many rows have how many fields.
        empty: How many rows have nothing in a column, by its number.
        first_empty: The first line that has nothing in a column.
        separators: The other separators of lines that are split by one.
        first: The first rows, at most a thousand.
        is_whole: Whether the whole file was read.
    """

    notation: Notation
    columns: list[str] = field(default_factory=list)
    lines: int = 0
    rows: int = 0
    counts: Counter[Problem] = field(default_factory=Counter)
    examples: dict[Problem, list[tuple[int, str]]] = field(default_factory=dict)
    widths: Counter[int] = field(default_factory=Counter)
    empty: Counter[int] = field(default_factory=Counter)
    first_empty: dict[int, int] = field(default_factory=dict)
    separators: set[str] = field(default_factory=set)
    first: list[Row] = field(default_factory=list)
    is_whole: bool = True


def guess_separator(lines: Sequence[str], default: str) -> str:
    """Return the character that splits the first line, and as many of the others as possible into as many fields.

    If several do, the one with more fields wins, then the default. It is also the answer for a table of one column.
    """
    scores: dict[str, tuple[float, int, bool]] = {}
    for mark in (default, *SEPARATORS.replace(default, "")):
        widths = [_width(line, mark) for line in lines]
        if widths and widths[0] > 1:
            alike = sum(width == widths[0] for width in widths) / len(widths)
            scores[mark] = (round(alike, 2), widths[0], mark == default)
    return max(scores, key=scores.__getitem__, default=default)


def _width(line: str, separator: str) -> int:
    """Return the number of fields of a line, or 0 if its quotes are wrong, as they are with a wrong separator."""
    try:
        return len(next(csv.reader([line], delimiter=separator, strict=True), []))
    except csv.Error:
        return line.count(separator) + 1 if '"' not in line else 0


def first_lines(sample: bytes) -> list[str]:
    """Return the lines of the beginning of a file that are not empty, without a last one that may be cut."""
    lines = sample.decode("utf-8-sig", "replace").splitlines()
    whole = lines[:-1] if len(lines) > 1 and not sample.endswith((b"\n", b"\r")) else lines
    return [line for line in whole[:100] if line.strip()]


def find_notation(path: Path, limits: Limits, *, default: str = ",") -> Notation:
    """Return how a text table seems to be written, judged by its first lines.

    A byte order mark gives the encoding, or zero bytes do for UTF-16. Anything else is taken for UTF-8.
    No dataset is read this way: the doctor reports it, and `edhnn data clean` does what its options name.
    """
    with open_limited(path, limits, _SAMPLE_BYTES) as stream:
        sample = stream.read(_SAMPLE_BYTES)
    encoding = next((name for mark, name in _MARKS.items() if sample.startswith(mark)), None)
    if encoding is None:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        wide = max(even, odd) > 0.3 * len(sample) / 2
        encoding = ("utf-16-le" if odd > even else "utf-16-be") if wide else "utf-8-sig"
    text = sample[: len(sample) // 2 * 2].decode(encoding, "replace")
    whole = text[: text.rfind("\n") + 1] if len(sample) == _SAMPLE_BYTES and "\n" in text else text
    lines = whole.splitlines()[:_SAMPLE_ROWS]
    separators = {mark: _usual_width(lines, mark) for mark in (default, *SEPARATORS.replace(default, ""))}
    separator = guess_separator([line for line in lines if line.strip()], default)
    if separator == default and separators[default][0] < 2:  # titles may stand above the names
        separator = max(separators, key=lambda mark: (separators[mark][0] > 1, separators[mark][1]))
    width, share = separators[separator]
    skip = 0
    if width > 1 and share > 0.5:
        narrow = (len(next(csv.reader([line], delimiter=separator), [])) < width for line in lines[:_MOST_TITLES])
        skip = next((number for number, is_title in enumerate(narrow) if not is_title), 0)
    return Notation(encoding=encoding, separators=separator, skip=skip)


def _usual_width(lines: Sequence[str], separator: str) -> tuple[int, float]:
    """Return the most frequent number of fields and the share of the lines that have it."""
    try:
        widths = Counter(len(row) for row in csv.reader(lines, delimiter=separator) if row)
    except csv.Error:
        return 0, 0.0
    width, count = max(widths.items(), key=lambda item: item[::-1], default=(0, 0))
    return width, count / max(widths.total(), 1)


def read_rows(path: Path, limits: Limits, notation: Notation, *, ragged: bool = False) -> Iterator[Row]:
    """Yield the rows of a table. The first has the names of the columns, unless the notation has them.

    Args:
        path: The file, plain or gzip.
        limits: Size limits.
        notation: How its text is written.
        ragged: Whether rows may have any number of fields.

    Raises:
        LimitError: if a line or the file is too long.
    """
    longest = csv.field_size_limit(limits.max_record_bytes)
    try:
        with open_limited(path, limits) as stream:
            escape = (
                "replace" if notation.encoding.lower().replace("_", "-").startswith("utf-16") else "surrogateescape"
            )
            text = io.TextIOWrapper(stream, notation.encoding, escape, newline="")
            try:
                yield from _rows(_Lines(text, path, limits), notation, ragged=ragged)
            except UnicodeError as error:
                problem = f"The file must be {notation.encoding} text. Cause: {error}."
                raise DataError(problem, path=path, remedy="Name another encoding with `encoding=`.") from error
    finally:
        csv.field_size_limit(longest)


def _rows(lines: _Lines, notation: Notation, *, ragged: bool) -> Iterator[Row]:
    separator, header = notation.separators[0], list(notation.header or ())
    for _ in islice(lines, notation.skip):
        lines.begin()
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        lines.begin()
        problem: Problem | None = None
        mark = separator
        try:
            fields = next(reader)
        except StopIteration:
            return
        except (csv.Error, _OpenQuoteError):
            problem, fields = "quote", lines.back().rstrip("\r\n").split(separator)
        line, text = lines.taken[0]
        plain = problem is None and len(lines.taken) == 1 and text.isascii() and "\0" not in text
        if plain and len(fields) == len(header) > 1 and fields != header:
            yield Row(line, fields, None, separator)  # nearly all lines
            continue
        if problem is None and fields != header:
            if len(fields) != len(header) and header and not ragged:
                problem, fields, mark = _odd_line(text, fields, len(header), notation.separators)
        elif problem is None and fields == header and notation.header is None:
            problem = "header"
        if problem != "quote" and not all(text.isascii() for _, text in lines.taken):
            problem = "encoding" if any(is_garbled(text) for _, text in lines.taken) else problem
        if "\0" in text and problem != "encoding":
            problem = "zero"
        if not header and problem != "blank" and any(fields):
            header = fields
            problem = None if problem == "fields" else problem
        elif not header and not any(fields):
            problem = "blank"
        yield Row(line, fields, problem, mark)


def _odd_line(text: str, fields: list[str], width: int, separators: str) -> tuple[Problem | None, list[str], str]:
    """Return what is wrong with a line that has not as many fields as the header, its fields and their separator."""
    first = separators[0]
    if not any(fields):
        return ("blank" if len(fields) < 2 else "fields"), fields, first
    if len(fields) > width and not any(fields[width:]):
        return "extra", fields, first
    for mark in SEPARATORS:
        if mark in text and mark != first:
            try:
                other = next(csv.reader([text], delimiter=mark, strict=True))
            except csv.Error:
                continue
            if len(other) == width:
                return (None if mark in separators else "separator"), other, mark
    return "fields", fields, first


def printable(text: str) -> str:
    r"""Return a text in which bytes that its encoding does not have are written as ``\xe4``."""
    return "".join(f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else c for c in text)


def is_garbled(text: str) -> bool:
    """Return whether a text has bytes that its encoding does not have."""
    return any("\udc80" <= letter <= "\udcff" or letter == "\ufffd" for letter in text)


def scan_lines(
    path: Path, limits: Limits, notation: Notation | None = None, *, most: int | None = None, examples: int = 5
) -> LineReport:
    """Read the lines of a text table and count what is wrong with them.

    Args:
        path: The file, plain or gzip.
        limits: Size limits.
        notation: How its text is written; by default as `find_notation` says.
        most: Lines after which to stop; by default the whole file is read.
        examples: How many lines to remember for each problem.
    """
    notation = notation or find_notation(path, limits)
    report = LineReport(notation, columns=list(notation.header or ()))
    for row in read_rows(path, limits, notation):
        if most is not None and row.line > most:
            report.is_whole = False
            break
        report.lines = row.line
        if not report.columns:
            report.columns = row.fields if row.problem != "blank" else []
        else:
            _count(report, row, examples)
    return report


def _count(report: LineReport, row: Row, examples: int) -> None:
    line, fields, problem, separator = row
    if problem != "blank":
        report.widths[len(fields)] += 1
    if len(report.first) < _SAMPLE_ROWS:
        report.first.append(row)
    if problem is not None:
        report.counts[problem] += 1
        shown = report.examples.setdefault(problem, [])
        if len(shown) < examples:
            shown.append((line, printable(separator.join(fields))))
        if problem == "separator":
            report.separators.add(separator)
        return
    report.rows += 1
    if "" in fields:
        for column, text in enumerate(fields):
            if not text:
                report.empty[column] += 1
                report.first_empty.setdefault(column, line)


class _OpenQuoteError(Exception):
    """A quoted field has too many lines."""


class _Lines:
    """The lines of a text. Those of a row that turned out to be wrong can be read once more."""

    def __init__(self, text: io.TextIOWrapper, path: Path, limits: Limits) -> None:
        self._text, self._path, self._limits = text, path, limits
        self._again: deque[tuple[int, str]] = deque()
        self._number = 0
        self.taken: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._again:
            line = self._again.popleft()
        else:
            text = self._text.readline(self._limits.max_record_bytes + 1)
            self._number += 1
            if not text:
                raise StopIteration
            if len(text) > self._limits.max_record_bytes:
                raise line_too_long(self._path, self._limits, self._number)
            line = (self._number, text)
        self.taken.append(line)
        if len(self.taken) > _LINES_OF_A_FIELD:
            raise _OpenQuoteError
        return line[1]

    def begin(self) -> None:
        """Begin a new row."""
        self.taken.clear()

    def back(self) -> str:
        """Keep only the first line of the row, which is returned, and read the others again."""
        self._again.extendleft(reversed(self.taken[1:]))
        del self.taken[1:]
        return self.taken[0][1]
