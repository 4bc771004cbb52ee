"""What a trial is worth: the mean validation metric over a few splits, of data from which test labels were taken out.

A split is trained as `edhnn train` trains it, from the same seeds, so that a run with the winner's sizes has the same
validation scores to the last bit. Only the labels of its test nodes are gone before anything is made of the data: they
are not held back by care but absent.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import final

import torch

from edhnn.data.dataset import UNLABELLED, NodeDataset
from edhnn.data.splits import Split
from edhnn.errors import DataError, EdhnnError
from edhnn.training.checks import check_trainable, class_name
from edhnn.training.config import TrainConfig
from edhnn.training.fit import EpochRecord, Watch, fit_inputs
from edhnn.training.inputs import make_inputs
from edhnn.training.plan import Plan, dataset_sha256
from edhnn.training.split_run import StoppedError
from edhnn.training.tasks import labels_of, make_objective

Show = Callable[[int, int], None]
"""Sees the split and the epoch under way."""


@final
class ValidationScore:
    """The validation metric of a plan on each of a few splits.

    Args:
        dataset: The dataset.
        splits: The splits; of their test parts only the place is used, to take the labels out.
        config: Says the transforms and the scaling, which all trials share.

    Raises:
        DataError: if the training and validation parts cannot be learned from.
    """

    def __init__(self, dataset: NodeDataset, splits: Sequence[Split], config: TrainConfig) -> None:
        self.seen = [without_test_labels(dataset, split) for split in splits]
        self.splits = [Split(split.train, split.valid, split.valid) for split in splits]
        for number, (seen, split) in enumerate(zip(self.seen, self.splits, strict=True)):
            check_trainable(seen)
            _check_parts(seen, split, number)
        self.inputs = make_inputs(self.seen[0], config)
        objective = make_objective(self.seen[0], self.splits[0].train, config.regression_loss)
        self.metric, self.in_percent = objective.metric, objective.in_percent

    def __call__(self, plan: Plan, number: int, should_stop: Callable[[], bool], show: Show) -> float:
        """Train a split and give the validation metric of its selected epoch.

        Raises:
            StoppedError: if asked to stop.
            DivergedError: if the loss stops being finite.
        """
        seen, split = self.seen[number], self.splits[number]
        objective = make_objective(seen, split.train, plan.train.regression_loss)
        model = plan.make_model(seen, objective, number)
        watch = _watch(number, should_stop, show)
        found = fit_inputs(
            model, self.inputs, seen, split, plan.train, seed=plan.split_seed(number), watch=watch, state=None
        )
        score = found.valid[objective.metric]
        if not math.isfinite(score):
            raise EdhnnError(f"The validation {objective.metric} must be finite. It is {score} in split {number}.")
        return score

    def sha256(self) -> str:
        """A hash of all that a search sees of the data."""
        digest = hashlib.sha256()
        for seen, split in zip(self.seen, self.splits, strict=True):
            digest.update(dataset_sha256(seen).encode())
            for part in (split.train, split.valid):
                digest.update(part.to(torch.int64).numpy().astype("<i8").tobytes())
        return digest.hexdigest()


def without_test_labels(dataset: NodeDataset, split: Split) -> NodeDataset:
    """The dataset with the labels of a split's test nodes unknown; how many classes there are stays known."""
    y = labels_of(dataset).clone()
    y[split.test] = UNLABELLED if dataset.task == "classification" else torch.nan
    names = dataset.class_names
    if names is None and dataset.num_classes is not None:
        names = tuple(range(dataset.num_classes))
    return replace(dataset, y=y, class_names=names)


def _watch(number: int, should_stop: Callable[[], bool], show: Show) -> Watch:
    def each_epoch(record: EpochRecord, snapshot: object) -> None:
        del snapshot
        show(number, record.epoch)
        if should_stop():
            raise StoppedError("Stopped.")

    return each_epoch


def _check_parts(seen: NodeDataset, split: Split, number: int) -> None:
    """`edhnn.training.checks.check_splits` for the two parts that are looked at."""
    y = labels_of(seen)
    for name, part in (("training", split.train), ("validation", split.valid)):
        known = y[part] >= 0 if seen.task == "classification" else ~y[part].isnan()
        if not bool(known.any()):
            raise DataError(
                f"Each part of a split needs labelled nodes. The {name} part of split {number} has none among its "
                f"{len(part)} nodes.",
                remedy="Label more nodes: 4 is the least, and each class needs several.",
            )
    if seen.task == "classification":
        missing = set(y[split.valid].tolist()) - set(y[split.train].tolist()) - {UNLABELLED}
        if missing:
            name = class_name(seen, min(missing))
            raise DataError(
                f"Every class must occur among the training nodes of each split. Class '{name}' is missing in split "
                f"{number}.",
                remedy="Label more nodes of it, leave them unlabelled, or use fewer splits with --splits.",
            )
