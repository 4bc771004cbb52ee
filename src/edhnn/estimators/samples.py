"""Nodes of a hypergraph as scikit-learn samples: selecting rows selects nodes and keeps the whole hypergraph.

The first argument of every estimator is a hypergraph: a `Hypergraph`, a `NodeDataset` or a `NodeSamples`. A plain table
could hold the features of the nodes or the incidence matrix, so an estimator accepts it only if its parameter ``table``
is set.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, sparse_features
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.typing import IntArray


@final
class NodeSamples:
    """Selected nodes of a hypergraph with the features of all nodes: the ``X`` of an estimator.

    Selecting rows, as cross-validation does, selects the nodes to learn from or to predict. The hypergraph and the
    features of all nodes stay available, so cross-validation measures transductive accuracy.

    Args:
        hypergraph: The hypergraph, or a `NodeDataset`.
        x: Features, a row per node: an array, a sparse matrix, a tensor, or a table with named columns. Networks need
            them, label spreading does not.
        nodes: The selected nodes; all by default.

    Attributes:
        feature_names: The names of the columns, or ``None``.

    Raises:
        DataError: if the number of rows is not the number of nodes.

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
        self.hypergraph = hypergraph
        self.x = torch.empty(hypergraph.num_nodes, 0) if x is None else as_tensor(x)
        if self.x.shape[0] != hypergraph.num_nodes:
            raise DataError(f"Features must have a row per node, {hypergraph.num_nodes}. Got {self.x.shape[0]} rows.")
        all_nodes = np.arange(hypergraph.num_nodes)
        self.nodes: IntArray = all_nodes if nodes is None else all_nodes[np.asarray(nodes)]

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of selected nodes and of features."""
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
    """Return the names of a table's columns if all are text, else ``None``."""
    names = tuple(getattr(x, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def check_table(model: Any, meaning: str) -> None:
    """Raise unless the estimator's ``table`` is ``meaning``, so that it accepts a plain table as first argument."""
    if model.table is not None and model.table != meaning:
        raise unknown_name(f"table of {type(model).__name__}", str(model.table), [meaning])
    if model.table is None:
        raise UsageError(
            f"The first argument of {type(model).__name__} must be a Hypergraph, a NodeDataset or a NodeSamples. A "
            "plain table could hold features of the nodes or the incidence matrix. For an incidence matrix use "
            f"Hypergraph.from_scipy(matrix). For a table of {meaning} alone set table='{meaning}'."
        )


def as_tensor(x: object) -> Tensor:
    """Convert features to a tensor, dense or sparse CSR."""
    if isinstance(x, Tensor):
        return x
    if sp.issparse(x):
        return sparse_features(sp.csr_array(x, dtype=np.float32))
    array = np.asarray(x)
    dtype = np.float64 if array.dtype == np.float64 else np.float32  # 64 bits are scaled before they are rounded
    table: npt.NDArray[Any] = np.require(array, dtype, "W")  # PyTorch has no read-only tensors
    if table.ndim != 2:
        raise DataError(f"Features must be a table with a row per node. Got shape {table.shape}.")
    return torch.from_numpy(table)
