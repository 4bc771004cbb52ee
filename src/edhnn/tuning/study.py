"""A search in Optuna: its space, and its trials in a file that many processes may use at the same time.

Optuna stores the trials in an SQLite file and queues them again. This module adds file locks, which the system releases
when a process ends. A running trial whose lock is free belongs to a process that died; it is queued again at once. One
process at a time asks for a trial, so no two processes get the same one. ADR 0017 gives the reasons.

Every trial has a new sampler, made from the seed and the trial's number. So one process runs the same trials whether or
not it was interrupted.
"""

from __future__ import annotations

import itertools
import logging
import math
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, TypeVar, final

import msgspec
import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from edhnn.configuration import Natural
from edhnn.errors import DataError, EdhnnError, UsageError
from edhnn.io.files import open_existing
from edhnn.models.registry import MODELS
from edhnn.parallel import locked
from edhnn.seeding import derive_seed
from edhnn.tuning.search import Search, TrialSummary, rounded
from edhnn.typing import JsonObject

Distribution = TypeVar("Distribution", bound=BaseDistribution)
_SQLITE: Final = "sqlite:///"
_JOURNAL: Final = b'{"op_code":'
_LOCK_SECONDS = 600.0
_OTHER_FILE: Final = "Choose another file with `storage=`."
_MAX_DEATHS = 3
_MIN_TRIALS = 4
DEPTHS: Final = (1, 2, 4, 6, 8)
"""Iterations, or layers where a model has no iterations. Paper: Appendix F.3."""
WIDTHS: Final = (96, 128, 256, 512)
"""Width of the states, or of the classifier where that is the only one. Paper: Appendix F.3."""
_GRID = ((("num_iterations", "layers"), DEPTHS), (("hidden", "classifier_hidden"), WIDTHS))
_WIDE: Final[dict[str, BaseDistribution]] = {
    "num_iterations": IntDistribution(1, 8),
    "layers": IntDistribution(1, 4),
    "mlp_layers": IntDistribution(1, 3),
    "phi_layers": IntDistribution(1, 3),
    "rho_layers": IntDistribution(1, 3),
    "update_layers": IntDistribution(1, 3),
    "classifier_layers": IntDistribution(1, 3),
    "hidden": CategoricalDistribution((64, *WIDTHS)),
    "classifier_hidden": CategoricalDistribution((64, *WIDTHS)),
    "dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "input_dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "restart": FloatDistribution(0.0, 0.9, step=0.1),
}
_DEFAULT: Final[dict[str, BaseDistribution]] = {
    "num_iterations": IntDistribution(1, 4),
    "layers": IntDistribution(1, 3),
    "hidden": CategoricalDistribution((32, 64, 128, 256)),
    "dropout": FloatDistribution(0.0, 0.6, step=0.1),
    "input_dropout": FloatDistribution(0.0, 0.6, step=0.1),
    "learning_rate": FloatDistribution(5e-4, 2e-2, log=True),
    "weight_decay": CategoricalDistribution((0.0, 1e-5, 1e-4, 1e-3)),
    "feature_scaling": CategoricalDistribution(("standard", "none")),
}
_TRAINING_FIELDS: Final[dict[str, BaseDistribution]] = {
    "learning_rate": FloatDistribution(1e-4, 1e-2, log=True),
    "weight_decay": CategoricalDistribution((0.0, 1e-5, 1e-4, 1e-3)),
}


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna from logging its progress and from warning about experimental parts."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def storage_path(storage: str) -> Path:
    """Return the file of a storage.

    Raises:
        UsageError: if it is not a file.
    """
    if storage.startswith(_SQLITE) and len(storage) > len(_SQLITE):
        return Path(storage.removeprefix(_SQLITE))
    if "://" in storage or storage == ":memory:":
        raise UsageError(f"`storage=` must be a file or sqlite:///FILE. Got '{storage}'.")
    return Path(storage)


