"""What the name of a table says: ``baskets.nodes.csv.gz`` is ``baskets.nodes``, CSV, compressed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple

from edhnn.errors import UsageError
from edhnn.io.files import open_existing

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
        """Return the name of the table of nodes or hyperedges beside it."""
        return f"{self.stem}.{what}{self.suffix}"


class OtherTables(NamedTuple):
    """Tables of nodes or hyperedges that are named after an incidence table but end otherwise.

    Attributes:
        free: Those without an incidence table of their own.
        owned: Those that stand beside one with their ending, and belong to it.
    """

    free: list[Path]
    owned: list[Path]


def table_name(path: Path) -> TableName:
    """Return the parts of a table's name; a usage error for another kind of file."""
    name = _split(path)
    if name is None:
        raise UsageError(
            f"A table must end in .csv, .tsv or .parquet (.gz may follow the first two). Got '{path.name}'."
        )
    return name


def table_to_read(path: Path) -> TableName:
    """Return the parts of the name of a table to be read; where its ending does not tell, it is CSV or Parquet."""
    name = _split(path)
    if name is not None:
        return name
    with open_existing(path) as stream:
        kind: TableKind = "parquet" if stream.read(len(_PARQUET)) == _PARQUET else "csv"
    return TableName(path.stem, path.suffix, kind)


def other_neighbours(path: Path, name: TableName, what: str) -> OtherTables:
    """Return the tables beside an incidence table that end otherwise than it does: ``a.nodes.csv`` beside ``a.tsv``."""
    try:
        names = {found.name for found in path.parent.iterdir()}
    except OSError:  # no such folder, or one that may not be looked into
        names = set()
    start = f"{name.stem}.{what}"
    endings = sorted(found.removeprefix(start) for found in names - {name.neighbour(what)} if found.startswith(start))
    known = [ending for ending in endings if ending.lower() in _ENDINGS]
    return OtherTables(
        [path.with_name(start + ending) for ending in known if name.stem + ending not in names],
        [path.with_name(start + ending) for ending in known if name.stem + ending in names],
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
