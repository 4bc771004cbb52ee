"""Records: a line of JSON per finished job, appended and never changed.

A results folder holds ``NAME.jsonl`` for each experiment, and ``.work``: locks, and what is needed to go on with jobs
under way. A last line that a kill cut short is ignored when reading and cut away by the next append; one that is whole
but for its line end, as an editor may leave it, is a record and is given one. Lines of others are left as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import final

import msgspec

from edhnn.errors import DataError, UsageError
from edhnn.training.locks import locked
from edhnn.training.run_folder import json_line
from edhnn.typing import JsonObject

FORMAT = 1


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
    """What every record has; a job that ended has ``metrics``, or says why it ``failed``."""

    key: str
    split: int
    settings: _Settings
    seconds: float
    machine: dict[str, str | int | float | bool | None] = {}
    metrics: _Metrics | None = None
    failed: str | None = None


@final
class Records:
    """The records in a results folder.

    Args:
        folder: The folder; made when the first record is appended.
    """

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"'{folder}' must be a folder. It is a file.")
        self.folder = folder

    @property
    def work(self) -> Path:
        """Where unfinished jobs keep their files."""
        return self.folder / ".work"

    def read(self) -> list[JsonObject]:
        """All records, file by file.

        Raises:
            DataError: if a whole line is not a record.
        """
        return [record for path in sorted(self.folder.glob("*.jsonl")) for record in read_lines(path)]

    def keys(self) -> set[str]:
        """The keys of all jobs that ended."""
        return {record["key"] for record in self.read()}

    def append(self, experiment: str, record: JsonObject) -> None:
        """Add a record; other processes may do so at the same time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{experiment}.jsonl"
        with locked(self.work / "append.lock", wait=600.0) as mine:
            if not mine:
                raise DataError("Records could not be written for ten minutes: somebody holds the lock.", path=path)
            with path.open("a+b") as stream:
                _end_last_line(stream.fileno())
                stream.write(json_line({"format": FORMAT, **record}).encode())
                stream.flush()
                os.fsync(stream.fileno())


def seconds_of(record: JsonObject) -> float:
    """Seconds a job took, those before its last resumption too where training counted them."""
    trained = (record.get("metrics") or {}).get("train_seconds") or 0.0
    return max(float(record["seconds"]), float(trained))


def read_lines(path: Path) -> Iterator[JsonObject]:
    """The whole lines of a file of records."""
    *lines, last = path.read_bytes().split(b"\n")
    for number, line in enumerate([*lines, last] if _is_whole(last) else lines, start=1):
        where = f"line {number}"
        try:
            record = msgspec.json.decode(line, type=dict)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DataError(f"A line must be a record: {error}.", path=path, where=where) from error
        if record.get("format") != FORMAT:
            raise DataError(
                f"A record's format must be {FORMAT}. Got {record.get('format')!r}.",
                path=path,
                where=where,
                remedy="Use the version of edhnn that wrote it.",
            )
        try:
            found = msgspec.convert(record, _Record)
        except msgspec.ValidationError as error:
            raise DataError(f"A record must hold what its fields are: {error}.", path=path, where=where) from error
        if found.metrics is None and found.failed is None:
            raise DataError("A record must have metrics, or say why its job failed.", path=path, where=where)
        yield record


def _is_whole(line: bytes) -> bool:
    """Whether a line without an end is a record all the same; one that was cut short is no JSON."""
    try:
        msgspec.json.decode(line, type=dict)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


def _end_last_line(descriptor: int) -> None:
    """Give the last line its end if it is whole, else cut it away."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    os.lseek(descriptor, 0, os.SEEK_SET)
    content = os.read(descriptor, size) if size else b""
    begin = content.rfind(b"\n") + 1
    if begin == len(content):
        return
    if _is_whole(content[begin:]):
        os.write(descriptor, b"\n")
    else:
        os.truncate(descriptor, begin)
