"""Open files within size limits, write them atomically, and show progress.

Reading recognises gzip by its first bytes and bounds the decompressed size. Writing uses a temporary file beside the
target and renames it at the end. So no reader sees a partial file, and a failure leaves the old file unchanged.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from edhnn.data.limits import FREE_TEXT, Limits, size_in_words
from edhnn.errors import DataError, LimitError, UsageError, shown
from edhnn.notebook import NotebookBar, shows_bars
from edhnn.typing import ByteWriter

_BAR_APPEARS_AFTER = 1.0  # seconds
TEXT_TABLE = "A text table"
_GZIP_MAGIC = b"\x1f\x8b"
_KINDS = (
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)
MAX_DOCUMENT_BYTES = 256 * 2**20
"""The largest JSON or TOML document that is read as a whole."""


def open_existing(path: Path) -> io.BufferedReader:
    """Open a regular file for reading, or raise a `UsageError` if that is impossible."""
    need_regular(path)
    with usage_errors(path, "read"):
        return path.open("rb")


def need_regular(path: Path) -> None:
    """Raise a `UsageError` unless a path is a regular file: opening a pipe may wait forever, and a device may not end.

    Every reader calls this before it opens a file.
    """
    with usage_errors(path, "read"):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError as error:
            raise UsageError(f"File not found: '{path}'.") from error
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "special file")
        remedy = " Save its content in a file first." if kind == "pipe" else ""
        raise UsageError(f"'{path}' must be a file. It is a {kind}.{remedy}")


def read_document(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Read the whole content of a regular file.

    Raises:
        UsageError: if the file cannot be read.
        LimitError: if it is larger than ``max_bytes``.
    """
    with open_existing(path) as stream, usage_errors(path, "read"):
        if os.fstat(stream.fileno()).st_size > max_bytes:
            raise LimitError(f"The file must be at most {size_in_words(max_bytes)}. It is larger.", path=path)
        return stream.read()  # with a size, Python would allocate that many bytes at once


@contextmanager
def usage_errors(path: Path, verb: str) -> Iterator[None]:
    """Turn an `OSError` of the block into a `UsageError`: the path cannot be read, or written."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"'{path}' cannot be {verb}: {(error.strerror or str(error)).lower()}.") from error


def open_limited(
    path: Path, limits: Limits, buffer_bytes: int = 2**20, *, content: bytes | None = None
) -> io.BufferedReader:
    """Open a plain or gzip-compressed file for reading within the limits, or the text that was made from it."""
    return io.BufferedReader(LimitedReader(path, limits, content), buffer_bytes)


@runtime_checkable
class ByteReader(Protocol):
    """A source of bytes: a file, a decompressed file."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, and none at the end."""


class LimitedReader(io.RawIOBase):
    """The decompressed bytes of a file, counted against the limits and shown on a progress bar.

    Args:
        path: The file.
        limits: Size limits.
        content: Text that was made from the file, to be read in its place.
    """

    def __init__(self, path: Path, limits: Limits, content: bytes | None = None) -> None:
        super().__init__()
        self.path, self.limits, self.consumed = path, limits, 0
        self._raw: io.BufferedReader | io.BytesIO = open_existing(path) if content is None else io.BytesIO(content)
        compressed = self._raw.read(2) == _GZIP_MAGIC
        self._raw.seek(0)
        self._stream: io.BufferedReader | io.BytesIO | gzip.GzipFile = (
            gzip.GzipFile(fileobj=self._raw) if compressed else self._raw
        )
        self._stored = path.stat().st_size if content is None else len(content)
        self._bar = DelayedBar(f"Reading {path.name}", self._stored)

    def readable(self) -> bool:
        """Return ``True``."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer. Raise a `DataError` for broken compression, a `LimitError` for too many bytes."""
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"The gzip data must be complete and intact. Cause: {error}.",
                path=self.path,
                where=f"after {self.consumed} bytes",
                remedy="Copy or download the file again.",
            ) from error
        self.consumed += len(data)
        need_bytes(self.consumed, self._stored, self.path, self.limits)
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


