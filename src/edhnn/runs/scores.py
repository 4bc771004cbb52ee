"""Scores of a run: with an interval, beside floors, and by class.

A metric is a function of sums over nodes: hits and known labels for the accuracy, absolute errors and their number for
the mean absolute error. So intervals and comparisons draw nodes, or whole groups if the plan has groups.

- An interval is for a run in which every node is a test node at most once. Wilson's interval for an accuracy without
  groups; else the middle 95 % of 2,000 bootstrap draws of nodes or groups.
- A comparison with a floor exchanges the answers of model and floor at nodes (or groups) drawn at random, 2,000 times.
  ``p_value`` is the share of draws with a difference at least as large in either direction. For an accuracy this is
  McNemar's test.

Both take the trained models as given, and nodes (groups) as drawn independently: docs/adr/0024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.data.splits import Split, group_numbers
from edhnn.seeding import derive_seed
from edhnn.training.floors import features_alone, features_fit_in_time, majority, neighbours_vote
from edhnn.training.objective import Objective, labels_of
from edhnn.training.structural_features import KEY as STRUCTURAL_FEATURES
from edhnn.typing import FloatArray, IntArray

CONFIDENCE: Final = 0.95
_DRAWS: Final = 2000
_MANY_UNITS: Final = 5000
_YES: Final = 0.5
FloorName = Literal["majority", "features", "neighbours"]
FLOOR_WORDS: Final[dict[FloorName, tuple[str, str]]] = {
    "majority": ("majority class", "guessing"),
    "features": ("features alone", "the features alone"),
    "neighbours": ("neighbours' vote", "the neighbours' vote"),
}
"""The name of each floor in a table and in a sentence."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The metric over all test nodes of a run.

    Attributes:
        value: In percent, or an error in units of the labels. Over random splits it is the mean over splits.
        low: Lower end of the interval; ``None`` if nodes are test nodes of several splits.
        high: Its upper end.
        method: ``wilson``, ``bootstrap over nodes`` or ``bootstrap over groups``; ``None`` without an interval.
        num_nodes: Number of labelled test nodes.
    """

    value: float
    low: float | None = None
    high: float | None = None
    method: str | None = None
    num_nodes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FloorScore:
    """A floor on the same training and test nodes.

    Attributes:
        name: ``majority``, ``features`` or ``neighbours``.
        value: Its score; ``None`` if it was skipped.
        difference: Score of the model minus that of the floor; for errors, that of the floor minus that of the model.
        p_value: Share of random exchanges of answers with a difference at least as large.
        verdict: ``better``, ``no better`` or ``worse``: what can be said of the model at the 5 % level.
        skipped: The reason if it was not computed.
    """

    name: FloorName
    value: float | None = None
    difference: float | None = None
    p_value: float | None = None
    verdict: Literal["better", "no better", "worse"] | None = None
    skipped: str | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassScore:
    """Precision and recall of a class or label over all test nodes, in percent.

    Attributes:
        name: The class.
        precision: Share of right ones among the answers of this class; ``None`` if there are none.
        recall: Share of right answers among its nodes; ``None`` if there are none.
        support: Number of its nodes; a node counts once for every split that tests it.
    """

    name: str
    precision: float | None
    recall: float | None
    support: int


@final
@dataclass(frozen=True, slots=True)
class Scores:
    """All scores of a run."""

    score: Score
    floors: list[FloorScore]
    classes: list[ClassScore]


def score_run(
    dataset: NodeDataset,
    splits: Sequence[Split],
    objectives: Sequence[Objective],
    answers: Sequence[Tensor],
    names: Sequence[str],
    *,
    group: str | None = None,
) -> Scores:
    """Score the answers of a run's models on their test nodes, and compare them with the floors.

    Args:
        dataset: The dataset.
        splits: The splits.
        objectives: The objective of each split.
        answers: The answers of each split's model for all nodes.
        names: The names of the classes or labels.
        group: The node attribute of the plan's groups, if any.
    """
    tested = [answer[split.test] for answer, split in zip(answers, splits, strict=True)]
    metric = _Metric(dataset, splits, objectives, group)
    ours = metric.sums(tested)
    reason = "it would take more than about a minute on data of this size"
    found: dict[FloorName, list[Tensor] | None] = {
        "majority": [majority(dataset, split) for split in splits],
        "features": None,
        "neighbours": [neighbours_vote(dataset, split) for split in splits],
    }
    if STRUCTURAL_FEATURES in dataset.reading:
        reason = "the data have none of their own, and those of the training are made from the hypergraph"
    elif features_fit_in_time(dataset, splits, objectives[0].num_outputs):
        found["features"] = [
            features_alone(dataset, split, objective) for split, objective in zip(splits, objectives, strict=True)
        ]
    floors = [
        FloorScore(name=name, skipped=reason) if floor is None else metric.compare(name, ours, metric.sums(floor))
        for name, floor in found.items()
    ]
    return Scores(metric.score(ours), floors, _by_class(dataset, splits, tested, names))


class _Metric:
    """The metric of a run as a function of sums over nodes.

    Sums have the shape [splits, units, 2]. The metric of a split is the quotient of its two sums over all units, for
    the root mean squared error its root. A unit is a node, a group of nodes, or a part of very many of them.
    """

    def __init__(
        self, dataset: NodeDataset, splits: Sequence[Split], objectives: Sequence[Objective], group: str | None
    ) -> None:
        self.name, self.in_percent = objectives[0].metric, objectives[0].in_percent
        self.y = labels_of(dataset)
        labelled = dataset.labelled
        self.tests = [split.test for split in splits]
        tested = torch.cat(self.tests)
        tested = tested[labelled[tested]]
        nodes, times = torch.unique(tested, return_counts=True)
        self.num_nodes = len(nodes)
        self.once = not len(times) or int(times.max()) == 1
        self.groups = group is not None
        numbers: IntArray = np.arange(len(self.y)) if group is None else group_numbers(dataset, group)
        self.units = np.unique(numbers[nodes.numpy()])
        self.unit_of = np.searchsorted(self.units, numbers).clip(max=len(self.units) - 1)
        self.num_units = len(self.units)
        if self.num_units > _MANY_UNITS:  # draw parts of many nodes instead
            order = self._generator("parts").permutation(self.num_units)
            self.unit_of, self.num_units = order[self.unit_of] % _MANY_UNITS, _MANY_UNITS

    @staticmethod
    def _generator(name: str) -> np.random.Generator:
        return np.random.default_rng(derive_seed(0, "scores", name))

    def sums(self, tested: Sequence[Tensor]) -> FloatArray:
        """Sum over the test nodes of each split and unit, for answers on test nodes."""
        table = np.zeros((len(tested), self.num_units, 2))
        for number, (nodes, answers) in enumerate(zip(self.tests, tested, strict=True)):
            for column, values in enumerate(self._parts(answers, self.y[nodes])):
                table[number, :, column] = np.bincount(self.unit_of[nodes.numpy()], values, minlength=self.num_units)
        return table

    def _parts(self, answers: Tensor, y: Tensor) -> tuple[Any, Any]:
        """Return the two values of each node whose sums give the metric."""
        if y.dim() == 1:
            known = y >= 0
            return ((answers.argmax(dim=1) == y) & known).double().numpy(), known.double().numpy()
        known = ~y.isnan()
        if self.name == "micro_f1":
            predicted, true = (answers - _YES > 0) & known, (y == 1) & known
            return 2.0 * (predicted & true).sum(dim=1).double().numpy(), (
                (predicted.sum(dim=1) + true.sum(dim=1)).double().numpy()
            )
        error = torch.where(known, answers.double() - y.double(), 0.0)
        error = error.abs() if self.name == "mae" else error.square()
        return error.sum(dim=1).numpy(), known.sum(dim=1).double().numpy()

    def value(self, sums: FloatArray) -> FloatArray:
        """Return the metric of sums [..., splits, 2]: over all nodes, or the mean over splits that share nodes."""
        if self.once:
            sums = sums.sum(axis=-2, keepdims=True)
        upper, lower = sums[..., 0], sums[..., 1]
        empty = 1.0 if self.name == "micro_f1" else np.nan
        ratio = np.divide(upper, lower, out=np.full(upper.shape, empty), where=lower > 0)
        values: FloatArray = (np.sqrt(ratio) if self.name == "rmse" else ratio).mean(axis=-1)
        return values * (100.0 if self.in_percent else 1.0)

    def score(self, sums: FloatArray) -> Score:
        """Return the score with its interval."""
        total = sums.sum(axis=1)
        value = float(self.value(total))
        if not self.once or not self.num_nodes:
            return Score(value=value, num_nodes=self.num_nodes)
        if self.name == "accuracy" and not self.groups:
            low, high = _wilson(float(total[:, 0].sum()), self.num_nodes)
            return Score(value=value, low=low, high=high, method="wilson", num_nodes=self.num_nodes)
        draws = self._generator("bootstrap").multinomial(
            self.num_units, np.full(self.num_units, 1 / self.num_units), size=_DRAWS
        )
        values = self.value(np.einsum("du,suc->dsc", draws.astype(np.float64), sums, optimize=True))
        tail = 50 * (1 - CONFIDENCE)
        low, high = (float(end) for end in np.nanpercentile(values, (tail, 100 - tail)))
        if self.name == "accuracy" and value in (0.0, 100.0):  # all draws are equal: a group counts as one answer
            low, high = _wilson(value / 100 * len(self.units), len(self.units))
        units = "groups" if self.groups else "nodes"
        return Score(value=value, low=low, high=high, method=f"bootstrap over {units}", num_nodes=self.num_nodes)

    def compare(self, name: FloorName, ours: FloatArray, floor: FloatArray) -> FloorScore:
        """Compare with a floor by exchanging answers at random units."""
        mine, theirs = (float(self.value(sums.sum(axis=1))) for sums in (ours, floor))
        sign = 1.0 if self.in_percent else -1.0
        exchanged = (self._generator(f"floor {name}").random((_DRAWS, self.num_units)) < 0.5).astype(np.float64)
        moved = np.einsum("du,suc->dsc", exchanged, floor - ours, optimize=True)
        values = self.value(ours.sum(axis=1) + moved) - self.value(floor.sum(axis=1) - moved)
        difference = sign * (mine - theirs)
        extreme = int((np.abs(values) >= abs(difference) * (1 - 1e-9)).sum())
        p_value = (1 + extreme) / (1 + _DRAWS)
        clear = p_value <= 1 - CONFIDENCE
        verdict: Literal["better", "no better", "worse"] = "no better"
        if clear and difference:
            verdict = "better" if difference > 0 else "worse"
        return FloorScore(name=name, value=theirs, difference=difference, p_value=p_value, verdict=verdict)


def _wilson(hits: float, count: int) -> tuple[float, float]:
    """Return Wilson's interval of a share, in percent."""
    from scipy.stats import binomtest

    interval = binomtest(round(hits), count).proportion_ci(CONFIDENCE, method="wilson")
    return 100 * float(interval.low), 100 * float(interval.high)


