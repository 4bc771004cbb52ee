"""What a grid says: the best of each column, average ranks, and every row against one of them, tested."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar, final

import numpy as np

from edhnn.experiments.comparison import (
    LEVEL,
    Outcome,
    Summary,
    average_ranks,
    corrected_resampled_p,
    holm,
    judge,
    least_gain,
    summarise,
)
from edhnn.experiments.contest import Contest, compete
from edhnn.experiments.gathered import Grid

Name = TypeVar("Name", bound=Hashable)

TEST_TO_TRAIN = {"accuracy": 0.25 / 0.50, "diffusion": 0.10 / 0.80}
"""Size of the test part over that of the training part; kinds without splits are not tested."""

_REFERENCE = "ED-HNN"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One of two against the other, over the splits that both have.

    Attributes:
        gain: How much better the first is, on average.
        shared: How many splits.
        p: The p value; ``None`` with fewer than two splits.
        adjusted: The same after Holm's correction over the family.
        least: The gain that would have been clear with the spread that was found, even were it the only clear one
            of the family; ``None`` with fewer than two splits.
        outcome: What that says of the first.
    """

    gain: float
    shared: int
    p: float | None
    adjusted: float | None
    least: float | None
    outcome: Outcome


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a grid says.

    Attributes:
        summaries: By the labels of row and column.
        best: Labels of the best rows of each column.
        contests: Who competes in each column, by its label; without one where there is nothing to choose from.
        ranks: Average ranks of the rows that can be ranked.
        ranked_over: How many splits the ranked rows share, by the label of each column they are ranked over.
        reference: The row that all others are compared with.
        contrasts: The reference against each other row, by the labels of row and column.
    """

    summaries: Mapping[tuple[str, str], Summary]
    best: Mapping[str, Sequence[str]]
    contests: Mapping[str, Contest]
    ranks: Mapping[str, float]
    ranked_over: Mapping[str, int]
    reference: str
    contrasts: Mapping[tuple[str, str], Contrast]

    @property
    def tested(self) -> int:
        """How many of the contrasts have a p value."""
        return sum(contrast.p is not None for contrast in self.contrasts.values())

    def tally(self, row: str) -> tuple[int, int, int]:
        """Columns in which the reference is better than the row, not distinguishable from it, worse than it."""
        said = [contrast.outcome for (label, _), contrast in self.contrasts.items() if label == row]
        return said.count("better"), said.count("not distinguishable"), said.count("worse")


def analyse(grid: Grid) -> Findings:
    """Summaries, ranks and tests of a grid; no ranks or tests where there is nothing to compare."""
    summaries = {
        place: summarise(cell.scores, np.random.default_rng(0))
        for place, cell in grid.cells.items()
        if cell.state == "measured"
    }
    reference = _REFERENCE if _REFERENCE in grid.rivals else grid.rivals[-1]
    compared = grid.experiment.kind in TEST_TO_TRAIN
    ranks, over = _ranks(grid) if compared else ({}, {})
    contests = {} if grid.experiment.kind == "statistics" else _contests(grid)
    return Findings(
        summaries=summaries,
        best={column: one.best(higher_is_better=grid.higher_is_better) for column, one in contests.items()},
        contests=contests,
        ranks=ranks,
        ranked_over=over,
        reference=reference,
        contrasts=_against(grid, reference) if compared else {},
    )


def gains(first: Mapping[int, float], second: Mapping[int, float], *, higher_is_better: bool) -> dict[int, float]:
    """How much better the first is than the second on each split that both have."""
    sign = 1.0 if higher_is_better else -1.0
    return {split: sign * (first[split] - second[split]) for split in sorted(first.keys() & second.keys())}


def contrast_family(family: Mapping[Name, Mapping[int, float]], test_to_train: float) -> dict[Name, Contrast]:
    """Test every mean gain, corrected for how many they are.

    Args:
        family: Gains by split, by whatever names the comparison.
        test_to_train: Size of the test part over that of the training part.

    Returns:
        A contrast for each that has a shared split.
    """
    arrays = {name: np.array(list(found.values()), dtype=np.float64) for name, found in family.items() if found}
    p = {name: corrected_resampled_p(found, test_to_train) for name, found in arrays.items() if len(found) > 1}
    adjusted = dict(zip(p, holm(np.array(list(p.values()), dtype=np.float64)).tolist(), strict=True))
    return {
        name: Contrast(
            gain=float(found.mean()),
            shared=len(found),
            p=p.get(name),
            adjusted=adjusted.get(name),
            least=least_gain(found, test_to_train, LEVEL / len(p)) if name in p else None,
            outcome=judge(float(found.mean()), adjusted.get(name)),
        )
        for name, found in arrays.items()
    }


def least_gains(contrasts: Iterable[tuple[str, Contrast]]) -> dict[str, float]:
    """The gain at which a comparison of a column would have been clear, the median over its comparisons.

    Args:
        contrasts: Contrasts, each with the label of its column.

    Returns:
        The gain by column, of those that have a tested comparison.
    """
    found: dict[str, list[float]] = {}
    for column, contrast in contrasts:
        if contrast.least is not None:
            found.setdefault(column, []).append(contrast.least)
    return {column: median(values) for column, values in found.items()}


def _against(grid: Grid, reference: str) -> dict[tuple[str, str], Contrast]:
    """The reference against each row; not where the two were not trained as the experiment asks alike."""
    family = {}
    for row in grid.rivals:
        for column in grid.columns:
            own, other = grid.measured(reference, column), grid.measured(row, column)
            if row != reference and own is not None and other is not None and own.epochs == other.epochs:
                family[row, column] = gains(own.values, other.values, higher_is_better=grid.higher_is_better)
    return contrast_family(family, TEST_TO_TRAIN[grid.experiment.kind])


def _contests(grid: Grid) -> dict[str, Contest]:
    """The columns in which there are at least two networks to choose from."""
    networks = [line.label for line in grid.lines if line.kind == "network"]
    found = {column: compete(grid, column, grid.rivals) for column in grid.columns}
    return {column: one for column, one in found.items() if sum(row in one.means for row in networks) > 1}


def _ranks(grid: Grid) -> tuple[dict[str, float], dict[str, int]]:
    """Ranks over the columns in which at least half of the rows compete, of the rows that do in all of these."""
    rows = grid.rivals
    open_to = {column: compete(grid, column, rows).means for column in grid.columns}
    over = [column for column, means in open_to.items() if 2 * len(means) >= len(rows)]
    ranked = [row for row in rows if over and all(row in open_to[column] for column in over)]
    if len(ranked) < 2:
        return {}, {}
    contests = {column: compete(grid, column, ranked) for column in over}
    table = np.array([[one.means[row] for one in contests.values()] for row in ranked], dtype=np.float64)
    ranks = average_ranks(table, higher_is_better=grid.higher_is_better)
    return dict(zip(ranked, ranks.tolist(), strict=True)), {column: one.shared for column, one in contests.items()}
