"""Metrics of a run on labels that its models were not trained on: those of its test nodes and of new nodes.

The labels that a model was trained on must not count, even if rows are in another order, or hyperedges, labels or nodes
were added. So a run stores a hash of every node's id and features (``nodes.npy``) to recognise its nodes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.data.fingerprints import dataset_sha256, node_hashes
from edhnn.errors import DataError
from edhnn.io.json_files import finite
from edhnn.runs.folder import RunFolder, run_of_model
from edhnn.runs.predict import Ensemble, load_models, mean_of
from edhnn.training.inputs import Device
from edhnn.training.objective import known_nodes, labels_of
from edhnn.training.pretrained import is_pretrained
from edhnn.typing import JsonObject


def seen_nodes(folder: RunFolder, dataset: NodeDataset, splits: Sequence[int]) -> list[Tensor]:
    """Find the nodes of a dataset that the models of a run were trained on or selected by.

    Args:
        folder: The run's folder.
        dataset: A dataset, its columns in the models' order.
        splits: The split numbers of the models.

    Returns:
        For each model a mask over the dataset's nodes.

    Raises:
        DataError: if the run's files are damaged.
    """
    hashes, run_hashes = node_hashes(dataset), folder.read_nodes()
    if not np.isin(hashes, run_hashes).any():
        return [torch.zeros(len(hashes), dtype=torch.bool)] * len(splits)
    parts = folder.read_splits()
    learned = [torch.cat([parts[number].train, parts[number].valid]).numpy() for number in splits]
    return [torch.from_numpy(np.isin(hashes, run_hashes[nodes])) for nodes in learned]


def evaluate_run(
    path: Path | str,
    dataset: NodeDataset,
    split: int | None = None,
    *,
    models: Ensemble | None = None,
    device: Device = "cpu",
) -> JsonObject:
    """Evaluate a run's models on a dataset with labels.

    A label counts for a model if its node neither trained nor selected the model. So on the run's own data each model
    is evaluated on the test nodes of its split. On other data each model is evaluated on all labelled nodes except
    those of its training, and the mean of the answers on the nodes that are new to all models.

    Args:
        path: A run folder or a pretrained folder.
        dataset: The dataset.
        split: Evaluate the model of this split only.
        models: The result of `load_models(path, split)`, if it is available.
        device: The device that runs the models.

    Returns:
        ``mean`` and ``std`` of each metric over the models (``std`` is ``None`` for one model), and ``each`` model's
        metrics. ``together`` has the metrics of the mean answer (``None`` on the run's own data, and if no node is new
        to all models). ``out_of_fold`` has the metrics over all labelled nodes of a run with folds on its own data,
        each answered by the model that has not seen it; else it is ``None``. ``num_nodes`` is the number of nodes that
        count for the first model, ``seen`` the number of labelled nodes that do not count for one of the models.

    Raises:
        DataError: if there are no labels, or none counts for a model, or features, classes or task do not match, or
            an output is not finite, or files of the run were changed.
    """
    path = Path(path)
    models = models or load_models(path, split)
    if dataset.y is None:
        raise DataError(
            f"An evaluation needs labels. '{dataset.name}' has none.",
            remedy="Name the label column or attribute with `label=`.",
        )
    fitted = models.fitted(dataset)
    known = known_nodes(fitted)
    if not len(known):
        raise DataError(f"An evaluation needs labels. All nodes of '{dataset.name}' are unlabelled.")
    run, numbers = _origin(path, split, len(models.members))
    same_data = run is not None and bool(run.plan()[1]["dataset"]["sha256"] == dataset_sha256(fitted))
    seen = [torch.zeros(len(known), dtype=torch.bool)] * len(models.members)
    if run is not None and same_data:
        splits = run.read_splits()
        tests = [splits[number].test for number in numbers]
        seen = [~torch.isin(known, test) for test in tests]
    else:
        if run is not None:
            seen = [mask[known] for mask in seen_nodes(run, fitted, numbers)]
        tests = [known[~mask] for mask in seen]
        if not all(len(test) for test in tests):
            raise DataError(
                f"An evaluation needs labelled nodes that the models have not learned from. '{dataset.name}' has none: "
                f"one of the models was trained on, or selected by, all {len(known)} of its labelled nodes.",
                remedy="Use the data of the run, in which each model has test nodes, or new nodes.",
            )
    y, by_any = labels_of(fitted), torch.stack(seen).any(dim=0)
    outputs = models.outputs(fitted, device=device)
    each = [
        member.objective.metrics(output[test], y[test])
        for member, output, test in zip(models.members, outputs, tests, strict=True)
    ]
    together = out_of_fold = None
    if run is not None and same_data and split is None and run.plan()[0].protocol == "folds":
        answers = [answer[test] for answer, test in zip(models.answers_from(outputs), tests, strict=True)]
        out_of_fold = models.first.objective.answer_metrics(torch.cat(answers), y[torch.cat(tests)])
    if not same_data and not bool(by_any.all()):
        new = known[~by_any]
        together = models.first.objective.answer_metrics(mean_of(models.answers_from(outputs))[new], y[new])
    return finite(  # type: ignore[no-any-return]
        {
            "dataset": dataset.name,
            "same_data": same_data,
            "num_nodes": len(tests[0]),
            "seen": int(by_any.sum()),
            "models": len(each),
            "mean": {name: statistics.fmean(metrics[name] for metrics in each) for name in each[0]},
            "std": {name: _deviation([metrics[name] for metrics in each]) for name in each[0]}
            if len(each) > 1
            else None,
            "each": each,
            "together": together,
            "out_of_fold": out_of_fold,
        }
    )


def _origin(path: Path, split: int | None, count: int) -> tuple[RunFolder | None, list[int]]:
    """Find the run of the models and their split numbers."""
    if not is_pretrained(path):
        return RunFolder(path), list(range(count)) if split is None else [split]
    found = run_of_model(path)
    return (None, []) if found is None else (found[0], [found[1]])


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan
