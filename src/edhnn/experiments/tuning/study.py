"""A study that lasts: Optuna's record of trials in a file, which any number of processes may work at once.

Optuna can tell a dead process from a slow one in a database only, by a heartbeat. Here a trial is held by a file lock
that vanishes with its holder: a trial that runs and is not held was left by the dead, and is asked again, with the
splits it had finished. Trials are asked one process at a time, so no two have the same point of a grid.

The sampler is made anew for every trial, from the seed and the trial's place. So a study that was killed and gone on
with asks what an undisturbed one asks. (Optuna's own grid sampler ends a study by a call that is not allowed between
``ask`` and ``tell``; a grid is laid out here and its points are enqueued.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, final

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, Trial, TrialState

from edhnn.errors import EdhnnError, UsageError
from edhnn.experiments.tuning.search import Search, TrialRecord, rounded
from edhnn.experiments.tuning.space import grid_points, paper_space, wide_space
from edhnn.experiments.tuning.storage import open_storage, storage_path
from edhnn.seeding import derive_seed
from edhnn.training.locks import locked
from edhnn.typing import JsonObject

_PATIENCE = 600.0
_DEATHS = 3
_FEW_TRIALS = 4


@final
class StudyFile:
    """A search's trials.

    Args:
        storage: A file for Optuna's journal, or ``sqlite:///FILE``.
        search: What is searched.
        facts: All that decides the scores; a study of other facts is refused.
        minimise: Whether less is better.

    Raises:
        UsageError: if the file holds a study of the same name and other facts, or nothing is left to choose.
        DataError: if the file cannot be read as a study.
    """

    def __init__(self, storage: str, search: Search, facts: JsonObject, *, minimise: bool) -> None:
        name = f"{facts['dataset']}-{search.plan.model}-{search.space}".replace("/", "-")
        self.search, self.path = search, storage_path(storage)
        self.work = self.path.with_name(self.path.name + ".work")
        self._locks = self.work / name
        self._grid: list[dict[str, Any]] | None = None
        self._space: dict[str, BaseDistribution] = {}
        if search.space == "paper":
            grid = paper_space(search.plan.model, search.fixed)
            self._grid = grid_points(grid, search.plan.seed)
            self._space |= grid
        else:
            self._space |= wide_space(search.plan.model, search.plan.options, search.fixed)
        self.wanted = search.trials if self._grid is None else min(search.trials, len(self._grid))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.alone():
            self._study = optuna.create_study(
                storage=open_storage(storage, self.work),
                study_name=name,
                direction="minimize" if minimise else "maximize",
                load_if_exists=True,
                sampler=optuna.samplers.RandomSampler(),
                pruner=optuna.pruners.MedianPruner() if search.prune else optuna.pruners.NopPruner(),
            )
            _check_same(self._study.user_attrs.get("facts"), facts, storage)
            self._study.set_user_attr("facts", facts)

    @contextmanager
    def take(self) -> Iterator[Trial | None]:
        """Hold the next trial; ``None`` if as many as wanted are finished or held by others."""
        with ExitStack() as held:
            with self.alone():
                trial = self._next()
                if trial is not None:
                    lock = self._lock_of(trial.number)
                    held.enter_context(locked(lock))
                    held.callback(lock.unlink, missing_ok=True)
            yield trial

    def finish(self, trial: Trial, value: float) -> None:
        """The trial's value is known."""
        self._study.tell(trial, value)

    def prune(self, trial: Trial) -> None:
        """The trial is given up: others were better so far."""
        self._study.tell(trial, state=TrialState.PRUNED)

    def fail(self, trial: Trial, reason: str) -> None:
        """The trial has no value."""
        trial.set_user_attr("reason", reason)
        self._study.tell(trial, state=TrialState.FAIL)

    def give_back(self, trial: Trial) -> None:
        """The trial was stopped; it is to be asked again."""
        with self.alone():
            self._again(next(found for found in self._all() if found.number == trial.number))

    def records(self) -> list[TrialRecord]:
        """All trials that count: in the order they were asked, on a grid in its order, whoever was first."""
        trials = self._counting()
        if (grid := self._grid) is not None:
            trials.sort(key=lambda trial: grid.index(_params(trial)))
        return [_record(number, trial) for number, trial in enumerate(trials)]

    def importance(self) -> dict[str, float]:
        """How much each parameter mattered, as shares of 1; nothing while there are few trials."""
        done = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(done) < _FEW_TRIALS or len({trial.value for trial in done}) < 2:
            return {}
        found = optuna.importance.get_param_importances(self._study, params=list(self._space))
        return {name: float(share) for name, share in found.items()}

    def _next(self) -> Trial | None:
        for trial in self._all():
            if trial.state == TrialState.RUNNING:
                self._take_over(trial)
        counting = self._counting()
        waiting = [trial for trial in counting if trial.state == TrialState.WAITING]
        if len(counting) - len(waiting) >= self.wanted:
            return None
        if not waiting and self._grid is not None:
            taken = [_params(trial) for trial in counting]
            self._study.enqueue_trial(next(point for point in self._grid if point not in taken))
        elif not waiting:
            seed = derive_seed(self.search.plan.seed, "trial", len(counting)) % 2**32
            self._study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        return self._study.ask(self._space)

    def _take_over(self, trial: FrozenTrial) -> None:
        """Ask a running trial again if nobody holds it."""
        lock = self._lock_of(trial.number)
        with locked(lock) as dead:
            if dead:
                now = next(found for found in self._all() if found.number == trial.number)
                if now.state == TrialState.RUNNING:  # its holder may have finished it just now
                    self._again(now, died=True)
                lock.unlink(missing_ok=True)

    def _again(self, trial: FrozenTrial, *, died: bool = False) -> None:
        """Count a trial no more and enqueue it anew, with the splits it had finished.

        If a kill comes between the steps, the trial is asked anew by its place, and only those splits are lost.
        """
        self._study.set_user_attr("void", [*self._void(), trial.number])
        self._study.tell(trial.number, state=TrialState.FAIL)
        params = _params(trial)
        if set(params) != set(self._space):  # died while it was asked
            return
        deaths = trial.user_attrs.get("deaths", 0) + died
        if deaths < _DEATHS:
            kept = max(_scores(trial), trial.user_attrs.get("scores", []), key=len)
            self._study.enqueue_trial(params, user_attrs={"scores": kept, "deaths": deaths})
            return
        reason = f"Its process died {deaths} times, perhaps for want of memory."
        failed = optuna.create_trial(
            state=TrialState.FAIL, params=params, distributions=self._space, user_attrs={"reason": reason}
        )
        self._study.add_trial(failed)

    def _all(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _void(self) -> list[int]:
        return list(self._study.user_attrs.get("void", []))

    def _counting(self) -> list[FrozenTrial]:
        void = set(self._void())
        return [trial for trial in self._all() if trial.number not in void]

    def _lock_of(self, number: int) -> Path:
        return self._locks / f"trial-{number}.lock"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within the block no other process asks for a trial."""
        with locked(self._locks / "ask.lock", wait=_PATIENCE) as mine:
            if not mine:
                raise EdhnnError(
                    f"The study in '{self.path}' could not be had for ten minutes: somebody holds its lock."
                )
            yield


def _check_same(found: JsonObject | None, asked: JsonObject, storage: str) -> None:
    if found is None:
        return
    other = [name for name in asked if found.get(name) != asked[name]]
    if other:
        shown = "; ".join(f"{name} is {found.get(name)!r} there, {asked[name]!r} here" for name in other[:3])
        raise UsageError(
            f"The study in '{storage}' is another one: {shown}. Ask for the same, or choose another --storage."
        )


def _params(trial: FrozenTrial) -> dict[str, Any]:
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}


def _scores(trial: FrozenTrial) -> list[float]:
    return [trial.intermediate_values[step] for step in sorted(trial.intermediate_values)]


def _record(number: int, trial: FrozenTrial) -> TrialRecord:
    return TrialRecord(
        number=number,
        state=trial.state.name.lower(),
        score=trial.value if trial.state == TrialState.COMPLETE else None,
        scores=_scores(trial),
        params=rounded(_params(trial)),
        reason=trial.user_attrs.get("reason"),
        seconds=None if trial.duration is None else round(trial.duration.total_seconds(), 3),
    )
