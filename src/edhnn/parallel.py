"""Worker processes, file locks, and signals as a flag.

Workers are started together, watched and stopped together. A lock is released when its process ends, so two processes
never train in the same folder. SIGINT and SIGTERM become a flag that is checked between epochs, so that a run saves
before it exits.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FrameType, ModuleType
from typing import IO, Final, final

from filelock import FileLock, Timeout

from edhnn.errors import EdhnnError, MachineError, StoppedError, UsageError, WorkerError, machine_errors

_LOOK_SECONDS = 0.1
_PARENT: Final = "EDHNN_PARENT"
_PLUGINS: Final = "EDHNN_PLUGINS"
_PLUGIN_PATH: Final = "EDHNN_PLUGIN_PATH"
_PLUGIN_MODULE: Final = "edhnn_plugin_"
_SHARED: list[str] = []
"""Modules, and files of programs, that worker processes import too."""
_MACHINE_CODE: Final = 74
"""How a worker tells a `MachineError` from others."""
_STOPPED: Final = "Stopped; all that was begun is saved."


def run_processes(
    worker: str,
    arguments: Sequence[str],
    *,
    count: int,
    threads: int,
    should_stop: Callable[[], bool],
    look: Callable[[], None],
) -> None:
    """Run a worker function in several processes at once, until all have left.

    Args:
        worker: The worker, as ``module:function``; called with the arguments and a function that says whether to stop.
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
        **_shared_environment(),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        _PARENT: str(os.getpid()),
    }
    command = [
        sys.executable,
        "-P",
        "-m",
        "edhnn.parallel",
        worker,
        *arguments,
    ]  # -P: files in the current folder are not modules
    with ExitStack() as files:
        workers: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        failed: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        try:
            for _ in range(count):
                words = files.enter_context(tempfile.TemporaryFile())
                process = subprocess.Popen(  # noqa: S603
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=words, stderr=words
                )
                workers.append((process, words))
            while (
                None in (codes := [process.poll() for process, _ in workers]) and not any(codes) and not should_stop()
            ):
                look()
                time.sleep(_LOOK_SECONDS)
            failed = [each for each in workers if each[0].returncode not in (None, 0, StoppedError.exit_code)]
        finally:
            for process, _ in workers:
                if process.poll() is None:
                    process.terminate()  # they save first
            for process, _ in workers:
                process.wait()
        if should_stop():
            raise StoppedError(_STOPPED)
        if failed:
            raise _failure(*failed[0])
        if any(process.returncode for process, _ in workers):  # somebody else asked one of them to leave
            raise StoppedError(_STOPPED)


def share_module(module: ModuleType) -> None:
    """Let worker processes import a module that the program found, such as one that registers a user's model.

    The program's own file is shared as a file; what was typed into a session cannot be shared.
    """
    name = module.__name__
    if name == "__main__" or name.startswith(_PLUGIN_MODULE):
        file = getattr(module, "__file__", None)
        name = str(Path(file).resolve()) if file else ""
    if name and name not in _SHARED:
        _SHARED.append(name)


def import_shared_modules() -> None:
    """Import the modules and files that ``EDHNN_PLUGINS`` names, each once."""
    paths = os.environ.get(_PLUGIN_PATH, "").split(os.pathsep)
    sys.path.extend(path for path in paths if path and path not in sys.path)  # last: nothing is hidden by them
    for given in filter(None, os.environ.get(_PLUGINS, "").split(",")):
        name = str(Path(given).resolve()) if given.endswith(".py") else given
        if name in _SHARED:
            continue
        try:
            _import_file(Path(name)) if name.endswith(".py") else import_module(name)
        except ImportError as error:
            raise UsageError(f"{_PLUGINS} must name modules or Python files. '{given}': {error}.") from error
        if name not in _SHARED:  # its own registration may have shared it
            _SHARED.append(name)


def _import_file(path: Path) -> None:
    name = f"{_PLUGIN_MODULE}{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError("there is no such file")
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


def _shared_environment() -> dict[str, str]:
    """What tells worker processes which modules to import, and where they may be."""
    return {_PLUGINS: ",".join(_SHARED), _PLUGIN_PATH: os.pathsep.join(sys.path)} if _SHARED else {}


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


def serve(worker: str, arguments: Sequence[str]) -> None:
    """Run a worker function in this process; exit with the error's code and one line of text if it fails.

    A worker is asked to stop by a signal, or by the death of its parent, even one that happened before this call.
    """
    module, _, function = worker.partition(":")
    parent = int(os.environ.get(_PARENT, os.getppid()))
    try:
        with catch_signals() as stop, machine_errors():
            getattr(import_module(module), function)(*arguments, lambda: stop() or os.getppid() != parent)
    except MachineError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(_MACHINE_CODE)
    except EdhnnError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(error.exit_code)


@contextmanager
def locked(path: Path, *, wait: float = 0.0) -> Iterator[bool]:
    """Hold a lock that the system releases when its process ends, however it ends.

    Yields whether the lock was acquired within ``wait`` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


@final
class StopFlag:
    """Whether the work was asked to stop."""

    def __init__(self) -> None:
        self.stop = False

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.stop


@contextmanager
def catch_signals() -> Iterator[StopFlag]:
    """Turn the first SIGINT or SIGTERM within the block into a flag, so that work saves before it exits.

    The second SIGINT stops at once. In a thread other than the main one, where signals do not arrive, the flag stays
    unset.
    """
    flag = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def handler(number: int, frame: FrameType | None) -> None:
        del frame
        if flag.stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        flag.stop = True

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
