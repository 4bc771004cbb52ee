"""Metrics of a run on labels that its models have not learned from: its own test nodes, and nodes new to it.

The labels a model was trained on must not count, even where rows come in another order, or hyperedges, labels or nodes
were added. So a run keeps a hash of every node's id and features (``nodes.npy``), by which it recognises its nodes.
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
from edhnn.data.fingerprints import NodeHashes, dataset_sha256, node_hashes
from edhnn.errors import DataError
from edhnn.io.files import atomic_file
from edhnn.io.json_files import finite
from edhnn.runs.folder import RunFolder
from edhnn.runs.predict import Ensemble, load_models, mean_of
from edhnn.training.inputs import Device
from edhnn.training.objective import known_nodes, labels_of
from edhnn.training.pretrained import is_pretrained
from edhnn.typing import JsonObject


def write_nodes(dataset: NodeDataset, folder: RunFolder) -> None:
    """Write the hashes of a run's nodes; anew when the run is resumed, as the file may have been damaged."""
    with atomic_file(folder.nodes) as temporary, temporary.open("wb") as stream:
        np.save(stream, node_hashes(dataset))


def seen_nodes(folder: RunFolder, num_nodes: int, dataset: NodeDataset, splits: Sequence[int]) -> list[Tensor]:
    """Find the nodes of a dataset that the models of a run were trained on or selected by.

    Args:
        folder: The run's folder.
        num_nodes: How many nodes the run's dataset has.
        dataset: A dataset, its columns in the models' order.
        splits: Which of the run's models.

    Returns:
        For each model a mask over the dataset's nodes.

    Raises:
        DataError: if the run's files are damaged.
    """
    theirs, ours = node_hashes(dataset), _read(folder, num_nodes)
    if not np.isin(theirs, ours).any():
        return [torch.zeros(len(theirs), dtype=torch.bool)] * len(splits)
    parts = folder.read_splits()
    learned = [torch.cat([parts[number].train, parts[number].valid]).numpy() for number in splits]
    return [torch.from_numpy(np.isin(theirs, ours[nodes])) for nodes in learned]


def _read(folder: RunFolder, num_nodes: int) -> NodeHashes:
    try:
        found: NodeHashes = np.load(folder.nodes, allow_pickle=False)
        if found.shape != (num_nodes,) or found.dtype != np.uint64:
            raise ValueError(f"an array of {found.dtype} of shape {list(found.shape)}")
    except (OSError, ValueError) as error:
        raise DataError(
            f"The file must hold a number for each node of the run. It does not: {error}.",
            path=folder.nodes,
            remedy="Resume the run, which writes it anew.",
        ) from error
    return found


def evaluate_run(
    path: Path | str,
    dataset: NodeDataset,
    split: int | None = None,
    *,
    models: Ensemble | None = None,
    device: Device = "cpu",
) -> JsonObject:
    """Evaluate a run's models on a dataset with labels.

    A label counts for a model that was neither trained on its node nor selected by it. So on the very data of the run
    each model is evaluated on the test nodes of its split; on other data on all labelled nodes but those it has seen
    in training, and the mean of their answers on those that none has seen.

    Args:
        path: A run folder, or a pretrained model's.
        dataset: The dataset.
        split: One split alone.
        models: What `load_models` returned for the two, where that was done before.
        device: Where to run the models.

    Returns:
        ``mean`` and ``std`` of each metric over the models, ``each`` of them, and ``together``, the metrics of the mean
        answer (``None`` on the run's own data, and where every node was seen by one). ``num_nodes`` count for the first
        model, ``seen`` of the labelled nodes were seen by one of the models.

    Raises:
        DataError: if there are no labels, or a model has seen them all, or features, classes or task do not fit.
    """
    path = Path(path)
    models = models or load_models(path, split)
    if dataset.y is None:
        raise DataError(
            f"An evaluation needs labels. '{dataset.name}' has none.",
            remedy="Name the label column or attribute with --label.",
        )
    fitting = models.fitted(dataset)
    known = known_nodes(fitting)
    if not len(known):
        raise DataError(f"An evaluation needs labels. All nodes of '{dataset.name}' are unlabelled.")
    run, numbers = _origin(path, split, len(models.members))
    recorded = run.plan()[1]["dataset"] if run is not None else {}
    own = run is not None and bool(recorded["sha256"] == dataset_sha256(fitting))
    seen = [torch.zeros(len(known), dtype=torch.bool)] * len(models.members)
    if run is not None and own:
        splits = run.read_splits()
        tests = [splits[number].test for number in numbers]
        seen = [~torch.isin(known, test) for test in tests]
    else:
        if run is not None:
            seen = [mask[known] for mask in seen_nodes(run, int(recorded["num_nodes"]), fitting, numbers)]
        tests = [known[~mask] for mask in seen]
        if not all(len(test) for test in tests):
            raise DataError(
                f"An evaluation needs labelled nodes that the models have not learned from. '{dataset.name}' has none: "
                f"one of the models was trained on, or selected by, all {len(known)} of its labelled nodes.",
                remedy="Give the data of the run, of which each model has test nodes, or new nodes.",
            )
    y, by_any = labels_of(fitting), torch.stack(seen).any(dim=0)
    outputs = models.outputs(fitting, device=device)
    each = [
        member.objective.metrics(output[test], y[test])
        for member, output, test in zip(models.members, outputs, tests, strict=True)
    ]
    together = None
    if not own and not bool(by_any.all()):
        new = known[~by_any]
        together = models.first.objective.answer_metrics(mean_of(models.answers_from(outputs))[new], y[new])
    return finite(  # type: ignore[no-any-return]
        {
            "dataset": dataset.name,
            "same_data": own,
            "num_nodes": len(tests[0]),
            "seen": int(by_any.sum()),
            "models": len(each),
            "mean": {name: statistics.fmean(metrics[name] for metrics in each) for name in each[0]},
            "std": {name: _deviation([metrics[name] for metrics in each]) for name in each[0]},
            "each": each,
            "together": together,
        }
    )


def _origin(path: Path, split: int | None, count: int) -> tuple[RunFolder | None, list[int]]:
    """Find the run that the models are of, and which of its splits they are; a model folder may lie in its run."""
    if not is_pretrained(path):
        return RunFolder(path), list(range(count)) if split is None else [split]
    place = path.resolve()
    if len(place.parents) > 2 and place.parents[1].name == "splits" and place.parent.name.isdecimal():
        run, number = RunFolder(place.parents[2]), int(place.parent.name)
        if run.config.is_file() and run.split(number).model == place:
            return run, [number]
    return None, []


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else 0.0
