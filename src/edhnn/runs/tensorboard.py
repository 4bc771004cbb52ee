"""TensorBoard events of a run during training: the loss and the metrics of every epoch, a curve per split.

Events are made from the splits' ``metrics.jsonl``, to which training appends in this process or in others. So there is
one writer, and training never waits for it. Each call deletes ``RUN/tensorboard`` and writes all events again, so that
after a resumption every epoch occurs once.
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

_POLL_SECONDS = 1.0


def check_tensorboard() -> None:
    """Raise `MissingDependencyError` if TensorBoard is not installed."""
    if find_spec("tensorboard") is None:
        raise MissingDependencyError("tensorboard", "Writing events", "tensorboard")


@contextmanager
def tensorboard_events(folder: RunFolder, num_splits: int) -> Iterator[Callable[[], None]]:
    """Write events of a run within the block. Call the yielded function often; it writes the new epochs."""
    shutil.rmtree(folder.path / "tensorboard", ignore_errors=True)
    splits = [_SplitEvents(folder, number) for number in range(num_splits)]
    last_poll = time.monotonic()

    def poll() -> None:
        nonlocal last_poll
        if time.monotonic() - last_poll >= _POLL_SECONDS:
            last_poll = time.monotonic()
            for split in splits:
                split.write_new_epochs()

    try:
        yield poll
    finally:
        for split in splits:
            split.write_new_epochs()
            split.close()


@final
class _SplitEvents:
    """The events of a split and the position up to which its lines were read."""

    def __init__(self, folder: RunFolder, number: int) -> None:
        self._lines = folder.split(number).metrics
        self._events = folder.path / "tensorboard" / f"split-{number:02d}"
        self._offset = self._epoch = 0
        self._writer: Any = None

    def write_new_epochs(self) -> None:
        """Write the epochs added since the last call. A resumed split may first remove its last lines."""
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
        """Flush the events and close their file."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, record: JsonObject) -> None:
        epoch = record["epoch"]
        if epoch <= self._epoch:
            return
        self._epoch = epoch
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._events), flush_secs=5)
        scalars = {"loss": record["loss"]}
        scalars |= {f"{part}/{name}": value for part in ("train", "valid") for name, value in record[part].items()}
        for name, value in scalars.items():
            if value is not None:
                self._writer.add_scalar(name, value, epoch)
