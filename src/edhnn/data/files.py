"""Files opened within limits and written whole or not at all.

Reading: gzip is recognised by its first bytes, the decompressed size is bounded, and a progress bar appears on a
terminal once the work has taken a second. Writing: everything goes to a temporary neighbour that is renamed over
the target at the end, so a reader never meets half a file.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from edhnn.errors import DataError, LimitError, UsageError

_GZIP_MAGIC = b"\x1f\x8b"
_PATIENCE_SECONDS = 1.0


@runtime_checkable
class ByteReader(Protocol):
    """A source of bytes: a file, a decompressed file."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""


@runtime_checkable
class ByteWriter(Protocol):
    """A place for bytes: a file, a compressed file, a checksum."""

    def write(self, data: bytes, /) -> int:
        """Take all of ``data``."""


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


class DelayedBar:
    """A progress bar on standard error that stays away from short work, pipes and logs.

    Args:
        title: What is under way.
        total: Its size, in bytes if ``in_bytes`` and in steps otherwise.
        in_bytes: How to write amounts.
    """

    def __init__(self, title: str, total: int, *, in_bytes: bool = True) -> None:
        self._title, self._total, self._in_bytes = title, total, in_bytes
        self._begun = time.monotonic()
        self._wanted = sys.stderr.isatty()
        self._progress: Progress | None = None

    def show(self, done: int, note: str = "") -> None:
        """Move the bar; the first call after a second makes it appear. The note stands behind the title."""
        if not self._wanted or time.monotonic() - self._begun < _PATIENCE_SECONDS:
            return
        if self._progress is None:
            amount = DownloadColumn() if self._in_bytes else MofNCompleteColumn()
            columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.add_task(self._title, total=self._total)
            self._progress.start()
        self._progress.update(self._progress.task_ids[0], completed=done, description=f"{self._title}{note}")

    def close(self) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """A temporary path beside ``target`` that becomes it if the block succeeds, and vanishes if not."""
    _need_parent(target)
    if target.is_dir():
        raise UsageError(f"'{target}' must be a file. It is a folder.")
    with _writing(target):
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder beside ``target`` that becomes it if the block succeeds, and vanishes if not."""
    _need_parent(target)
    if target.exists() and not target.is_dir():
        raise UsageError(f"'{target}' must be a folder. It is a file.")
    if target.exists() and any(target.iterdir()) and not overwrite:
        raise UsageError(f"'{target}' exists already. Choose another name, or replace it with --force.")
    with _writing(target):
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if target.exists():
            aside = temporary.with_suffix(".old")
            target.replace(aside)
            try:
                temporary.replace(target)
            except BaseException:
                aside.replace(target)
                raise
            shutil.rmtree(aside)
        else:
            temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def refuse_foreign(target: Path, sign: str, kind: str) -> None:
    """A usage error if a folder that is about to be replaced holds something, but not the file that is its sign."""
    if target.is_dir() and any(target.iterdir()) and not (target / sign).exists():
        raise UsageError(f"'{target}' is not a {kind} folder, so it is not replaced. Choose another name.")


@contextmanager
def compressed_by_name(path: Path, name: str) -> Iterator[ByteWriter]:
    """Open ``path`` for writing, gzip-compressed if the final ``name`` ends in ``.gz``; same bytes every time."""
    with path.open("wb") as raw:
        if name.endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as stream:
                yield stream
        else:
            yield raw


def _need_parent(target: Path) -> None:
    if not target.parent.is_dir():
        raise UsageError(f"The folder '{target.parent}' must exist before '{target.name}' is written into it.")


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"'{target}' cannot be written: {(error.strerror or str(error)).lower()}.") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
