"""The work of a search: asks a study for trials, trains their splits, tells the scores; alone or in processes."""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from optuna.trial import Trial

from edhnn.data.dataset import NodeDataset
from edhnn.data.progress import DelayedBar
from edhnn.data.splits import Split
from edhnn.errors import EdhnnError
from edhnn.experiments.tuning.objective import Show, ValidationScore
from edhnn.experiments.tuning.search import Search, TrialRecord
from edhnn.experiments.tuning.space import paper_space
from edhnn.experiments.tuning.storage import quiet
from edhnn.experiments.tuning.study import StudyFile
from edhnn.training.dataset_file import read_training_data, write_training_data
from edhnn.training.jobs import choose_jobs
from edhnn.training.locks import locked
from edhnn.training.plan import plan_from_json
from edhnn.training.processes import run_processes
from edhnn.training.run_folder import RunFolder, write_splits
from edhnn.training.split_run import StoppedError
from edhnn.typing import JsonObject

_LOOK_SECONDS = 1.0


def run_search(
    dataset: NodeDataset,
    splits: list[Split],
    search: Search,
    judge: ValidationScore,
    storage: str,
    jobs: int | None,
    should_stop: Callable[[], bool],
) -> tuple[list[TrialRecord], dict[str, float]]:
    """Do the trials that are left, and give all of them and how much each parameter mattered.

    Raises:
        UsageError: if the storage holds another search.
        StoppedError: if asked to stop.
        WorkerError: if a process failed.
    """
    with quiet():
        study = StudyFile(storage, search, search.facts(dataset.name, judge.sha256()), minimise=not judge.in_percent)
        left = study.wanted - _finished(study.records())
        count = min(jobs or _choose_jobs(dataset, search, left), max(left, 1))
        bar = DelayedBar("Tuning", study.wanted, in_bytes=False)
        try:
            if count > 1:
                _work_in_processes(study, dataset, splits, storage, count, should_stop, bar)
                if should_stop():  # Ctrl-C reaches the processes too, and they may have left first
                    raise StoppedError("Stopped.")
            else:
                work(study, judge, should_stop, bar.show)
        except StoppedError as stopped:
            done = _finished(study.records())
            raise StoppedError(f"Stopped; {done} of {study.wanted} trials are finished and saved.") from stopped
        finally:
            bar.close()
        return study.records(), study.importance()


def work(
    study: StudyFile, judge: ValidationScore, should_stop: Callable[[], bool], show: Callable[[int, str], None]
) -> None:
    """Do trials until as many as wanted are done.

    Args:
        study: The trials.
        judge: Trains and scores them.
        should_stop: Looked at after every epoch.
        show: Sees after every epoch how many trials are finished, and a note.

    Raises:
        StoppedError: if asked to stop; the trial under way is given back with the splits it has finished.
    """
    while True:
        with study.take() as trial:
            if trial is None:
                return
            try:
                _try(trial, study, judge, should_stop, _shower(study, show))
            except StoppedError:
                study.give_back(trial)
                raise
            except EdhnnError as error:  # it diverged, or the model refuses this choice
                study.fail(trial, str(error))


def _try(trial: Trial, study: StudyFile, judge: ValidationScore, should_stop: Callable[[], bool], show: Show) -> None:
    plan = study.search.plan_of(trial.params)
    known: list[float] = trial.user_attrs.get("scores", [])
    scores: list[float] = []
    for number in range(plan.num_splits):
        scores.append(known[number] if number < len(known) else judge(plan, number, should_stop, show))
        trial.report(scores[-1], number)
        if number + 1 < plan.num_splits and trial.should_prune():
            study.prune(trial)
            return
    study.finish(trial, statistics.fmean(scores))


def _shower(study: StudyFile, show: Callable[[int, str], None]) -> Show:
    done = _finished(study.records())
    return lambda split, epoch: show(done, f" trial {done}, split {split}, epoch {epoch}")


def _work_in_processes(
    study: StudyFile,
    dataset: NodeDataset,
    splits: list[Split],
    storage: str,
    count: int,
    should_stop: Callable[[], bool],
    bar: DelayedBar,
) -> None:
    looked = 0.0

    def look() -> None:
        nonlocal looked
        if time.monotonic() - looked >= _LOOK_SECONDS:
            looked = time.monotonic()
            bar.show(_finished(study.records()))

    with _call_folder(study) as folder:
        write_training_data(dataset, folder / "inputs.safetensors")
        write_splits(splits, folder / "splits.npz")
        asked = {**asdict(study.search), "storage": storage}
        (folder / "search.json").write_text(json.dumps(asked), encoding="utf-8")
        run_processes(
            "edhnn.experiments.tuning.worker",
            [str(folder)],
            count=count,
            threads=1,
            should_stop=should_stop,
            look=look,
        )


@contextmanager
def _call_folder(study: StudyFile) -> Iterator[Path]:
    """A folder for what workers read; those of the dead are removed too."""
    with ExitStack() as held:
        with study.alone():
            for old in study.work.glob("call-*"):
                with locked(old / "lock") as dead:
                    if dead:
                        shutil.rmtree(old, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix="call-", dir=study.work))
            held.callback(shutil.rmtree, folder, ignore_errors=True)
            held.enter_context(locked(folder / "lock"))
        yield folder


def work_in_folder(folder: Path, should_stop: Callable[[], bool]) -> None:
    """What a worker process does: `work` on a search that its parent wrote down."""
    asked: JsonObject = json.loads((folder / "search.json").read_text(encoding="utf-8"))
    storage, plan, fixed = asked.pop("storage"), plan_from_json(asked.pop("plan")), tuple(asked.pop("fixed"))
    search = Search(plan=plan, fixed=fixed, **asked)
    dataset, splits = read_training_data(folder / "inputs.safetensors"), RunFolder(folder).read_splits()
    judge = ValidationScore(dataset, splits, plan.train)
    facts = search.facts(dataset.name, judge.sha256())
    with quiet():
        study = StudyFile(storage, search, facts, minimise=not judge.in_percent)
        work(study, judge, should_stop, lambda _done, _note: None)


def _choose_jobs(dataset: NodeDataset, search: Search, left: int) -> int:
    """One for the wide space, where more make trials depend on timing; else by rule, for the grid's largest."""
    if search.space == "wide":
        return 1
    largest = {name: values.choices[-1] for name, values in paper_space(search.plan.model, search.fixed).items()}
    return choose_jobs(dataset, search.plan_of(largest), left)


def _finished(trials: Sequence[TrialRecord]) -> int:
    return sum(trial.state not in ("running", "waiting") for trial in trials)
