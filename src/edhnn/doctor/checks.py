"""Check a dataset: its structure, ids, labels and features. Each problem is a `Finding` with a remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, features_to_scipy
from edhnn.data.ids import Ids
from edhnn.doctor.spelling import DIFFERENCES, Kind, spelling_groups
from edhnn.doctor.summary import class_counts
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.statistics import Statistics, class_indicator, first_equal_hyperedge, members_by_class
from edhnn.typing import BoolArray, IntArray, NodeOrEdgeId

Severity = Literal["error", "warning", "note"]
"""``error``: training fails or is wrong. ``warning``: probably not intended. ``note``: information."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
EXAMPLES = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem that the doctor found.

    Attributes:
        severity: How bad it is.
        code: A stable name for scripts: ``isolated-nodes``.
        message: What was found, with numbers and the first ids.
        remedy: What to do about it; ``None`` if nothing is necessary.
        count: Number of affected nodes, hyperedges, columns or entries.
        examples: The original ids of the first few of them.
        clean: The options of `edhnn data clean` that clean it in a text table. ``{node}`` and ``{hyperedge}`` stand for
            the columns of ids.
    """

    severity: Severity
    code: str
    message: str
    remedy: str | None = None
    count: int = 0
    examples: tuple[NodeOrEdgeId, ...] = ()
    clean: tuple[str, ...] = ()


def first_ids(ids: Ids, indices: IntArray) -> tuple[NodeOrEdgeId, ...]:
    """Return the original ids of the first few indices."""
    return tuple(ids.take(indices[:EXAMPLES]))


def counted(count: int, one: str, many: str) -> str:
    """Write a count with its noun: ``1 node is`` or ``3 nodes are``."""
    return f"{count:,} {one if count == 1 else many}"


def percentage(part: int, whole: int) -> str:
    """Write a share in percent; a share above zero is never written as 0.0%."""
    return "less than 0.1%" if 0 < part < 0.001 * whole else f"{part / whole:.1%}"


NEARLY_ALL = 0.9
FEW_NODES = 10
MANY_ISOLATED = 0.1


def check_structure(dataset: NodeDataset, statistics: Statistics) -> Iterator[Finding]:
    """Look for empty, isolated, repeated, huge and unconnected parts, and for weights of zero."""
    hypergraph = dataset.hypergraph
    if not statistics.num_nodes:
        yield Finding(
            severity="error", code="no-nodes", message="There is no node.", remedy="Check that the right file was read."
        )
        return
    if not statistics.num_incidences:
        yield Finding(
            severity="warning",
            code="no-memberships",
            message="No node belongs to any hyperedge, so there is nothing to diffuse along.",
            remedy="Check that the memberships were read.",
        )
        return
    yield from _isolated(dataset, statistics)
    size = hypergraph.edge_size
    if statistics.empty_hyperedges:
        empty = _indices(size == 0)
        yield Finding(
            severity="warning",
            code="empty-hyperedges",
            message=f"{counted(len(empty), 'hyperedge has', 'hyperedges have')} no member.",
            remedy="Remove them, or restore their members.",
            count=len(empty),
            examples=first_ids(dataset.edge_ids, empty),
        )
    if statistics.singleton_hyperedges:
        single = _indices(size == 1)
        yield Finding(
            severity="note",
            code="singleton-hyperedges",
            message=f"{counted(len(single), 'hyperedge has', 'hyperedges have')} only one member.",
            count=len(single),
            examples=first_ids(dataset.edge_ids, single),
        )
    yield from _repeated(dataset, statistics)
    yield from _merged(hypergraph)
    huge = _indices(size >= NEARLY_ALL * statistics.num_nodes)
    if len(huge) and statistics.num_nodes >= FEW_NODES:
        yield Finding(
            severity="warning",
            code="hyperedge-of-all-nodes",
            message=f"{counted(len(huge), 'hyperedge holds', 'hyperedges hold')} at least {NEARLY_ALL:.0%} of all "
            "nodes; such a hyperedge distinguishes few of them.",
            remedy="Remove such hyperedges, unless they are intended.",
            count=len(huge),
            examples=first_ids(dataset.edge_ids, huge),
        )
    connected = statistics.components - statistics.isolated_nodes
    if connected > 1:
        share = percentage(statistics.largest_component, statistics.num_nodes)
        yield Finding(
            severity="note",
            code="several-components",
            message=f"There are {connected:,} connected components besides isolated nodes; the largest has "
            f"{counted(statistics.largest_component, 'node', 'nodes')} ({share}). Nothing diffuses between them.",
            count=connected,
        )
    yield from _zero_weights("hyperedge", hypergraph.edge_weight)
    yield from _zero_weights("membership", hypergraph.incidence_weight)


_SPELLINGS: dict[Kind, str] = {
    "zeros": "ids-differ-by-zeros",
    "decimals": "ids-differ-by-decimals",
    "case": "ids-differ-by-case",
}


def check_ids(dataset: NodeDataset) -> Iterator[Finding]:
    """Look for ids that differ only by white space, zeros, decimals, case or type."""
    for kind, ids in (("node", dataset.node_ids), ("hyperedge", dataset.edge_ids)):
        names = _text_ids(ids)
        padded = [name for name in names if name != name.strip()]
        if padded:
            yield Finding(
                severity="warning",
                code="padded-ids",
                message=f"{counted(len(padded), f'{kind} id begins or ends', f'{kind} ids begin or end')} with "
                "white space.",
                remedy="Strip the column, unless the spaces are intended.",
                count=len(padded),
                examples=tuple(padded[:EXAMPLES]),
            )
        alike = _read_alike(ids, names, padded)
        if alike:
            yield Finding(
                severity="warning",
                code="ids-read-alike",
                message=f"{counted(len(alike), f'{kind} id differs', f'{kind} ids differ')} from another only by "
                f"surrounding white space, or as text from a number: one {kind} may have become two.",
                remedy="Spell each id in one way.",
                count=len(alike),
                examples=tuple(alike[:EXAMPLES]),
                clean=("--merge-ids", f"spaces:{{{kind}}}"),
            )
        yield from _spelled_alike(kind, names)


def _spelled_alike(kind: str, names: list[str]) -> Iterator[Finding]:
    """Look for text ids that differ only by zeros, decimals or case."""
    for difference, code in _SPELLINGS.items():
        if pc.count_distinct(_simplified(names, difference)).as_py() == len(names):
            continue
        groups = spelling_groups(dict.fromkeys(names, 1), [difference])
        others = sum(len(group.others) for group in groups)
        shown = (" and ".join(repr(name) for name in (g.kept, *g.others[:2])) for g in groups[:EXAMPLES])
        yield Finding(
            severity="warning",
            code=code,
            message=f"{counted(others, f'{kind} id differs', f'{kind} ids differ')} from another only by "
            f"{DIFFERENCES[difference]}: one {kind} may have become two. First: {'; '.join(shown)}.",
            remedy="Spell each id in one way, if they are the same.",
            count=others,
            clean=("--merge-ids", f"{difference}:{{{kind}}}"),
        )


def _simplified(names: list[str], difference: Kind) -> pa.Array:
    """Return the ids with at least this kind of difference removed; so most datasets need no further look."""
    column = pa.array(names, pa.string())
    if difference == "case":
        return pc.utf8_lower(column)
    if difference == "zeros":
        return pc.utf8_ltrim(column, "0")
    return pc.replace_substring_regex(column, r"[.,]0+$", "")


def _isolated(dataset: NodeDataset, statistics: Statistics) -> Iterator[Finding]:
    if not statistics.isolated_nodes:
        return
    alone = _indices(dataset.hypergraph.degree == 0)
    share = percentage(len(alone), statistics.num_nodes)
    yield Finding(
        severity="warning" if len(alone) > MANY_ISOLATED * statistics.num_nodes else "note",
        code="isolated-nodes",
        message=f"{counted(len(alone), 'node is', 'nodes are')} in no hyperedge ({share}): a model uses only "
        "their own features.",
        remedy="Add a hyperedge for each of them, or remove them.",
        count=len(alone),
        examples=first_ids(dataset.node_ids, alone),
    )


def _repeated(dataset: NodeDataset, statistics: Statistics) -> Iterator[Finding]:
    if not statistics.repeated_hyperedges:
        return
    repeated = np.flatnonzero(first_equal_hyperedge(dataset.hypergraph) != np.arange(dataset.hypergraph.num_edges))
    yield Finding(
        severity="note",
        code="repeated-hyperedges",
        message=f"{counted(len(repeated), 'hyperedge has', 'hyperedges have')} the same members as an earlier one.",
        remedy="Each copy counts in every sum. If repetition has no meaning, keep one of each.",
        count=len(repeated),
        examples=first_ids(dataset.edge_ids, repeated),
    )


def _merged(hypergraph: Hypergraph) -> Iterator[Finding]:
    merged = hypergraph.merged_memberships
    if merged:
        weighted = hypergraph.incidence_weight is not None
        yield Finding(
            severity="note",
            code="merged-memberships",
            message=f"{counted(merged, 'membership was', 'memberships were')} given more than once and merged"
            f"{'; the largest weight of each is used.' if weighted else '.'}",
            remedy="If the weights should add up, list each membership once, with the sum."
            if weighted
            else "If repetition has a meaning, write it as a weight.",
            count=merged,
        )


def _zero_weights(kind: str, weight: Tensor | None) -> Iterator[Finding]:
    zero = 0 if weight is None else int((weight == 0).sum())
    if zero:
        yield Finding(
            severity="note",
            code="zero-weights",
            message=f"{counted(zero, f'{kind} has', f'{kind}s have')} weight 0.",
            remedy="A weight of 0 has no effect. Remove the entry, or give it a positive weight.",
            count=zero,
        )


def _indices(mask: Tensor) -> IntArray:
    return np.flatnonzero(mask.cpu().numpy())


def _text_ids(ids: Ids) -> list[str]:
    return [name for name in ids.values if isinstance(name, str)] if isinstance(ids.values, list) else []


def _read_alike(ids: Ids, names: list[str], padded: list[str]) -> list[NodeOrEdgeId]:
    """Return the text ids that equal another id when both are written as text and stripped."""
    if not isinstance(ids.values, list):
        return []
    mixed = len(names) < len(ids.values)
    if not padded and not mixed:
        return []
    spelling = Counter(str(name).strip() for name in ids.values)
    candidates = names if mixed else padded
    return [name for name in candidates if spelling[name.strip()] > 1]


SMALLEST_CLASS = 4  # 50/25/25: the smallest class that can be in every part has 2 + 1 + 1 nodes
STRONG_IMBALANCE = 10
NEARLY_UNIQUE = 0.5


def check_labels(dataset: NodeDataset) -> Iterator[Finding]:
    """Look for missing, single, small and unbalanced classes, and for hyperedges that equal a class."""
    known = dataset.labelled.cpu().numpy()
    if not known.any():
        yield Finding(
            severity="warning",
            code="no-labels",
            message="No node has a label, so no model can be trained or tested.",
            remedy="Name the label column with `label=`.",
        )
        return
    missing = np.flatnonzero(~known)
    if len(missing):
        yield Finding(
            severity="note",
            code="unlabelled-nodes",
            message=f"{counted(len(missing), 'node has', 'nodes have')} no label: a model uses their "
            "features and hyperedges, but is neither trained nor tested on them.",
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
        nodes = np.flatnonzero(infinite)
        yield Finding(
            severity="error",
            code="labels-not-finite",
            message=f"{counted(len(nodes), 'node has', 'nodes have')} an infinite label.",
            remedy="Write a number, or leave the entry empty if it is unknown.",
            count=len(nodes),
            examples=first_ids(dataset.node_ids, nodes),
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
    known = int(counts.sum())
    if known >= FEW_NODES and len(present) > NEARLY_UNIQUE * known:
        yield Finding(
            severity="error",
            code="nearly-unique-label",
            message=f"{known:,} labelled nodes have {len(present):,} different labels: no class can be learned from so "
            f"few examples. First: {_shown_classes(dataset, present)}.",
            remedy="Name another column with `label=`; this one looks like a name or an id. If it has numbers to be "
            "predicted, use `task='regression'`.",
            count=len(present),
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
            remedy="Merge small classes, or remove them.",
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
            f"{counts[low]:,}. Always predicting the former is right {counts[high] / counts.sum():.1%} of the time.",
            remedy="Compare accuracy with that number, and use a balanced score too.",
            count=len(present),
        )


def _check_leaks(dataset: NodeDataset) -> Iterator[Finding]:
    """Look for hyperedges whose labelled members are exactly the nodes of one class."""
    known = dataset.labelled.cpu().numpy()
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
                f"of {_shown_classes(dataset, np.unique(label[chosen]))}: the hypergraph reveals the label.",
                remedy="Remove such hyperedges before training, unless they were made without the labels.",
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


_ENTRIES_PER_BLOCK = 2**24


def check_features(dataset: NodeDataset) -> Iterator[Finding]:
    """Look for absent, non-finite, constant and zero features."""
    if dataset.x is None or not dataset.num_features:
        yield Finding(
            severity="note",
            code="no-features",
            message="Nodes have no features.",
            remedy="Training makes some from the hypergraph. Your own are usually better.",
        )
        return
    if not len(dataset.x):
        return
    scan = _scan_sparse(dataset.x) if dataset.x.layout == torch.sparse_csr else _scan_dense(dataset.x)
    if len(scan.broken_rows):
        columns, nodes = np.unique(scan.broken_columns), np.unique(scan.broken_rows)
        yield Finding(
            severity="error",
            code="features-not-finite",
            message=f"{counted(len(scan.broken_rows), 'feature entry is', 'feature entries are')} NaN or infinite, of "
            f"{counted(len(nodes), 'node', 'nodes')}, in {_shown_columns(dataset, columns)}.",
            remedy="Fill in or drop them: a single one turns every prediction into NaN.",
            count=len(scan.broken_rows),
            examples=first_ids(dataset.node_ids, nodes),
        )
    if len(scan.constant_columns) and len(dataset.x) > 1:
        yield Finding(
            severity="note",
            code="constant-features",
            message=f"{counted(len(scan.constant_columns), 'feature is', 'features are')} the same for every node: "
            f"{_shown_columns(dataset, scan.constant_columns)}.",
            remedy="Drop them; they do not distinguish nodes.",
            count=len(scan.constant_columns),
        )
    if len(scan.zero_rows):
        yield Finding(
            severity="note",
            code="zero-features",
            message=f"{counted(len(scan.zero_rows), 'node has', 'nodes have')} only zeros as features.",
            count=len(scan.zero_rows),
            examples=first_ids(dataset.node_ids, scan.zero_rows),
        )


class _Scan(NamedTuple):
    broken_rows: IntArray
    broken_columns: IntArray
    constant_columns: IntArray
    zero_rows: IntArray


def _scan_dense(x: Tensor) -> _Scan:
    rows_at_once = max(_ENTRIES_PER_BLOCK // x.shape[1], 1)
    low, high = x[0].cpu(), x[0].cpu()
    broken, zero = [], []
    for start in range(0, len(x), rows_at_once):
        block = x[start : start + rows_at_once].cpu()
        low, high = torch.minimum(low, block.amin(dim=0)), torch.maximum(high, block.amax(dim=0))
        broken.append((~block.isfinite()).nonzero() + torch.tensor([start, 0]))
        zero.append((block == 0).all(dim=1).nonzero()[:, 0] + start)
    rows, columns = torch.cat(broken).numpy().T
    return _Scan(rows, columns, np.flatnonzero((low == high).numpy()), torch.cat(zero).numpy())


def _scan_sparse(x: Tensor) -> _Scan:
    by_column = features_to_scipy(x).tocsc()  # a copy: the next line must not change the caller's features
    by_column.eliminate_zeros()
    values, nodes, stored = by_column.data, x.shape[0], np.diff(by_column.indptr)
    column = np.repeat(np.arange(x.shape[1]), stored)
    like_first = values == values[np.repeat(by_column.indptr[:-1], stored)]
    full_and_equal = np.bincount(column[like_first], minlength=x.shape[1]) == nodes
    broken = ~np.isfinite(values)
    return _Scan(
        by_column.indices[broken].astype(np.int64),
        column[broken],
        np.flatnonzero(full_and_equal | (stored == 0)),
        np.flatnonzero(np.bincount(by_column.indices, minlength=nodes) == 0),
    )


def _shown_columns(dataset: NodeDataset, columns: IntArray) -> str:
    names = dataset.feature_names
    shown = ", ".join(str(c) if names is None else f"'{names[c]}'" for c in columns[:EXAMPLES].tolist())
    return f"{'column' if len(columns) == 1 else 'columns'} {shown}{', ...' if len(columns) > EXAMPLES else ''}"