def _by_class(
    dataset: NodeDataset, splits: Sequence[Split], tested: Sequence[Tensor], names: Sequence[str]
) -> list[ClassScore]:
    """Return precision and recall of each class or label; none for regression."""
    if dataset.task == "regression":
        return []
    y = torch.cat([labels_of(dataset)[split.test] for split in splits])
    answers = torch.cat(list(tested))
    if dataset.task == "classification":
        numbers = torch.arange(len(names))
        true, predicted = y[:, None] == numbers, answers.argmax(dim=1)[:, None] == numbers
        predicted &= (y >= 0)[:, None]
    else:
        true, predicted = y == 1, (answers > _YES) & ~y.isnan()
    right, answered, support = ((true & predicted).sum(dim=0), predicted.sum(dim=0), true.sum(dim=0))
    counts = zip(names, right.tolist(), answered.tolist(), support.tolist(), strict=True)
    return [
        ClassScore(
            name=name,
            precision=100 * hits / given if given else None,
            recall=100 * hits / nodes if nodes else None,
            support=nodes,
        )
        for name, hits, given, nodes in counts
    ]


def verdict_words(floors: Sequence[FloorScore], num_nodes: int) -> str:
    """Say in a sentence what the comparisons with the floors show."""
    said = {
        verdict: [FLOOR_WORDS[floor.name][1] for floor in floors if floor.verdict == verdict]
        for verdict in ("better", "no better", "worse")
    }
    parts = [
        f"{verdict} than {_joined(words, 'or' if verdict == 'no better' else 'and')}"
        for verdict, words in said.items()
        if words
    ]
    if not parts:
        return ""
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]} (paired over {num_nodes:,} nodes, at the 5 % level)."


def _joined(words: Sequence[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
