"""Running experiments: the jobs that have no record yet, in as many processes as there are cores.

An interrupted run is resumed by running it again; records decide what is left to do. Jobs that measure time run in one
process with all cores, after the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import final

from edhnn.data.progress import DelayedBar
from edhnn.experiments.job import Job, digest
from edhnn.experiments.records import Records, seconds_of
from edhnn.experiments.worker import write_jobs
from edhnn.training.jobs import cores
from edhnn.training.places import check_folder
from edhnn.training.processes import run_processes
from edhnn.training.split_run import StoppedError
from edhnn.typing import JsonObject

_ALONE = ("timing",)
_LOOK_SECONDS = 5.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run did.

    Attributes:
        asked: Jobs that were asked for.
        before: Of those, that had a record already.
        done: That got one now.
        failed: That got one that says why they could not be done.
        left: That have none.
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
) -> Outcome:
    """Do all jobs that have no record.

    Args:
        jobs: The jobs.
        records: Where records go.
        workers: Processes; as many as there are cores if not given. Cores are shared out among them.
        budget: Minutes after which to stop; jobs under way are saved and gone on with next time.
        should_stop: Looked at all the time.

    Returns:
        What was done; a budget that is used up is no error.

    Raises:
        UsageError: if the place of the records cannot be a folder.
        StoppedError: if ``should_stop`` said so.
        WorkerError: if a worker failed.
    """
    begun = time.monotonic()
    check_folder(records.folder)
    known = records.keys()
    waiting = [job for job in jobs if job.key not in known]
    count = max(1, min(workers or cores(), len(waiting)))
    together = [job for job in waiting if job.cell.settings["kind"] not in _ALONE]
    alone = [job for job in waiting if job.cell.settings["kind"] in _ALONE]

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
    return Outcome(
        asked=len(jobs),
        before=len(jobs) - len(waiting),
        done=len(new),
        failed=sum("failed" in record for record in new),
        left=len(waiting) - len(new),
        seconds=round(time.monotonic() - begun, 3),
    )


def _run(jobs: list[Job], records: Records, count: int, threads: int, should_stop: Callable[[], bool]) -> None:
    bar = DelayedBar("Running", len(jobs), in_bytes=False)
    looked = 0.0

    def look() -> None:
        nonlocal looked
        if time.monotonic() - looked < _LOOK_SECONDS:
            return
        looked = time.monotonic()
        found = {record["key"]: record for record in records.read()}
        left = [job for job in jobs if job.key not in found]
        bar.show(len(jobs) - len(left), f", about {_in_words(seconds_left(left, list(found.values())) / count)} left")

    records.work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="jobs-", dir=records.work) as own, closing(bar):
        path = Path(own, "jobs.json")
        write_jobs(jobs, path)
        run_processes(
            "edhnn.experiments.worker",
            [str(records.folder), str(path)],
            count=min(count, len(jobs)),
            threads=threads,
            should_stop=should_stop,
            look=look,
        )


def seconds_left(jobs: Sequence[Job], records: Sequence[JsonObject]) -> float:
    """Seconds the jobs will take: the mean of records of the same cell, else of the nearest that are known."""
    known: dict[str, list[float]] = {}
    for record in records:
        for key in _nearest_first(record["settings"]):
            known.setdefault(key, []).append(seconds_of(record))
    found = (next((known[key] for key in _nearest_first(job.cell.settings) if key in known), [0.0]) for job in jobs)
    return float(sum(map(mean, found)))


def _nearest_first(settings: JsonObject) -> list[str]:
    """Of a cell: itself, its dataset and model, its dataset, any."""
    dataset, model = settings["dataset"], settings["model"]
    return [digest(settings), f"{dataset}, {model}", dataset, ""]


def _in_words(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
