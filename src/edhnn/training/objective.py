r"""What a task asks of a model: outputs, loss, metrics, the score that selects an epoch, answers; and what must hold.

Metrics are over entries whose label is known. Classification: accuracy. Multi-label: accuracy and micro-averaged $F_1$
over single entries. Regression: mean absolute error, root mean squared error and $R^2$, in the labels' own units.

The checks run before training begins. Each error says what must hold, what was given and what to do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor

from edhnn import kernels
from edhnn.data.dataset import UNLABELLED, NodeDataset, Task
from edhnn.data.splits import Split
from edhnn.errors import DataError
from edhnn.training.config import RegressionLoss

Metrics = dict[str, float]
"""Metric by name. NaN where nothing is known, so that it cannot be taken for a result."""


def classification_metrics(logits: Float[Tensor, "N C"], y: Int[Tensor, " N"]) -> Metrics:
    """Compute the share of labelled nodes whose largest output is their class. Paper: Appendix F.3 (accuracy)."""
    known = y >= 0
    hits = (logits.argmax(dim=1) == y)[known]
    return {"accuracy": _share(int(hits.sum()), len(hits))}


def multilabel_metrics(logits: Float[Tensor, "N C"], y: Float[Tensor, "N C"]) -> Metrics:
    """Compute accuracy and micro-averaged F1 over known entries; a positive output means yes."""
    known = ~y.isnan()
    answered, true = (logits > 0)[known], (y == 1)[known]
    both, either = int((answered & true).sum()), int(answered.sum()) + int(true.sum())
    nothing_to_find = 1.0 if len(true) else math.nan
    return {
        "micro_f1": 2 * both / either if either else nothing_to_find,
        "accuracy": _share(int((answered == true).sum()), len(true)),
    }


def regression_metrics(values: Float[Tensor, "N T"], y: Float[Tensor, "N T"]) -> Metrics:
    """Compute errors over known entries; R2 is that of all targets together, each around its own mean."""
    known = ~y.isnan()
    count = int(known.sum())
    if not count:
        return {"rmse": math.nan, "mae": math.nan, "r2": math.nan}
    zeros = torch.zeros((), dtype=torch.float64)
    error = torch.where(known, values.double() - y.double(), zeros)
    mean = _known_mean(y.double()).nan_to_num()
    spread = float(_sum(torch.where(known, y.double() - mean, zeros).square()))
    squares = float(_sum(error.square()))
    return {
        "rmse": math.sqrt(squares / count),
        "mae": float(_sum(error.abs())) / count,
        "r2": 1 - squares / spread if spread else math.nan,
    }


def _sum(values: Tensor) -> Float[Tensor, ""]:
    """The sum of all values, in an order that does not depend on the number of threads."""
    return kernels.column_sum(values.reshape(-1, 1))[0]


def _mean(values: Tensor) -> Float[Tensor, ""]:
    return _sum(values) / values.numel()


def _known_mean(values: Float[Tensor, "N T"]) -> Float[Tensor, " T"]:
    """The mean of each column over what is known (not NaN)."""
    known = ~values.isnan()
    return kernels.column_sum(torch.where(known, values, 0.0)) / known.sum(dim=0)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


METRIC: Final[dict[Task, str]] = {"classification": "accuracy", "multilabel": "micro_f1", "regression": "rmse"}
"""The metric a task is reported by."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A task with its targets.

    Targets of a regression are learned with mean 0 and deviation 1 over the training nodes of the split; the two are
    kept beside the weights, and answers are given in the labels' own units.

    Attributes:
        task: The task.
        num_outputs: Columns a model must have.
        regression_loss: ``mse`` or ``mae``.
        mean: Mean of each target, for regression.
        scale: Deviation of each target, for regression.
    """

    task: Task
    num_outputs: int
    regression_loss: RegressionLoss = "mse"
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    @property
    def metric(self) -> str:
        """The metric that is reported, and by which an epoch is selected."""
        return "mae" if self.task == "regression" and self.regression_loss == "mae" else METRIC[self.task]

    @property
    def in_percent(self) -> bool:
        """Whether the metric is a share."""
        return self.task != "regression"

    def targets(self, y: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Make what the loss compares outputs with: classes, zeros and ones, or standardised values; NaN if unknown."""
        if self.task == "classification":
            return y
        if self.task == "regression":
            y = (y - y.new_tensor(self.mean)) / y.new_tensor(self.scale)
        return y.to(dtype)

    def loss(self, outputs: Float[Tensor, "N C"], targets: Tensor) -> Float[Tensor, ""]:
        """Compute the loss over known targets: cross-entropy, binary cross-entropy, or an error of scaled values."""
        if self.task == "classification":
            return F.cross_entropy(outputs, targets, ignore_index=UNLABELLED)
        known = ~targets.isnan()
        outputs, targets = outputs[known], targets[known]
        if self.task == "multilabel":
            return _mean(F.binary_cross_entropy_with_logits(outputs, targets, reduction="none"))
        error = outputs - targets
        return _mean(error * error if self.regression_loss == "mse" else error.abs())

    def metrics(self, outputs: Float[Tensor, "N C"], y: Tensor) -> Metrics:
        """Compute all metrics of the task."""
        if self.task == "classification":
            return classification_metrics(outputs, y)
        if self.task == "multilabel":
            return multilabel_metrics(outputs, y)
        return regression_metrics(self.answers(outputs), y)

    def answer_metrics(self, answers: Float[Tensor, "N C"], y: Tensor) -> Metrics:
        """Compute the metrics of probabilities or values, such as the mean of several models'."""
        if self.task == "classification":
            return classification_metrics(answers, y)
        if self.task == "multilabel":
            return multilabel_metrics(answers - 0.5, y)
        return regression_metrics(answers, y)

    def score(self, metrics: Metrics, outputs: Tensor, y: Tensor) -> float:
        """Score an epoch, larger is better: the metric; for regression minus the error of scaled targets.

        An error too large for 32 bits, from a label far from those of the training nodes, is computed in 64.
        """
        if self.task != "regression":
            return metrics[self.metric]
        score = -float(self.loss(outputs, self.targets(y, outputs.dtype)))  # fair to targets of different size
        if math.isfinite(score):
            return score
        return -float(self.loss(outputs.double(), self.targets(y.double(), torch.float64)))

    def answers(self, outputs: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """Turn outputs into probabilities (of classes, or of each label), or values in the labels' units."""
        if self.task == "classification":
            return outputs.softmax(dim=1)
        if self.task == "multilabel":
            return outputs.sigmoid()
        exact = outputs.double()  # values far from 0, such as dates, differ in digits that 32 bits do not have
        return exact * exact.new_tensor(self.scale) + exact.new_tensor(self.mean)


def labels_of(dataset: NodeDataset) -> Tensor:
    """Return the labels: a vector of classes, or a table with a column per label or target."""
    if dataset.y is None or dataset.task is None:
        raise DataError(
            f"Training needs labels. '{dataset.name}' has none.",
            remedy="Name the label column or attribute with --label.",
        )
    return dataset.y[:, None] if dataset.y.dim() == 1 and dataset.task == "regression" else dataset.y


def known_nodes(dataset: NodeDataset) -> Tensor:
    """Return the indices of the labelled nodes; raise `DataError` for a dataset without labels."""
    labels_of(dataset)
    return dataset.labelled.nonzero()[:, 0]


def make_objective(dataset: NodeDataset, train: Tensor, regression_loss: RegressionLoss = "mse") -> Objective:
    """Make the objective of a dataset, its targets scaled by the training nodes; `check_splits` comes before it."""
    y, task = labels_of(dataset), dataset.task
    assert task is not None
    if task != "regression":
        return Objective(task=task, num_outputs=dataset.num_classes or 0)
    seen = y[train].double()
    mean = _known_mean(seen)
    scale = _known_mean((seen - mean).square()).sqrt()
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))  # a constant target is learned as it is
    return Objective(
        task=task,
        num_outputs=y.shape[1],
        regression_loss=regression_loss,
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
    )