def open_storage(path: Path) -> RDBStorage:
    """Open an SQLite file of Optuna, or create it.

    Raises:
        DataError: if the file is not such a file; it is not changed.
    """
    if path.exists():
        with open_existing(path) as stream:
            if stream.read(len(_JOURNAL)) == _JOURNAL:
                raise DataError(
                    "The file is an Optuna journal of an earlier version of edhnn. This version uses SQLite.",
                    path=path,
                    remedy=f"{_OTHER_FILE} To keep the trials, copy the study with optuna.copy_study.",
                )
    with _intact(path):
        return RDBStorage(f"{_SQLITE}{path}", engine_kwargs={"connect_args": {"timeout": _LOCK_SECONDS}})


@contextmanager
def _intact(path: Path) -> Iterator[None]:
    """Raise `DataError` for any error in a study's file: SQLAlchemy and Optuna raise many classes if it was edited."""
    try:
        yield
    except (EdhnnError, MemoryError, OSError):
        raise
    except Exception as error:
        first = next(iter(str(error).splitlines()), type(error).__name__).strip().rstrip(".")
        raise DataError(
            f"The file must be an intact Optuna database. Cause: {first}.", path=path, remedy=_OTHER_FILE
        ) from error


class _UserAttributes(msgspec.Struct):
    """What a trial records beside its parameters."""

    scores: list[float] = []
    reason: str | None = None
    deaths: Natural = 0


class _SystemAttributes(msgspec.Struct):
    """What Optuna records about a queued trial."""

    fixed_params: dict[str, Any] = {}
    retry_history: list[int] = []


