"""A run against labels, none of which a model has learned from: its own test nodes, and all nodes new to it."""

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
from edhnn.training.seen_nodes import seen_nodes
from edhnn.training.tasks import known_nodes, labels_of
from edhnn.typing import JsonObject


def evaluate_run(
    path: Path, dataset: NodeDataset, split: int | None = None, *, models: Ensemble | None = None
) -> JsonObject:
    """Metrics of a run's models on a dataset with labels.

    A label counts for a model that was neither trained on its node nor selected by it. So on the very data of the run
    each model is judged by the test nodes of its split, as it was then; on other data by all labelled nodes but those
    of the run's that it has seen (`edhnn.training.seen_nodes`), and the mean of their answers by what none has seen.

    Args:
        path: A run folder, or a pretrained model's.
        dataset: The dataset.
        split: One split alone.
        models: What `load_models` gave for the two, where that was done before.

    Returns:
        ``mean`` and ``std`` of each metric over the models, ``each`` of them, and ``together``, the metrics of the mean
        answer (``None`` on the run's own data, and where every node was seen by one). ``num_nodes`` count for the first
        model, ``seen`` of the labelled nodes were seen by one of the models.

    Raises:
        DataError: if there are no labels, or a model has seen them all, or features, classes or task do not fit.
    """
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
    own = run is not None and bool(run.plan()[1]["dataset"]["sha256"] == dataset_sha256(fitting))
    seen = [torch.zeros(len(known), dtype=torch.bool)] * len(models.members)
    if run is not None and own:
        splits = run.read_splits()
        tests = [splits[number].test for number in numbers]
        seen = [~torch.isin(known, test) for test in tests]
    else:
        if run is not None:
            seen = [mask[known] for mask in seen_nodes(run, fitting, numbers)]
        tests = [known[~mask] for mask in seen]
        if not all(len(test) for test in tests):
            raise DataError(
                f"An evaluation needs labelled nodes that the models have not learned from. '{dataset.name}' has none: "
                f"one of the models was trained on, or selected by, all {len(known)} of its labelled nodes.",
                remedy="Give the data of the run, of which each model has test nodes, or new nodes.",
            )
    by_any = torch.stack(seen).any(dim=0)
    each = [_metrics(member, fitting, test) for member, test in zip(models.members, tests, strict=True)]
    names = list(each[0])
    return finite(  # type: ignore[no-any-return]
        {
            "dataset": dataset.name,
            "same_data": own,
            "num_nodes": len(tests[0]),
            "seen": int(by_any.sum()),
            "models": len(each),
            "mean": {name: statistics.fmean(found[name] for found in each) for name in names},
            "std": {name: _deviation([found[name] for found in each]) for name in names},
            "each": each,
            "together": None if own or bool(by_any.all()) else _together(models, fitting, known[~by_any]),
        }
    )


def _origin(path: Path, split: int | None, count: int) -> tuple[RunFolder | None, list[int]]:
    """The run that the models are of, and which of its splits they are; a model folder may lie in its run."""
    if not is_pretrained(path):
        return RunFolder(path), list(range(count)) if split is None else [split]
    place = path.resolve()
    if len(place.parents) > 2 and place.parents[1].name == "splits" and place.parent.name.isdecimal():
        run, number = RunFolder(place.parents[2]), int(place.parent.name)
        if run.config.is_file() and run.split(number).model == place:
            return run, [number]
    return None, []


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
