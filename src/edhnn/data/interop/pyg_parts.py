"""The parts of a PyG data object: index, counts, features, labels."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import Task, sparse_features
from edhnn.data.labels import Labels
from edhnn.data.records import Mark
from edhnn.errors import DataError

_MASKS = ("train_mask", "val_mask", "test_mask")


def index_from(found: dict[str, Any], kind: str) -> tuple[Tensor, str, list[str]]:
    """The incidence pairs, taken out of ``found``; the prefix of what belongs to hyperedges; notes."""
    if "hyperedge_index" in found and "edge_index" in found:
        raise DataError(
            "The data object must hold one hypergraph. It has 'hyperedge_index' and 'edge_index'.",
            remedy="Remove the one that is not meant, with what belongs to it.",
        )
    prefix = "hyperedge_" if "hyperedge_index" in found else "edge_"
    index = found.pop(f"{prefix}index", None)
    if not isinstance(index, Tensor):
        raise DataError("The data object must have 'hyperedge_index' or 'edge_index'. It has neither, as a tensor.")
    if index.dim() != 2 or index.shape[0] != 2 or index.is_floating_point() or index.dtype == torch.bool:
        raise DataError(f"'{prefix}index' must be integers of shape [2, I]. Got {index.dtype}, {list(index.shape)}.")
    guessed = prefix == "edge_" and kind != "HyperGraphData"
    notes = ["'edge_index' was read as pairs of node (row 0) and hyperedge (row 1)"] if guessed else []
    return index.as_subclass(Tensor), prefix, notes


def counts(found: dict[str, Any], index: Tensor, prefix: str) -> tuple[int, int]:
    """Numbers of nodes and hyperedges: as stored (then taken out of ``found``), else by rows, else by the index."""
    seen = [int(row.max()) + 1 if len(row) else 0 for row in index]
    num_nodes, *num_edges = (found.pop(name, None) for name in ("num_nodes", "num_hyperedges", "num_edges"))
    if num_nodes is None:
        y = found.get("y")
        rows = [found[name].shape[0] for name in ("x", "pos", *_MASKS) if isinstance(found.get(name), Tensor)]
        rows += [y.shape[0]] if isinstance(y, Tensor) and y.dim() and y.shape[0] >= seen[0] else []
        rows += [len(found["node_id"])] if "node_id" in found else []
        num_nodes = next(iter(rows), seen[0])
    stored = next((count for count in num_edges if count is not None), None)
    if stored is None:
        rows = [len(found[f"{prefix}{name}"]) for name in ("weight", "attr", "id") if f"{prefix}{name}" in found]
        stored = next(iter(rows), seen[1])
    return int(num_nodes), int(stored)


def features_from(x: Any) -> Tensor | None:
    """Node features as a `NodeDataset` takes them."""
    if x is None:
        return None
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise DataError(
            f"'x' must be a floating-point tensor. Got {kind}.", remedy="Convert it: data.x = data.x.float()."
        )
    if x.layout != torch.sparse_coo:
        return x
    pairs = x.detach().coalesce().cpu()
    matrix = sp.coo_array((pairs.values().to(torch.float64).numpy(), pairs.indices().numpy()), shape=tuple(x.shape))
    return sparse_features(matrix, x.dtype).to(x.device)


def labels_from(y: Any, num_nodes: int, mark: Mark | None) -> Labels | None:
    """Node labels: what they are follows from their type; the mark decides where that leaves a choice."""
    if y is None:
        return None
    if not isinstance(y, Tensor) or y.dim() not in (1, 2) or y.shape[0] != num_nodes:
        shape = list(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise DataError(
            f"'y' must have a row per node, {num_nodes}. Got {shape}.",
            remedy="A label of the whole hypergraph has no place in a node dataset: give it another name.",
        )
    whole = not y.is_floating_point()
    if y.dim() == 2 and y.shape[1] == 1 and whole:
        y = y[:, 0]
    task: Task
    if y.dim() == 1:
        task = "classification" if whole else "regression"
        y = y.to(torch.int64) if whole else y
    else:
        binary = bool(((y == 0) | (y == 1) | y.isnan()).all())
        said_real = mark is not None and mark.task == "regression"
        if whole and not binary:
            raise DataError("A matrix 'y' of integers must hold 0 and 1 only, for multi-label.")
        task = "multilabel" if binary and not said_real else "regression"
        y = as_float(y)
    return Labels(y, task, mark.class_names if mark is not None and mark.task == task else None)


def as_float(values: Any) -> Tensor:
    """Numbers as floating point, which they may be already."""
    tensor = torch.as_tensor(values)
    return tensor if tensor.is_floating_point() else tensor.to(torch.float64)
