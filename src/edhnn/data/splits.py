"""Splits of the nodes into training, validation and test nodes.

Random splits are those that the released code draws with its default seed: consecutive ``torch.randperm(N)`` from one
CPU generator with seed 0. The first half trains, the next quarter validates, the rest tests. They are not stratified.
Paper: Section 4.1, "randomly split the data into training/validation/test samples using 50%/25%/25%".

Folds are for one's own data: every labelled node is a test node exactly once. The next fold but one validates, the
others train. Folds are stratified: by class; for several labels at once by a node's rarest label; for regression by
quantiles. Nodes of one group are in one fold.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from edhnn.data.dataset import NodeDataset, class_name
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.typing import FloatArray, IntArray

DEFAULT_FOLDS: Final = 5
LEAST_FOLDS: Final = 3
"""One fold tests, one validates, one trains."""
_BINS: Final = 10
_MANY_GROUPS: Final = 2000
_SHOWN: Final = 5
_PARTS: Final = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test", "testing"),
}


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


class Drawn(NamedTuple):
    """Splits and what the user should know about them."""

    splits: list[Split]
    notes: tuple[str, ...] = ()


def stratified_folds(dataset: NodeDataset, count: int = DEFAULT_FOLDS, *, group: str | None = None) -> Drawn:
    """Divide the labelled nodes into folds. Split k tests fold k, validates on fold k + 2 and trains on the others.

    scikit-learn's ``StratifiedKFold`` puts the nodes of a small class into consecutive folds. So a class of two nodes
    still has a training node in every split of four or more folds.

    Args:
        dataset: The dataset.
        count: Number of folds, at least 3.
        group: A node attribute. Nodes with the same value are in the same fold; a node without a value is alone.

    Returns:
        The splits, and notes about small classes and missing groups.

    Raises:
        DataError: if there are too few labelled nodes or groups.
        UsageError: if the attribute does not exist, or there are fewer than 3 folds.
    """
    if count < LEAST_FOLDS:
        raise UsageError(f"`folds=` must be at least {LEAST_FOLDS}: one fold tests, one validates. Got {count}.")
    nodes = dataset.labelled.nonzero()[:, 0]
    groups, notes = (None, []) if group is None else _groups(dataset, group, nodes)
    strata = _strata(dataset, nodes, count)
    _check_folds(dataset, strata, groups, count, group)
    best = most_folds(dataset, group)
    if count < DEFAULT_FOLDS and count == best:
        notes.append(f"{count} folds instead of {DEFAULT_FOLDS}: there are too few labelled nodes or groups for more")
    fold = torch.from_numpy(_assign(strata, groups, count))
    splits = []
    for number in range(count):
        valid = (number + 2) % count
        train = (fold != number) & (fold != valid)
        splits.append(Split(nodes[train], nodes[fold == valid], nodes[fold == number]))
    return Drawn(splits, (*notes, *_notes_on_classes(dataset, splits)))


def most_folds(dataset: NodeDataset, group: str | None = None) -> int:
    """Return the number of folds for a dataset: five, or fewer if there are few labelled nodes or groups.

    With fewer than two classes of three labelled nodes, or six labelled nodes, or three groups, the result is still
    three; `stratified_folds` then raises an error that gives the reason.
    """
    nodes = dataset.labelled.nonzero()[:, 0]
    most = len(nodes) // 2
    if dataset.task == "classification" and dataset.y is not None and len(nodes):
        counts = np.sort(np.bincount(dataset.y[nodes].numpy()))
        most = int(counts[-2]) if len(counts) > 1 else 0  # the second largest class
    if group is not None:
        most = min(most, len(np.unique(_groups(dataset, group, nodes)[0])))
    return max(LEAST_FOLDS, min(DEFAULT_FOLDS, most))


def _check_folds(
    dataset: NodeDataset, strata: IntArray, groups: IntArray | None, count: int, group: str | None
) -> None:
    if groups is not None and len(np.unique(groups)) < count:
        raise DataError(
            f"Each fold needs a group of its own. '{group}' has {len(np.unique(groups))} groups with labelled nodes, "
            f"for {count} folds.",
            remedy="Choose fewer `folds=`, or another column with `group=`.",
        )
    counts = np.bincount(strata) if len(strata) else np.zeros(1, dtype=np.int64)
    if dataset.task == "classification":
        if int((counts >= LEAST_FOLDS).sum()) < 2:
            raise DataError(
                f"Folds need at least 2 classes with {LEAST_FOLDS} labelled nodes each: one to test, one to validate, "
                f"one to train. '{dataset.name}' has {int((counts >= LEAST_FOLDS).sum())} such classes among its "
                f"{int((counts > 0).sum())} ({len(strata)} labelled nodes).",
                remedy="Label more nodes, or name another label with `label=`.",
            )
        if counts.max() < count:
            raise DataError(
                f"There must not be more folds than labelled nodes of the largest class ({counts.max()}). Got {count}.",
                remedy="Choose fewer `folds=`.",
            )
    elif len(strata) < 2 * count:
        raise DataError(
            f"{count} folds need at least {2 * count} labelled nodes. '{dataset.name}' has {len(strata)}.",
            remedy="Label more nodes, or choose fewer `folds=`.",
        )


def _assign(strata: IntArray, groups: IntArray | None, count: int) -> IntArray:
    """Return the fold of each item."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold  # slow to import

    fold = np.full(len(strata), -1)
    items = np.zeros(len(strata))
    if groups is not None:
        names, groups = np.unique(groups, return_inverse=True)
        if len(names) > _MANY_GROUPS:  # scikit-learn needs a Python step per group: join groups at random
            groups = np.random.default_rng(0).permutation(len(names))[groups] % _MANY_GROUPS
    splitters: list[Any] = [StratifiedKFold(count, shuffle=True, random_state=0)]
    if groups is not None:  # the first may leave a fold empty, the second never does
        splitters = [StratifiedGroupKFold(count, shuffle=True, random_state=0), GroupKFold(count)]
    for splitter in splitters:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class smaller than the folds: our note names it
            for number, (_, test) in enumerate(splitter.split(items, strata, groups)):
                fold[test] = number
        if len(np.unique(fold)) == count:
            break
    return fold


