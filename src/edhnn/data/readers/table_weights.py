"""Weights of memberships and of hyperedges in tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from edhnn.data.column_values import Column, first_other, numbers_in
from edhnn.data.files import Limits
from edhnn.data.readers.arrow_tables import place_of_row
from edhnn.errors import DataError


def edge_weights(path: Path, columns: dict[str, Column], limits: Limits, notes: list[str]) -> Tensor | None:
    """The weights of hyperedges, taken out of their columns; left there, with a note, if they are not numbers."""
    if "weight" not in columns:
        return None
    if len(columns["weight"]) and numbers_in(columns["weight"]) is None:
        row, value = first_other(columns["weight"])
        what = "it is empty" if value is None else f"{value!r} is not a number"
        notes.append(f"weights of hyperedges not taken, as {what}: '{path.name}', {place_of_row(path, row, limits)}")
        return None
    return weights_of(path, columns.pop("weight"), "weight", limits)


def weights_of(path: Path, column: Column, name: str, limits: Limits) -> Tensor:
    """A column of weights as numbers; a data error that names the line if one is no finite number of 0 or more."""
    numbers = numbers_in(column) if len(column) else np.zeros(0)
    if numbers is None:
        row, value = first_other(column)
        raise DataError(
            f"The weight column '{name}' must hold numbers. Got {'nothing' if value is None else repr(value)}.",
            path=path,
            where=place_of_row(path, row, limits),
        )
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        raise DataError(
            f"Every weight must be finite and 0 or more. Got {numbers[wrong[0]]}.",
            path=path,
            where=place_of_row(path, int(wrong[0]), limits),
        )
    return torch.tensor(numbers)  # a copy: Arrow's memory is not for writing
