"""What a task asks of a model: how many outputs, which loss, which score selects, and how outputs become answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor

from edhnn.data.dataset import NodeDataset, Task
from edhnn.errors import DataError
from edhnn.training.config import RegressionLoss
from edhnn.training.metrics import Metrics, classification_metrics, multilabel_metrics, regression_metrics

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

    def loss(self, outputs: Float[Tensor, "N C"], y: Tensor) -> Float[Tensor, ""]:
        """The training loss over known labels: cross-entropy, binary cross-entropy, or an error of scaled targets."""
        if self.task == "classification":
            return F.cross_entropy(outputs, y, ignore_index=-1)
        known = ~y.isnan()
        if self.task == "multilabel":
            return F.binary_cross_entropy_with_logits(outputs[known], y[known].to(outputs))
        said, true = outputs[known], self._standardised(y).to(outputs)[known]
        return F.mse_loss(said, true) if self.regression_loss == "mse" else F.l1_loss(said, true)

    def metrics(self, outputs: Float[Tensor, "N C"], y: Tensor) -> Metrics:
        """All metrics of the task."""
        if self.task == "classification":
            return classification_metrics(outputs, y)
        if self.task == "multilabel":
            return multilabel_metrics(outputs, y)
        return regression_metrics(self.answers(outputs), y)

    def answer_metrics(self, answers: Float[Tensor, "N C"], y: Tensor) -> Metrics:
        """The same from probabilities or values, such as the mean of several models'."""
        if self.task == "classification":
            return classification_metrics(answers, y)
        if self.task == "multilabel":
            return multilabel_metrics(answers - 0.5, y)
        return regression_metrics(answers, y)

    def score(self, metrics: Metrics, outputs: Tensor, y: Tensor) -> float:
        """What selects an epoch, larger is better: the metric; for regression less the error of scaled targets.

        An error too large for 32 bits, from a label far from those of the training nodes, is computed in 64.
        """
        if self.task != "regression":
            return metrics[self.metric]
        score = -float(self.loss(outputs, y))  # fair to targets of different size
        return score if math.isfinite(score) else -float(self.loss(outputs.double(), y.double()))

    def answers(self, outputs: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """Probabilities (of classes, or of each label), or values in the labels' units."""
        if self.task == "classification":
            return outputs.softmax(dim=1)
        if self.task == "multilabel":
            return outputs.sigmoid()
        exact = outputs.double()  # values far from 0, such as dates, differ in digits that 32 bits do not have
        return exact * exact.new_tensor(self.scale) + exact.new_tensor(self.mean)

    def _standardised(self, y: Tensor) -> Tensor:
        return (y - y.new_tensor(self.mean)) / y.new_tensor(self.scale)


def labels_of(dataset: NodeDataset) -> Tensor:
    """The labels: a vector of classes, or a table with a column per label or target."""
    if dataset.y is None or dataset.task is None:
        raise DataError(
            f"Training needs labels. '{dataset.name}' has none.",
            remedy="Name the label column or attribute with --label.",
        )
    return dataset.y[:, None] if dataset.y.dim() == 1 and dataset.task == "regression" else dataset.y


def known_nodes(dataset: NodeDataset) -> Tensor:
    """Numbers of the nodes of which something is known."""
    y = labels_of(dataset)
    known = y >= 0 if dataset.task == "classification" else (~y.isnan()).any(dim=1)
    return known.nonzero()[:, 0]


def make_objective(dataset: NodeDataset, train: Tensor, regression_loss: RegressionLoss = "mse") -> Objective:
    """The objective of a dataset, targets scaled by the training nodes."""
    y, task = labels_of(dataset), dataset.task
    assert task is not None
    check_targets(dataset, train, "the training nodes")
    if task != "regression":
        return Objective(task=task, num_outputs=dataset.num_classes or 0)
    seen = y[train].double()
    mean = seen.nanmean(dim=0)
    scale = (seen - mean).square().nanmean(dim=0).sqrt()
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
