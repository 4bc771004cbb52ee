"""Check the lines of a text table: what in it cannot be read, and the command that fixes it.

The doctor reads what can be read: if a reader refuses a table, `read_in_part` cleans a copy as far as it must and reads
that. So the findings about nodes, hyperedges and labels follow those about lines.
"""

from __future__ import annotations

import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, final

from edhnn.data.dataset import NodeDataset
from edhnn.data.limits import Limits
from edhnn.doctor.checks import Finding, Severity, counted
from edhnn.doctor.clean import Cleaning, clean_table, guess_id_columns
from edhnn.errors import DataError, EdhnnError, LimitError, UsageError
from edhnn.io.files import open_limited
from edhnn.io.tables.lines import (
    PROBLEMS,
    LineReport,
    Problem,
    find_notation,
    scan_lines,
)
from edhnn.io.tables.names import table_to_read

_OFFERED = ("cp1252", "latin-1", "cp1250", "cp1251")
"""Encodings to offer for lines that are not UTF-8. Which one is right, only a reader of the text can tell."""
_USUAL_WIDTH = 0.8
_LINES_OF_A_READABLE_TABLE = 500_000
"""A reader has checked every line of such a table; what is left to find shows in the first ones."""


@final
@dataclass(frozen=True, slots=True)
class TableCheck:
    """What was found in the lines of a table.

    Attributes:
        path: The file.
        findings: The problems.
        needed: What must be cleaned before the table can be read.
        ids: The columns of nodes and hyperedges.
        lines: The number of lines.
        rows: The number of rows that can be read.
    """

    path: Path
    findings: tuple[Finding, ...]
    needed: Cleaning
    ids: tuple[str, ...]
    lines: int
    rows: int

    def command(self, options: Sequence[str]) -> str:
        """Return the command that cleans the file, ready for a shell."""
        name = table_to_read(self.path)
        suffix = name.suffix if name.suffix.lower().startswith((".csv", ".tsv")) else ".csv"
        target = self.path.with_name(f"{name.stem}.clean{suffix}")
        return shlex.join(["edhnn", "data", "clean", str(self.path), str(target), *options])


class PartRead(NamedTuple):
    """A dataset, read as far as possible, and what was found in its tables.

    Attributes:
        dataset: The dataset, or ``None`` if not even a part could be read.
        checks: The checked tables; the first is the table of memberships.
        refusal: Why a reader refuses the files as they are.
    """

    dataset: NodeDataset | None
    checks: list[TableCheck]
    refusal: EdhnnError | None


def read_in_part(
    path: Path, read: Callable[[dict[Path, Path]], NodeDataset], limits: Limits, ids: Sequence[str] = ()
) -> PartRead:
    """Check the lines of a table and read it, or as much of it and of its neighbours as can be read.

    Args:
        path: The table of memberships.
        read: Reads the dataset. It receives cleaned copies by the paths of the files that they replace.
        limits: Size limits.
        ids: The columns of nodes and hyperedges, if they are known.

    Raises:
        LimitError: if a file is too large.
        UsageError: if a file or a column does not exist.
    """
    try:
        dataset = read({})
        return PartRead(dataset, [check_table(path, limits, _ids(dataset), most=_LINES_OF_A_READABLE_TABLE)], None)
    except LimitError:
        raise
    except DataError as error:
        refusal, broken = error, Path(error.path or path)
    checks: list[TableCheck] = []
    cleaned: dict[Path, Path] = {}
    with tempfile.TemporaryDirectory() as folder:
        while all(check.path != broken for check in checks) and _is_text_table(broken):
            checks.append(check_table(broken, limits, ids if broken == path else (), is_listing=broken != path))
            copy = Path(folder) / str(len(checks)) / broken.name
            copy = copy if copy.suffix.lower() in (".csv", ".tsv", ".gz") else copy.with_name(f"{copy.name}.csv")
            copy.parent.mkdir()
            try:
                clean_table(broken, copy, checks[-1].needed, limits=limits)
                cleaned[broken] = copy
                return PartRead(read(cleaned), checks, refusal)
            except LimitError:
                raise
            except DataError as error:
                broken = next((old for old, new in cleaned.items() if error.path == new), Path(error.path or path))
    return PartRead(None, checks, refusal)


def _ids(dataset: NodeDataset) -> tuple[str, ...]:
    """Return the columns of nodes and hyperedges that a reader used."""
    columns = dataset.provenance.details.get("columns")
    names = [columns.get(kind) for kind in ("node", "edge")] if isinstance(columns, Mapping) else []
    return tuple(name for name in names if isinstance(name, str))


def _is_text_table(path: Path) -> bool:
    return path.is_file() and table_to_read(path).kind in ("csv", "tsv")


