"""Files opened within limits.

Gzip is recognised by its first bytes, the decompressed size is bounded, and a progress bar appears on a terminal once
the work has taken a second. `edhnn.data.atomic` writes.
"""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

from edhnn.data.progress import DelayedBar
from edhnn.errors import DataError, LimitError, UsageError

_GZIP_MAGIC = b"\x1f\x8b"


@runtime_checkable
class ByteReader(Protocol):
    """A source of bytes: a file, a decompressed file."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large an input may be.

    Attributes:
        max_bytes: Size after decompression, which guards against decompression bombs.
        max_record_bytes: Size of one line or one JSON record.
        max_nodes: Number of nodes a file may claim, and of classes and columns; a short file can claim many.
    """

    max_bytes: int = 16 * 2**30
    max_record_bytes: int = 64 * 2**20
    max_nodes: int = 10**8

    def check_nodes(self, count: int, path: Path) -> None:
        """Refuse a number of nodes beyond the limit, before memory is asked for."""
        self.check_count("nodes", count, path)

    def check_count(self, what: str, count: int, path: Path | None, where: str | None = None) -> None:
        """Refuse a number of nodes, classes or columns beyond the limit, before memory is asked for."""
        if count > self.max_nodes:
            raise LimitError(
                f"There must be at most {self.max_nodes} {what}. Got {count}.",
                path=path,
                where=where,
                remedy="If you trust the file, raise the limit with --max-nodes.",
            )


def size_in_words(count: int | float) -> str:
    """A byte count for people: ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def need_utf8(content: bytes, what: str, path: Path, first_line: int = 1) -> str:
    """The text of a file, or of lines of it from the first on; a data error that names the line if it is not UTF-8."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content:
        raise DataError(
            f"{what} must be UTF-8 text. Got UTF-16, or zero bytes.",
            path=path,
            where=f"line {content.count(10, 0, max(content.find(0), 0)) + first_line}",
            remedy="Convert the file, for example with iconv -f utf-16 -t utf-8.",
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + first_line
        raise DataError(
            f"{what} must be UTF-8 text. Got the byte 0x{content[error.start]:02x}.",
            path=path,
            where=f"line {line}",
            remedy="Convert the file, for example with iconv -f latin1 -t utf-8.",
        ) from error


class LimitedReader(io.RawIOBase):
    """Bytes of a file, decompressed, counted against the limits and shown on a progress bar."""

    def __init__(self, path: Path, limits: Limits) -> None:
        super().__init__()
        self.path, self.limits, self.consumed = path, limits, 0
        self._raw = open_existing(path)
        compressed = self._raw.read(2) == _GZIP_MAGIC
        self._raw.seek(0)
        self._stream: io.BufferedReader | gzip.GzipFile = gzip.GzipFile(fileobj=self._raw) if compressed else self._raw
        self._bar = DelayedBar(f"Reading {path.name}", path.stat().st_size)

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; raises our errors for broken compression and for too much of it."""
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"The gzip data must be complete and intact. Decompression said: {error}.",
                path=self.path,
                where=f"after {self.consumed} bytes",
                remedy="Copy or download the file again.",
            ) from error
        self.consumed += len(data)
        if self.consumed > self.limits.max_bytes:
            raise LimitError(
                f"The content must be at most {size_in_words(self.limits.max_bytes)} after decompression.",
                path=self.path,
                remedy="If you trust the file, raise the limit with --max-bytes.",
            )
        buffer[: len(data)] = data
        self._bar.show(self._raw.tell())
        return len(data)

    def close(self) -> None:
        """Close the file and remove the bar."""
        if not self.closed:
            self._bar.close()
            self._stream.close()
            self._raw.close()
        super().close()


def open_limited(path: Path, limits: Limits, buffer_bytes: int = 2**20) -> io.BufferedReader:
    """Open a plain or gzip-compressed file for reading within the limits."""
    return io.BufferedReader(LimitedReader(path, limits), buffer_bytes)


def need_utf8_lines(path: Path, limits: Limits) -> None:
    """A data error at the first line of a text table that is not UTF-8."""
    with open_limited(path, limits) as stream:
        lines = iter(lambda: stream.readline(limits.max_record_bytes), b"")
        for number, line in enumerate(lines, start=1):
            need_utf8(line, "A text table", path, number)


def open_existing(path: Path) -> io.BufferedReader:
    """Open a file for reading; a usage error if there is none."""
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except IsADirectoryError as error:
        raise UsageError(f"'{path}' must be a file. It is a folder.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {(error.strerror or str(error)).lower()}.") from error
