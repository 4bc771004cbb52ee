"""A run's numbers: mean and sample deviation over its splits. Paper: Table 2's entries."""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict, dataclass
from typing import final

from edhnn import kernels
from edhnn.training.run_folder import RunFolder, finite
from edhnn.training.split_records import read_result
from edhnn.typing import JsonObject


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run found.

    Attributes:
        dataset: Name of the dataset.
        model: Name of the model.
        task: What was learned.
        metric: What the numbers below are: accuracy, micro-F1 (both in percent), or an error in the labels' units.
        test_mean: Mean over the splits of the test metric at the selected epoch.
        test_std: Its sample standard deviation; 0 with one split.
        test: The test metric of each split.
        valid: The validation metric of each split at that epoch.
        best_epoch: The selected epoch of each split.
        split_seconds: Training time of each split.
        seconds: Wall time of this call.
        num_parameters: Numbers that are learned.
        peak_memory: The most memory a training process held, in bytes.
        jobs: Processes that trained.
        threads: Threads in each.
        kernels: The kernels that ran.
        origin: Where the model's sizes came from.
        run: The run folder.
    """

    dataset: str
    model: str
    task: str
    metric: str
    test_mean: float
    test_std: float
    test: list[float]
    valid: list[float]
    best_epoch: list[int]
    split_seconds: list[float]
    seconds: float
    num_parameters: int
    peak_memory: int | None
    jobs: int
    threads: int
    kernels: str
    origin: str
    run: str

    def shown(self, value: float) -> str:
        """A value of the metric for people: two digits of a share, four figures of an error."""
        return f"{value:.4g}" if self.task == "regression" else f"{value:.2f}"

    def to_json(self) -> JsonObject:
        """The summary as JSON."""
        facts: JsonObject = finite(asdict(self))
        return facts


def summarise(folder: RunFolder, *, seconds: float, jobs: int, threads: int) -> RunSummary:
    """The summary of a run whose splits are all finished."""
    plan, facts = folder.plan()
    results = [read_result(folder.split(number)) for number in range(plan.num_splits)]
    metric = results[0]["metric"]
    factor = 1.0 if facts["dataset"]["task"] == "regression" else 100.0
    test, valid = ([factor * _number(result[part][metric]) for result in results] for part in ("test", "valid"))
    peaks = [result["peak_memory"] for result in results if result["peak_memory"] is not None]
    return RunSummary(
        dataset=facts["dataset"]["name"],
        model=plan.model,
        task=facts["dataset"]["task"],
        metric=metric,
        test_mean=statistics.fmean(test),
        test_std=statistics.stdev(test) if len(test) > 1 else 0.0,
        test=test,
        valid=valid,
        best_epoch=[result["best_epoch"] for result in results],
        split_seconds=[result["seconds"] for result in results],
        seconds=round(seconds, 3),
        num_parameters=results[0]["num_parameters"],
        peak_memory=max(peaks) if peaks else None,
        jobs=jobs,
        threads=threads,
        kernels=kernels.active(),
        origin=plan.origin,
        run=str(folder.path),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value