def check_table(
    path: Path, limits: Limits, ids: Sequence[str] = (), *, is_listing: bool = False, most: int | None = None
) -> TableCheck:
    """Check the lines of a text table.

    Args:
        path: The file.
        limits: Size limits.
        ids: The columns of nodes and hyperedges; by default they are guessed.
        is_listing: Whether it is a table of nodes or of hyperedges, which has one column of ids.
        most: Lines to check; by default all.
    """
    default = "\t" if table_to_read(path).kind == "tsv" else ","
    notation = find_notation(path, limits, default=default)
    report = scan_lines(path, limits, notation, most=most)
    if _is_baskets(report):
        return _baskets(path, report, limits)
    found: list[Finding] = []
    wish = Cleaning(encoding=notation.encoding if notation.encoding.startswith("utf-16") else None, skip=notation.skip)
    if wish.encoding:
        found.append(
            _finding(
                "error",
                "encoding",
                f"The text is {wish.encoding}, not UTF-8.",
                count=report.lines,
                clean=wish.options(),
            )
        )
    if notation.skip:
        lines = "The first line is" if notation.skip == 1 else f"The first {notation.skip} lines are"
        found.append(
            _finding(
                "error",
                "lines-above-header",
                f"{lines} not the names of the columns; {_shown_columns(report.columns)} look like them.",
                count=notation.skip,
                clean=["--skip-lines", str(notation.skip)],
            )
        )
    named = _header(report)
    if named is not None:
        header, remark = named
        wish = replace(wish, header=header, skip=wish.skip if remark.code == "no-header" else wish.skip + 1)
        options = Cleaning(header=wish.header, skip=wish.skip).options()
        found.append(replace(remark, clean=tuple(options)))
        if remark.severity == "warning":  # a reader takes the table as it is
            wish = replace(wish, header=None)
    wish = _bad_lines(path, report, limits, wish, found)
    names = list(wish.header or report.columns)
    chosen = list(ids)
    if is_listing:
        chosen = [next((name for name in names if name.lower() == "id"), names[0])]
    elif not chosen and len(names) > 1:
        rows = (row.fields for row in report.first if row.problem is None)
        try:
            chosen = guess_id_columns(names, rows, limits)
        except (DataError, UsageError):  # the reader's refusal says which columns are possible
            chosen = []
    empty = [name for name in chosen if name in names and report.empty[names.index(name)]]
    if empty:
        counts = ", ".join(f"'{name}' in {counted(report.empty[names.index(name)], 'row', 'rows')}" for name in empty)
        lines = ", ".join(str(report.first_empty[names.index(name)]) for name in empty)
        wish = replace(wish, drop_empty=True, ids=tuple(chosen))
        found.append(
            _finding(
                "error",
                "empty-ids",
                f"An id is empty: {counts}. First: line {lines}.",
                count=sum(report.empty[names.index(name)] for name in empty),
                clean=Cleaning(drop_empty=True, ids=tuple(chosen)).options(),
            )
        )
    return TableCheck(path, tuple(found), wish, tuple(chosen), report.lines, report.rows)


def _finding(
    severity: Severity, code: str, message: str, *, count: int = 0, clean: Sequence[str] = (), remedy: str | None = None
) -> Finding:
    return Finding(severity=severity, code=code, message=message, remedy=remedy, count=count, clean=tuple(clean))


_CODES: dict[Problem, str] = {
    "fields": "ragged-lines",
    "separator": "mixed-separators",
    "extra": "extra-fields",
    "quote": "open-quotes",
    "encoding": "not-utf-8",
    "zero": "zero-bytes",
    "header": "repeated-header",
    "blank": "blank-lines",
}


def _bad_lines(path: Path, report: LineReport, limits: Limits, wish: Cleaning, found: list[Finding]) -> Cleaning:
    """Add a finding for each kind of bad lines; return what must be cleaned before they can be read."""
    for problem, count in report.counts.items():
        examples = "; ".join(f"line {line}: '{text[:60]}'" for line, text in report.examples[problem])
        has = counted(count, "line has", "lines have")
        message = f"{has} {PROBLEMS[problem]}. {examples}"
        severity: Severity = "error"
        part = Cleaning(drop_bad_lines=True)
        if problem == "blank":
            severity, part = "note", Cleaning(drop_empty=True)
            message = f"{counted(count, 'line is', 'lines are')} empty. First: line {report.examples[problem][0][0]}."
        elif problem == "header":
            severity = "warning"
        elif problem == "extra":
            part = Cleaning(drop_extra_fields=True)
        elif problem == "separator":
            part = Cleaning(separators=report.notation.separators + "".join(sorted(report.separators)))
        elif problem == "encoding" and not report.notation.encoding.startswith("utf-16"):
            part, words = _encoding(path, report, limits)
            message = f"{has} bytes that are not UTF-8: {words}"
        if severity == "error":
            wish = replace(
                wish,
                drop_bad_lines=wish.drop_bad_lines or part.drop_bad_lines,
                drop_extra_fields=wish.drop_extra_fields or part.drop_extra_fields,
                separators=part.separators or wish.separators,
                encoding=part.encoding or wish.encoding,
            )
        remedy = "A reader skips them." if problem == "blank" else None
        found.append(_finding(severity, _CODES[problem], message, count=count, clean=part.options(), remedy=remedy))
    return wish