def need_bytes(size: int, stored: int, path: Path, limits: Limits, free: int = FREE_TEXT) -> None:
    """Raise a `LimitError` if ``size`` bytes are too many for the content of a file of ``stored`` bytes.

    Args:
        size: Bytes after decompression.
        stored: Bytes of the file.
        path: The file.
        limits: Size limits.
        free: Bytes that a file of any size may have, unless the user gives a limit.
    """
    most = limits.most_bytes(stored, free)
    if size > most:
        reason = f", because the file has {size_in_words(stored)}" if limits.max_bytes is None else ""
        raise LimitError(
            f"The content must be at most {size_in_words(most)} after decompression{reason}.",
            path=path,
            remedy="If you trust the file, raise the limit with `max_bytes=`.",
        )


def line_too_long(path: Path, limits: Limits, line: int) -> LimitError:
    """Return the error for a line beyond the limits."""
    problem = f"A line must be at most {size_in_words(limits.max_record_bytes)}."
    return LimitError(problem, path=path, where=f"line {line}")


def need_utf8(content: bytes, what: str, path: Path, first_line: int = 1) -> str:
    """Decode lines of a file, the first of which is number ``first_line``. Raise a `DataError` if one is not UTF-8."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content:
        raise DataError(
            f"{what} must be UTF-8 text. Got UTF-16, or zero bytes.",
            path=path,
            where=f"line {content.count(10, 0, max(content.find(0), 0)) + first_line}",
            remedy=_conversion(what, "utf-16"),
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + first_line
        raise DataError(
            f"{what} must be UTF-8 text. Got the byte 0x{content[error.start]:02x}.",
            path=path,
            where=f"line {line}",
            remedy=_conversion(what, "latin1"),
        ) from error


def _conversion(what: str, encoding: str) -> str:
    """Return how to convert a text to UTF-8: only text tables have a command for it."""
    if what != TEXT_TABLE:
        return f"Convert the file, for example with iconv -f {encoding} -t utf-8."
    return (
        "The command edhnn data doctor shows the text in several encodings; "
        f"edhnn data clean FILE OUT --encoding {encoding} converts it, if that is the right one."
    )


def need_utf8_lines(path: Path, limits: Limits) -> None:
    """Raise a `DataError` for the first line of a text table that is not UTF-8."""
    with open_limited(path, limits) as stream:
        lines = iter(lambda: stream.readline(limits.max_record_bytes), b"")
        for number, line in enumerate(lines, start=1):
            need_utf8(line, TEXT_TABLE, path, number)


def check_can_write(*targets: Path, overwrite: bool, folder: bool = False) -> None:
    """Check that targets can be written, before the work for them starts.

    Args:
        *targets: Files, or folders if ``folder``.
        overwrite: Whether existing targets may be replaced.
        folder: Whether the targets are folders.

    Raises:
        UsageError: if a target is a folder instead of a file or the reverse, its parent folder is missing, it exists
            and may not be replaced, or it is a symbolic link that leads nowhere.
    """
    for target in targets:
        refuse_broken_link(target)
        if target.exists() and target.is_dir() != folder:
            expected, actual = ("folder", "file") if folder else ("file", "folder")
            raise UsageError(f"'{target}' must be a {expected}. It is a {actual}.")
        if not target.parent.is_dir():
            raise UsageError(f"The folder '{target.parent}' must exist before '{target.name}' is written into it.")
    existing = [str(target) for target in targets if target.exists()]
    if existing and not overwrite:
        raise UsageError(
            f"{', '.join(existing)} exists already. Choose another name, or replace it with `overwrite=True`."
        )


def check_folder(path: Path) -> None:
    """Check that a folder can be created at a path.

    Raises:
        UsageError: if the path or one of its parents is a file, or a symbolic link that leads nowhere.
    """
    for above in (path, *path.parents):
        refuse_broken_link(above)
        if above.exists() and not above.is_dir():
            purpose = "" if above == path else f", to hold '{path.relative_to(above)}'"
            raise UsageError(f"'{above}' must be a folder{purpose}. It is a file. Choose another path.")


def refuse_broken_link(path: Path) -> None:
    """Raise a `UsageError` for a symbolic link whose target does not exist, or that leads to itself."""
    if path.is_symlink() and not path.exists():
        raise UsageError(
            f"'{path}' is a symbolic link to '{path.readlink()}', which does not exist. "
            "Remove the link, or choose another name."
        )


def refuse_foreign(target: Path, sign: str, kind: str) -> None:
    """Raise a `UsageError` for a folder that is not empty and lacks the file that all folders of this kind contain."""
    if target.is_dir() and any(target.iterdir()) and not (target / sign).exists():
        raise UsageError(f"'{target}' is not a {kind} folder, so it is not replaced. Choose another name.")


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``, which replaces it if the block succeeds and is deleted otherwise."""
    check_can_write(target, overwrite=True)
    with usage_errors(target, "written"):
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
    """Yield a temporary folder beside ``target``, which replaces it if the block succeeds and is deleted otherwise."""
    is_empty = target.is_dir() and not any(target.iterdir())
    check_can_write(target, overwrite=overwrite or is_empty, folder=True)
    target = target.resolve()  # replace the folder behind a symbolic link, not the link
    with usage_errors(target, "written"):
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        aside = temporary.with_suffix(".old")
        replace_folder(target, temporary, aside)
        if aside.exists():
            shutil.rmtree(aside)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def replace_folder(target: Path, made: Path, aside: Path) -> None:
    """Replace a folder by another one. Move the old one aside first, and back if the replacement fails."""
    if not target.exists():
        made.replace(target)
        return
    target.replace(aside)
    try:
        made.replace(target)
    except BaseException:
        aside.replace(target)
        raise


