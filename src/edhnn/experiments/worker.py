"""A worker: takes jobs that nobody holds, one after another, and appends their records.

``python -m edhnn.experiments.worker RESULTS JOBS`` works a list of jobs; any number of workers, on any number of
machines that share the folder, may work the same list. A job is held by a file lock, which vanishes with its holder,
and what a killed holder left is gone on with.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch

from edhnn.experiments.job import Cell, Job
from edhnn.experiments.kinds.registry import KINDS
from edhnn.experiments.records import Records
from edhnn.training.divergence import DivergedError
from edhnn.training.environment import describe_environment
from edhnn.training.locks import locked
from edhnn.training.processes import worker_main
from edhnn.training.split_run import StoppedError, forget_peak_memory, peak_memory


def write_jobs(jobs: Sequence[Job], path: Path) -> None:
    """Write a list of jobs for workers."""
    cells = [
        {
            "experiment": job.cell.experiment,
            "row": job.cell.row,
            "column": job.cell.column,
            "settings": job.cell.settings,
            "source": job.cell.source,
            "changed": job.cell.changed,
        }
        for job in jobs
    ]
    path.write_text(json.dumps([[cell, job.split] for cell, job in zip(cells, jobs, strict=True)]), encoding="utf-8")


def read_jobs(path: Path) -> list[Job]:
    """The jobs of a list."""
    return [Job(Cell(**cell), split) for cell, split in json.loads(path.read_text(encoding="utf-8"))]


def work(jobs: Sequence[Job], records: Records, should_stop: Callable[[], bool]) -> None:
    """Do the jobs that nobody holds, in order.

    Raises:
        StoppedError: if asked to stop; the job under way is saved.
    """
    done = records.keys()
    for job in jobs:
        if job.key in done:
            continue
        with locked(records.work / f"{job.key}.lock") as mine:
            if not mine:
                continue
            done = records.keys()  # others have worked meanwhile
            if job.key not in done:
                records.append(job.cell.experiment, perform(job, records.work / job.key, should_stop))
                shutil.rmtree(records.work / job.key, ignore_errors=True)
        if should_stop():
            raise StoppedError("Stopped between two jobs.")


def perform(job: Job, folder: Path, should_stop: Callable[[], bool]) -> dict[str, object]:
    """A job's record; a training that diverged, as it would again, has a record that says so.

    Raises:
        EdhnnError: if the job cannot be done here and now, for want of data or room: it gets no record.
    """
    cell, begun = job.cell, time.perf_counter()
    forget_peak_memory()
    found: dict[str, object]
    try:
        found = {"metrics": KINDS[cell.settings["kind"]].perform(cell.settings, job.split, folder, should_stop)}
    except DivergedError as error:
        found = {"failed": str(error)}
    return {
        "key": job.key,
        "experiment": cell.experiment,
        "row": cell.row,
        "column": cell.column,
        "split": job.split,
        "settings": cell.settings,
        "source": cell.source,
        **found,
        "seconds": round(time.perf_counter() - begun, 3),
        "peak_memory": peak_memory(),
        "machine": describe_environment(1, torch.get_num_threads()),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def main(should_stop: Callable[[], bool]) -> None:
    """Work the list named on the command line."""
    work(read_jobs(Path(sys.argv[2])), Records(Path(sys.argv[1])), should_stop)


if __name__ == "__main__":
    worker_main(main)
