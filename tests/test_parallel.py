"""Worker processes: the parent raises the error of a worker that failed, stopped or was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edhnn.errors import MachineError, StoppedError, UsageError, WorkerError
from edhnn.parallel import run_processes

WORKER = """
import os, time
from pathlib import Path
from edhnn.errors import EdhnnError, StoppedError, UsageError

def work(folder, FATE, should_stop):
    FOLDER = Path(folder)
    try:
        (FOLDER / "first").touch(exist_ok=False)
    except FileExistsError:
        (FOLDER / "second").touch()
        while not should_stop():
            time.sleep(0.01)
        raise StoppedError("Stopped at split 1; all of it is saved.")
    while FATE != "alone" and not (FOLDER / "second").exists():
        time.sleep(0.01)
    if FATE == "diverges":
        raise EdhnnError("The loss of split 0 must be finite.")
    if FATE == "refuses":
        raise UsageError("The width must be at least 1.")
    if FATE == "full":
        raise OSError(28, "No space left on device", "metrics.jsonl")
    if FATE == "killed":
        os.kill(os.getpid(), 9)
    raise StoppedError("Stopped at split 0; all of it is saved.")
"""


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    (tmp_path / "a_worker.py").write_text(WORKER)
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{before}" if before else str(tmp_path))
    return "a_worker:work"


def run(module: str, folder: Path, fate: str, count: int = 2) -> None:
    run_processes(
        module, [str(folder), fate], count=count, threads=1, should_stop=lambda: False, look=lambda: None
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fate", "error", "message"),
    [
        ("diverges", WorkerError, r"^The loss of split 0 must be finite\.$"),
        ("refuses", UsageError, r"^The width must be at least 1\.$"),
        ("full", MachineError, r"^No space left on the disk for 'metrics.jsonl'\."),
        ("killed", MachineError, "killed, probably because memory ran out"),
    ],
)
def test_the_parent_raises_the_failure_and_not_the_stop_it_caused(module, tmp_path, fate, error, message):
    with pytest.raises(error, match=message):
        run(module, tmp_path, fate)


def test_a_worker_does_not_import_files_of_the_current_folder(module, tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("statistics", "random"):
        (folder / f"{name}.py").write_text("raise SystemExit('a file of the user was run')")
    monkeypatch.chdir(folder)
    with pytest.raises(StoppedError, match="saved"):
        run(module, tmp_path, "alone", count=1)


def test_workers_that_stopped_before_the_first_poll_are_a_stop(module, tmp_path):
    with pytest.raises(StoppedError, match="saved"):
        run(module, tmp_path, "alone", count=1)


def test_a_worker_whose_parent_died_before_its_start_exits(module, tmp_path):
    (tmp_path / "first").touch()  # so that it works until it is stopped
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    orphan = subprocess.Popen(
        [sys.executable, "-m", "edhnn.parallel", module, str(tmp_path), "alone"],
        env={**os.environ, "EDHNN_PARENT": dead.stdout.decode().strip()},
        stderr=subprocess.DEVNULL,
    )
    try:
        assert orphan.wait(timeout=60) == StoppedError.exit_code
    finally:
        orphan.send_signal(signal.SIGKILL)
