"""Splits in processes of their own: started, watched through their files, stopped, and never left behind.

A worker is ``python -m edhnn.training.workers RUN``. It claims unfinished splits by their locks, one after another, and
leaves when none is left or its parent is gone; a lock vanishes with its holder, so a split is never trained twice at
a time, not even after its parent was killed and the run resumed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import torch

from edhnn.errors import EdhnnError
from edhnn.training.dataset_file import read_training_data
from edhnn.training.inputs import make_inputs
from edhnn.training.locks import locked
from edhnn.training.run_folder import RunFolder
from edhnn.training.split_run import StoppedError, train_split
from edhnn.training.stopping import Wish, listening
from edhnn.typing import JsonObject

_LOOK_SECONDS = 0.1
_FOREVER = 1e9

Seen = Callable[[JsonObject], None]
"""Sees the last line of a split's ``metrics.jsonl``."""


class WorkerError(EdhnnError):
    """A worker process failed; the message is its last words."""


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
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "edhnn.training.workers", str(folder.path)]
    with tempfile.TemporaryFile() as words:
        workers = [
            subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=words, stderr=words)  # noqa: S603
            for _ in range(count)
        ]
        try:
            while any(worker.poll() is None for worker in workers):
                if wish() or any(worker.returncode for worker in workers):
                    break
                if seen is not None:
                    _look(folder, seen)
                time.sleep(_LOOK_SECONDS)
        finally:
            for worker in workers:
                if worker.poll() is None:
                    worker.terminate()  # they save first
            for worker in workers:
                worker.wait()
        failed = [worker.returncode for worker in workers if worker.returncode not in (0, StoppedError.exit_code)]
        if failed and not wish():
            raise WorkerError(_last_words(words, failed[0]))
    if wish():
        raise StoppedError("Stopped; all splits are saved.")


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


def _last_words(words: IO[bytes], code: int) -> str:
    words.seek(0)
    lines = [line for line in words.read().decode(errors="replace").splitlines() if line.strip()]
    said = lines[-1].removeprefix("Error: ") if lines else f"it left with code {code} and said nothing"
    return said if code == EdhnnError.exit_code and lines else f"A training process failed: {said}"


def work(path: Path, parent: int, wish: Wish) -> None:
    """Train splits that nobody has claimed until none is left."""
    folder = RunFolder(path)
    plan, _ = folder.plan()
    dataset, splits = read_training_data(folder.inputs), folder.read_splits()
    inputs = make_inputs(dataset, plan.train)

    def stop() -> bool:
        return wish() or os.getppid() != parent

    for patience in (0.0, _FOREVER):  # first what is free, then what somebody who may be dying still holds
        for number, split in enumerate(splits):
            files = folder.split(number)
            if files.finished:
                continue
            with locked(files.path / "lock", wait=patience) as mine:
                if mine and not stop() and not files.result.is_file():  # it may have been finished while we waited
                    train_split(files, number, plan, dataset, inputs, split, should_stop=stop)


def main() -> None:
    """The worker process."""
    torch.set_num_threads(1)
    parent = os.getppid()
    try:
        with listening() as wish:
            work(Path(sys.argv[1]), parent, wish)
    except EdhnnError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(error.exit_code)
    except OSError as error:
        sys.stderr.write(f"Error: the machine said no: {error}.\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
