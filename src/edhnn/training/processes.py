"""Worker processes: started together, watched, asked to leave, never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import IO, Final

from edhnn.errors import EdhnnError, MachineError, UsageError, machine_errors
from edhnn.training.split_run import StoppedError

_LOOK_SECONDS = 0.1
_PARENT: Final = "EDHNN_PARENT"
_MACHINE_CODE: Final = 74
"""How a worker tells a `MachineError` from others."""
_STOPPED: Final = "Stopped; all that was begun is saved."


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
        UsageError: if it refused what it was asked for.
        MachineError: if it failed for want of memory or room.
    """
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        _PARENT: str(os.getpid()),
    }
    command = [sys.executable, "-P", "-m", module, *arguments]  # -P: files in the current folder are not modules
    with ExitStack() as files:
        workers: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        failed: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        try:
            for _ in range(count):
                words = files.enter_context(tempfile.TemporaryFile())
                worker = subprocess.Popen(  # noqa: S603
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=words, stderr=words
                )
                workers.append((worker, words))
            while None in (codes := [worker.poll() for worker, _ in workers]) and not any(codes) and not should_stop():
                look()
                time.sleep(_LOOK_SECONDS)
            failed = [each for each in workers if each[0].returncode not in (None, 0, StoppedError.exit_code)]
        finally:
            for worker, _ in workers:
                if worker.poll() is None:
                    worker.terminate()  # they save first
            for worker, _ in workers:
                worker.wait()
        if should_stop():
            raise StoppedError(_STOPPED)
        if failed:
            raise _failure(*failed[0])
        if any(worker.returncode for worker, _ in workers):  # somebody else asked one of them to leave
            raise StoppedError(_STOPPED)


def _failure(worker: subprocess.Popen[bytes], words: IO[bytes]) -> EdhnnError:
    """The error of a worker, by its code and what it said last."""
    words.seek(0)
    lines = [line for line in words.read().decode(errors="replace").splitlines() if line.strip()]
    code = worker.returncode
    if code == -signal.SIGKILL:
        return MachineError("A worker process was killed, most likely because memory ran out. Use fewer --jobs.")
    if not lines:
        return WorkerError(f"A worker process left with code {code} and said nothing.")
    said = lines[-1].removeprefix("Error: ")
    if code == _MACHINE_CODE:
        return MachineError(said)
    if lines[-1] == said:
        return WorkerError(f"A worker process failed: {said}")
    return UsageError(said) if code == UsageError.exit_code else WorkerError(said)


def worker_main(work: Callable[[Callable[[], bool]], None]) -> None:
    """The body of a worker: does ``work(should_stop)`` and leaves with the error's code and one line of words.

    It is asked to stop by a signal, or by the death of its parent: before it came to look, too.
    """
    from edhnn.training.stopping import listening

    parent = int(os.environ.get(_PARENT, os.getppid()))
    try:
        with listening() as wish, machine_errors():
            work(lambda: wish() or os.getppid() != parent)
    except MachineError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(_MACHINE_CODE)
    except EdhnnError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(error.exit_code)
