"""Files and folders written whole or not at all.

Everything goes to a temporary neighbour that is renamed over the target at the end, so a reader never meets half a
file, and a failure leaves what was there.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from edhnn.errors import UsageError

REPLACE = "replace it with --force (in Python: overwrite=True)"
"""The remedy where something is there already."""


@runtime_checkable
class ByteWriter(Protocol):
    """A place for bytes: a file, a compressed file, a checksum."""

    def write(self, data: bytes, /) -> int:
        """Take all of ``data``."""


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
        raise UsageError(f"'{target}' exists already. Choose another name, or {REPLACE}.")
    target = target.resolve()  # a link stays one: the folder it leads to is replaced
    with _writing(target):
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
    """Put a folder in the place of another, which is laid aside, and comes back if that fails."""
    if not target.exists():
        made.replace(target)
        return
    target.replace(aside)
    try:
        made.replace(target)
    except BaseException:
        aside.replace(target)
        raise


def refuse_foreign(target: Path, sign: str, kind: str) -> None:
    """A usage error if a folder that is about to be replaced holds something, but not the file that is its sign."""
    if target.is_dir() and any(target.iterdir()) and not (target / sign).exists():
        raise UsageError(f"'{target}' is not a {kind} folder, so it is not replaced. Choose another name.")


@contextmanager
def compressed_by_name(path: Path, name: str) -> Iterator[ByteWriter]:
    """Open ``path`` for writing, gzip-compressed if the final ``name`` ends in ``.gz``; same bytes every time."""
    with path.open("wb") as raw:
        if name.lower().endswith(".gz"):
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