def check_targets(dataset: NodeDataset, train: Tensor, among: str) -> None:
    """Refuse a target, or one of several labels, of which no training node knows anything.

    Raises:
        DataError: and it names the column.
    """
    y = labels_of(dataset)
    if dataset.task == "classification":
        return
    unknown = y[train].isnan().all(dim=0).nonzero()[:, 0].tolist()
    if unknown:
        names = dataset.class_names or tuple(range(y.shape[1]))
        raise DataError(
            f"Every label column must be known of one of {among}. Column '{names[unknown[0]]}' is not.",
            remedy="Leave the column out, label more nodes, or train fewer splits.",
        )


def check_trainable(dataset: NodeDataset) -> None:
    """Refuse a dataset without features, with features that are not finite, without labels or with a single class.

    Raises:
        DataError: and it names the column and the node, or the class.
    """
    check_features(dataset)
    y = labels_of(dataset)
    if dataset.task == "classification":
        used = torch.unique(y[y >= 0]).tolist()
        if len(used) < 2:
            found = f"Only '{class_name(dataset, used[0])}' occurs" if used else "All nodes are unlabelled"
            raise DataError(
                f"Training needs nodes of at least 2 classes. {found} in '{dataset.name}'.",
                remedy="Name another label with --label, or learn real values with --task regression.",
            )
    elif not bool(dataset.labelled.any()):
        raise DataError(f"Training needs labels. All labels of '{dataset.name}' are unknown.")


