"""A search for sizes and its result; the winner as a configuration file.

A search chooses from what matters (rates, dropout, scaling, depth and width), from the paper's grid of depth and width,
or from a wider space. A parameter is the name of an option
of the model or of training. Options that the user has set are not searched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, final

from edhnn.io.files import atomic_file
from edhnn.io.json_files import finite
from edhnn.models.registry import make_config
from edhnn.runs.plan import Plan
from edhnn.typing import JsonObject

Space = Literal["default", "paper", "wide"]
_TRAINING = ("learning_rate", "weight_decay", "feature_scaling")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The definition of a search.

    Attributes:
        plan: The common plan of all trials: model, options that are not searched, training, number of splits, seed.
        trials: Number of trials, including those of earlier calls; a grid has no more trials than points.
        space: ``default`` for rates, dropout, scaling, depth and width, beginning with the settings of the plan;
            ``paper`` for the paper's grid of depth and width; ``wide`` for more parameters (`edhnn.tuning.study`).
        fixed: Names of options that are not searched, because the user has set them.
        prune: Whether to abandon a trial if its split is worse than the median of the other trials.
    """

    plan: Plan
    trials: int
    space: Space = "default"
    fixed: tuple[str, ...] = ()
    prune: bool = False

    def plan_of(self, params: Mapping[str, Any]) -> Plan:
        """Return the plan of a trial."""
        shown = rounded(params)
        train = {name: value for name, value in shown.items() if name in _TRAINING}
        options = {name: value for name, value in shown.items() if name not in _TRAINING}
        return replace(self.plan, options={**self.plan.options, **options}, train=replace(self.plan.train, **train))

    def facts(self, dataset: str, data_sha256: str) -> JsonObject:
        """Return everything that determines scores and trials, as JSON; the number of trials does not."""
        facts = {
            "edhnn_version": version("edhnn"),
            "dataset": dataset,
            "data_sha256": data_sha256,
            "model": self.plan.model,
            "options": self.plan.options,
            "train": self.plan.train.to_json(),
            "num_splits": self.plan.num_splits,
            "seed": self.plan.seed,
            "space": self.space,
            "fixed": sorted(self.fixed),
            "prune": self.prune,
            **self.plan.protocol_fields,
        }
        return json.loads(json.dumps(facts))  # type: ignore[no-any-return]


def rounded(params: Mapping[str, Any]) -> dict[str, Any]:
    """Round real numbers to six digits: 0.6, not 0.6000000000000001."""
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in params.items()}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSummary:
    """A trial.

    Attributes:
        number: Its number; a trial that was stopped and queued again keeps its number.
        state: ``complete``, ``pruned``, ``fail``, ``running`` or ``waiting``.
        score: The mean validation metric over all splits.
        scores: The metric of each finished split.
        params: The chosen parameters.
        reason: The error message of a failed trial.
        seconds: Time since its last start.
    """

    number: int
    state: str
    score: float | None
    scores: list[float]
    params: dict[str, Any]
    reason: str | None
    seconds: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """The result of a search. Accuracies and F1 are in percent, errors in the units of the labels.

    Attributes:
        dataset: Name of the dataset.
        search: The search.
        metric: The metric of the scores.
        minimise: Whether smaller scores are better.
        trials: All trials, in the order of their start or of the grid.
        importance: Importance of each parameter; empty if there are too few trials.
        storage: The file of the study.
        seconds: Wall time of this call.
    """

    dataset: str
    search: Search
    metric: str
    minimise: bool
    trials: list[TrialSummary]
    importance: dict[str, float]
    storage: str
    seconds: float

    @property
    def ranking(self) -> list[TrialSummary]:
        """The complete trials, the best first; equal trials by their number."""
        done = [trial for trial in self.trials if trial.score is not None]
        return sorted(done, key=lambda trial: (trial.score or 0.0) * (1 if self.minimise else -1))

    @property
    def winner(self) -> Plan:
        """The plan of the best trial."""
        return self.search.plan_of(self.ranking[0].params)

    def to_json(self) -> JsonObject:
        """Return the result as JSON."""
        facts: JsonObject = finite(
            {
                "dataset": self.dataset,
                "model": self.search.plan.model,
                "space": self.search.space,
                "num_splits": self.search.plan.num_splits,
                "metric": self.metric,
                "best": asdict(self.ranking[0]),
                "trials": [asdict(trial) for trial in self.trials],
                "importance": self.importance,
                "storage": self.storage,
                "seconds": self.seconds,
            }
        )
        return facts


def write_winner(result: TuningResult, path: Path) -> None:
    """Write the best trial as a configuration file for `edhnn train --config`, with every value."""
    plan, best = result.winner, result.ranking[0]
    assert best.score is not None
    unit = "" if result.minimise else " %"
    training = {name: "none" if value is None else value for name, value in asdict(plan.train).items()}
    tables = {"options": asdict(make_config(plan.model, **plan.options)), "train": training}
    lines = [
        f"# Found by edhnn tune on {json.dumps(result.dataset)}, space {result.search.space}: the best of "
        f"{len(result.ranking)} trials.",
        f"# Validation {result.metric.replace('_', ' ')} {best.score:.4g}{unit}, mean over {plan.protocol_words}; "
        "test labels were not read.",
        f"model = {_toml(plan.model)}",
        f"seed = {plan.seed}",
    ]
    fields: dict[str, str | int | None] = {"group": plan.group, "split_column": plan.split_column}
    fields["folds"] = plan.num_splits if plan.protocol == "folds" else None
    lines += [f"{name} = {_toml(value)}" for name, value in fields.items() if value is not None]
    for table, values in tables.items():
        lines += [
            "",
            f"[{table}]",
            *(f"{name} = {_toml(value)}" for name, value in values.items() if value is not None),
        ]
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(value: Any) -> str:
    """Write a value of a configuration as TOML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
