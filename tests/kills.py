"""Kill commands at random moments, resume them, and compare every bit with undisturbed runs.

    python -m tests.kills --kills 100 --seed 0

prints a table: kills, resumed runs, runs that differ. `tests/runs/test_kills.py` does the same with fewer kills.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edhnn import contextual_sbm, write_dataset
from edhnn.experiments.records import Records
from tests.golden.cases import VOLATILE
from tests.runs.test_train import comparable

DRIVER = """
import sys
from edhnn.cli.main import main
from edhnn.runtime import configure_runtime
configure_runtime()
from edhnn.runs import run
run.CHECKPOINT_SECONDS = 0.2
sys.stderr.write("started\\n")
sys.stderr.flush()
main()
"""
GRID = """title = "t"
paper = "none"
kind = "accuracy"
splits = 2
train = { epochs = 30 }
[[row]]
label = "net"
model = "ed-hnn"
options = { hidden = 8, classifier_hidden = 8 }
[[row]]
label = "mlp"
model = "mlp"
options = { hidden = 8 }
[[column]]
label = "one"
dataset = "csbm-1"
"""
SIZES = "--set hidden=64 --set classifier_hidden=64"
WAIT = 120.0
"""Seconds for a command to end, and for worker processes to notice that their parent was killed."""


@dataclass(frozen=True)
class Subject:
    """A command that resumes its own work.

    Attributes:
        command: Its words; ``OUT`` is the folder of its results and ``JOBS`` the number of processes.
        content: Returns everything in that folder that a kill must not change.
        kills: How often one run is killed. A trial whose process died three times fails, by design.
        check: Checks the folder after each kill.
    """

    command: str
    content: Callable[[Path], object]
    kills: int = 5
    check: Callable[[Path, Path], None] = lambda out, whole: None


def trials_in(out: Path) -> object:
    """Return the trials without their times, and the bytes of the best configuration."""
    found = json.loads((out / "stdout").read_text())
    trials = [{name: value for name, value in trial.items() if name != "seconds"} for trial in found["trials"]]
    return trials, (out / "best.toml").read_bytes()


def records_in(out: Path) -> object:
    """Return the records without their times, sorted; a record that exists twice is there twice."""
    return sorted(
        (record["key"], json.dumps({name: v for name, v in record["metrics"].items() if name not in VOLATILE}))
        for record in Records(out).read()
    )


def table_in(out: Path) -> object:
    """Return the bytes of the predictions."""
    return (out / "p.csv").read_bytes()


def whole_or_absent(out: Path, whole: Path) -> None:
    """Check that a killed command has written all of its table or nothing."""
    assert not (out / "p.csv").exists() or table_in(out) == table_in(whole)


SUBJECTS = {
    "train": Subject(
        f"train data.hif.json --epochs 60 --splits 2 {SIZES} --jobs JOBS --resume --json --out OUT", comparable
    ),
    "tune": Subject(
        "tune data.hif.json --epochs 15 --splits 2 --trials 4 --set hidden=16 --set classifier_hidden=16 --jobs JOBS "
        "--storage OUT/s.db --out OUT/best.toml --force --json",
        trials_in,
        kills=2,
    ),
    "run": Subject("run grid.toml --jobs JOBS --results OUT --json", records_in),
    "predict": Subject("predict model data.hif.json --out OUT/p.csv --force --json", table_in, check=whole_or_absent),
}


@dataclass
class Count:
    """What happened to one command with one number of jobs."""

    kills: int = 0
    resumed: int = 0
    different: int = 0


class Place:
    """A folder with the data, and the undisturbed run of each subject, made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seconds: dict[str, float] = {}
        write_dataset(contextual_sbm(2, nodes_per_class=400, num_hyperedges=400), folder / "data.hif.json")
        (folder / "grid.toml").write_text(GRID)

    def start(self, name: str, out: Path, *, jobs: int, threads: int) -> subprocess.Popen[str]:
        """Start a command in a process group of its own, and wait until it has imported everything."""
        out.mkdir(exist_ok=True) if name != "train" else None
        words = SUBJECTS[name].command.replace("JOBS", str(jobs)).replace("OUT", str(out)).split()
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        with (self.folder / "stdout").open("w") as stdout:
            process = subprocess.Popen(
                [sys.executable, "-c", DRIVER, *words],
                cwd=self.folder,
                env=environment,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        assert lines[0] == "started\n", "".join(lines) + process.stderr.read()
        return process

    def finish(self, name: str, out: Path, *, jobs: int, threads: int) -> None:
        """Run a command to its end."""
        process = self.start(name, out, jobs=jobs, threads=threads)
        _, errors = process.communicate(timeout=WAIT)
        assert process.returncode == 0, errors
        if name == "tune":
            (self.folder / "stdout").rename(out / "stdout")

    def undisturbed(self, name: str) -> Path:
        """Return the folder of an undisturbed run with one job."""
        out = self.folder / f"{name}-undisturbed"
        if not out.exists():
            if name == "predict":
                shutil.copytree(self.undisturbed("train") / "splits/00/model", self.folder / "model")
            started = time.perf_counter()
            self.finish(name, out, jobs=1, threads=1)
            self._seconds[name] = time.perf_counter() - started
        return out

    def kill_and_resume(self, name: str, jobs: int, kills: int, dice: random.Random, count: Count) -> None:
        """Kill one run ``kills`` times, either its first process or all of them; resume it and compare."""
        whole = self.undisturbed(name)
        out = self.folder / f"{name}-{jobs}-{count.resumed}"
        for _ in range(kills):
            process = self.start(name, out, jobs=jobs, threads=dice.choice((1, 2, 3)))
            time.sleep(dice.uniform(0.02, 0.6) * self._seconds[name])
            all_of_them = dice.random() < 0.5
            if process.poll() is None:
                count.kills += 1
                (os.killpg if all_of_them else os.kill)(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stderr is not None
            process.stderr.close()
            wait_for_group(process.pid)
            SUBJECTS[name].check(out, whole)
        self.finish(name, out, jobs=jobs, threads=2)
        count.resumed += 1
        count.different += SUBJECTS[name].content(out) != SUBJECTS[name].content(whole)


def wait_for_group(group: int) -> None:
    """Wait until the worker processes have noticed that their parent was killed, and have ended."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a worker process did not end after its parent was killed")


def kill(
    names: Sequence[str], jobs: Sequence[int], kills: int, seed: int, folder: Path
) -> dict[tuple[str, int], Count]:
    """Kill commands in turn until there were ``kills`` kills in all."""
    place, dice = Place(folder), random.Random(seed)
    counts = {(name, number): Count() for name in names for number in (jobs if name != "predict" else (1,))}
    while (left := kills - sum(count.kills for count in counts.values())) > 0:
        name, number = min(counts, key=lambda pair: counts[pair].kills)
        place.kill_and_resume(name, number, min(left, SUBJECTS[name].kills), dice, counts[name, number])
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", action="append", choices=list(SUBJECTS), help="only this command; repeatable")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = kill(given.command or list(SUBJECTS), (1, 2), given.kills, given.seed, Path(folder))
    lines = ["command  jobs  kills  resumed  different"]
    lines += [
        f"{name:8}{number:5}{count.kills:7}{count.resumed:9}{count.different:11}"
        for (name, number), count in counts.items()
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if any(count.different for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
