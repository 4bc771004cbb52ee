"""Records: a line of JSON per finished job, appended and never changed.

A results folder holds ``NAME.jsonl`` for each experiment, and ``.work``: locks and the files that unfinished jobs need
to resume. A killed process may leave an incomplete last line: reading ignores it and the next append removes it. A
complete last line without a newline, as an editor may leave it, is a record, and the next append adds the newline.

Files only grow, so a `Records` object reads each line once: later calls read the lines that any process appended since.
A file that became shorter or was replaced is read again from its beginning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, final

import msgspec

from edhnn.data.limits import size_in_words
from edhnn.errors import DataError, LimitError
from edhnn.io.files import check_folder, need_regular, open_existing
from edhnn.io.json_files import json_line, parse_json
from edhnn.parallel import locked
from edhnn.typing import JsonObject

FORMAT = 1
_MAX_BYTES: Final = 4 * 2**30


class _Train(msgspec.Struct):
    epochs: int | None = None


class _Settings(msgspec.Struct):
    dataset: str
    model: str
    train: _Train = msgspec.field(default_factory=_Train)


class _Metrics(msgspec.Struct):
    value: float | None = None
    num_parameters: int | None = None
    train_seconds: float | None = None
    inference: float | None = None
    spread: float | None = None
    inference_spread: float | None = None
    mean_absolute_change: float | None = None


class _Record(msgspec.Struct):
    """The fields of a record; ``metrics`` of a job that succeeded, ``failed`` with the reason of one that did not."""

    key: str
    split: int
    settings: _Settings
    seconds: float
    machine: dict[str, str | int | float | bool | None] = {}
    metrics: _Metrics | None = None
    failed: str | None = None


@final
@dataclass(slots=True)
class _Progress:
    """How much of a file was read.

    Attributes:
        inode: The inode, to detect that the file was replaced.
        end: Bytes read.
        lines: Lines read.
        ended: Whether the last line read ends with a newline.
    """

    inode: int
    end: int = 0
    lines: int = 0
    ended: bool = True


@final
class Records:
    """The records in a results folder.

    Args:
        folder: The folder; created when the first record is appended.
    """

    def __init__(self, folder: Path) -> None:
        check_folder(folder)
        self.folder = folder
        self._progress: dict[Path, _Progress] = {}
        self._records: list[JsonObject] = []
        self._keys: set[str] = set()

    @property
    def work_folder(self) -> Path:
        """The folder of locks and of the files of unfinished jobs."""
        return self.folder / ".work"

    def read(self) -> list[JsonObject]:
        """Return all records: file by file, then those appended since the first call.

        Raises:
            DataError: if a complete line is not a record.
        """
        self._refresh()
        return list(self._records)

    def keys(self) -> set[str]:
        """Return the keys of all jobs that have a record."""
        self._refresh()
        return self._keys

    def append(self, experiment: str, record: JsonObject) -> None:
        """Append a record; other processes may append at the same time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{experiment}.jsonl"
        if path.exists():
            need_regular(path)
        with locked(self.work_folder / "append.lock", wait=600.0) as acquired:
            if not acquired:
                raise DataError("Cannot append a record: another process held the lock for ten minutes.", path=path)
            with path.open("a+b") as stream:
                _complete_last_line(stream)
                stream.write(json_line({"format": FORMAT, **record}).encode())
                stream.flush()
                os.fsync(stream.fileno())

    def _refresh(self) -> None:
        """Read the appended lines of all files; read everything again if a file shrank, was replaced or removed."""
        paths = sorted(self.folder.glob("*.jsonl"))
        for path in paths:
            need_regular(path)
        status = {path: path.stat() for path in paths}
        if any(
            path not in status or status[path].st_ino != known.inode or status[path].st_size < known.end
            for path, known in self._progress.items()
        ):
            self._progress, self._records, self._keys = {}, [], set()
        for path, now in status.items():
            known = self._progress.setdefault(path, _Progress(now.st_ino))
            if now.st_size > known.end:
                added = list(_read_new_lines(path, known))
                self._records += added
                self._keys |= {record["key"] for record in added}


def _read_new_lines(path: Path, progress: _Progress) -> Iterator[JsonObject]:
    """Yield the records of the complete lines that were not read before."""
    with open_existing(path) as stream:
        stream.seek(progress.end)
        if os.fstat(stream.fileno()).st_size > _MAX_BYTES:
            raise LimitError(f"A file of records must be at most {size_in_words(_MAX_BYTES)}. It is larger.", path=path)
        content = stream.read()
    if not progress.ended and content.startswith(b"\n"):
        content, progress.end, progress.ended = content[1:], progress.end + 1, True
    *lines, last = content.split(b"\n")
    for line in lines:
        yield _parse(line, path, progress.lines + 1)
        progress.lines, progress.end = progress.lines + 1, progress.end + len(line) + 1
    if _is_complete(last):
        yield _parse(last, path, progress.lines + 1)
        progress.lines, progress.end, progress.ended = progress.lines + 1, progress.end + len(last), False


def _parse(line: bytes, path: Path, number: int) -> JsonObject:
    """Parse a line and check that it is a record."""
    where = f"line {number}"
    try:
        record: JsonObject = msgspec.convert(parse_json(line), dict)
    except ValueError as error:
        raise DataError(f"The line is not a JSON object. Cause: {error}.", path=path, where=where) from error
    if record.get("format") != FORMAT:
        raise DataError(
            f"The format of a record must be {FORMAT}. Got {record.get('format')!r}.",
            path=path,
            where=where,
            remedy="Use the version of edhnn that wrote it.",
        )
    try:
        checked = msgspec.convert(record, _Record)
    except msgspec.ValidationError as error:
        raise DataError(f"The record is invalid. Cause: {error}.", path=path, where=where) from error
    if checked.metrics is None and checked.failed is None:
        raise DataError("A record must have `metrics` or `failed`. Both are missing.", path=path, where=where)
    return record


def seconds_of(record: JsonObject) -> float:
    """Return the seconds of a job; if it trained, including those before it was last resumed."""
    trained = (record.get("metrics") or {}).get("train_seconds") or 0.0
    return max(float(record["seconds"]), float(trained))


def _is_complete(line: bytes) -> bool:
    """Return whether a line without a newline is complete; an incomplete one is not valid JSON."""
    try:
        return isinstance(parse_json(line), dict)
    except ValueError:
        return False


def _complete_last_line(stream: BinaryIO) -> None:
    """Add the newline of the last line if it is missing; remove the line if it is incomplete."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - 1, 0))
    if stream.read(1) in (b"", b"\n"):
        return
    stream.seek(0)
    content = stream.read()
    begin = content.rfind(b"\n") + 1
    if _is_complete(content[begin:]):
        stream.write(b"\n")
    else:
        stream.truncate(begin)
