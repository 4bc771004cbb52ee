r"""The objective of a task: outputs, loss, metrics, the score that selects an epoch, and answers.

Metrics are over entries whose label is known. Classification: accuracy. Multi-label: accuracy and micro-averaged $F_1$
over single entries. Regression: mean absolute error, root mean squared error and $R^2$, in the units of the labels.

The module also checks datasets and splits before training begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor

from edhnn import kernels
from edhnn.data.dataset import UNLABELLED, NodeDataset, Task, class_name
from edhnn.data.splits import Split
from edhnn.errors import DataError
from edhnn.training.config import RegressionLoss, Selection

Metrics = dict[str, float]
"""Metric by name; NaN if no label is known."""


def classification_metrics(logits: Float[Tensor, "N C"], y: Int[Tensor, " N"]) -> Metrics:
    """Compute the share of labelled nodes whose largest output is their class. Paper: Appendix F.3 (accuracy)."""
    known = y >= 0
    hits = (logits.argmax(dim=1) == y)[known]
    return {"accuracy": int(hits.sum()) / len(hits) if len(hits) else math.nan}


def multilabel_metrics(logits: Float[Tensor, "N C"], y: Float[Tensor, "N C"]) -> Metrics:
    """Compute accuracy and micro-averaged F1 over known entries. A positive output predicts the label."""
    known = ~y.isnan()
    predicted, true = (logits > 0)[known], (y == 1)[known]
    if not len(true):
        return {"micro_f1": math.nan, "accuracy": math.nan}
    both, positives = int((predicted & true).sum()), int(predicted.sum()) + int(true.sum())
    return {
        "micro_f1": 2 * both / positives if positives else 1.0,
        "accuracy": int((predicted == true).sum()) / len(true),
    }


def regression_metrics(values: Float[Tensor, "N T"], y: Float[Tensor, "N T"]) -> Metrics:
    """Compute errors over known entries. R2 is over all targets together, each around its own mean."""
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
    """Return the sum of all values, in an order that does not depend on the number of threads."""
    return kernels.column_sum(values.reshape(-1, 1))[0]


def _mean(values: Tensor) -> Float[Tensor, ""]:
    return _sum(values) / values.numel()


def _known_mean(values: Float[Tensor, "N T"]) -> Float[Tensor, " T"]:
    """Return the mean of the known values (not NaN) of each column."""
    known = ~values.isnan()
    return kernels.column_sum(torch.where(known, values, 0.0)) / known.sum(dim=0)


METRIC: Final[dict[Task, str]] = {"classification": "accuracy", "multilabel": "micro_f1", "regression": "rmse"}
"""The reported metric of each task."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A task with its targets.

    Targets of a regression are scaled to mean 0 and deviation 1 over the training nodes of the split. Mean and
    deviation are saved with the weights, and answers are in the units of the labels.

    Attributes:
        task: The task.
        num_outputs: Number of output columns of the model.
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
        """The metric that is reported and that selects an epoch."""
        return "mae" if self.task == "regression" and self.regression_loss == "mae" else METRIC[self.task]

    @property
    def in_percent(self) -> bool:
        """Whether the metric is a share."""
        return self.task != "regression"

    def targets(self, y: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the targets of the loss: classes, zeros and ones, or standardised values; NaN if unknown."""
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
        """Compute the metrics of probabilities or values, such as the mean over several models."""
        if self.task == "classification":
            return classification_metrics(answers, y)
        if self.task == "multilabel":
            return multilabel_metrics(answers - 0.5, y)
        return regression_metrics(answers, y)

    def score(self, metrics: Metrics, outputs: Tensor, y: Tensor, *, select: Selection = "metric") -> float:
        """Compute the score of an epoch; larger is better: the metric, or minus the loss if asked or for regression.

        With ``metric-then-loss`` the loss takes away less than half a node, so it decides between equal accuracies.
        If a label is so far from those of the training nodes that the loss overflows 32 bits, 64 bits are used.
        """
        if self.task != "regression" and select == "metric":
            return metrics[self.metric]
        score = -float(self.loss(outputs, self.targets(y, outputs.dtype)))  # scaled: targets count alike
        if not math.isfinite(score):
            exact = y.double() if y.is_floating_point() else y
            score = -float(self.loss(outputs.double(), self.targets(exact, torch.float64)))
        if self.task == "regression" or select == "loss":
            return score
        return metrics[self.metric] + 0.5 / len(y) * score / (1 - score)

    def answers(self, outputs: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """Turn outputs into probabilities (of classes, or of each label), or values in the units of the labels."""
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
            remedy="Name the label column or attribute with `label=`.",
        )
    return dataset.y[:, None] if dataset.y.dim() == 1 and dataset.task == "regression" else dataset.y


def known_nodes(dataset: NodeDataset) -> Tensor:
    """Return the indices of the labelled nodes. Raise `DataError` for a dataset without labels."""
    labels_of(dataset)
    return dataset.labelled.nonzero()[:, 0]


def make_objective(dataset: NodeDataset, train: Tensor, regression_loss: RegressionLoss = "mse") -> Objective:
    """Make the objective of a dataset. Targets are scaled by the training nodes; call `check_split` before."""
    y, task = labels_of(dataset), dataset.task
    assert task is not None
    if task != "regression":
        return Objective(task=task, num_outputs=dataset.num_classes or 0)
    targets = y[train].double()
    mean = _known_mean(targets)
    scale = _known_mean((targets - mean).square()).sqrt()
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))  # a constant target is not scaled
    return Objective(
        task=task,
        num_outputs=y.shape[1],
        regression_loss=regression_loss,
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
    )


def check_targets(dataset: NodeDataset, train: Tensor, among: str) -> None:
    """Check that every target, or every one of several labels, has a value at a training node.

    Raises:
        DataError: if not; the message names the column.
    """
    y = labels_of(dataset)
    if dataset.task == "classification":
        return
    empty = y[train].isnan().all(dim=0).nonzero()[:, 0].tolist()
    if empty:
        names = dataset.class_names or tuple(range(y.shape[1]))
        raise DataError(
            f"Every label column needs a value among {among}. Column '{names[empty[0]]}' has none.",
            remedy="Leave the column out, label more nodes, or train fewer splits.",
        )


def check_trainable(dataset: NodeDataset) -> None:
    """Check that a dataset has finite features, and labels of at least two classes or known values.

    Raises:
        DataError: if not; the message names the column and the node, or the class.
    """
    check_features(dataset)
    y = labels_of(dataset)
    if dataset.task == "classification":
        used = torch.unique(y[y >= 0]).tolist()
        if len(used) < 2:
            problem = f"Only '{class_name(dataset, used[0])}' occurs" if used else "All nodes are unlabelled"
            raise DataError(
                f"Training needs nodes of at least 2 classes. {problem} in '{dataset.name}'.",
                remedy="Name another label with `label=`, or learn real values with `task='regression'`.",
            )
    elif not bool(dataset.labelled.any()):
        raise DataError(f"Training needs labels. All labels of '{dataset.name}' are unknown.")


def check_features(dataset: NodeDataset, converted: Tensor | None = None) -> None:
    """Check that the features exist and are finite.

    Args:
        dataset: The dataset.
        converted: Its features as a model gets them, scaled and in 32 bits, in which large values become infinite.

    Raises:
        DataError: if not; the message names the column and the node.
    """
    x = dataset.x
    if x is None or not dataset.num_features:
        raise DataError(
            f"A model needs node features. '{dataset.name}' has none.",
            remedy="Put numbers into the node table (NAME.nodes.csv) or the node attributes, and name them with "
            "`features=`.",
        )
    sparse = x.layout == torch.sparse_csr
    checked = x if converted is None else converted
    bad = ~(checked.values() if sparse else checked).isfinite()
    if not bool(bad.any()):
        return
    if sparse:
        entry = int(bad.nonzero()[0, 0])
        column = int(x.col_indices()[entry])
        row = int(torch.searchsorted(x.crow_indices(), entry, right=True)) - 1
        value, count = float(x.values()[entry]), 1
    else:
        row, column = (int(number) for number in bad.nonzero()[0])
        value, count = float(x[row, column]), int(bad.any(dim=0).sum())
    name = feature_name(dataset, column)
    more = f" ({count} columns have such values)" if count > 1 else ""
    rule = "Features must be finite" + ("" if converted is None else " in 32 bits, after scaling")
    raise DataError(
        f"{rule}. Column '{name}' is {value} at node '{dataset.node_ids[row]}'{more}.",
        remedy="Correct the value, or name the other columns only with `features=` (an empty list for none).",
    )


def check_split(
    dataset: NodeDataset, split: Split, number: int, *, test: bool = True, every_class: bool = True
) -> None:
    """Check that the parts of a split are disjoint node numbers with labels, and that no class lacks training nodes.

    Args:
        dataset: The dataset.
        split: The split.
        number: Its number, for messages.
        test: Check the test part too.
        every_class: Check that no class lacks training nodes. Folds and given splits name such classes in a note.

    Raises:
        DataError: if not; the message names the part.
    """
    y = labels_of(dataset)
    parts = {"training": split.train, "validation": split.valid, **({"test": split.test} if test else {})}
    for name, part in parts.items():
        _check_numbers(part, f"The {name} part of split {number}", len(y))
        if not bool(dataset.labelled[part].any()):
            raise DataError(
                f"Each part of a split needs labelled nodes. The {name} part of split {number} has none among its "
                f"{len(part)} nodes.",
                remedy="Label more nodes: at least 4, and several of each class.",
            )
    everything = torch.cat(list(parts.values()))
    if len(torch.unique(everything)) != len(everything):
        raise DataError(f"The parts of a split must not share nodes. Those of split {number} do.")
    if dataset.task != "classification":
        check_targets(dataset, split.train, f"the training nodes of split {number}")
        return
    if not every_class:
        return
    y_train = y[split.train]
    in_all = torch.bincount(y[y >= 0], minlength=1)
    in_training = torch.bincount(y_train[y_train >= 0], minlength=len(in_all))
    missing = ((in_all > 0) & (in_training == 0)).nonzero()[:, 0].tolist()
    if missing:
        more = f" (and {len(missing) - 1} more classes)" if len(missing) > 1 else ""
        raise DataError(
            f"Every class must occur among the training nodes of each split. Class '{class_name(dataset, missing[0])}'"
            f" ({int(in_all[missing[0]])} nodes) is missing in split {number}{more}.",
            remedy="Label more nodes of it, leave them unlabelled, or train fewer `splits=`.",
        )


def _check_numbers(part: object, what: str, nodes: int) -> None:
    rule = f"A part of a split must be an integer tensor of node numbers in 0..{nodes - 1}."
    if not isinstance(part, Tensor):
        raise DataError(f"{rule} {what} is a {type(part).__name__}.", remedy="Use torch.as_tensor(...).")
    if part.dim() != 1 or part.dtype not in (torch.int64, torch.int32):
        raise DataError(
            f"{rule} {what} is {part.dtype} with {part.dim()} dimensions.",
            remedy="Turn a mask into numbers with mask.nonzero()[:, 0].",
        )
    outside = part[(part < 0) | (part >= nodes)]
    if len(outside):
        raise DataError(f"{rule} {what} contains {int(outside[0])}.")


def feature_name(dataset: NodeDataset, column: int) -> str:
    """Return the name of a feature column, or its number."""
    return str(column if dataset.feature_names is None else dataset.feature_names[column])
