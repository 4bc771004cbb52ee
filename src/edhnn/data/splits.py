"""Splits of the nodes into training, validation and test nodes.

The default splits are those that the released code draws with its default seed: consecutive ``torch.randperm(N)`` from
one CPU generator with seed 0. The first half trains, the next quarter validates, the rest tests. They are not
stratified.
Paper: Section 4.1, "randomly split the data into training/validation/test samples using 50%/25%/25%".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from edhnn.errors import DataError


@final
@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Node numbers of the three parts."""

    train: Int[Tensor, " train"]
    valid: Int[Tensor, " valid"]
    test: Int[Tensor, " test"]


def random_splits(
    num_nodes: int, count: int = 10, *, seed: int = 0, train: float = 0.5, valid: float = 0.25
) -> list[Split]:
    """Draw splits, one permutation after the other from one generator.

    Args:
        num_nodes: Number of nodes.
        count: Number of splits; a larger number does not change the first ones.
        seed: Seed of the generator.
        train: Share of training nodes, rounded down.
        valid: Share of validation nodes, rounded down.

    Example:
        >>> from edhnn import random_splits
        >>> [len(part) for part in (lambda s: (s.train, s.valid, s.test))(random_splits(10, 1)[0])]
        [5, 2, 3]
    """
    if not (train >= 0 and valid >= 0 and train + valid <= 1):
        raise DataError(f"Shares must be 0 or more and add up to at most 1. Got {train} and {valid}.")
    generator = torch.Generator(device="cpu").manual_seed(seed)
    first, second = int(train * num_nodes), int(valid * num_nodes)
    splits = []
    for _ in range(count):
        order = torch.randperm(num_nodes, generator=generator)
        splits.append(Split(order[:first], order[first : first + second], order[first + second :]))
    return splits
