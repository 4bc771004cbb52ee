"""A run for TensorBoard, while it trains: the loss and the metrics of every epoch, a curve per split.

Events are made from the splits' ``metrics.jsonl``, which training appends to in this process or in others; so there is
one writer, and it never holds training up. They live in ``RUN/tensorboard`` and are made anew by each call: after a
resumption every epoch is there once.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, final

from edhnn.errors import MissingDependencyError
from edhnn.runs.folder import RunFolder
from edhnn.typing import JsonObject

_LOOK_SECONDS = 1.0


def check_tensorboard() -> None:
    """Refuse before anything is trained.

    Raises:
        MissingDependencyError: if TensorBoard is not installed.
    """
    if find_spec("tensorboard") is None:
        raise MissingDependencyError("tensorboard", "Writing events", "tensorboard")


@contextmanager
def tensorboard_events(folder: RunFolder, num_splits: int) -> Iterator[Callable[[], None]]:
    """Within the block, events of a run; call what it gives now and then, and it writes the epochs that are new."""
    shutil.rmtree(folder.path / "tensorboard", ignore_errors=True)
    splits = [_SplitEvents(folder, number) for number in range(num_splits)]
    looked = time.monotonic()

    def look() -> None:
        nonlocal looked
        if time.monotonic() - looked >= _LOOK_SECONDS:
            looked = time.monotonic()
            for split in splits:
                split.read_on()

    try:
        yield look
    finally:
        for split in splits:
            split.read_on()
            split.close()


@final
class _SplitEvents:
    """The events of a split and how far its lines were read."""

    def __init__(self, folder: RunFolder, number: int) -> None:
        self._lines = folder.split(number).metrics
        self._place = folder.path / "tensorboard" / f"split-{number:02d}"
        self._offset = self._epoch = 0
        self._writer: Any = None

    def read_on(self) -> None:
        """Write the epochs that have been added; a resumed split may first cut its last ones off."""
        if not self._lines.is_file():
            return
        if self._lines.stat().st_size < self._offset:
            self._offset = 0
        with self._lines.open("rb") as stream:
            stream.seek(self._offset)
            content = stream.read()
        for line in content[: content.rfind(b"\n") + 1].splitlines(keepends=True):
            self._offset += len(line)
            self._write(json.loads(line))

    def close(self) -> None:
        """Write what is waiting."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, record: JsonObject) -> None:
        epoch = record["epoch"]
        if epoch <= self._epoch:
            return
        self._epoch = epoch
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._place), flush_secs=5)
        scalars = {"loss": record["loss"]}
        scalars |= {f"{part}/{name}": value for part in ("train", "valid") for name, value in record[part].items()}
        for name, value in scalars.items():
            if value is not None:
                self._writer.add_scalar(name, value, epoch)