def check_features(dataset: NodeDataset) -> None:
    """Refuse features that are absent or not finite."""
    x = dataset.x
    if x is None or not dataset.num_features:
        raise DataError(
            f"A model needs node features. '{dataset.name}' has none.",
            remedy="Put numbers into the node table (NAME.nodes.csv) or the node attributes, and name them with "
            "--features.",
        )
    sparse = x.layout == torch.sparse_csr
    bad = ~(x.values() if sparse else x).isfinite()
    if not bool(bad.any()):
        return
    if sparse:
        place = int(bad.nonzero()[0, 0])
        column = int(x.col_indices()[place])
        row = int(torch.searchsorted(x.crow_indices(), place, right=True)) - 1
        value, count = float(x.values()[place]), 1
    else:
        row, column = (int(number) for number in bad.nonzero()[0])
        value, count = float(x[row, column]), int(bad.any(dim=0).sum())
    more = f" ({count} columns have such values)" if count > 1 else ""
    raise DataError(
        f"Features must be finite. Column '{column_name(dataset, column)}' is {value} at node "
        f"'{dataset.node_ids[row]}'{more}.",
        remedy="Fill it in, or name the other columns only with --features ('' for none).",
    )


def check_splits(dataset: NodeDataset, splits: Sequence[Split]) -> None:
    """Refuse splits that cannot be trained on; see `check_split`."""
    for number, split in enumerate(splits):
        check_split(dataset, split, number)


def check_split(dataset: NodeDataset, split: Split, number: int, *, test: bool = True) -> None:
    """Refuse a split that is not node numbers, overlaps, has an empty part, or leaves a class without training nodes.

    Args:
        dataset: The dataset.
        split: The split.
        number: Its number, for messages.
        test: Check the test part too.

    Raises:
        DataError: and it names the part.
    """
    y = labels_of(dataset)
    parts = {"training": split.train, "validation": split.valid, **({"test": split.test} if test else {})}
    for name, part in parts.items():
        _check_numbers(part, f"The {name} part of split {number}", len(y))
        if not bool(dataset.labelled[part].any()):
            raise DataError(
                f"Each part of a split needs labelled nodes. The {name} part of split {number} has none among its "
                f"{len(part)} nodes.",
                remedy="Label more nodes: 4 is the least, and each class needs several.",
            )
    everything = torch.cat(list(parts.values()))
    if len(torch.unique(everything)) != len(everything):
        raise DataError(f"The parts of a split must not share nodes. Those of split {number} do.")
    if dataset.task == "classification":
        _check_classes(dataset, y, number, split)
    else:
        check_targets(dataset, split.train, f"the training nodes of split {number}")


def _check_numbers(part: object, what: str, nodes: int) -> None:
    must = f"A part of a split must be an integer tensor of node numbers in 0..{nodes - 1}."
    if not isinstance(part, Tensor):
        raise DataError(f"{must} {what} is a {type(part).__name__}.", remedy="Use torch.as_tensor(...).")
    if part.dim() != 1 or part.dtype not in (torch.int64, torch.int32):
        raise DataError(
            f"{must} {what} is {part.dtype} with {part.dim()} dimensions.",
            remedy="Turn a mask into numbers with mask.nonzero()[:, 0].",
        )
    outside = part[(part < 0) | (part >= nodes)]
    if len(outside):
        raise DataError(f"{must} {what} holds {int(outside[0])}.")


def _check_classes(dataset: NodeDataset, y: Tensor, number: int, split: Split) -> None:
    in_all = torch.bincount(y[y >= 0], minlength=1)
    seen = y[split.train]
    in_training = torch.bincount(seen[seen >= 0], minlength=len(in_all))
    missing = ((in_all > 0) & (in_training == 0)).nonzero()[:, 0].tolist()
    if missing:
        first = missing[0]
        more = f" (and {len(missing) - 1} more classes)" if len(missing) > 1 else ""
        raise DataError(
            f"Every class must occur among the training nodes of each split. Class '{class_name(dataset, first)}', of "
            f"which there are {int(in_all[first])} nodes, is missing in split {number}{more}.",
            remedy="Label more nodes of it, leave them unlabelled, or train fewer splits with --splits.",
        )


def class_name(dataset: NodeDataset, number: int) -> str:
    """Name a class as its owner wrote it."""
    return str(number if dataset.class_names is None else dataset.class_names[number])


def column_name(dataset: NodeDataset, number: int) -> str:
    """Name a feature column as its owner wrote it."""
    return str(number if dataset.feature_names is None else dataset.feature_names[number])
