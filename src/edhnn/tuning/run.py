"""Search sizes by validation scores: trials one after another or in parallel, resumable at every moment.

The score is the mean validation metric over a few splits, of data without test labels: the labels of test nodes are
removed before anything is computed from the data. A split is trained like in `edhnn train`, with the same seeds. So
trials differ only in their parameters, and a run with the winner's sizes has the same validation scores bit for bit.
With one job the same seed gives the same trials and scores. With several jobs this holds for the grid only: in the
wide space the next choice depends on the trials that have finished.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

import torch

from edhnn.data.dataset import UNLABELLED, NodeDataset
from edhnn.data.fingerprints import search_sha256
from edhnn.data.splits import Split
from edhnn.errors import EdhnnError, MissingDependencyError, StoppedError, UsageError
from edhnn.io.files import DelayedBar
from edhnn.io.tensors import read_training_data, write_training_data
from edhnn.parallel import locked, run_processes
from edhnn.runs.folder import read_splits, write_splits
from edhnn.runs.plan import Plan, plan_from_json
from edhnn.runs.run import choose_jobs
from edhnn.training.config import TrainConfig
from edhnn.training.inputs import Device, find_device, make_inputs
from edhnn.training.loop import EpochRecord, fit_inputs
from edhnn.training.objective import check_split, check_trainable, labels_of, make_objective
from edhnn.training.structural_features import with_features
from edhnn.tuning.search import Search, TrialSummary, TuningResult
from edhnn.typing import JsonObject

if TYPE_CHECKING:  # Optuna is an extra
    from optuna.trial import Trial

    from edhnn.tuning.study import StudyFile

_POLL_SECONDS = 1.0
Show = Callable[[int, int], None]
"""Called after every epoch with the numbers of the split and of the epoch."""


def tune(
    dataset: NodeDataset,
    search: Search,
    *,
    storage: Path | str,
    jobs: int | None = None,
    splits: list[Split] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    device: Device = "cpu",
) -> TuningResult:
    """Search sizes of a model for a dataset by the mean validation metric over a few splits. Paper: Appendix F.3.

    Args:
        dataset: Hypergraph, features and labels.
        search: The search: its space and the number of trials.
        storage: An SQLite file, or ``sqlite:///FILE``. An existing search is resumed, and other processes may work on
            it at the same time.
        jobs: Number of trials at the same time, each in a process of one thread; by default `choose_jobs` decides for
            the grid, and 1 for the other spaces. With 1 this process trains them, with all threads of torch.
        splits: The splits; by default those of the plan. Labels of a split's test part are not read in that split. A
            note about the splits is a warning.
        should_stop: Called after every epoch; if it returns true, the search stops.
        device: The device: ``cpu``, ``cuda``, ``mps``, ... or ``auto``. It is not part of the search.

    Returns:
        The trials, ranked.

    Raises:
        MissingDependencyError: if Optuna is not installed.
        UsageError: if the storage holds another search, or the space is empty.
        StoppedError: if ``should_stop`` returned true; the same call resumes the search.
        EdhnnError: if no trial succeeded.
    """
    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise MissingDependencyError("optuna", "Searching sizes", "tune") from error
    start = time.perf_counter()
    if search.trials < 1:
        raise UsageError(f"`trials=` must be at least 1. Got {search.trials}.")
    if jobs is not None and jobs < 1:
        raise UsageError(f"`jobs=` must be at least 1. Got {jobs}.")
    dataset = with_features(dataset)
    if splits is None:
        splits, notes = search.plan.draw_splits(dataset)
        for note in notes:
            warnings.warn(note, stacklevel=2)
    if len(splits) != search.plan.num_splits:
        raise UsageError(f"The plan needs {search.plan.num_splits} splits. Got {len(splits)}.")
    judge = ValidationScore(
        dataset, splits, search.plan.train, find_device(device), every_class=search.plan.protocol == "splits"
    )
    trials, importance = run_search(dataset, splits, search, judge, str(storage), jobs, should_stop)
    factor = 100.0 if judge.in_percent else 1.0
    result = TuningResult(
        dataset=dataset.name,
        search=search,
        metric=judge.metric,
        minimise=not judge.in_percent,
        trials=[
            replace(
                trial,
                score=None if trial.score is None else factor * trial.score,
                scores=[factor * score for score in trial.scores],
            )
            for trial in trials
        ],
        importance=importance,
        storage=str(storage),
        seconds=round(time.perf_counter() - start, 3),
    )
    if not result.ranking:
        reasons = [trial.reason for trial in trials if trial.reason]
        raise EdhnnError(f"No trial succeeded. The last failure: {reasons[-1] if reasons else 'unknown'}")
    return result


@final
class ValidationScore:
    """The validation metric of a plan on each of a few splits.

    Args:
        dataset: The dataset.
        splits: The splits; their test parts are used only to remove labels.
        config: The transforms, which all trials share, and the scaling of the plan.
        device: The training device.
        every_class: Check that no class lacks training nodes.

    Raises:
        DataError: if the training and validation parts are invalid.
    """

    def __init__(
        self,
        dataset: NodeDataset,
        splits: Sequence[Split],
        config: TrainConfig,
        device: torch.device,
        *,
        every_class: bool = True,
    ) -> None:
        self.seen = [without_test_labels(dataset, split) for split in splits]
        self.splits = [Split(split.train, split.valid, split.valid) for split in splits]
        for number, (seen, split) in enumerate(zip(self.seen, splits, strict=True)):
            check_trainable(seen)
            check_split(seen, split, number, test=False, every_class=every_class)
        self.device = device
        self._inputs = {config.feature_scaling: make_inputs(self.seen[0], config).to(device)}
        objective = make_objective(self.seen[0], self.splits[0].train, config.regression_loss)
        self.metric, self.in_percent = objective.metric, objective.in_percent

    def __call__(self, plan: Plan, number: int, should_stop: Callable[[], bool], show: Show) -> float:
        """Train a split and return the validation metric of its selected epoch.

        Raises:
            StoppedError: if ``should_stop`` returned true.
            DivergedError: if the loss stops being finite.
        """

        def each_epoch(record: EpochRecord, snapshot: object) -> None:
            del snapshot
            show(number, record.epoch)
            if should_stop():
                raise StoppedError("Stopped.")

        seen, split = self.seen[number], self.splits[number]
        objective = make_objective(seen, split.train, plan.train.regression_loss)
        model, seed = plan.make_model(seen, objective, number), plan.split_seed(number)
        scaling = plan.train.feature_scaling
        if scaling not in self._inputs:
            self._inputs[scaling] = make_inputs(seen, plan.train).to(self.device)
        result = fit_inputs(
            model, self._inputs[scaling], seen, split, objective, plan.train, seed=seed, watch=each_epoch
        )
        score = result.valid[objective.metric]
        if not math.isfinite(score):
            raise EdhnnError(f"The validation {objective.metric} must be finite. It is {score} in split {number}.")
        return score

    def sha256(self) -> str:
        """Hash all data that a search uses."""
        return search_sha256(self.seen, self.splits)


def without_test_labels(dataset: NodeDataset, split: Split) -> NodeDataset:
    """Remove the labels of a split's test nodes without changing the number of classes."""
    y = labels_of(dataset).clone()
    y[split.test] = UNLABELLED if dataset.task == "classification" else torch.nan
    names = dataset.class_names
    if names is None and dataset.num_classes is not None:
        names = tuple(range(dataset.num_classes))
    return replace(dataset, y=y, class_names=names)


