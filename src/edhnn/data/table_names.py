"""What the name of a table says: ``baskets.nodes.csv.gz`` is ``baskets.nodes``, CSV, compressed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple

from edhnn.data.files import open_existing
from edhnn.errors import UsageError

TableKind = Literal["csv", "tsv", "parquet"]
_ENDINGS = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")
_PARQUET = b"PAR1"
_NAME = re.compile(r"(.*)(\.(csv|tsv|parquet)(\.gz)?)", re.IGNORECASE | re.ASCII | re.DOTALL)


class TableName(NamedTuple):
    """The parts of a table's name; the suffix as it is written, ``.CSV.GZ``."""

    stem: str
    suffix: str
    kind: TableKind

    def neighbour(self, what: str) -> str:
        """The name of the table of nodes or hyperedges beside it."""
        return f"{self.stem}.{what}{self.suffix}"


def table_name(path: Path) -> TableName:
    """The parts of a table's name; a usage error for another kind of file."""
    found = _split(path)
    if found is None:
        raise UsageError(
            f"A table must end in .csv, .tsv or .parquet (.gz may follow the first two). Got '{path.name}'."
        )
    return found


def table_kind(path: Path) -> TableKind | None:
    """The kind of table a file name says, compressed or not; ``None`` for another kind of file."""
    found = _split(path)
    return None if found is None else found.kind


def table_to_read(path: Path) -> TableName:
    """The parts of the name of a file that is said to be a table: where its ending does not tell, CSV or Parquet."""
    found = _split(path)
    if found is not None:
        return found
    with open_existing(path) as stream:
        kind: TableKind = "parquet" if stream.read(len(_PARQUET)) == _PARQUET else "csv"
    return TableName(path.stem, path.suffix, kind)


def table_neighbour(path: Path, what: str) -> Path:
    """The table of nodes or hyperedges that is named after an incidence table."""
    return path.with_name(table_name(path).neighbour(what))


class OtherTables(NamedTuple):
    """Tables of nodes or hyperedges that are named after an incidence table but end otherwise.

    Attributes:
        free: Those without an incidence table of their own.
        owned: Those that stand beside one with their ending, and belong to it.
    """

    free: list[Path]
    owned: list[Path]


def other_neighbours(path: Path, name: TableName, what: str) -> OtherTables:
    """The tables beside an incidence table that end otherwise than it does: ``a.nodes.csv`` beside ``a.tsv``."""
    own, stem = name.neighbour(what), name.stem
    try:
        names = {found.name for found in path.parent.iterdir()}
    except OSError:  # no such folder, or one that may not be looked into
        names = set()
    begun = f"{stem}.{what}"
    endings = sorted(name.removeprefix(begun) for name in names if name.startswith(begun) and name != own)
    known = [ending for ending in endings if ending.lower() in _ENDINGS]
    return OtherTables(
        [path.with_name(begun + ending) for ending in known if stem + ending not in names],
        [path.with_name(begun + ending) for ending in known if stem + ending in names],
    )


def _split(path: Path) -> TableName | None:
    found = _NAME.fullmatch(path.name)
    if found is None:
        return None
    stem, suffix, ending, compressed = found.groups()
    kind: TableKind = ending.lower()  # type: ignore[assignment]  # the pattern has no others
    if compressed and kind == "parquet":
        raise UsageError(
            f"Parquet compresses itself, so its name must end in .parquet. Got '{path.name}'. "
            "Unpack the file or rename it."
        )
    return TableName(stem, suffix, kind)
