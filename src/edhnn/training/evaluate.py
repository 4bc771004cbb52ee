"""A run against labels: on its own data with each split's own test nodes, elsewhere with all labelled nodes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

import torch

from edhnn.data.dataset import NodeDataset
from edhnn.errors import DataError
from edhnn.training.ensemble import Ensemble, load_models
from edhnn.training.inputs import make_inputs
from edhnn.training.metrics import Metrics
from edhnn.training.plan import dataset_sha256
from edhnn.training.pretrained import Pretrained, is_pretrained
from edhnn.training.run_folder import RunFolder, finite
from edhnn.training.tasks import known_nodes, labels_of
from edhnn.typing import JsonObject


def evaluate_run(
    path: Path, dataset: NodeDataset, split: int | None = None, *, models: Ensemble | None = None
) -> JsonObject:
    """Metrics of a run's models on a dataset with labels.

    On the very data of the run each model is judged by the test nodes of its split, as it was then, so that no label it
    has seen counts. On other data all labelled nodes count, for each model and for the mean of their answers.

    Args:
        path: A run folder, or a pretrained model's.
        dataset: The dataset.
        split: One split alone.
        models: What `load_models` gave for the two, where that was done before.

    Returns:
        ``mean`` and ``std`` of each metric over the models, ``each`` of them, and ``together``, the metrics of the mean
        answer (``None`` on the run's own data, where no node is unseen by all).

    Raises:
        DataError: if there are no labels, or features, classes or task do not fit.
    """
    models = models or load_models(path, split)
    if dataset.y is None:
        raise DataError(
            f"An evaluation needs labels. '{dataset.name}' has none.",
            remedy="Name the label column or attribute with --label.",
        )
    fitting = models.fitted(dataset)
    own = _is_own(path, fitting)
    known = known_nodes(fitting)
    if not len(known):
        raise DataError(f"An evaluation needs labels. All nodes of '{dataset.name}' are unlabelled.")
    if own:
        splits = RunFolder(path).read_splits()
        tests = [part.test for part in (splits if split is None else [splits[split]])]
    else:
        tests = [known] * len(models.members)
    each = [_metrics(member, fitting, test) for member, test in zip(models.members, tests, strict=True)]
    names = list(each[0])
    return finite(  # type: ignore[no-any-return]
        {
            "dataset": dataset.name,
            "same_data": own,
            "num_nodes": len(known) if not own else len(tests[0]),
            "models": len(each),
            "mean": {name: statistics.fmean(found[name] for found in each) for name in names},
            "std": {name: _deviation([found[name] for found in each]) for name in names},
            "each": each,
            "together": None if own else _together(models, fitting, known),
        }
    )


def _is_own(path: Path, fitting: NodeDataset) -> bool:
    """Whether the dataset, its columns in the models' order, is the one that the run was trained on."""
    if is_pretrained(path):
        return False
    return bool(RunFolder(path).plan()[1]["dataset"]["sha256"] == dataset_sha256(fitting))


def _metrics(member: Pretrained, dataset: NodeDataset, nodes: torch.Tensor) -> Metrics:
    inputs = make_inputs(dataset, member.config, member.scaling)
    with torch.no_grad():
        outputs = member.model(inputs.x, inputs.hypergraph)
    return member.objective.metrics(outputs[nodes], labels_of(dataset)[nodes])


def _together(models: Ensemble, dataset: NodeDataset, nodes: torch.Tensor) -> Metrics:
    answers = models.answers(dataset)[nodes]
    return models.first.objective.answer_metrics(answers, labels_of(dataset)[nodes])


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else 0.0
