r"""Classes inside hyperedges: how many members of each class, and which classes keep company."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int
from torch import Tensor

from edhnn.hypergraph import Hypergraph
from edhnn.typing import FloatArray


def class_indicator(labels: Int[Tensor, " N"], num_classes: int) -> sp.csr_array:
    """The N x C array with a 1 at (v, y_v); rows of unlabelled nodes are empty."""
    classes = labels.cpu().numpy()
    known = np.flatnonzero(classes >= 0)
    return sp.csr_array((np.ones(len(known), np.int64), (known, classes[known])), shape=(len(classes), num_classes))


def members_by_class(hypergraph: Hypergraph, belongs: sp.csr_array) -> sp.csr_array:
    r"""How many members of a hyperedge are in a class, $n_{e, c}$, from the N x C indicator of the classes."""
    ones = np.ones(hypergraph.num_incidences, dtype=np.int64)
    shape = (hypergraph.num_edges, hypergraph.num_nodes)
    members = (ones, hypergraph.node_index.cpu().numpy(), hypergraph.edge_ptr.cpu().numpy())
    return sp.csr_array(sp.csr_array(members, shape=shape) @ belongs)


def class_mixing(hypergraph: Hypergraph, labels: Int[Tensor, " N"], num_classes: int) -> FloatArray:
    r"""The class of a co-member given the class of a node, $P(y_u = c' \mid y_v = c)$, as a C x C array.

    Over all $(v, u, e)$ with $u \neq v$ both in $e$. A class without co-members has a row of NaN. The rows are what
    the label gives away about the company a node keeps: the identity under perfect homophily.
    """
    counts = members_by_class(hypergraph, class_indicator(labels, num_classes))
    pairs = (counts.T @ counts).toarray().astype(np.float64)
    pairs[np.diag_indices(num_classes)] -= counts.sum(axis=0)
    total = pairs.sum(axis=1, keepdims=True)
    shares: FloatArray = np.divide(pairs, total, out=np.full_like(pairs, np.nan), where=total > 0)
    return shares