def run_search(
    dataset: NodeDataset,
    splits: list[Split],
    search: Search,
    judge: ValidationScore,
    storage: str,
    jobs: int | None,
    should_stop: Callable[[], bool],
) -> tuple[list[TrialSummary], dict[str, float]]:
    """Run the unfinished trials. Return all trials and the importance of each parameter.

    Raises:
        UsageError: if the storage holds another search.
        StoppedError: if ``should_stop`` returned true.
        WorkerError: if a process failed.
    """
    from edhnn.tuning.study import StudyFile, quiet

    with quiet():
        study = StudyFile(storage, search, search.facts(dataset.name, judge.sha256()), minimise=not judge.in_percent)
        unfinished = study.num_trials - _finished(study.summaries())
        count = min(jobs or _choose_jobs(dataset, search, unfinished, judge.device), max(unfinished, 1))
        bar = DelayedBar("Tuning", study.num_trials, in_bytes=False)
        try:
            if count > 1:
                _work_in_processes(study, dataset, splits, storage, count, judge.device, should_stop, bar)
                if should_stop():  # Ctrl-C reaches the processes too, and they may have exited first
                    raise StoppedError("Stopped.")
            else:
                work(study, judge, should_stop, bar.show)
        except StoppedError as stopped:
            done = _finished(study.summaries())
            raise StoppedError(f"Stopped. {done} of {study.num_trials} trials are finished and saved.") from stopped
        finally:
            bar.close()
        trials, importance = study.summaries(), study.importance()
        study.close()
        return trials, importance


