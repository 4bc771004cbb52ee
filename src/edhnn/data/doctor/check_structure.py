"""What can be odd about the hypergraph itself and about the names of its nodes and hyperedges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.data.doctor.finding import EXAMPLES, Finding, counted, first_ids, percentage
from edhnn.data.ids import Ids
from edhnn.hypergraph import Hypergraph
from edhnn.statistics import Statistics, first_equal_hyperedge
from edhnn.typing import IntArray, NodeOrEdgeId

NEARLY_ALL = 0.9
FEW_NODES = 10
MANY_ISOLATED = 0.1


def check_structure(dataset: NodeDataset, statistics: Statistics) -> Iterator[Finding]:
    """Findings about emptiness, isolation, repetition, connection and weights."""
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
    size = hypergraph.edge_size.cpu()
    if statistics.empty_hyperedges:
        empty = _places(size == 0)
        yield Finding(
            severity="warning",
            code="empty-hyperedges",
            message=f"{counted(len(empty), 'hyperedge has', 'hyperedges have')} no member.",
            remedy="Remove them, or find out where their members were lost.",
            count=len(empty),
            examples=first_ids(dataset.edge_ids, empty),
        )
    if statistics.singleton_hyperedges:
        single = _places(size == 1)
        yield Finding(
            severity="note",
            code="singleton-hyperedges",
            message=f"{counted(len(single), 'hyperedge has', 'hyperedges have')} one member only.",
            count=len(single),
            examples=first_ids(dataset.edge_ids, single),
        )
    yield from _repeated(dataset, statistics)
    yield from _merged(hypergraph)
    huge = _places(size >= NEARLY_ALL * statistics.num_nodes)
    if len(huge) and statistics.num_nodes >= FEW_NODES:
        yield Finding(
            severity="warning",
            code="hyperedge-of-all-nodes",
            message=f"{counted(len(huge), 'hyperedge holds', 'hyperedges hold')} at least {NEARLY_ALL:.0%} of all "
            "nodes: a relation among everything tells nothing apart.",
            remedy="Remove it, unless it is meant.",
            count=len(huge),
            examples=first_ids(dataset.edge_ids, huge),
        )
    beyond = statistics.components - statistics.isolated_nodes
    if beyond > 1:
        share = percentage(statistics.largest_component, statistics.num_nodes)
        yield Finding(
            severity="note",
            code="several-components",
            message=f"There are {beyond:,} connected components beside isolated nodes; the largest holds "
            f"{counted(statistics.largest_component, 'node', 'nodes')} ({share}). Nothing diffuses between them.",
            count=beyond,
        )
    yield from _zero_weights("hyperedge", hypergraph.edge_weight)
    yield from _zero_weights("membership", hypergraph.incidence_weight)


def check_ids(dataset: NodeDataset) -> Iterator[Finding]:
    """Findings about ids that people would read as the same."""
    for kind, ids in (("node", dataset.node_ids), ("hyperedge", dataset.edge_ids)):
        names = _text_ids(ids)
        padded = [name for name in names if name != name.strip()]
        if padded:
            yield Finding(
                severity="warning",
                code="padded-ids",
                message=f"{counted(len(padded), f'{kind} id begins or ends', f'{kind} ids begin or end')} with "
                "white space.",
                remedy="Strip the column, unless the spaces are meant.",
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
            )


def _isolated(dataset: NodeDataset, statistics: Statistics) -> Iterator[Finding]:
    if not statistics.isolated_nodes:
        return
    alone = _places(dataset.hypergraph.degree.cpu() == 0)
    share = percentage(len(alone), statistics.num_nodes)
    yield Finding(
        severity="warning" if len(alone) > MANY_ISOLATED * statistics.num_nodes else "note",
        code="isolated-nodes",
        message=f"{counted(len(alone), 'node is', 'nodes are')} in no hyperedge ({share}): a model sees only "
        "their own features.",
        remedy="Give each a hyperedge of its own, or leave them out.",
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
        remedy="Each counts again in every sum. If repetition carries no meaning, keep one of each.",
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
            f"{'; of their weights the largest stays.' if weighted else '.'}",
            remedy="If the weights should add up, give each membership once, with their sum."
            if weighted
            else "If repetition carries meaning, give it as a weight.",
            count=merged,
        )


def _zero_weights(kind: str, weight: Tensor | None) -> Iterator[Finding]:
    zero = 0 if weight is None else int((weight == 0).sum())
    if zero:
        yield Finding(
            severity="note",
            code="zero-weights",
            message=f"{counted(zero, f'{kind} has', f'{kind}s have')} weight 0.",
            remedy="What has weight 0 counts for nothing. Remove it, or give it a positive weight.",
            count=zero,
        )


def _places(mask: Tensor) -> IntArray:
    return np.flatnonzero(mask.numpy())


def _text_ids(ids: Ids) -> list[str]:
    return [name for name in ids.values if isinstance(name, str)] if isinstance(ids.values, list) else []


def _read_alike(ids: Ids, names: list[str], padded: list[str]) -> list[NodeOrEdgeId]:
    """Text ids that, stripped, equal another id, read as text."""
    if not isinstance(ids.values, list):
        return []
    mixed = len(names) < len(ids.values)
    if not padded and not mixed:
        return []
    spelling = Counter(str(name).strip() for name in ids.values)
    candidates = names if mixed else padded
    return [name for name in candidates if spelling[name.strip()] > 1]