def _encoding(path: Path, report: LineReport, limits: Limits) -> tuple[Cleaning, str]:
    """Return what to do about lines that are not UTF-8, and how the first of them reads in each encoding."""
    wrong: list[bytes] = []
    others = 0
    with open_limited(path, limits) as stream:
        for line in iter(lambda: stream.readline(limits.max_record_bytes), b""):
            if not line.isascii():
                try:
                    line.decode()
                    others += 1
                except UnicodeDecodeError:
                    wrong.append(line.strip()) if len(wrong) < 1_000 else None
    first = report.examples["encoding"][0][0]
    readings = []
    fitting = []
    for encoding in _OFFERED:
        try:
            readings.append(f"'{[_odd_word(line, encoding) for line in wrong][0]}' in {encoding}")  # noqa: RUF015
            fitting.append(encoding)
        except UnicodeDecodeError:  # one of the lines has a byte that this encoding does not have
            continue
    best, sentence = fitting[0], f"line {first} has {', '.join(readings)}."
    if others:
        return (
            Cleaning(drop_bad_lines=True),
            f"{sentence} But {counted(others, 'other line is', 'other lines are')} UTF-8 beyond ASCII, so that the "
            "file mixes encodings. Export it again if you can.",
        )
    return Cleaning(encoding=best), f"{sentence} Name the encoding in which the text is right; {best} is a guess."


def _odd_word(line: bytes, encoding: str) -> str:
    """Return the first word of a line that is not ASCII."""
    words = line.decode(encoding).replace(";", " ").replace(",", " ").split()
    return next((word for word in words if not word.isascii()), "")[:40]


def _shown_columns(columns: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in columns[:5])
    return f"{shown}, ..." if len(columns) > 5 else shown


def _header(report: LineReport) -> tuple[tuple[str, ...], Finding] | None:
    """Return better names of the columns, if the first line does not name them or repeats or omits a name."""
    columns = report.columns
    rows = [row.fields for row in report.first if row.problem is None]
    names = ("node", "hyperedge", *(f"column{number}" for number in range(3, len(columns) + 1)))[: len(columns)]
    repeated = [name for name, count in Counter(columns).items() if count > 1 or not name.strip()]
    numbers = bool(columns) and all(_is_number(name) for name in columns)
    if numbers or (columns and not repeated and _is_data(columns, rows)):
        shown = report.notation.separators[0].join(columns)
        return names, _finding(
            "error" if numbers else "warning",
            "no-header",
            f"The first line looks like data: '{shown[:60]}'.",
            count=1,
            remedy="If it is, write the names of your columns instead of these, in their order; 'node' and 'hyperedge' "
            "are a guess.",
        )
    if repeated:
        used: Counter[str] = Counter()
        better = []
        for number, name in enumerate(columns, start=1):
            name = name.strip() or f"column{number}"
            used[name] += 1
            better.append(name if used[name] == 1 else f"{name}_{used[name]}")
        what = ", ".join(f"'{name}'" for name in repeated)
        severe: Severity = "error" if max(Counter(columns).values()) > 1 else "warning"
        return tuple(better), _finding(
            severe, "column-names", f"Names of columns are empty or repeated: {what}.", count=len(repeated)
        )
    return None


def _is_data(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a name of a column is a value of that column too, or a number like all of its values."""
    for column, name in enumerate(columns):
        values = [row[column] for row in rows]
        if name.strip() and name in values:
            return True
        if len(values) >= 2 and _is_number(name) and all(_is_number(value) for value in values if value):
            return len(columns) == 2
    return False


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _is_baskets(report: LineReport) -> bool:
    """Return whether the lines have many lengths, and the values of the first one stand in several places of others."""
    widths = Counter(report.widths)
    widths[len(report.columns)] += 1
    if len(widths) < 2 or max(widths.values()) >= _USUAL_WIDTH * widths.total() or report.separators:
        return False
    rows = [row.fields for row in report.first if row.problem != "header"]
    is_data = any(name in row for name in report.columns for row in rows)
    rows.append(report.columns)
    firsts = {row[0] for row in rows if row}
    later = {name for row in rows for name in row[1:]}
    return is_data and len(firsts & later) > 0.2 * len(firsts)


def _baskets(path: Path, report: LineReport, limits: Limits) -> TableCheck:
    need = Cleaning(one_basket_per_line=True)
    if report.notation.encoding.startswith("utf-16"):
        need = replace(need, encoding=report.notation.encoding)
    kinds: tuple[Problem, ...] = ("quote", "encoding", "zero")
    bad = [problem for problem in kinds if report.counts[problem]]
    if "encoding" in bad:
        need = replace(need, encoding=_encoding(path, report, limits)[0].encoding)
    need = replace(need, drop_bad_lines=bool(bad) and (bad != ["encoding"] or need.encoding is None))
    lengths = {len(report.columns), *report.widths}
    finding = _finding(
        "error",
        "one-basket-per-line",
        "Each line seems to list the members of one hyperedge: "
        f"the lines have {min(lengths)} to {max(lengths)} fields, and the same values stand in several "
        "places.",
        count=report.lines,
        clean=need.options(),
    )
    return TableCheck(path, (finding,), need, ("node", "hyperedge"), report.lines, report.lines)
