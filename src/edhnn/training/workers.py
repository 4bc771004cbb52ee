"""Splits in processes of their own: started, watched through their files, stopped, and never left behind.

A worker is ``python -m edhnn.training.workers RUN``. It claims unfinished splits by their locks, one after another, and
leaves when none is left or its parent is gone; a lock vanishes with its holder, so a split is never trained twice at
a time, not even after its parent was killed and the run resumed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from edhnn.training.dataset_file import read_training_data
from edhnn.training.inputs import make_inputs
from edhnn.training.locks import locked
from edhnn.training.processes import run_processes, worker_main
from edhnn.training.run_folder import RunFolder
from edhnn.training.split_run import train_split
from edhnn.training.stopping import Wish
from edhnn.typing import JsonObject

_FOREVER = 1e9

Seen = Callable[[JsonObject], None]
"""Sees the last line of a split's ``metrics.jsonl``."""


def run_workers(folder: RunFolder, count: int, wish: Wish, seen: Seen | None = None) -> None:
    """Train the unfinished splits of a run in ``count`` processes of one thread each.

    Args:
        folder: The run; its configuration, splits and inputs are written.
        count: Number of processes.
        wish: Looked at all the time; if it is made, the workers save and leave.
        seen: Is told of progress.

    Raises:
        StoppedError: if the wish was made.
        WorkerError: if a worker failed; the others are stopped first.
    """
    run_processes(
        "edhnn.training.workers",
        [str(folder.path)],
        count=count,
        threads=1,
        should_stop=wish,
        look=lambda: None if seen is None else _look(folder, seen),
    )


def _look(folder: RunFolder, seen: Seen) -> None:
    for path in sorted((folder.path / "splits").glob("*/metrics.jsonl")):
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 2000))
            lines = stream.read().split(b"\n")[:-1]
        if lines:
            try:
                record = json.loads(lines[-1])
            except ValueError:  # a line longer than what was read
                continue
            seen(record)


def work(path: Path, should_stop: Callable[[], bool]) -> None:
    """Train splits that nobody has claimed until none is left."""
    folder = RunFolder(path)
    plan, _ = folder.plan()
    dataset, splits = read_training_data(folder.inputs), folder.read_splits()
    inputs = make_inputs(dataset, plan.train)

    for patience in (0.0, _FOREVER):  # first what is free, then what somebody who may be dying still holds
        for number, split in enumerate(splits):
            files = folder.split(number)
            if files.finished:
                continue
            with locked(files.path / "lock", wait=patience) as mine:
                if (
                    mine and not should_stop() and not files.result.is_file()
                ):  # it may have been finished while we waited
                    train_split(files, number, plan, dataset, inputs, split, should_stop=should_stop)


if __name__ == "__main__":
    torch.set_num_threads(1)
    worker_main(lambda should_stop: work(Path(sys.argv[1]), should_stop))
