"""Size limits for input: a small file stays small in memory.

Without options, three rules relate what a file may claim to what it contains:

    decompressed bytes   at most 50 times the compressed file. Text may always reach 8 MiB, the columns of a Parquet
                         file 64 MiB, and the arrays of an .npz file, which take no more memory than their bytes,
                         256 MiB. No input may exceed 16 GiB.
    counts               at most 10 nodes, classes, columns or hyperedges for each entry of the file (a membership, a
                         label, a feature). One million are always allowed, and never more than 100 million.
    records              a line of text at most 64 MiB, a JSON record 16 MiB. A JSON document has at most one list or
                         object for every 8 bytes; one million are always allowed.

``max_bytes`` replaces the first rule, lifts the limit of a JSON record to that of a line, and ends that of its lists.
``max_nodes`` replaces the second rule for nodes, classes and columns, and raises it for hyperedges.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from edhnn.errors import LimitError

MAX_BYTES = 16 * 2**30
MAX_RATIO = 50
FREE_TEXT, FREE_COLUMNS, FREE_ARRAYS = 8 * 2**20, 64 * 2**20, 256 * 2**20
MAX_NODES, FREE_NODES, NODES_PER_ENTRY = 10**8, 10**6, 10
MAX_JSON_BYTES = 16 * 2**20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Size limits for input. The module describes the rules that hold by default.

    Attributes:
        max_bytes: Size after decompression, which protects against decompression bombs. By default it depends on the
            size of the compressed file.
        max_record_bytes: Size of one line or one JSON record.
        max_nodes: Number of nodes, classes or columns that a file may declare; a short file can declare many. By
            default it depends on the number of entries in the file.
    """

    max_bytes: int | None = None
    max_record_bytes: int = 64 * 2**20
    max_nodes: int | None = None

    def most_bytes(self, stored: int, free: int = FREE_TEXT) -> int:
        """Return the largest size after decompression of a file of ``stored`` bytes, at least ``free`` by default."""
        if self.max_bytes is not None:
            return self.max_bytes
        return min(max(MAX_RATIO * stored, free), MAX_BYTES)

    @property
    def max_json_bytes(self) -> int:
        """Size of one JSON record; its objects take about 25 times the memory of its text."""
        return min(self.max_record_bytes, MAX_JSON_BYTES) if self.max_bytes is None else self.max_record_bytes

    def check_nodes(self, count: int, path: Path, entries: int | None = None) -> None:
        """Raise `LimitError` if there are too many nodes, before memory is allocated."""
        self.check_count("nodes", count, path, entries=entries)

    def check_count(
        self, what: str, count: int, path: Path | None, where: str | None = None, *, entries: int | None = None
    ) -> None:
        """Raise `LimitError` if there are too many nodes, classes or columns, before memory is allocated.

        Args:
            what: The plural of what is counted.
            count: The number that the file declares.
            path: The file.
            where: The place in the file.
            entries: The number of entries in the file that can support the count; ``None`` if each one has an entry.
        """
        supported = MAX_NODES if entries is None else _most_nodes(entries)
        most = supported if self.max_nodes is None else self.max_nodes
        if count > most:
            raise _too_many(what, count, most, path, where, None if self.max_nodes is not None else entries)

    def check_hyperedges(self, count: int, path: Path, entries: int) -> None:
        """Raise `LimitError` if far more hyperedges than memberships were read, so that most hyperedges are empty."""
        most = max(self.max_nodes or 0, _most_nodes(entries))
        if count > most:
            raise _too_many("hyperedges", count, most, path, None, entries)


def _most_nodes(entries: int) -> int:
    return min(max(NODES_PER_ENTRY * entries, FREE_NODES), MAX_NODES)


def _too_many(
    what: str, count: int, most: int, path: Path | None, where: str | None, entries: int | None
) -> LimitError:
    reason = "" if entries is None else f" in a file of {entries} entries"
    return LimitError(
        f"There must be at most {most} {what}{reason}. Got {count}.",
        path=path,
        where=where,
        remedy="If you trust the file, raise the limit with `max_nodes=`.",
    )


def size_in_words(count: int | float) -> str:
    """Return a byte count as text: ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