@contextmanager
def compressed_by_name(path: Path, name: str) -> Iterator[ByteWriter]:
    """Open ``path`` for writing, gzip-compressed without a time stamp if the final ``name`` ends in ``.gz``."""
    with path.open("wb") as raw:
        if name.lower().endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as stream:
                yield stream
        else:
            yield raw


class DelayedBar:
    """A progress bar on standard error or below the cell, for work longer than a second on a terminal or in a notebook.

    Args:
        title: The name of the work.
        total: Its size, in bytes if ``in_bytes`` and in steps otherwise.
        in_bytes: Whether to show amounts as bytes.
    """

    def __init__(self, title: str, total: int, *, in_bytes: bool = True) -> None:
        self._title, self._total, self._in_bytes = shown(title), total, in_bytes
        self._started = time.monotonic()
        self._in_notebook = shows_bars()
        self._shown = self._in_notebook or sys.stderr.isatty()
        self._progress: Progress | None = None
        self._notebook_bar: NotebookBar | None = None

    def show(self, done: int, note: str = "") -> None:
        """Update the bar. It appears with the first call after a second. The note follows the title."""
        if not self._shown or time.monotonic() - self._started < _BAR_APPEARS_AFTER:
            return
        if self._in_notebook:
            self._notebook_bar = self._notebook_bar or NotebookBar()
            self._notebook_bar.show(f"{self._title}{note}", done, self._total)
            return
        if self._progress is None:
            amount = DownloadColumn() if self._in_bytes else MofNCompleteColumn()
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), amount, TimeRemainingColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.add_task(self._title, total=self._total)
            self._progress.start()
        self._progress.update(self._progress.task_ids[0], completed=done, description=f"{self._title}{note}")

    def close(self) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        if self._notebook_bar is not None:
            self._notebook_bar.close()
            self._notebook_bar = None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
