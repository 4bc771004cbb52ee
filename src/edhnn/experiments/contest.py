"""Which rows of a column compete by their means, and over which splits.

A mean over other splits, or after other epochs, does not compare. So the rows of a column compete over the splits that
all of them share, and a row is left out if it was not trained for the epochs that most of them were, or if it has fewer
than half as many splits as their median: the others would be judged by its few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import final

import numpy as np

from edhnn.experiments.gathered import Grid

_DIGITS = 9
"""Means are rounded to these, so that equals are equal whatever the order of a sum."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The rows that compete in a column.

    Attributes:
        means: The mean of each, over the shared splits.
        shared: How many splits they share.
        left_out: Rows that have a number and do not compete.
    """

    means: Mapping[str, float]
    shared: int
    left_out: tuple[str, ...]

    def best(self, *, higher_is_better: bool) -> list[str]:
        """The best rows; more than one if they are equal."""
        if not self.means:
            return []
        best = (max if higher_is_better else min)(self.means.values())
        return [row for row, mean in self.means.items() if mean == best]


def compete(grid: Grid, column: str, rows: Iterable[str]) -> Contest:
    """Compare the rows of a column by their means.

    Args:
        grid: The experiment with its scores.
        column: The label of the column.
        rows: The rows asked about; one without a number is passed over.

    Returns:
        The contest; without rows if those that would compete share no split.
    """
    cells = {row: cell for row in rows if (cell := grid.measured(row, column)) is not None}
    if not cells:
        return Contest(means={}, shared=0, left_out=())
    usual, _ = Counter(cell.epochs for cell in cells.values()).most_common(1)[0]
    alike = {row: cell for row, cell in cells.items() if cell.epochs == usual}
    median = median_low(len(cell.values) for cell in alike.values())
    taken = {row: cell for row, cell in alike.items() if 2 * len(cell.values) >= median}
    shared = sorted(set.intersection(*(set(cell.values) for cell in taken.values())))
    means = (
        {row: round(float(np.mean([cell.values[split] for split in shared])), _DIGITS) for row, cell in taken.items()}
        if shared
        else {}
    )
    return Contest(means=means, shared=len(shared), left_out=tuple(row for row in cells if row not in means))