@final
class StudyFile:
    """The trials of a search.

    Args:
        storage: An SQLite file, or ``sqlite:///FILE``.
        search: The search.
        facts: Everything that determines the scores (`Search.facts`).
        minimise: Whether smaller scores are better.

    Raises:
        UsageError: if the file holds a study of the same name and other facts, or the space is empty.
        DataError: if the file is not a study.
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
        elif search.space == "default":
            self._space |= default_space(search)
        else:
            self._space |= wide_space(search.plan.model, search.plan.options, search.fixed)
        self.num_trials = search.trials if self._grid is None else min(search.trials, len(self._grid))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.exclusive():
            self._storage = open_storage(self.path)
            with _intact(self.path):
                self._study = optuna.create_study(
                    storage=self._storage,
                    study_name=name,
                    direction="minimize" if minimise else "maximize",
                    load_if_exists=True,
                    sampler=optuna.samplers.RandomSampler(),
                    pruner=optuna.pruners.MedianPruner() if search.prune else optuna.pruners.NopPruner(),
                )
                recorded = msgspec.convert(self._study.user_attrs.get("facts", facts), dict[str, Any])
                _check_same(recorded, facts, storage)
                self._check_trials(minimise)
                self._study.set_user_attr("facts", facts)

    def _check_trials(self, minimise: bool) -> None:
        """Raise a `ValueError` if a trial does not have the form that this class gives it."""
        if self._study.directions != [StudyDirection.MINIMIZE if minimise else StudyDirection.MAXIMIZE]:
            raise ValueError("the direction of the study is not that of the metric")
        trials = self._study.get_trials(deepcopy=False)
        if [trial.number for trial in trials] != list(range(len(trials))):
            raise ValueError("the numbers of the trials must be 0, 1, 2 and so on")
        for trial in trials:
            msgspec.convert(trial.user_attrs, _UserAttributes)
            msgspec.convert(trial.system_attrs, _SystemAttributes)
            msgspec.convert(trial.intermediate_values, dict[int, float])
        for trial in self._counting():
            params = _params(trial)
            if not (params in self._grid if self._grid is not None else params.keys() <= self._space.keys()):
                raise ValueError(f"trial {trial.number} has parameters {params}, which are not in the space")
            if trial.state == TrialState.COMPLETE and not math.isfinite(msgspec.convert(trial.value, float)):
                raise ValueError(f"the value of trial {trial.number} is not a finite number")

    def close(self) -> None:
        """Close the file."""
        self._storage.remove_session()
        self._storage.engine.dispose()

    @contextmanager
    def take(self) -> Iterator[Trial | None]:
        """Lock the next trial; ``None`` if all requested trials are finished or locked by other processes."""
        with ExitStack() as stack:
            with self.exclusive(), _intact(self.path):
                trial = self._next()
                if trial is not None:
                    lock = self._lock_of(trial.number)
                    stack.enter_context(locked(lock))
                    stack.callback(lock.unlink, missing_ok=True)
            yield trial

    def finish(self, trial: Trial, value: float) -> None:
        """Record the trial's value."""
        self._study.tell(trial, value)

    def prune(self, trial: Trial) -> None:
        """Abandon the trial, because other trials are better so far."""
        self._study.tell(trial, state=TrialState.PRUNED)

    def fail(self, trial: Trial, reason: str) -> None:
        """Record that the trial has no value."""
        trial.set_user_attr("reason", reason)
        self._study.tell(trial, state=TrialState.FAIL)

    def give_back(self, trial: Trial) -> None:
        """Queue a stopped trial again."""
        with self.exclusive():
            self._retry(trial.number)

    def summaries(self) -> list[TrialSummary]:
        """List the trials that count, in the order of their start or of the grid."""
        trials = self._counting()
        if (grid := self._grid) is not None:
            trials.sort(key=lambda trial: grid.index(_params(trial)))
        return [_summary(number, trial) for number, trial in enumerate(trials)]

    def importance(self) -> dict[str, float]:
        """Compute the importance of each parameter; the sum is 1. Return nothing if there are too few trials."""
        done = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(done) < _MIN_TRIALS or len({trial.value for trial in done}) < 2:
            return {}
        shares = optuna.importance.get_param_importances(self._study, params=list(self._space))
        return {name: float(share) for name, share in shares.items()}

    def _next(self) -> Trial | None:
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            with locked(self._lock_of(trial.number)) as abandoned:
                if abandoned:
                    self._retry(trial.number, died=True)
                    self._lock_of(trial.number).unlink(missing_ok=True)
        counting = self._counting()
        waiting = [trial for trial in counting if trial.state == TrialState.WAITING]
        if len(counting) - len(waiting) >= self.num_trials:
            return None
        if not waiting and self._grid is not None:
            used = [_params(trial) for trial in counting]
            self._study.enqueue_trial(next(point for point in self._grid if point not in used))
        elif not waiting and not counting and self.search.space == "default":
            self._study.enqueue_trial(settings_of(self.search, self._space))
        elif not waiting:
            seed = derive_seed(self.search.plan.seed, "trial", len(counting)) % 2**32
            self._study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        return self._study.ask(self._space)

    def _retry(self, number: int, *, died: bool = False) -> None:
        """Queue a trial again, with the scores of its finished splits, then mark the old one as failed.

        After a kill between the two steps the running trial is queued again already, so it is only marked.
        """
        trials = self._study.get_trials(deepcopy=False)
        trial = deepcopy(next(one for one in trials if one.number == number))
        if trial.state != TrialState.RUNNING:  # its process has just finished it
            return
        if number not in _retried(trials):
            deaths = trial.user_attrs.get("deaths", 0) + died
            trial.user_attrs = {**trial.user_attrs, "deaths": deaths}
            if deaths < _MAX_DEATHS:
                RetryHeartbeatStaleTrialCallback()(self._study, trial)
            else:
                reason = f"Its process died {deaths} times, perhaps because memory ran out."
                history = [*RetryHeartbeatStaleTrialCallback.retry_history(trial), number]
                failed = optuna.create_trial(
                    state=TrialState.FAIL,
                    params=_params(trial),
                    distributions=self._space,
                    user_attrs={"reason": reason},
                    system_attrs={"retry_history": history},
                )
                self._study.add_trial(failed)
        self._study.tell(number, state=TrialState.FAIL)

    def _counting(self) -> list[FrozenTrial]:
        """List all trials except those that were queued again."""
        trials = self._study.get_trials(deepcopy=False)
        retried = _retried(trials)
        return [trial for trial in trials if trial.number not in retried]

    def _lock_of(self, number: int) -> Path:
        return self._locks / f"trial-{number}.lock"

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Prevent other processes from taking a trial within the block."""
        with locked(self._locks / "ask.lock", wait=_LOCK_SECONDS) as acquired:
            if not acquired:
                raise EdhnnError(f"The study in '{self.path}' was locked by another process for ten minutes.")
            yield


def _check_same(old: JsonObject, new: JsonObject, storage: str) -> None:
    different = [name for name in new if old.get(name) != new[name]]
    if different:
        shown = "; ".join(f"{name} is {old.get(name)!r} there, {new[name]!r} here" for name in different[:3])
        raise UsageError(
            f"'{storage}' holds a different study: {shown}. Use the same settings, or choose another `storage=`."
        )


def _retried(trials: list[FrozenTrial]) -> set[int]:
    """Return the numbers of trials that were queued again."""
    return {number for trial in trials for number in RetryHeartbeatStaleTrialCallback.retry_history(trial)}


def _params(trial: FrozenTrial) -> dict[str, Any]:
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}


def _summary(number: int, trial: FrozenTrial) -> TrialSummary:
    return TrialSummary(
        number=number,
        state=trial.state.name.lower(),
        score=trial.value if trial.state == TrialState.COMPLETE else None,
        scores=[trial.intermediate_values[step] for step in sorted(trial.intermediate_values)],
        params=rounded(_params(trial)),
        reason=trial.user_attrs.get("reason"),
        seconds=None if trial.duration is None else round(trial.duration.total_seconds(), 3),
    )


def paper_space(model: str, fixed: Collection[str]) -> dict[str, CategoricalDistribution]:
    """Return the grid of depth and width: those that the model has and that are not fixed.

    Raises:
        UsageError: if the space is empty.
    """
    known = [option.name for option in fields(MODELS[model].config)]
    space = {
        next(name for name in names if name in known): CategoricalDistribution(values)
        for names, values in _GRID
        if any(name in known for name in names)
    }
    return _without_fixed(space, fixed, model)


def default_space(search: Search) -> dict[str, BaseDistribution]:
    """Return depth, width, dropout, rates, and the scaling of features if the plan scales them.

    Raises:
        UsageError: if the space is empty.
    """
    plan = search.plan
    known = {option.name for option in fields(MODELS[plan.model].config)} | {"learning_rate", "weight_decay"}
    if plan.train.feature_scaling != "none":  # sparse features cannot be scaled
        known.add("feature_scaling")
    return _without_fixed({name: _DEFAULT[name] for name in _DEFAULT if name in known}, search.fixed, plan.model)


def settings_of(search: Search, space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Return the plan's own point of a space, without the values that are not in the space."""
    values = {**asdict(search.plan.train), **asdict(search.plan.config)}
    return {name: values[name] for name, distribution in space.items() if _holds(distribution, values[name])}


