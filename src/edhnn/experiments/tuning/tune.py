"""Searching sizes by validation alone: trials one after another or side by side, resumable at every moment.

The labels of test nodes are taken out of the data before anything is trained (`edhnn.experiments.tuning.objective`).
A trial is trained as `edhnn train` trains, from the search's seed, so trials differ in what was chosen and in nothing
else. With one job the same seed gives the same trials and scores. With more, the grid's do not change either, but what
the wide space is asked next depends on which trials have finished.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split
from edhnn.errors import EdhnnError, MissingDependencyError, UsageError
from edhnn.experiments.tuning.objective import ValidationScore
from edhnn.experiments.tuning.search import Search, TrialRecord, TuningResult
from edhnn.training.plan import choose_splits


def tune(
    dataset: NodeDataset,
    search: Search,
    *,
    storage: Path | str,
    jobs: int | None = None,
    splits: list[Split] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TuningResult:
    """Search sizes of a model for a dataset by the mean validation metric over a few splits. Paper: Appendix F.3.

    Args:
        dataset: Hypergraph, features and labels.
        search: What is searched, and how many trials.
        storage: A file for Optuna's journal, or ``sqlite:///FILE``; a search that is there already is gone on with, and
            other processes may work it at the same time.
        jobs: Trials at a time, each in a process of one thread; by rule for the grid and 1 for the wide space if not
            given. With 1 this process trains them, with the threads torch has.
        splits: The splits; the default ones (`choose_splits`) if not given. Labels of their test parts are not read.
        should_stop: Looked at after every epoch.

    Returns:
        The trials, ranked.

    Raises:
        MissingDependencyError: if Optuna is not installed.
        UsageError: if the storage holds another search, or nothing is left to choose.
        StoppedError: if asked to stop; the same call goes on.
        EdhnnError: if no trial succeeded.
    """
    _need_optuna()
    from edhnn.experiments.tuning.work import run_search

    begun = time.perf_counter()
    if search.trials < 1:
        raise UsageError(f"There must be at least 1 trial. Got {search.trials}.")
    if jobs is not None and jobs < 1:
        raise UsageError(f"There must be at least 1 job. Got {jobs}.")
    splits = choose_splits(dataset, search.plan.num_splits) if splits is None else splits
    if len(splits) != search.plan.num_splits:
        raise UsageError(f"There must be {search.plan.num_splits} splits. Got {len(splits)}.")
    judge = ValidationScore(dataset, splits, search.plan.train)
    trials, importance = run_search(dataset, splits, search, judge, str(storage), jobs, should_stop)
    minimise = not judge.in_percent
    result = TuningResult(
        dataset=dataset.name,
        search=search,
        metric=judge.metric,
        minimise=minimise,
        trials=[_in_units(trial, 1.0 if minimise else 100.0) for trial in trials],
        importance=importance,
        storage=str(storage),
        seconds=round(time.perf_counter() - begun, 3),
    )
    if not result.ranking:
        said = [trial.reason for trial in trials if trial.reason]
        raise EdhnnError(f"At least one trial must succeed. None did; the last said: {said[-1] if said else 'nothing'}")
    return result


def _in_units(trial: TrialRecord, factor: float) -> TrialRecord:
    score = None if trial.score is None else factor * trial.score
    return replace(trial, score=score, scores=[factor * value for value in trial.scores])


def _need_optuna() -> None:
    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise MissingDependencyError("optuna", "Searching sizes", "tune") from error
