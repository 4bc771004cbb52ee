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
from typing import IO, Final

from filelock import FileLock, Timeout

from edhnn.errors import EdhnnError, MachineError, StoppedError, UsageError, WorkerError, machine_errors

_POLL_SECONDS = 0.1
_PARENT: Final = "EDHNN_PARENT"
_PLUGINS: Final = "EDHNN_PLUGINS"
_PLUGIN_PATH: Final = "EDHNN_PLUGIN_PATH"
_PLUGIN_MODULE: Final = "edhnn_plugin_"
_SHARED: list[str] = []
"""Modules, and files of programs, that worker processes import too."""
_MACHINE_CODE: Final = 74
"""Exit code of a worker with a `MachineError`; other errors have their own ``exit_code``."""
_STOPPED: Final = "Stopped. All unfinished work is saved."


def run_processes(
    worker: str,
    arguments: Sequence[str],
    *,
    count: int,
    threads: int,
    should_stop: Callable[[], bool],
    look: Callable[[], None],
) -> None:
    """Run a worker function in several processes until all of them have exited.

    Args:
        worker: The worker, as ``module:function``; called with the arguments and a function that returns whether to
            stop.
        arguments: Its arguments.
        count: Number of processes.
        threads: Threads of each process.
        should_stop: Called ten times a second. If it returns true, the workers save and exit.
        look: Called ten times a second.

    Raises:
        StoppedError: if the workers were stopped.
        WorkerError: if a worker failed; the other workers are stopped first.
        UsageError: if a worker raised it.
        MachineError: if a worker ran out of memory or disk space.
    """
    environment = {**os.environ, _PARENT: str(os.getpid())}
    environment |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    if _SHARED:
        environment |= {_PLUGINS: ",".join(_SHARED), _PLUGIN_PATH: os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-m", "edhnn.parallel", worker, *arguments]  # -P: do not import user files
    with ExitStack() as files:
        workers: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        failed: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        try:
            for _ in range(count):
                output = files.enter_context(tempfile.TemporaryFile())
                process = subprocess.Popen(  # noqa: S603
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
                )
                workers.append((process, output))
            while (
                None in (codes := [process.poll() for process, _ in workers]) and not any(codes) and not should_stop()
            ):
                look()
                time.sleep(_POLL_SECONDS)
            failed = [each for each in workers if each[0].returncode not in (None, 0, StoppedError.exit_code)]
        finally:
            for process, _ in workers:
                if process.poll() is None:
                    process.terminate()  # the worker saves before it exits
            for process, _ in workers:
                process.wait()
        if failed and not should_stop():
            raise _failure(failed[0][0].returncode, failed[0][1])
        if should_stop() or any(process.returncode for process, _ in workers):  # a signal may stop a worker directly
            raise StoppedError(_STOPPED)


def share_module(module: ModuleType) -> None:
    """Make worker processes import a module too, such as one that registers a user's model.

    The main program is shared as a file. Code typed into an interactive session cannot be shared.
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
    sys.path.extend(path for path in paths if path and path not in sys.path)  # at the end, so they hide no module
    for given in filter(None, os.environ.get(_PLUGINS, "").split(",")):
        name = str(Path(given).resolve()) if given.endswith(".py") else given
        if name in _SHARED:
            continue
        try:
            _import_file(Path(name)) if name.endswith(".py") else import_module(name)
        except ImportError as error:
            raise UsageError(f"{_PLUGINS} must name modules or Python files. '{given}': {error}.") from error
        if name not in _SHARED:  # its registration may have shared it already
            _SHARED.append(name)


def _import_file(path: Path) -> None:
    name = f"{_PLUGIN_MODULE}{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError("file not found")
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


def _failure(code: int, output: IO[bytes]) -> EdhnnError:
    """Make the error of a worker from its exit code and the last line of its output."""
    output.seek(0)
    lines = [line for line in output.read().decode(errors="replace").splitlines() if line.strip()]
    if code == -signal.SIGKILL:
        return MachineError("A worker process was killed, probably because memory ran out. Use fewer `jobs=`.")
    if not lines:
        return WorkerError(f"A worker process exited with code {code} and without a message.")
    message = lines[-1].removeprefix("Error: ")
    if code == _MACHINE_CODE:
        return MachineError(message)
    if lines[-1] == message:
        return WorkerError(f"A worker process failed: {message}")
    return UsageError(message) if code == UsageError.exit_code else WorkerError(message)


def serve(worker: str, arguments: Sequence[str]) -> None:
    """Run a worker function in this process. If it fails, print one line and exit with the error's code.

    A signal or the end of the parent process stops a worker, even if the parent ended before this call.
    """
    module, _, function = worker.partition(":")
    parent = int(os.environ.get(_PARENT, os.getppid()))
    try:
        with catch_signals() as stop, machine_errors():
            getattr(import_module(module), function)(*arguments, lambda: stop() or os.getppid() != parent)
    except EdhnnError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(_MACHINE_CODE if isinstance(error, MachineError) else error.exit_code)


@contextmanager
def locked(path: Path, *, wait: float = 0.0) -> Iterator[bool]:
    """Hold a lock that the system releases when its process ends, even if the process is killed.

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


@contextmanager
def catch_signals() -> Iterator[Callable[[], bool]]:
    """Turn the first SIGINT or SIGTERM within the block into a flag, so that work saves before it exits.

    Yields a function that returns the flag. The second SIGINT raises `KeyboardInterrupt`. Signals reach the main thread
    only; in another thread the flag stays false.
    """
    stopped = False

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        del frame
        if stopped and number == signal.SIGINT:
            raise KeyboardInterrupt
        stopped = True

    in_main_thread = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if in_main_thread else ()
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield lambda: stopped
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
