"""Where a study is kept: a journal or an SQLite file, in which a killed process leaves nothing locked or broken."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, final

import optuna
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalStorage
from sqlalchemy.exc import DatabaseError

from edhnn.errors import DataError, EdhnnError, UsageError
from edhnn.training.locks import locked

_SQLITE: Final = "sqlite:///"
_JOURNAL: Final = b'{"op_code":'
_PATIENCE = 600.0


@contextmanager
def quiet() -> Iterator[None]:
    """Within the block Optuna says nothing of its progress, nor that parts of it are experimental."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def storage_path(storage: str) -> Path:
    """The file of a storage.

    Raises:
        UsageError: if it is an address of something else than an SQLite file.
    """
    if storage.startswith(_SQLITE) and len(storage) > len(_SQLITE):
        return Path(storage.removeprefix(_SQLITE))
    if "://" in storage or storage == ":memory:":
        raise UsageError(f"--storage takes a file or sqlite:///FILE. Got '{storage}'.")
    return Path(storage)


def open_storage(storage: str, work: Path) -> BaseStorage:
    """Open a storage, and make it if there is none.

    Args:
        storage: A file for Optuna's journal, or ``sqlite:///FILE``.
        work: A folder for its lock.

    Returns:
        Optuna's storage.

    Raises:
        DataError: if the file is there and holds something else.
    """
    path, lock = storage_path(storage), JournalLock(work / "journal.lock")
    try:
        if storage.startswith(_SQLITE):
            return RDBStorage(storage)
        lock.acquire()
        try:
            cut_broken_line(path)
        finally:
            lock.release()
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
    except (ValueError, KeyError, DatabaseError) as error:
        raise DataError(
            f"The file must be a journal or a database of Optuna's. Reading it said: {str(error).splitlines()[0]}.",
            path=path,
            remedy="Choose another file with --storage.",
        ) from error


def cut_broken_line(path: Path) -> None:
    """Cut away a last line that a fall of the machine left unfinished.

    Raises:
        ValueError: if the file is not a journal; it is left as it is.
    """
    if not path.is_file():
        return
    with path.open("r+b") as stream:
        content = stream.read()
        if not content.startswith(_JOURNAL[: len(content)]):
            raise ValueError(f"it begins with {content[:12]!r}")
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(stream.fileno(), whole)


@final
class JournalLock(JournalFileOpenLock):
    """Optuna's own locks of a journal outlive a killed holder for half a minute; this one vanishes with it."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path, self._held = path, ExitStack()

    def acquire(self) -> bool:
        """Wait for the lock."""
        held = ExitStack()
        if not held.enter_context(locked(self._path, wait=_PATIENCE)):
            raise EdhnnError(f"The journal could not be written for ten minutes: somebody holds '{self._path}'.")
        self._held = held
        return True

    def release(self) -> None:
        """Give it back."""
        self._held.close()