def _groups(dataset: NodeDataset, name: str, nodes: Tensor) -> tuple[IntArray, list[str]]:
    """Return a group number per node, and a note about nodes without a group."""
    values = _attribute(dataset, name, "group")
    numbers: dict[Any, int] = {}
    groups = np.empty(len(nodes), dtype=np.int64)
    alone = 0
    for position, node in enumerate(nodes.tolist()):
        value = values[node]
        if _missing(value):
            groups[position] = -1 - position
            alone += 1
        else:
            key = value if isinstance(value, str | int | float) else repr(value)
            groups[position] = numbers.setdefault(key, len(numbers))
    note = f"{alone} labelled nodes have no value in '{name}'; each is a group of its own"
    return groups, [note] if alone else []


def group_numbers(dataset: NodeDataset, name: str) -> IntArray:
    """Return a group number per node from a node attribute; a node without a value is a group of its own."""
    return _groups(dataset, name, torch.arange(dataset.hypergraph.num_nodes))[0]


def _attribute(dataset: NodeDataset, name: str, argument: str) -> Sequence[Any]:
    if name in dataset.node_attributes:
        return dataset.node_attributes[name]
    if name in (dataset.feature_names or ()):
        raise UsageError(
            f"`{argument}=` names the column '{name}', which was read as a feature of '{dataset.name}'. Read it with "
            f"`attributes='{name}'`, or leave it out of `features=`."
        )
    if not dataset.node_attributes:
        raise UsageError(
            f"`{argument}=` names the column '{name}', but the nodes of '{dataset.name}' have no such column."
        )
    raise unknown_name(f"`{argument}=` column", name, dataset.node_attributes)


def _missing(value: object) -> bool:
    return value is None or value == "" or value != value  # NaN


