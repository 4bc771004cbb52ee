"""Summarise a dataset as one flat JSON object, which `edhnn data info` prints and the doctor extends."""

from __future__ import annotations

from dataclasses import asdict

import torch

from edhnn.data.dataset import NodeDataset
from edhnn.hypergraph.statistics import Statistics, describe
from edhnn.typing import JsonObject

MAX_CLIQUE_PAIRS = 200_000_000
"""Above this number of node pairs, about fifteen seconds of one core, homophily on the cliques is skipped."""


def facts(dataset: NodeDataset, *, max_clique_pairs: int | None = MAX_CLIQUE_PAIRS) -> JsonObject:
    """Return the facts of a dataset, ready for JSON: numbers, strings, lists and ``None``.

    Homophily is ``None`` without class labels, and, except for ``clique_homophily_weighted``, where expanding the
    cliques costs more than ``max_clique_pairs`` (``clique_pairs`` is that cost).

    Args:
        dataset: The dataset.
        max_clique_pairs: Largest number of node pairs to examine for homophily; ``None`` for no limit.

    Returns:
        The facts. Paper: Tables 1 and 5.
    """
    return facts_from_statistics(dataset, describe_dataset(dataset, max_clique_pairs=max_clique_pairs))


def describe_dataset(dataset: NodeDataset, *, max_clique_pairs: int | None = MAX_CLIQUE_PAIRS) -> Statistics:
    """Compute the statistics of a dataset's hypergraph, and of its labels if they are classes."""
    labels = dataset.y if dataset.task == "classification" else None
    return describe(dataset.hypergraph, labels, max_clique_pairs=max_clique_pairs)


def facts_from_statistics(dataset: NodeDataset, statistics: Statistics) -> JsonObject:
    """Return the facts of a dataset from its statistics."""
    degree, size = statistics.degree, statistics.edge_size
    return {
        "name": dataset.name,
        "num_nodes": statistics.num_nodes,
        "num_hyperedges": statistics.num_hyperedges,
        "num_hyperedges_without_singletons": statistics.num_hyperedges_without_singletons,
        "num_incidences": statistics.num_incidences,
        "num_features": dataset.num_features,
        "num_classes": dataset.num_classes,
        "task": dataset.task,
        "labelled_nodes": int(dataset.labelled.sum()),
        "class_names": None if dataset.class_names is None else list(dataset.class_names),
        "class_counts": class_counts(dataset),
        "mean_degree": None if degree is None else degree.mean,
        "max_degree": None if degree is None else degree.maximum,
        "mean_hyperedge_size": None if size is None else size.mean,
        "max_hyperedge_size": None if size is None else size.maximum,
        **asdict(statistics.homophily),
        "clique_pairs": statistics.clique_pairs,
        "isolated_nodes": statistics.isolated_nodes,
        "empty_hyperedges": statistics.empty_hyperedges,
        "singleton_hyperedges": statistics.singleton_hyperedges,
        "repeated_hyperedges": statistics.repeated_hyperedges,
        "merged_memberships": statistics.merged_memberships,
        "components": statistics.components,
        "largest_component": statistics.largest_component,
    }


def class_counts(dataset: NodeDataset) -> list[int] | None:
    """Count the nodes of each class, in the order of their numbers; ``None`` without classes."""
    if dataset.y is None or dataset.num_classes is None:
        return None
    if dataset.task == "multilabel":
        return [int(count) for count in (dataset.y == 1).sum(dim=0).tolist()]
    counts = torch.bincount(dataset.y[dataset.labelled], minlength=dataset.num_classes)
    return [int(count) for count in counts.tolist()]