def _holds(distribution: BaseDistribution, value: Any) -> bool:
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return bool(distribution.low <= value <= distribution.high)
    return isinstance(distribution, CategoricalDistribution) and value in distribution.choices


def wide_space(model: str, options: Mapping[str, Any], fixed: Collection[str]) -> dict[str, BaseDistribution]:
    """Return depth, widths, layers of the perceptrons, dropout, restart, learning rate and weight decay.

    Args:
        model: The model.
        options: Its options; a restart that its update does not use is not searched.
        fixed: Names that are not searched.

    Returns:
        A distribution for each parameter.

    Raises:
        UsageError: if the space is empty.
    """
    known = {option.name for option in fields(MODELS[model].config)}
    if options.get("update") == "concat":
        known.discard("restart")
    space = {name: _WIDE[name] for name in _WIDE if name in known} | _TRAINING_FIELDS
    return _without_fixed(space, fixed, model)


def grid_points(space: Mapping[str, CategoricalDistribution], seed: int) -> list[dict[str, Any]]:
    """List all points of a grid in an order drawn by the seed, so that a short search covers all regions."""
    names = list(space)
    points = [dict(zip(names, values, strict=True)) for values in itertools.product(*(space[n].choices for n in names))]
    order = np.random.RandomState(seed % 2**32).permutation(len(points))
    return [points[index] for index in order]


def _without_fixed(space: dict[str, Distribution], fixed: Collection[str], model: str) -> dict[str, Distribution]:
    searched = {name: values for name, values in space.items() if name not in fixed}
    if not searched:
        raise UsageError(
            f"The search space is empty. '{model}' has these parameters in it: {', '.join(space) or 'none'}; all of "
            "them are set. Set fewer options, or use `space='wide'`."
        )
    return searched
