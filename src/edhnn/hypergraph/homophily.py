r"""Four measures of homophily on the clique expansion.

    clique_homophily                 per node, among the node and its distinct co-members; the paper's Tables 1 and 5
    clique_homophily_without_self    per node, among its distinct co-members; nodes without co-members are skipped
    clique_homophily_weighted        the same, with a co-member counted once per shared hyperedge
    clique_edge_homophily            over distinct unordered pairs of co-members

The four differ by up to 0.2 on the paper's data (Pubmed: 0.952, 0.735, 0.746, 0.751). A label of -1 means unlabelled;
the measures use the hypergraph restricted to its labelled nodes. A mean over nothing is NaN. All but the weighted one
expand cliques in bounded memory, which costs $\sum_e |e|^2$ operations (`expansions.clique_expansion_cost`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int
from torch import Tensor

from edhnn.hypergraph.expansions import clique_rows
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.transforms import subhypergraph
from edhnn.typing import FloatArray, IntArray

_TABLE_ENTRIES_PER_INCIDENCE = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Homophily:
    """The four homophilies of a labelled hypergraph; ``None`` where one was not computed or is undefined."""

    clique_homophily: float | None = None
    clique_homophily_without_self: float | None = None
    clique_homophily_weighted: float | None = None
    clique_edge_homophily: float | None = None


def homophilies(hypergraph: Hypergraph, labels: Int[Tensor, " N"], *, expand: bool = True) -> Homophily:
    """Compute all four homophilies in one pass over the clique expansion, or only the weighted one without it."""
    weighted = _none_if_nan(clique_homophily_weighted(hypergraph, labels))
    if not expand:
        return Homophily(clique_homophily_weighted=weighted)
    same, total = _distinct_co_members(hypergraph, labels)
    return Homophily(
        clique_homophily=_none_if_nan(_mean_fraction(same + 1, total + 1)),
        clique_homophily_without_self=_none_if_nan(_mean_fraction(same, total)),
        clique_homophily_weighted=weighted,
        clique_edge_homophily=_none_if_nan(_fraction(same, total)),
    )


def clique_homophily(hypergraph: Hypergraph, labels: Int[Tensor, " N"]) -> float:
    r"""Return the paper's CE homophily: the mean share of a node's class among it and its distinct co-members.

    $\frac{1}{N} \sum_v \frac{|\{u \in \{v\} \cup N(v) : y_u = y_v\}|}{1 + |N(v)|}$ with $N(v)$ the distinct other
    nodes that share a hyperedge with $v$. An isolated node adds 1. Paper: Tables 1 and 5 (CE homophily).

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph
        >>> baskets = Hypergraph.from_hyperedges([[0, 1], [0, 1, 2]], num_nodes=4)
        >>> clique_homophily(baskets, torch.tensor([0, 0, 1, 1]))  # (2/3 + 2/3 + 1/3 + 1) / 4
        0.6666666666666666
    """
    same, total = _distinct_co_members(hypergraph, labels)
    return _mean_fraction(same + 1, total + 1)


def clique_homophily_without_self(hypergraph: Hypergraph, labels: Int[Tensor, " N"]) -> float:
    r"""Return the mean share of a node's class among its distinct co-members, the node itself not counted.

    The mean of $|\{u \in N(v) : y_u = y_v\}| / |N(v)|$ over the nodes with a co-member; the others are skipped.

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph
        >>> baskets = Hypergraph.from_hyperedges([[0, 1], [0, 1, 2]], num_nodes=4)
        >>> clique_homophily_without_self(baskets, torch.tensor([0, 0, 1, 1]))  # (1/2 + 1/2 + 0) / 3
        0.3333333333333333
    """
    return _mean_fraction(*_distinct_co_members(hypergraph, labels))


def clique_homophily_weighted(hypergraph: Hypergraph, labels: Int[Tensor, " N"]) -> float:
    r"""Return the mean share of a node's class among its co-members, each counted once per shared hyperedge.

    The mean over nodes with a co-member of $\sum_{e \ni v} (n_{e, y_v} - 1) \,/\, \sum_{e \ni v} (|e| - 1)$, where
    $n_{e, c}$ is the number of members of $e$ in class $c$. No clique is expanded.

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph
        >>> baskets = Hypergraph.from_hyperedges([[0, 1], [0, 1, 2]], num_nodes=4)
        >>> clique_homophily_weighted(baskets, torch.tensor([0, 0, 1, 1]))  # (2/3 + 2/3 + 0) / 3
        0.4444444444444444
    """
    part, classes = _labelled_part(hypergraph, labels)
    node, edge = part.node_index.numpy(), part.edge_index.numpy()
    num_classes = int(classes.max(initial=-1)) + 1
    key = edge * num_classes + classes[node]
    if part.num_edges * num_classes <= _TABLE_ENTRIES_PER_INCIDENCE * len(key):
        alike = np.bincount(key)[key]
    else:
        _, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
        alike = count[inverse]
    same = np.bincount(node, alike - 1, minlength=part.num_nodes)
    total = np.bincount(node, part.edge_size.numpy()[edge] - 1, minlength=part.num_nodes)
    return _mean_fraction(same, total)


def clique_edge_homophily(hypergraph: Hypergraph, labels: Int[Tensor, " N"]) -> float:
    r"""Return the fraction of distinct pairs of co-members whose labels agree.

    $|\{\{u, v\} \in A : y_u = y_v\}| \,/\, |A|$ with $A$ the unordered pairs $u \neq v$ that share a hyperedge.

    Example:
        >>> import torch
        >>> from edhnn import Hypergraph
        >>> baskets = Hypergraph.from_hyperedges([[0, 1], [0, 1, 2]], num_nodes=4)
        >>> clique_edge_homophily(baskets, torch.tensor([0, 0, 1, 1]))  # {0, 1} of {0, 1}, {0, 2}, {1, 2}
        0.3333333333333333
    """
    return _fraction(*_distinct_co_members(hypergraph, labels))


def _distinct_co_members(hypergraph: Hypergraph, labels: Tensor) -> tuple[IntArray, IntArray]:
    """Count, per labelled node, its distinct labelled co-members of its own class, and all of them."""
    part, classes = _labelled_part(hypergraph, labels)
    same, total = np.zeros(part.num_nodes, np.int64), np.zeros(part.num_nodes, np.int64)
    short = classes.astype(np.min_scalar_type(int(classes.max(initial=0))))
    ones = np.ones(part.num_nodes, dtype=np.int32)
    for start, rows in clique_rows(part):
        stop, lengths = start + rows.shape[0], np.diff(rows.indptr)
        alike = (short[rows.indices] == np.repeat(short[start:stop], lengths)).astype(np.int32)
        same[start:stop] = sp.csr_array((alike, rows.indices, rows.indptr), shape=rows.shape) @ ones
        total[start:stop] = lengths
    itself = (part.degree > 0).numpy()  # the rows of H Hᵀ count the node itself
    return same - itself, total - itself


def _labelled_part(hypergraph: Hypergraph, labels: Tensor) -> tuple[Hypergraph, IntArray]:
    """Restrict the hypergraph to labelled nodes, on the CPU; return it and their classes."""
    labels, part = labels.cpu(), hypergraph.to("cpu")
    known = (labels >= 0).nonzero()[:, 0]
    classes: IntArray = labels[known].numpy()
    return part if len(known) == len(labels) else subhypergraph(part, known), classes


def _mean_fraction(part: IntArray | FloatArray, whole: IntArray | FloatArray) -> float:
    """Return the mean of part / whole over the positive wholes; NaN if there are none."""
    positive = whole > 0
    return float((part[positive] / whole[positive]).mean()) if positive.any() else float("nan")


def _fraction(part: IntArray, whole: IntArray) -> float:
    return float(part.sum() / whole.sum()) if whole.any() else float("nan")


def _none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else value
