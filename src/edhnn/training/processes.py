"""Worker processes: started together, watched, asked to leave, never left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO

from edhnn.errors import EdhnnError
from edhnn.training.split_run import StoppedError

_LOOK_SECONDS = 0.1


class WorkerError(EdhnnError):
    """A worker process failed; the message is its last words."""


def run_processes(
    module: str,
    arguments: Sequence[str],
    *,
    count: int,
    threads: int,
    should_stop: Callable[[], bool],
    look: Callable[[], None],
) -> None:
    """Run ``python -m module arguments`` several times at once, until all have left.

    Args:
        module: The worker's module.
        arguments: Its arguments.
        count: Number of processes.
        threads: Threads of each.
        should_stop: Looked at all the time; if so, the workers are asked to save and leave.
        look: Called ten times a second.

    Raises:
        StoppedError: if they were asked to leave.
        WorkerError: if a worker failed; the others are asked to leave first.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile() as words:
        workers = [
            subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=words, stderr=words)  # noqa: S603
            for _ in range(count)
        ]
        stopped = False
        try:
            while any(worker.poll() is None for worker in workers):
                stopped = should_stop()
                if stopped or any(worker.returncode for worker in workers):
                    break
                look()
                time.sleep(_LOOK_SECONDS)
        finally:
            for worker in workers:
                if worker.poll() is None:
                    worker.terminate()  # they save first
            for worker in workers:
                worker.wait()
        failed = [worker.returncode for worker in workers if worker.returncode not in (0, StoppedError.exit_code)]
        if failed and not stopped:
            raise WorkerError(_last_words(words, failed[0]))
    if stopped:
        raise StoppedError("Stopped; all that was begun is saved.")


def _last_words(words: IO[bytes], code: int) -> str:
    words.seek(0)
    lines = [line for line in words.read().decode(errors="replace").splitlines() if line.strip()]
    said = lines[-1].removeprefix("Error: ") if lines else f"it left with code {code} and said nothing"
    return said if code == EdhnnError.exit_code and lines else f"A worker process failed: {said}"


def worker_main(work: Callable[[Callable[[], bool]], None]) -> None:
    """The body of a worker: does ``work(should_stop)`` and leaves with the error's code and one line of words.

    It is asked to stop by a signal, or by the death of its parent.
    """
    from edhnn.training.stopping import listening

    parent = os.getppid()
    try:
        with listening() as wish:
            work(lambda: wish() or os.getppid() != parent)
    except EdhnnError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(error.exit_code)
    except OSError as error:
        sys.stderr.write(f"Error: the machine said no: {error}.\n")
        sys.exit(1)
