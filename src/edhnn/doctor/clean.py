"""Clean a text table: exactly what a `Cleaning` names, with a count and examples of every change.

The new file is UTF-8 with LF line ends and no byte order mark. All other fields have the same text as before. It is
written whole or not at all. A line that cannot be split into fields is an error, unless the cleaning drops such lines.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import final, get_args

from edhnn.data.limits import Limits
from edhnn.doctor.spelling import Kind, spelling_groups
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.io.files import atomic_file, check_can_write, compressed_by_name
from edhnn.io.tables.lines import PROBLEMS, SEPARATORS, Notation, Problem, Row, find_notation, printable, read_rows
from edhnn.io.tables.names import table_name, table_to_read
from edhnn.io.tables.reader import find_id_columns
from edhnn.typing import ByteWriter, JsonObject

EXAMPLES, _LONGEST = 5, 80
_SAMPLE_ROWS, _ROWS_AT_ONCE, _WRITTEN_AT_ONCE = 1_000, 10_000, 2**20
_REMEDIES: dict[Problem, str] = {
    "encoding": "Name the encoding with `encoding=`, or leave such lines out with `drop_bad_lines=True`.",
    "separator": "Name the separators with `separator=`, or leave such lines out with `drop_bad_lines=True`.",
    "extra": "Cut these fields with `drop_extra_fields=True`.",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What is to be cleaned in a table.

    Attributes:
        encoding: The encoding of the file; by default UTF-8.
        separators: The characters between fields; by default the one that the first lines show.
        skip: The number of lines above the names of the columns, which are left out.
        header: The names of the columns of a file without a line of names.
        one_basket_per_line: Whether each line lists the members of a hyperedge; its id is the number of the line.
        drop_bad_lines: Leave out lines that cannot be read, and repetitions of the line of names.
        drop_extra_fields: Cut empty fields after the last column.
        drop_empty: Leave out rows without an id, and empty lines.
        merge_ids: Kinds of differences between ids to remove: ``zeros`` for all ids, ``zeros:COLUMN`` for one column.
        ids: The columns of ids; by default those that a reader would take for the nodes and the hyperedges.
    """

    encoding: str | None = None
    separators: str | None = None
    skip: int = 0
    header: tuple[str, ...] | None = None
    one_basket_per_line: bool = False
    drop_bad_lines: bool = False
    drop_extra_fields: bool = False
    drop_empty: bool = False
    merge_ids: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that the parts fit together.

        Raises:
            UsageError: if they do not.
        """
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, UnicodeError, ValueError) as error:
                raise UsageError(f"The encoding must be known, such as cp1252. Got '{self.encoding}'.") from error
        if self.separators is not None and (not self.separators or set(self.separators) - set(SEPARATORS)):
            raise UsageError(f"A separator must be a comma, semicolon, tab or bar. Got '{self.separators}'.")
        if self.header is not None and (not all(self.header) or len(set(self.header)) < len(self.header)):
            raise UsageError(f"The names of columns must be unique and not empty. Got '{','.join(self.header)}'.")
        if self.one_basket_per_line and (self.header or self.drop_extra_fields or self.ids):
            raise UsageError("A file of one basket per line has no columns, so no option about columns applies.")
        for wish in self.merge_ids:
            kind = wish.partition(":")[0]
            if kind not in get_args(Kind):
                raise unknown_name("kind of difference between ids", kind, get_args(Kind))

    def options(self) -> list[str]:
        """Return the options of `edhnn data clean` that ask for this."""
        words: list[str] = []
        if self.encoding is not None:
            words += ["--encoding", self.encoding]
        for mark in self.separators or "":
            words += ["--separator", "tab" if mark == "\t" else mark]
        words += ["--skip-lines", str(self.skip)] if self.skip else []
        words += ["--header", ",".join(self.header)] if self.header else []
        flags = ("one_basket_per_line", "drop_bad_lines", "drop_extra_fields", "drop_empty")
        words += [f"--{flag.replace('_', '-')}" for flag in flags if getattr(self, flag)]
        words += [word for wish in self.merge_ids for word in ("--merge-ids", wish)]
        return words + [word for name in self.ids for word in ("--id-column", name)]


@final
@dataclass(slots=True)
class Change:
    """One kind of change.

    Attributes:
        what: What was done.
        count: In how many lines or rows.
        examples: The first of them.
    """

    what: str
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str, count: int = 1) -> None:
        """Count a change, and remember the first ones."""
        self.count += count
        if len(self.examples) < EXAMPLES and example not in self.examples:
            self.examples.append(example if len(example) <= _LONGEST else f"{example[: _LONGEST - 1]}…")


@final
@dataclass(slots=True)
class CleanReport:
    """What was changed.

    Attributes:
        rows: The number of rows written.
        changes: Each kind of change with its count.
        notes: How the file was read.
    """

    rows: int = 0
    changes: dict[str, Change] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, what: str, example: str, count: int = 1) -> None:
        """Count a change of a kind."""
        self.changes.setdefault(what, Change(what)).add(example, count)

    def to_json(self) -> JsonObject:
        """Return the report as JSON."""
        changes = [{"what": c.what, "count": c.count, "examples": c.examples} for c in self.changes.values()]
        return {"rows": self.rows, "changes": changes, "notes": self.notes}


def clean_table(
    path: Path,
    target: Path,
    cleaning: Cleaning,
    *,
    limits: Limits | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
) -> CleanReport:
    """Write a cleaned copy of a text table.

    Args:
        path: The table, plain or gzip.
        target: The file to write, CSV or TSV.
        cleaning: What is to be cleaned.
        limits: Size limits.
        overwrite: Whether an existing target may be replaced.
        dry_run: Only report what would change.

    Returns:
        What was changed.

    Raises:
        DataError: if a line cannot be read and the cleaning does not say what to do with it.
        UsageError: if the target exists, or a column is unknown.
    """
    kind = table_name(target).kind
    if kind == "parquet":
        raise UsageError(f"A cleaned table must be .csv or .tsv (or .csv.gz, .tsv.gz). Got '{target.name}'.")
    if table_to_read(path).kind in ("parquet", "xlsx"):
        raise UsageError(f"Only CSV and TSV are cleaned. Got '{path.name}'. edhnn data convert writes it as CSV.")
    if target.exists() and target.samefile(path):
        raise UsageError(f"'{target}' is the file to clean. Choose another name, so that nothing is lost.")
    check_can_write(target, overwrite=overwrite or dry_run)
    cleaner = _Cleaner(path, Limits() if limits is None else limits, cleaning, "\t" if kind == "tsv" else None)
    if dry_run:
        for row in cleaner.rows():
            cleaner.report.rows += bool(row)
    else:
        with atomic_file(target) as temporary, compressed_by_name(temporary, target.name) as raw:
            cleaner.write(raw)
    return cleaner.report


class _Cleaner:
    """A cleaning of one file, with its report."""

    def __init__(self, path: Path, limits: Limits, cleaning: Cleaning, separator: str | None) -> None:
        self.path, self.limits, self.cleaning = path, limits, cleaning
        self.report = CleanReport()
        self.notation = self._notation()
        self.separator = separator or self.notation.separators[0]

    def write(self, raw: ByteWriter) -> None:
        """Write the cleaned rows."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self.separator, lineterminator="\n")
        writer.writerow(self.header())
        for row in self.rows():
            writer.writerow(row)
            self.report.rows += bool(row)
            if text.tell() > _WRITTEN_AT_ONCE:
                raw.write(text.getvalue().encode())
                text.seek(0)
                text.truncate()
        raw.write(text.getvalue().encode())

    def header(self) -> list[str]:
        """Return the names of the columns of the new table."""
        if self.cleaning.one_basket_per_line:
            return ["node", "hyperedge"]
        if self.notation.header:
            return list(self.notation.header)
        named = (row for row in read_rows(self.path, self.limits, self.notation) if row.problem != "blank")
        row = next(named, None)
        if row is None:
            raise DataError("The table must have a line that names its columns. It has none.", path=self.path)
        if row.problem is not None:
            raise self._bad_line(row, len(row.fields))
        return row.fields

    def rows(self) -> Iterator[Sequence[str | int]]:
        """Yield the cleaned rows, and count what is changed."""
        report, header = self.report, self.header()
        if self.cleaning.skip:
            lines = f"lines 1 to {self.cleaning.skip}" if self.cleaning.skip > 1 else "line 1"
            report.add("lines above the names of the columns left out", lines, self.cleaning.skip)
        if self.cleaning.one_basket_per_line:
            yield from self._members()
            return
        if self.notation.header:
            report.add("line with the names of the columns added", ", ".join(header))
        ids = self._id_columns(header)
        spelling = self._spelling(header, ids, self._right_rows(header, None))
        for line, fields in self._right_rows(header, report):
            if fields and self.cleaning.drop_empty and not all(fields[column].strip() for column in ids):
                report.add("rows without an id left out", f"line {line}: {self._shown(fields)}")
                continue
            for column, kept in spelling.items() if fields else ():
                fields[column] = self._merged(fields[column], kept, header[column])
            yield fields

    def _members(self) -> Iterator[tuple[str, int]]:
        """Yield the memberships of a file of one basket per line."""
        members = (([name], line) for line, names in self._baskets(None) for name in names)
        kept = self._spelling(["node"], [0], ((line, names) for names, line in members)).get(0, {})
        for line, names in self._baskets(self.report):
            self.report.add("lines of baskets written as memberships", f"line {line}: {self._shown(names)}")
            for name in names:
                yield self._merged(name, kept, "node"), line

    def _baskets(self, report: CleanReport | None) -> Iterator[tuple[int, list[str]]]:
        for row in read_rows(self.path, self.limits, self.notation, ragged=True):
            if row.problem not in (None, "blank", "header", "extra"):
                self._leave_out(row, 0, report)
                continue
            names = [name for name in row.fields if name.strip()]
            if report is not None and len(names) < len(row.fields):
                report.add("empty fields left out", f"line {row.line}", len(row.fields) - len(names))
            if names:
                yield row.line, names
            elif report is not None:
                report.add("empty lines left out", f"line {row.line}")

    def _right_rows(self, header: Sequence[str], report: CleanReport | None) -> Iterator[tuple[int, list[str]]]:
        """Yield number and fields of the lines that are right or cleaned; no fields for an empty line."""
        cleaning, width, named = self.cleaning, len(header), self.notation.header is not None
        for row in read_rows(self.path, self.limits, self.notation):
            line, fields, problem, separator = row
            if not named:
                named = problem != "blank"
            elif problem == "blank":
                if not cleaning.drop_empty:
                    yield line, []
                elif report is not None:
                    report.add("empty lines left out", f"line {line}")
            elif problem == "extra" and cleaning.drop_extra_fields:
                if report is not None:
                    report.add("empty fields after the last column cut", f"line {line}")
                yield line, fields[:width]
            elif problem is not None and (problem != "header" or cleaning.drop_bad_lines):
                self._leave_out(row, width, report)
            else:
                if report is not None and separator != self.notation.separators[0]:
                    report.add(f"lines split at {separator!r}", f"line {line}: {separator.join(fields)}")
                yield line, fields

    def _leave_out(self, row: Row, width: int, report: CleanReport | None) -> None:
        if not self.cleaning.drop_bad_lines:
            raise self._bad_line(row, width)
        if report is not None and row.problem is not None:
            text = printable(self._shown(row.fields))
            report.add(f"lines with {PROBLEMS[row.problem]} left out", f"line {row.line}: {text}")

    def _bad_line(self, row: Row, width: int) -> DataError:
        assert row.problem is not None
        must = f"have {width} fields, as the names of the columns" if row.problem == "fields" else "be readable"
        return DataError(
            f"Every line must {must}. This one has {PROBLEMS[row.problem]}.",
            path=self.path,
            where=f"line {row.line}",
            remedy=_REMEDIES.get(row.problem, "Leave such lines out with `drop_bad_lines=True`."),
        )

    def _id_columns(self, header: Sequence[str]) -> list[int]:
        """Return the numbers of the columns of ids, if the cleaning needs them."""
        wished = [wish.partition(":")[2] for wish in self.cleaning.merge_ids]
        for name in (*self.cleaning.ids, *filter(None, wished)):
            if name not in header:
                raise unknown_name(f"column of '{self.path.name}'", name, header)
        if self.cleaning.ids or not (self.cleaning.drop_empty or "" in wished):
            return [header.index(name) for name in self.cleaning.ids]
        rows = (fields for _, fields in self._right_rows(header, None) if fields)
        names = guess_id_columns(header, rows, self.limits)
        if not set(names) <= set(header):  # a reader would divide these lines at another separator
            raise DataError(
                f"The columns of ids cannot be guessed. The names of the columns are {', '.join(map(repr, header))}.",
                path=self.path,
                remedy="Name another `separator=`, or the columns of ids with `id_column=`.",
            )
        self.report.notes.append(f"id columns guessed: {', '.join(repr(name) for name in names)}")
        return [header.index(name) for name in names]

    def _spelling(
        self, header: Sequence[str], ids: Sequence[int], rows: Iterator[tuple[int, list[str]]]
    ) -> dict[int, dict[str, str]]:
        """Return, for each column whose ids are merged, what to write instead of each spelling."""
        kinds: dict[int, list[Kind]] = {}
        for wish in self.cleaning.merge_ids:
            kind, _, name = wish.partition(":")
            for column in [header.index(name)] if name else ids:
                kinds.setdefault(column, []).append(kind)  # type: ignore[arg-type]  # checked before
        if not kinds:
            return {}
        counts: dict[int, Counter[str]] = {column: Counter() for column in kinds}
        while block := [fields for _, fields in islice(rows, _ROWS_AT_ONCE) if fields]:
            for column, count in counts.items():
                count.update([fields[column] for fields in block])
        spelling: dict[int, dict[str, str]] = {}
        for column, chosen in kinds.items():
            counts[column].pop("", None)
            groups = spelling_groups(counts[column], chosen)
            spelling[column] = {other: g.kept for g in groups if not g.doubtful for other in g.others}
            for group in groups:
                if group.doubtful:
                    names = ", ".join(repr(name) for name in (group.kept, *group.others))
                    self.report.notes.append(
                        f"left as they are in '{header[column]}', because several have leading zeros: {names}"
                    )
        return spelling

    def _merged(self, name: str, kept: dict[str, str], column: str) -> str:
        if name not in kept:
            return name
        self.report.add(f"ids in '{column}' spelled as the others", f"{name!r} is {kept[name]!r}")
        return kept[name]

    def _shown(self, fields: Sequence[str]) -> str:
        return self.notation.separators[0].join(fields)

    def _notation(self) -> Notation:
        cleaning = self.cleaning
        default = "\t" if table_to_read(self.path).kind == "tsv" else ","
        found = find_notation(self.path, self.limits, default=default)
        encoding = cleaning.encoding
        if encoding is None and found.encoding.startswith("utf-16"):
            raise DataError(
                "The file must be UTF-8 text. It looks like UTF-16.",
                path=self.path,
                remedy=f"Name it with `encoding='{found.encoding}'`.",
            )
        if encoding is not None:
            self.report.notes.append(f"read as {encoding}, written as UTF-8")
        if encoding is None or encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            encoding = "utf-8-sig"  # a byte order mark does not belong to the first name
        separators = cleaning.separators or found.separators[0]
        if cleaning.separators is None and separators != default:
            self.report.notes.append(f"columns are separated by {separators!r}")
        return Notation(encoding=encoding, separators=separators, skip=cleaning.skip, header=cleaning.header)


def guess_id_columns(header: Sequence[str], rows: Iterable[Sequence[str]], limits: Limits) -> list[str]:
    """Return the columns that a reader would take for the nodes and for the hyperedges, judged by the first rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with path.open("w", encoding="utf-8", errors="replace", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([header, *islice(rows, _SAMPLE_ROWS)])
        try:
            return list(find_id_columns(path, limits))
        except DataError as error:
            raise DataError(error.problem, remedy="Name the columns of ids with `id_column=`.") from error