def _strata(dataset: NodeDataset, nodes: Tensor, count: int) -> IntArray:
    """Return the stratum of each labelled node."""
    if dataset.y is None or not len(nodes):
        return np.zeros(0, dtype=np.int64)
    y = dataset.y[nodes]
    if dataset.task == "classification":
        classes: IntArray = y.numpy()
        return classes
    if dataset.task == "multilabel":
        return _merge_small(_rarest_label(y), count)
    table = y.double().reshape(len(y), -1).numpy()
    return _quantiles(table, max(1, min(_BINS, len(y) // count)))


def _rarest_label(y: Tensor) -> IntArray:
    """Return the rarest label of each node, and a further number for a node without labels."""
    positive = y == 1
    order = positive.sum(dim=0).argsort(stable=True)
    found = torch.cat([positive[:, order], torch.ones(len(y), 1, dtype=torch.bool)], dim=1)
    first: IntArray = found.to(torch.uint8).argmax(dim=1).numpy()
    return first


def _merge_small(strata: IntArray, count: int) -> IntArray:
    """Merge the strata with fewer nodes than folds into one."""
    small = np.bincount(strata)[strata] < count
    return np.unique(np.where(small, -1, strata), return_inverse=True)[1].astype(np.int64)


def _quantiles(table: FloatArray, bins: int) -> IntArray:
    """Return the quantile bin of each row, by the mean of its standardised known values."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # a target without values
        deviation = np.nanstd(table, axis=0)
        scaled = (table - np.nanmean(table, axis=0)) / np.where(deviation > 0, deviation, 1)
        values = np.nan_to_num(np.nanmean(scaled, axis=1))
    rank = np.empty(len(values), dtype=np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(len(values))
    return rank * bins // len(values)


def _notes_on_classes(dataset: NodeDataset, splits: Sequence[Split]) -> list[str]:
    """Name the classes with fewer nodes than folds, and those without a training node in a split that tests them."""
    if dataset.task != "classification" or dataset.y is None:
        return []
    classes = dataset.num_classes or 0
    counts = torch.bincount(dataset.y[dataset.y >= 0], minlength=classes)
    unlearned = torch.zeros(classes, dtype=torch.bool)
    for split in splits:
        tested, trained = (torch.bincount(dataset.y[part], minlength=classes) for part in (split.test, split.train))
        unlearned |= (tested > 0) & (trained == 0)

    def listed(chosen: Tensor) -> str:
        numbers = chosen.nonzero()[:, 0].tolist()
        names = [f"'{class_name(dataset, number)}' ({int(counts[number])})" for number in numbers[:_SHOWN]]
        return ", ".join(names) + (f", ... ({len(numbers)} in all)" if len(numbers) > _SHOWN else "")

    notes = []
    few = (counts > 0) & (counts < len(splits))
    if bool(few.any()):
        notes.append(f"classes with fewer labelled nodes than there are folds ({len(splits)}): {listed(few)}")
    if bool(unlearned.any()):
        notes.append(
            "classes without a training node in a fold that tests them, so that answers there count as wrong: "
            + listed(unlearned)
        )
    return notes


def given_split(dataset: NodeDataset, column: str) -> Drawn:
    """Read a split from a node attribute with the values train, valid and test.

    Without validation nodes, a stratified fifth of the training nodes validates.

    Args:
        dataset: The dataset.
        column: The attribute. Labelled nodes without a value are not used.

    Raises:
        DataError: if a value is not one of the three, or a part is empty.
        UsageError: if the attribute does not exist.
    """
    values = _attribute(dataset, column, "split_column")
    part_of = {word: part for part, words in _PARTS.items() for word in words}
    parts: dict[str, list[int]] = {part: [] for part in _PARTS}
    unused = 0
    for node in dataset.labelled.nonzero()[:, 0].tolist():
        value = values[node]
        if _missing(value):
            unused += 1
            continue
        word = value.strip().lower() if isinstance(value, str) else value
        if word not in part_of:
            raise DataError(
                f"The column '{column}' must hold train, valid or test. Got {value!r:.60} at node "
                f"'{dataset.node_ids[node]}'.",
                remedy="Correct the value, leave it empty, or name another column with `split_column=`.",
            )
        parts[part_of[word]].append(node)
    notes = [f"{unused} labelled nodes have no value in '{column}' and are not used"] if unused else []
    for part in ("train", "test"):
        if not parts[part]:
            raise DataError(f"The column '{column}' must have labelled nodes with the value {part}. It has none.")
    train, valid, test = (torch.tensor(parts[part], dtype=torch.int64) for part in _PARTS)
    if not len(valid):
        if len(train) < 2 * DEFAULT_FOLDS:
            raise DataError(
                f"The column '{column}' must have labelled nodes with the value valid, as there are too few training "
                f"nodes ({len(train)}) to set a fifth of them aside."
            )
        strata = _merge_small(np.unique(_strata(dataset, train, DEFAULT_FOLDS), return_inverse=True)[1], DEFAULT_FOLDS)
        aside = torch.from_numpy(_assign(strata, None, DEFAULT_FOLDS) == 0)
        train, valid = train[~aside], train[aside]
        notes.append(f"'{column}' has no validation nodes: {len(valid)} of the training nodes validate")
    return Drawn([Split(train, valid, test)], tuple(notes))
