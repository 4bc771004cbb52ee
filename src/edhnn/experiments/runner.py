"""Run the jobs that have no record yet, in as many processes as there are cores.

An interrupted run is resumed by running it again; records decide what is left to do. Jobs that measure time run in one
process with all cores, after the others.

A worker takes the jobs of a list that no other holds, one after another, and appends their records. Any number of
workers, on any number of machines that share the folder, may work on the same list: a job is held by a file lock,
which is released when its holder ends, and a job that a killed holder left is resumed.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import final

import torch

from edhnn.errors import DivergedError, StoppedError
from edhnn.experiments.jobs import Cell, Job, digest
from edhnn.experiments.kinds import KINDS
from edhnn.experiments.records import Records, seconds_of
from edhnn.io.files import DelayedBar, check_folder
from edhnn.parallel import locked, run_processes
from edhnn.runs.environment import describe_environment
from edhnn.runs.run import cores, forget_peak_memory, peak_memory
from edhnn.typing import JsonObject


def write_jobs(jobs: Sequence[Job], path: Path) -> None:
    """Write a list of jobs for workers."""
    path.write_text(json.dumps([[asdict(job.cell), job.split] for job in jobs]), encoding="utf-8")


def read_jobs(path: Path) -> list[Job]:
    """Read a list of jobs."""
    return [Job(Cell(**cell), split) for cell, split in json.loads(path.read_text(encoding="utf-8"))]


def work(jobs: Sequence[Job], records: Records, should_stop: Callable[[], bool]) -> None:
    """Do the jobs that no other process holds, in order.

    Raises:
        StoppedError: if asked to stop; the job under way is saved.
    """
    ended = records.keys()
    for job in jobs:
        if job.key in ended:
            continue
        with locked(records.work / f"{job.key}.lock") as mine:
            if not mine:
                continue
            ended = records.keys()  # the last holder may have finished the job just before
            if job.key not in ended:
                records.append(job.cell.experiment, perform(job, records.work / job.key, should_stop))
                shutil.rmtree(records.work / job.key, ignore_errors=True)
        if should_stop():
            raise StoppedError("Stopped between two jobs.")


def perform(job: Job, folder: Path, should_stop: Callable[[], bool]) -> dict[str, object]:
    """Do a job and return its record. A training that diverged would do so again: its record gives the reason.

    Raises:
        EdhnnError: if data, memory or disk space are missing here and now: the job gets no record.
    """
    cell, begun = job.cell, time.perf_counter()
    forget_peak_memory()
    result: dict[str, object]
    try:
        result = {"metrics": KINDS[cell.settings["kind"]].perform(cell.settings, job.split, folder, should_stop)}
    except DivergedError as error:
        result = {"failed": str(error)}
    return {
        "key": job.key,
        "experiment": cell.experiment,
        "row": cell.row,
        "column": cell.column,
        "split": job.split,
        "settings": cell.settings,
        "source": cell.source,
        **result,
        "seconds": round(time.perf_counter() - begun, 3),
        "peak_memory": peak_memory(),
        "machine": describe_environment(1, torch.get_num_threads()),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def work_list(folder: str, jobs: str, should_stop: Callable[[], bool]) -> None:
    """Do the jobs of a file (the worker of `parallel.run_processes`)."""
    work(read_jobs(Path(jobs)), Records(Path(folder)), should_stop)


_LOOK_SECONDS = 5.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """How many jobs a run did.

    Attributes:
        asked: Jobs that were asked for.
        before: Jobs that had a record before.
        done: Jobs that got a record now.
        failed: Those among them whose record says why they failed.
        left: Jobs without a record.
        seconds: Time spent.
    """

    asked: int
    before: int
    done: int
    failed: int
    left: int
    seconds: float


def run_jobs(
    jobs: Sequence[Job],
    records: Records,
    *,
    workers: int | None = None,
    budget: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> RunCounts:
    """Do all jobs that have no record.

    Args:
        jobs: The jobs.
        records: Where records go.
        workers: Processes; as many as there are cores if not given. Cores are shared out among them.
        budget: Minutes after which to stop; jobs under way are saved and resumed next time.
        should_stop: Checked all the time.

    Returns:
        What was done; running out of budget is no error.

    Raises:
        UsageError: if the records' folder cannot be made.
        StoppedError: if ``should_stop`` returned true.
        WorkerError: if a worker failed.
    """
    begun = time.monotonic()
    check_folder(records.folder)
    known = records.keys()
    waiting = [job for job in jobs if job.key not in known]
    count = max(1, min(workers or cores(), len(waiting)))
    together = [job for job in waiting if not KINDS[job.cell.settings["kind"]].alone]
    alone = [job for job in waiting if KINDS[job.cell.settings["kind"]].alone]

    def over() -> bool:
        return budget is not None and time.monotonic() - begun > 60 * budget

    for part, processes in ((together, count), (alone, 1)):
        if part and not over():
            try:
                _run(part, records, processes, max(1, cores() // processes), lambda: should_stop() or over())
            except StoppedError:
                if not over() or should_stop():
                    raise
    ended = {record["key"]: record for record in records.read()}
    new = [ended[job.key] for job in waiting if job.key in ended]
    return RunCounts(
        asked=len(jobs),
        before=len(jobs) - len(waiting),
        done=len(new),
        failed=sum("failed" in record for record in new),
        left=len(waiting) - len(new),
        seconds=round(time.monotonic() - begun, 3),
    )


def _run(jobs: list[Job], records: Records, count: int, threads: int, should_stop: Callable[[], bool]) -> None:
    bar, times, looked = DelayedBar("Running", len(jobs), in_bytes=False), JobTimes(), 0.0

    def look() -> None:
        nonlocal looked
        if time.monotonic() - looked < _LOOK_SECONDS:
            return
        looked = time.monotonic()
        times.add(records.read()[times.count :])
        ended = records.keys()
        left = [job for job in jobs if job.key not in ended]
        bar.show(len(jobs) - len(left), f", about {_in_words(times.seconds_for(left) / count)} left")

    records.work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="jobs-", dir=records.work) as own, closing(bar):
        path = Path(own, "jobs.json")
        write_jobs(jobs, path)
        run_processes(
            "edhnn.experiments.runner:work_list",
            [str(records.folder), str(path)],
            count=min(count, len(jobs)),
            threads=threads,
            should_stop=should_stop,
            look=look,
        )


@final
class JobTimes:
    """Seconds that jobs took: the mean over records of the same cell, else of the nearest that are known."""

    def __init__(self) -> None:
        self.count = 0
        self._totals: dict[str, tuple[float, int]] = {}

    def add(self, records: Sequence[JsonObject]) -> None:
        """Take more records into account."""
        self.count += len(records)
        for record in records:
            for key in _nearest_first(record["settings"]):
                total, count = self._totals.get(key, (0.0, 0))
                self._totals[key] = total + seconds_of(record), count + 1

    def seconds_for(self, jobs: Sequence[Job]) -> float:
        """Estimate the seconds that jobs will take."""
        estimate = 0.0
        for job in jobs:
            keys = (key for key in _nearest_first(job.cell.settings) if key in self._totals)
            total, count = self._totals.get(next(keys, ""), (0.0, 1))
            estimate += total / count
        return estimate


def _nearest_first(settings: JsonObject) -> list[str]:
    """List keys of a cell: itself, its dataset and model, its dataset, any."""
    dataset, model = settings["dataset"], settings["model"]
    return [digest(settings), f"{dataset}, {model}", dataset, ""]


def _in_words(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
