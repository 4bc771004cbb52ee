"""What can be odd about the features of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, features_to_scipy
from edhnn.data.doctor.finding import EXAMPLES, Finding, counted, first_ids
from edhnn.typing import IntArray

_ENTRIES_PER_BLOCK = 2**24


def check_features(dataset: NodeDataset) -> Iterator[Finding]:
    """Findings about absent, broken and empty features."""
    if dataset.x is None or not dataset.num_features:
        yield Finding(
            severity="note",
            code="no-features",
            message="Nodes have no features.",
            remedy="Give them some, or have some made: degrees, or noise around the class for experiments.",
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
            remedy="Fill or drop them: one such entry turns every prediction into NaN.",
            count=len(scan.broken_rows),
            examples=first_ids(dataset.node_ids, nodes),
        )
    if len(scan.constant_columns) and len(dataset.x) > 1:
        yield Finding(
            severity="note",
            code="constant-features",
            message=f"{counted(len(scan.constant_columns), 'feature is', 'features are')} the same for every node: "
            f"{_shown_columns(dataset, scan.constant_columns)}.",
            remedy="Drop them; they tell no node from another.",
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
