"""Size limits for input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from edhnn.errors import LimitError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Size limits for input.

    Attributes:
        max_bytes: Size after decompression; protects against decompression bombs.
        max_record_bytes: Size of one line or one JSON record.
        max_nodes: Number of nodes, classes or columns that a file may declare; a short file can declare many.
    """

    max_bytes: int = 16 * 2**30
    max_record_bytes: int = 64 * 2**20
    max_nodes: int = 10**8

    def check_nodes(self, count: int, path: Path) -> None:
        """Raise `LimitError` if there are too many nodes, before memory is allocated."""
        self.check_count("nodes", count, path)

    def check_count(self, what: str, count: int, path: Path | None, where: str | None = None) -> None:
        """Raise `LimitError` if there are too many nodes, classes or columns, before memory is allocated."""
        if count > self.max_nodes:
            raise LimitError(
                f"There must be at most {self.max_nodes} {what}. Got {count}.",
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
