"""Run the jobs that have no record yet, by default in one process per core.

Running the same jobs again resumes an interrupted run, because jobs with a record are skipped. Jobs that measure time
run after the others, in one process with all cores.

A worker goes through a list of jobs, skips those that another process has locked, and appends the records. Any number
of workers, on any number of machines that share the folder, may work on the same list. A job's file lock is released
when its process ends, and the job of a killed process is resumed by the next worker that reaches it.
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
    """Write a list of jobs to a file for workers."""
    path.write_text(json.dumps([[asdict(job.cell), job.split] for job in jobs]), encoding="utf-8")


def read_jobs(path: Path) -> list[Job]:
    """Read a list of jobs from a file."""
    return [Job(Cell(**cell), split) for cell, split in json.loads(path.read_text(encoding="utf-8"))]


def do_jobs(jobs: Sequence[Job], records: Records, should_stop: Callable[[], bool]) -> None:
    """Do the jobs that no other process has locked, in order.

    Raises:
        StoppedError: if ``should_stop`` returned true; the unfinished job is saved.
    """
    finished = records.keys()
    for job in jobs:
        if job.key in finished:
            continue
        with locked(records.work_folder / f"{job.key}.lock") as acquired:
            if not acquired:
                continue
            finished = records.keys()  # another process may have finished the job since the last look
            if job.key not in finished:
                folder = records.work_folder / job.key
                records.append(job.cell.experiment, do_job(job, folder, should_stop))
                shutil.rmtree(folder, ignore_errors=True)
        if should_stop():
            raise StoppedError("Stopped between two jobs.")


def do_job(job: Job, folder: Path, should_stop: Callable[[], bool]) -> dict[str, object]:
    """Do a job and return its record.

    A diverged training gets a record with the reason, because it would diverge again. A job that lacks data, memory or
    disk space gets no record, because it may succeed later.

    Raises:
        EdhnnError: if data, memory or disk space are missing.
    """
    cell, start = job.cell, time.perf_counter()
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
        "seconds": round(time.perf_counter() - start, 3),
        "peak_memory": peak_memory(),
        "machine": describe_environment(1, torch.get_num_threads()),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def work_list(folder: str, jobs: str, should_stop: Callable[[], bool]) -> None:
    """Do the jobs listed in a file; `run_jobs` calls this in worker processes."""
    do_jobs(read_jobs(Path(jobs)), Records(Path(folder)), should_stop)


_REFRESH_SECONDS = 5.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """How many jobs a run did.

    Attributes:
        asked: Jobs in the request.
        before: Jobs that had a record before the run.
        done: Jobs that got a record in this run.
        failed: Jobs among ``done`` that failed.
        left: Jobs that still have no record.
        seconds: Duration of the run.
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
        records: The records to append to.
        workers: Number of processes, one per core by default. They share the cores equally.
        budget: Minutes after which to stop, which is no error. Unfinished jobs are saved and resumed by the next run.
        should_stop: Called repeatedly; if it returns true, the run saves and stops.

    Raises:
        UsageError: if the records' folder cannot be created.
        StoppedError: if ``should_stop`` returned true.
        WorkerError: if a worker failed.
    """
    start = time.monotonic()
    check_folder(records.folder)
    known = records.keys()
    waiting = [job for job in jobs if job.key not in known]
    count = max(1, min(workers or cores(), len(waiting)))
    shared: list[Job] = []
    exclusive: list[Job] = []
    for job in waiting:
        (exclusive if KINDS[job.cell.settings["kind"]].exclusive else shared).append(job)

    def budget_is_spent() -> bool:
        return budget is not None and time.monotonic() - start > 60 * budget

    for part, processes in ((shared, count), (exclusive, 1)):
        if part and not budget_is_spent():
            try:
                _run(part, records, processes, max(1, cores() // processes), lambda: should_stop() or budget_is_spent())
            except StoppedError:
                if not budget_is_spent() or should_stop():
                    raise
    finished = {record["key"]: record for record in records.read()}
    new = [finished[job.key] for job in waiting if job.key in finished]
    return RunCounts(
        asked=len(jobs),
        before=len(jobs) - len(waiting),
        done=len(new),
        failed=sum("failed" in record for record in new),
        left=len(waiting) - len(new),
        seconds=round(time.monotonic() - start, 3),
    )


def _run(jobs: list[Job], records: Records, count: int, threads: int, should_stop: Callable[[], bool]) -> None:
    """Run jobs in ``count`` processes of ``threads`` threads each, with a progress bar."""
    bar, times, refreshed = DelayedBar("Running", len(jobs), in_bytes=False), JobTimes(), 0.0

    def look() -> None:
        nonlocal refreshed
        if time.monotonic() - refreshed < _REFRESH_SECONDS:
            return
        refreshed = time.monotonic()
        times.add(records.read()[times.count :])
        finished = records.keys()
        left = [job for job in jobs if job.key not in finished]
        minutes = round(times.seconds_for(left) / count / 60)
        duration = f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
        bar.show(len(jobs) - len(left), f", about {duration} left")

    records.work_folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="jobs-", dir=records.work_folder) as folder, closing(bar):
        path = Path(folder, "jobs.json")
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
    """Durations of finished jobs, from which the duration of other jobs is estimated.

    The estimate is the mean over the records of the same cell, else over those of the same dataset and model, else of
    the same dataset, else over all records.
    """

    def __init__(self) -> None:
        self.count = 0
        self._totals: dict[str, tuple[float, int]] = {}

    def add(self, records: Sequence[JsonObject]) -> None:
        """Add the durations of more records."""
        self.count += len(records)
        for record in records:
            for key in _keys(record["settings"]):
                total, count = self._totals.get(key, (0.0, 0))
                self._totals[key] = total + seconds_of(record), count + 1

    def seconds_for(self, jobs: Sequence[Job]) -> float:
        """Estimate the seconds that jobs will take."""
        estimate = 0.0
        for job in jobs:
            keys = (key for key in _keys(job.cell.settings) if key in self._totals)
            total, count = self._totals.get(next(keys, ""), (0.0, 1))
            estimate += total / count
        return estimate


def _keys(settings: JsonObject) -> list[str]:
    """List the keys of a cell in `JobTimes`, from the most to the least specific."""
    dataset, model = settings["dataset"], settings["model"]
    return [digest(settings), f"{dataset}, {model}", dataset, ""]
