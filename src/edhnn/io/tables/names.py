"""The parts of a table's file name: ``baskets.nodes.csv.gz`` is ``baskets.nodes``, CSV, compressed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple

from edhnn.errors import UsageError
from edhnn.io.files import open_existing

TableKind = Literal["csv", "tsv", "parquet", "xlsx"]
_ENDINGS = (".csv", ".tsv", ".parquet", ".xlsx", ".csv.gz", ".tsv.gz")
_PARQUET = b"PAR1"
_NAME = re.compile(r"(.*)(\.(csv|tsv|parquet|xlsx)(\.gz)?)", re.IGNORECASE | re.ASCII | re.DOTALL)


class TableName(NamedTuple):
    """The parts of a table's name. The suffix keeps its case, ``.CSV.GZ``."""

    stem: str
    suffix: str
    kind: TableKind

    def neighbour(self, what: str) -> str:
        """Return the name of its table of nodes or hyperedges."""
        return f"{self.stem}.{what}{self.suffix}"


class OtherTables(NamedTuple):
    """Tables of nodes or hyperedges that are named after an incidence table but have another ending.

    Attributes:
        free: Those without an incidence table of the same ending.
        owned: Those that belong to an incidence table of the same ending.
    """

    free: list[Path]
    owned: list[Path]


def table_name(path: Path) -> TableName:
    """Return the parts of the name of a table to write, or raise a `UsageError` if it is not a table's name."""
    name = _split(path)
    if name is None or name.kind == "xlsx":
        raise UsageError(
            f"The name of a table must end in .csv, .tsv or .parquet (or .csv.gz, .tsv.gz). Got '{path.name}'."
        )
    return name


def table_to_read(path: Path) -> TableName:
    """Return the parts of the name of a table to read. If the ending is unknown, examine the first bytes."""
    name = _split(path)
    if name is not None:
        return name
    with open_existing(path) as stream:
        kind: TableKind = "parquet" if stream.read(len(_PARQUET)) == _PARQUET else "csv"
    return TableName(path.stem, path.suffix, kind)


def other_neighbours(path: Path, name: TableName, what: str) -> OtherTables:
    """Return the tables of an incidence table that have another ending: ``a.nodes.csv`` beside ``a.tsv``."""
    try:
        names = {file.name for file in path.parent.iterdir()}
    except OSError:  # the folder is missing or may not be read
        names = set()
    start = f"{name.stem}.{what}"
    endings = sorted(other.removeprefix(start) for other in names - {name.neighbour(what)} if other.startswith(start))
    known = [ending for ending in endings if ending.lower() in _ENDINGS]
    return OtherTables(
        [path.with_name(start + ending) for ending in known if name.stem + ending not in names],
        [path.with_name(start + ending) for ending in known if name.stem + ending in names],
    )


def _split(path: Path) -> TableName | None:
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    stem, suffix, ending, compressed = match.groups()
    kind: TableKind = ending.lower()  # type: ignore[assignment]  # the pattern has no others
    if compressed and kind in ("parquet", "xlsx"):
        title = "Parquet files" if kind == "parquet" else "Workbooks"
        raise UsageError(
            f"{title} have their own compression, so the name must end in .{kind}. Got '{path.name}'. "
            "Decompress or rename the file."
        )
    return TableName(stem, suffix, kind)
