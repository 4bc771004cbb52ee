"""What the name of a table says: ``baskets.nodes.csv.gz`` is ``baskets.nodes``, CSV, compressed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple

from edhnn.errors import UsageError

TableKind = Literal["csv", "tsv", "parquet"]
_NAME = re.compile(r"(.*)(\.(csv|tsv|parquet)(\.gz)?)", re.IGNORECASE | re.ASCII | re.DOTALL)


class TableName(NamedTuple):
    """The parts of a table's name; the suffix as it is written, ``.CSV.GZ``."""

    stem: str
    suffix: str
    kind: TableKind


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


def table_neighbour(path: Path, what: str) -> Path:
    """The table of nodes or hyperedges that is named after an incidence table."""
    name = table_name(path)
    return path.with_name(f"{name.stem}.{what}{name.suffix}")


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
