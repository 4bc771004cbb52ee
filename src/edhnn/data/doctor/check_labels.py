"""What can be odd about the labels of nodes, and about hyperedges that give them away."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from edhnn.data.dataset import NodeDataset
from edhnn.data.doctor.facts import class_counts, labelled
from edhnn.data.doctor.finding import EXAMPLES, Finding, Severity, counted, first_ids
from edhnn.statistics import class_indicator, members_by_class
from edhnn.typing import BoolArray, IntArray

SMALLEST_CLASS = 4  # 50/25/25: the smallest class that can be in every part has 2 + 1 + 1 nodes
STRONG_IMBALANCE = 10


def check_labels(dataset: NodeDataset) -> Iterator[Finding]:
    """Findings about missing, single, small and unbalanced classes, and about hyperedges that are a class."""
    known = labelled(dataset)
    if not known.any():
        yield Finding(
            severity="warning",
            code="no-labels",
            message="No node has a label: there is nothing to learn from or to test against.",
            remedy="Name the column that holds the labels.",
        )
        return
    missing = np.flatnonzero(~known)
    if len(missing):
        yield Finding(
            severity="note",
            code="unlabelled-nodes",
            message=f"{counted(len(missing), 'node has', 'nodes have')} no label: a model sees them, but "
            "neither trains nor is tested on them.",
            count=len(missing),
            examples=first_ids(dataset.node_ids, missing),
        )
    if dataset.task == "regression":
        yield from _check_targets(dataset)
        return
    if dataset.task == "classification":
        yield from _check_classes(dataset)
    yield from _check_leaks(dataset)


def _check_targets(dataset: NodeDataset) -> Iterator[Finding]:
    assert dataset.y is not None
    y = dataset.y.cpu().reshape(len(dataset.y), -1)
    infinite = y.isinf().any(dim=1).numpy()
    if infinite.any():
        places = np.flatnonzero(infinite)
        yield Finding(
            severity="error",
            code="labels-not-finite",
            message=f"{counted(len(places), 'node has', 'nodes have')} an infinite label.",
            remedy="Give a number, or leave it empty if it is unknown.",
            count=len(places),
            examples=first_ids(dataset.node_ids, places),
        )
    columns = [column[~column.isnan()] for column in y.T]
    constant = sum(len(column) > 0 and bool((column == column[0]).all()) for column in columns)
    if constant:
        yield Finding(
            severity="error",
            code="one-value",
            message=f"{counted(constant, 'label column is', 'label columns are')} the same for every labelled node: "
            "there is nothing to learn.",
            remedy="Check that the right column was read as the label.",
            count=constant,
        )


def _check_classes(dataset: NodeDataset) -> Iterator[Finding]:
    counts = np.array(class_counts(dataset), dtype=np.int64)
    present = np.flatnonzero(counts)
    if len(present) == 1:
        yield Finding(
            severity="error",
            code="one-class",
            message=f"Every labelled node is in class {_class(dataset, int(present[0]))}: there is nothing to learn.",
            remedy="Check that the right column was read as the label.",
            count=int(counts.sum()),
        )
        return
    absent = np.flatnonzero(counts == 0)
    if len(absent):
        yield Finding(
            severity="note",
            code="empty-class",
            message=f"No node is in {_shown_classes(dataset, absent)}.",
            count=len(absent),
        )
    small = np.flatnonzero((counts > 0) & (counts < SMALLEST_CLASS))
    if len(small):
        yield Finding(
            severity="warning",
            code="small-class",
            message=f"Fewer than {SMALLEST_CLASS} nodes are in {_shown_classes(dataset, small)}: too few for every "
            "part of a 50/25/25 split.",
            remedy="Merge small classes, or leave them out.",
            count=len(small),
        )
    ratio = counts.max() / counts[present].min()
    if ratio >= STRONG_IMBALANCE:
        low = int(present[counts[present].argmin()])
        high = int(counts.argmax())
        yield Finding(
            severity="warning",
            code="class-imbalance",
            message=f"Class {_class(dataset, high)} has {counts[high]:,} nodes, class {_class(dataset, low)} only "
            f"{counts[low]:,}. Always answering the former is right {counts[high] / counts.sum():.1%} of the time.",
            remedy="Read accuracy beside that number, and look at a balanced score too.",
            count=len(present),
        )


def _check_leaks(dataset: NodeDataset) -> Iterator[Finding]:
    """Hyperedges whose labelled members are one class, all of it, and nothing else: the label in disguise."""
    known = labelled(dataset)
    members = members_by_class(dataset.hypergraph, _indicator(dataset))
    inside = members_by_class(dataset.hypergraph, sp.csr_array(known[:, None].astype(np.int64))).toarray()[:, 0]
    of_class = np.array(class_counts(dataset), dtype=np.int64)
    pairs = sp.coo_array(members)
    edge, label = pairs.coords
    whole = (pairs.data == of_class[label]) & (pairs.data == inside[edge])
    leaks = whole & (pairs.data >= 2) & (of_class[label] < known.sum())
    exact = inside == dataset.hypergraph.edge_size.cpu().numpy()
    kinds: tuple[tuple[Severity, str, str, BoolArray], ...] = (
        ("error", "label-leak", "members", leaks & exact[edge]),
        ("warning", "possible-label-leak", "labelled members", leaks & ~exact[edge]),
    )
    for severity, code, members_word, chosen in kinds:
        edges = np.unique(edge[chosen]).astype(np.int64)
        if len(edges):
            yield Finding(
                severity=severity,
                code=code,
                message=f"The {members_word} of {counted(len(edges), 'hyperedge', 'hyperedges')} are exactly the nodes "
                f"of {_shown_classes(dataset, np.unique(label[chosen]))}: the hypergraph gives the label away.",
                remedy="Remove such hyperedges before training, unless they are known without the labels.",
                count=len(edges),
                examples=first_ids(dataset.edge_ids, edges),
            )


def _indicator(dataset: NodeDataset) -> sp.csr_array:
    assert dataset.y is not None
    if dataset.task == "multilabel":
        return sp.csr_array((dataset.y == 1).cpu().numpy().astype(np.int64))
    return class_indicator(dataset.y, dataset.num_classes or 0)


def _class(dataset: NodeDataset, number: int) -> str:
    return str(number) if dataset.class_names is None else f"'{dataset.class_names[number]}'"


def _shown_classes(dataset: NodeDataset, numbers: IntArray) -> str:
    shown = ", ".join(_class(dataset, number) for number in numbers[:EXAMPLES].tolist())
    word = "class" if len(numbers) == 1 else "classes"
    return f"{word} {shown}{', ...' if len(numbers) > EXAMPLES else ''}"