def work(
    study: StudyFile, judge: ValidationScore, should_stop: Callable[[], bool], show: Callable[[int, str], None]
) -> None:
    """Run trials until the requested number is finished.

    Args:
        study: The trials.
        judge: Trains and scores them.
        should_stop: Called after every epoch.
        show: Called after every epoch with the number of finished trials and a note.

    Raises:
        StoppedError: if ``should_stop`` returned true; the unfinished trial is queued again with its finished splits.
    """
    while True:
        with study.take() as trial:
            if trial is None:
                return
            try:
                _run_trial(trial, study, judge, should_stop, show)
            except StoppedError:
                study.give_back(trial)
                raise
            except EdhnnError as error:  # it diverged, or its parameters are invalid for the model
                study.fail(trial, str(error))


def _run_trial(
    trial: Trial,
    study: StudyFile,
    judge: ValidationScore,
    should_stop: Callable[[], bool],
    show: Callable[[int, str], None],
) -> None:
    done = _finished(study.summaries())

    def show_epoch(split: int, epoch: int) -> None:
        show(done, f" trial {done}, split {split}, epoch {epoch}")

    plan = study.search.plan_of(trial.params)
    known: list[float] = trial.user_attrs.get("scores", [])
    scores: list[float] = []
    for number in range(plan.num_splits):
        scores.append(known[number] if number < len(known) else judge(plan, number, should_stop, show_epoch))
        trial.report(scores[-1], number)
        trial.set_user_attr("scores", scores)  # a retry inherits them
        if number + 1 < plan.num_splits and trial.should_prune():
            study.prune(trial)
            return
    study.finish(trial, statistics.fmean(scores))


def _work_in_processes(
    study: StudyFile,
    dataset: NodeDataset,
    splits: list[Split],
    storage: str,
    count: int,
    device: torch.device,
    should_stop: Callable[[], bool],
    bar: DelayedBar,
) -> None:
    last_poll = 0.0

    def poll() -> None:
        nonlocal last_poll
        if time.monotonic() - last_poll >= _POLL_SECONDS:
            last_poll = time.monotonic()
            bar.show(_finished(study.summaries()))

    with _call_folder(study) as folder:
        write_training_data(dataset, folder / "inputs.safetensors")
        write_splits(splits, folder / "splits.npz")
        record = {**asdict(study.search), "storage": storage}
        (folder / "search.json").write_text(json.dumps(record), encoding="utf-8")
        run_processes(
            "edhnn.tuning.run:work_in_folder",
            [str(folder), str(device)],
            count=count,
            threads=1,
            should_stop=should_stop,
            look=poll,
        )


@contextmanager
def _call_folder(study: StudyFile) -> Iterator[Path]:
    """Create a folder with the data of the workers. Remove the folders of processes that died."""
    with ExitStack() as stack:
        with study.exclusive():
            for old in study.work.glob("call-*"):
                with locked(old / "lock") as abandoned:
                    if abandoned:
                        shutil.rmtree(old, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix="call-", dir=study.work))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.enter_context(locked(folder / "lock"))
        yield folder


def work_in_folder(path: str, device: str, should_stop: Callable[[], bool]) -> None:
    """Run trials of the search that the parent wrote to a folder (the worker of `parallel.run_processes`)."""
    from edhnn.tuning.study import StudyFile, quiet

    torch.set_num_threads(1)
    folder = Path(path)
    record: JsonObject = json.loads((folder / "search.json").read_text(encoding="utf-8"))
    storage, plan, fixed = record.pop("storage"), plan_from_json(record.pop("plan")), tuple(record.pop("fixed"))
    search = Search(plan=plan, fixed=fixed, **record)
    dataset = read_training_data(folder / "inputs.safetensors")
    splits = read_splits(folder / "splits.npz", plan.num_splits, dataset.hypergraph.num_nodes)
    judge = ValidationScore(dataset, splits, plan.train, find_device(device), every_class=plan.protocol == "splits")
    facts = search.facts(dataset.name, judge.sha256())
    with quiet():
        study = StudyFile(storage, search, facts, minimise=not judge.in_percent)
        work(study, judge, should_stop, lambda _done, _note: None)
        study.close()


def _choose_jobs(dataset: NodeDataset, search: Search, unfinished: int, device: torch.device) -> int:
    """Choose as for the largest sizes of the grid; 1 elsewhere, where more would make trials depend on timing."""
    if search.space != "paper":
        return 1
    from edhnn.tuning.study import paper_space

    largest = {name: values.choices[-1] for name, values in paper_space(search.plan.model, search.fixed).items()}
    return choose_jobs(dataset, search.plan_of(largest), unfinished, device)


def _finished(trials: Sequence[TrialSummary]) -> int:
    return sum(trial.state not in ("running", "waiting") for trial in trials)
