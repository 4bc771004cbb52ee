"""Nodes of a hypergraph as scikit-learn's samples: rows can be selected, and the hypergraph stays whole."""

from __future__ import annotations

import warnings
from typing import Any, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.errors import DataError
from edhnn.hypergraph import Hypergraph
from edhnn.typing import IntArray


@final
class NodeSamples:
    """Some nodes of a hypergraph with the features of all: what ``X`` is to an estimator.

    Selecting rows, as cross-validation does, selects nodes to learn from or to predict; the hypergraph and the features
    of the others stay visible, so that cross-validation measures what a transductive user gets.

    Args:
        hypergraph: The hypergraph, or a `NodeDataset` with features.
        x: Features, a row per node: an array, a sparse matrix, a tensor, or a table with named columns.
        nodes: The selected nodes; all of them if not given.

    Attributes:
        feature_names: The columns, where they are named.

    Raises:
        DataError: if rows and nodes do not fit.

    Example:
        >>> import numpy as np
        >>> from edhnn import Hypergraph, NodeSamples
        >>> samples = NodeSamples(Hypergraph.from_hyperedges([[0, 1], [1, 2]]), np.eye(3))
        >>> samples[[2, 0]].shape
        (2, 3)
    """

    def __init__(self, hypergraph: Hypergraph | NodeDataset, x: object = None, nodes: object = None) -> None:
        self.feature_names = _column_names(x)
        if isinstance(hypergraph, NodeDataset):
            if x is None:
                x, self.feature_names = hypergraph.x, hypergraph.feature_names
            hypergraph = hypergraph.hypergraph
        if x is None:
            raise DataError("A network needs node features. Got none.", remedy="Give them as X, a row per node.")
        self.hypergraph, self.x = hypergraph, as_tensor(x)
        if self.x.shape[0] != hypergraph.num_nodes:
            raise DataError(f"Features must have a row per node, {hypergraph.num_nodes}. Got {self.x.shape[0]} rows.")
        everybody = np.arange(hypergraph.num_nodes)
        self.nodes: IntArray = everybody if nodes is None else everybody[np.asarray(nodes)]

    @property
    def shape(self) -> tuple[int, int]:
        """Selected nodes, features."""
        return len(self.nodes), self.x.shape[1]

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, key: Any) -> NodeSamples:
        rows = key[0] if isinstance(key, tuple) else key
        selected = NodeSamples(self.hypergraph, self.x, np.atleast_1d(self.nodes[rows]))
        selected.feature_names = self.feature_names
        return selected

    def __repr__(self) -> str:
        return f"NodeSamples({len(self)} of {self.hypergraph.num_nodes} nodes, {self.x.shape[1]} features)"


def _column_names(x: object) -> tuple[str, ...] | None:
    """The names of a table's columns, where all are text."""
    names = tuple(getattr(x, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def as_tensor(x: object) -> Tensor:
    """Features as a tensor: dense, or sparse CSR."""
    if isinstance(x, Tensor):
        return x
    if sp.issparse(x):
        rows: sp.csr_array = sp.csr_array(x)
        row_ptr, column = (torch.from_numpy(np.require(part, np.int64, "W")) for part in (rows.indptr, rows.indices))
        values = torch.from_numpy(np.require(rows.data, np.float32, "W"))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            return torch.sparse_csr_tensor(row_ptr, column, values, size=rows.shape, check_invariants=True)
    given = np.asarray(x)
    kind = np.float64 if given.dtype == np.float64 else np.float32  # 64 bits are scaled before they are rounded
    table: npt.NDArray[Any] = np.require(given, kind, "W")  # PyTorch has no read-only tensors
    if table.ndim != 2:
        raise DataError(f"Features must be a table with a row per node. Got shape {table.shape}.")
    return torch.from_numpy(table)
