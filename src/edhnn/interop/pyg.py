"""PyTorch Geometric: `Data` (and `HyperGraphData`) to and from a `NodeDataset`.

In PyG, ``hyperedge_index`` is ``[2, I]``: row 0 are the nodes and row 1 the hyperedges; ``hyperedge_weight`` and
``hyperedge_attr`` have a row per hyperedge. `HyperGraphData` calls the index ``edge_index`` and infers both counts from
the largest index, so it loses trailing isolated nodes and empty hyperedges, and fails without incidences. `to_pyg`
therefore returns a `Data` with ``hyperedge_index`` and explicit ``num_nodes`` and ``num_hyperedges``.

The returned `Data` is one hypergraph for one training run. Do not batch several: PyG then shifts both rows of an index
by the number of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.columns import Labels, label_fields
from edhnn.data.dataset import Attributes, NodeDataset, Task, sparse_features
from edhnn.data.ids import Ids
from edhnn.data.manifest import MANIFEST, Manifest, manifest_of, read_manifest, reserved_name
from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.interop.records import checked_ids, import_library, provenance, wrong_type
from edhnn.typing import JsonObject

_MASKS = ("train_mask", "val_mask", "test_mask")
_EDGE = "hyperedge_"
_NODE_ID, _EDGE_ID, _INCIDENCE_WEIGHT = "node_id", "hyperedge_id", "incidence_weight"
_RESERVED = ("x", "y", "num_nodes", "num_hyperedges", "num_edges", "name", _NODE_ID, _INCIDENCE_WEIGHT, MANIFEST)


def from_pyg(data: Any) -> NodeDataset:
    """Make a dataset from a PyG data object.

    ``x`` are features and ``y`` labels: integers are classes, a matrix of 0 and 1 is multi-label, other numbers are
    real values. ``hyperedge_weight`` is the weight; every other ``hyperedge_...`` is a hyperedge attribute without that
    prefix, so ``hyperedge_attr`` becomes ``attr``. Masks and everything else with an entry per node are node
    attributes; the rest is stored in ``provenance.details``. If the index is ``edge_index``, the prefix is ``edge_``.

    Args:
        data: A `torch_geometric.data.Data` or `HyperGraphData`. Counts are ``num_nodes`` and ``num_hyperedges`` (or
            ``num_edges``) if stored, else the rows of features and weights, else one more than the largest index.

    Raises:
        UsageError: if ``data`` is not a `Data`.
        DataError: if there is no index, a length does not fit, or there is a graph in addition to the hypergraph.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from edhnn.interop import from_pyg
        >>> data = Data(hyperedge_index=torch.tensor([[0, 1, 1], [0, 0, 1]]), num_nodes=3, y=torch.tensor([0, 1, 1]))
        >>> from_pyg(data)
        NodeDataset('torch_geometric', nodes=3, hyperedges=2, features=0, classes=2)
    """
    library = import_library("torch_geometric.data", "from_pyg")
    if not isinstance(data, library.Data):
        raise wrong_type("from_pyg", "a torch_geometric.data.Data", data)
    entries: dict[str, Any] = {key: value for key, value in data.to_dict().items() if value is not None}
    index, prefix, notes = _index_from(entries, type(data).__name__)
    num_nodes, num_edges = _counts(entries, index, prefix)
    manifest = read_manifest(entries.pop(MANIFEST, None), "torch_geometric")
    weight, incidence_weight = entries.pop(f"{prefix}weight", None), entries.pop(_INCIDENCE_WEIGHT, None)
    hypergraph = Hypergraph.from_incidence(
        index,
        num_nodes=num_nodes,
        num_edges=num_edges,
        edge_weight=None if weight is None else _as_float(weight),
        incidence_weight=None if incidence_weight is None else _as_float(incidence_weight),
    )
    x, labels = _features_from(entries.pop("x", None)), _labels_from(entries.pop("y", None), num_nodes, manifest)
    name = entries.pop("name", None)
    node_ids = _ids("node", entries.pop(_NODE_ID, None), num_nodes)
    edge_ids = _ids("hyperedge", entries.pop(_EDGE_ID, None), num_edges)
    nodes, edges, rest = _sort(entries, prefix, num_nodes, num_edges)
    feature_names = None
    if manifest is not None and x is not None and manifest.num_features == x.shape[1]:
        feature_names = manifest.feature_names
    return NodeDataset(
        name=name if isinstance(name, str) else "torch_geometric",
        hypergraph=hypergraph,
        x=x,
        **label_fields(labels),
        feature_names=feature_names,
        node_ids=node_ids,
        edge_ids=edge_ids,
        node_attributes=nodes,
        edge_attributes=edges,
        provenance=provenance("torch_geometric", hypergraph, notes, rest, {}, manifest),
    )


def to_pyg(dataset: NodeDataset) -> Any:
    """Make a PyG data object from a dataset; nothing is dropped.

    In addition to PyG's names: ids other than the numbers are ``node_id`` and ``hyperedge_id``; the weights of
    memberships are ``incidence_weight`` (in the order of ``hyperedge_index``); attributes of numbers are tensors and
    others lists; ``edhnn`` is a dictionary with class names, feature names and provenance.

    Returns:
        A `torch_geometric.data.Data`, its tensors shared with the dataset where possible, on the dataset's device.

    Raises:
        DataError: if an attribute has a name with another meaning in PyG.

    Example:
        >>> from edhnn import Hypergraph, NodeDataset
        >>> from edhnn.interop import to_pyg
        >>> hypergraph = Hypergraph.from_hyperedges([[0, 1], []], num_nodes=3)
        >>> to_pyg(NodeDataset(name="pair", hypergraph=hypergraph)).hyperedge_index.tolist()
        [[0, 1], [0, 0]]
    """
    library = import_library("torch_geometric.data", "to_pyg")
    hypergraph = dataset.hypergraph
    known = {
        "x": dataset.x,
        "y": dataset.y,
        f"{_EDGE}weight": hypergraph.edge_weight,
        _INCIDENCE_WEIGHT: hypergraph.incidence_weight,
        _NODE_ID: None if dataset.node_ids.are_numbers else _tensor_or_list(dataset.node_ids.to_list()),
        _EDGE_ID: None if dataset.edge_ids.are_numbers else _tensor_or_list(dataset.edge_ids.to_list()),
    }
    entries: dict[str, Any] = {
        f"{_EDGE}index": torch.stack([hypergraph.node_index, hypergraph.edge_index]),
        "num_nodes": hypergraph.num_nodes,
        "num_hyperedges": hypergraph.num_edges,
        "name": dataset.name,
        MANIFEST: manifest_of(dataset),
        **{key: value for key, value in known.items() if value is not None},
    }
    for name, column in dataset.node_attributes.items():
        if name in _RESERVED or name.startswith((_EDGE, "edge_", "_")):
            raise reserved_name("node", name)
        entries[name] = _tensor_or_list(column)
    for name, column in dataset.edge_attributes.items():
        if name in ("index", "weight", "id"):
            raise reserved_name("hyperedge", name)
        entries[f"{_EDGE}{name}"] = _tensor_or_list(column)
    moved = {k: v.to(hypergraph.device) if isinstance(v, Tensor) else v for k, v in entries.items()}
    return library.Data.from_dict(moved)


def _index_from(entries: dict[str, Any], kind: str) -> tuple[Tensor, str, list[str]]:
    """Remove the incidence pairs from ``entries``; return them, the prefix of hyperedge entries, and notes."""
    if "hyperedge_index" in entries and "edge_index" in entries:
        raise DataError(
            "The data object must hold one hypergraph. It has 'hyperedge_index' and 'edge_index'.",
            remedy="Remove one of them, with the entries that belong to it.",
        )
    prefix = "hyperedge_" if "hyperedge_index" in entries else "edge_"
    index = entries.pop(f"{prefix}index", None)
    if not isinstance(index, Tensor):
        raise DataError("The data object must have a tensor 'hyperedge_index' or 'edge_index'. It has neither.")
    if index.dim() != 2 or index.shape[0] != 2 or index.is_floating_point() or index.dtype == torch.bool:
        raise DataError(f"'{prefix}index' must be integers of shape [2, I]. Got {index.dtype}, {list(index.shape)}.")
    guessed = prefix == "edge_" and kind != "HyperGraphData"
    notes = ["'edge_index' was read as pairs of node (row 0) and hyperedge (row 1)"] if guessed else []
    return index.as_subclass(Tensor), prefix, notes


def _counts(entries: dict[str, Any], index: Tensor, prefix: str) -> tuple[int, int]:
    """Return the numbers of nodes and hyperedges: as stored (and removed), else by rows, else by the index."""
    least_nodes, least_edges = (int(row.max()) + 1 if len(row) else 0 for row in index)
    num_nodes, *num_edges = (entries.pop(name, None) for name in ("num_nodes", "num_hyperedges", "num_edges"))
    if num_nodes is None:
        y = entries.get("y")
        rows = [entries[name].shape[0] for name in ("x", "pos", *_MASKS) if isinstance(entries.get(name), Tensor)]
        rows += [y.shape[0]] if isinstance(y, Tensor) and y.dim() and y.shape[0] >= least_nodes else []
        rows += [len(entries[_NODE_ID])] if _NODE_ID in entries else []
        num_nodes = next(iter(rows), least_nodes)
    stored = next((count for count in num_edges if count is not None), None)
    if stored is None:
        rows = [len(entries[f"{prefix}{name}"]) for name in ("weight", "attr", "id") if f"{prefix}{name}" in entries]
        stored = next(iter(rows), least_edges)
    return int(num_nodes), int(stored)


def _features_from(x: Any) -> Tensor | None:
    """Return node features as a dense or sparse CSR tensor."""
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


def _labels_from(y: Any, num_nodes: int, manifest: Manifest | None) -> Labels | None:
    """Return node labels; their type decides the task, or the manifest where the type leaves a choice."""
    if y is None:
        return None
    if not isinstance(y, Tensor) or y.dim() not in (1, 2) or y.shape[0] != num_nodes:
        shape = list(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise DataError(
            f"'y' must have a row per node, {num_nodes}. Got {shape}.",
            remedy="A node dataset cannot hold a label of the whole hypergraph: give it another name.",
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
        if whole and not binary:
            raise DataError("A matrix 'y' of integers must hold 0 and 1 only, for multi-label.")
        regression = manifest is not None and manifest.task == "regression"
        task = "multilabel" if binary and not regression else "regression"
        y = _as_float(y)
    return Labels(y, task, manifest.class_names if manifest is not None and manifest.task == task else None)


def _as_float(values: Any) -> Tensor:
    """Return numbers as a floating-point tensor, without a copy if they are one already."""
    tensor = torch.as_tensor(values)
    return tensor if tensor.is_floating_point() else tensor.to(torch.float64)


def _ids(kind: str, values: Any, count: int) -> Ids:
    if values is None:
        return Ids(range(count))
    names = values.tolist() if isinstance(values, Tensor | np.ndarray) else values
    if not isinstance(names, list) or len(names) != count:
        raise DataError(f"'{kind}_id' must be a list or vector of {count} ids, one per {kind}.")
    return checked_ids(kind, names, "Make the ids integers or text.")


def _sort(
    entries: Mapping[str, Any], prefix: str, num_nodes: int, num_edges: int
) -> tuple[Attributes, Attributes, JsonObject]:
    """Divide the remaining entries into node attributes, hyperedge attributes and others."""
    nodes: dict[str, list[Any]] = {}
    edges: dict[str, list[Any]] = {}
    rest: JsonObject = {}
    for key, value in entries.items():
        plain = value.tolist() if isinstance(value, Tensor | np.ndarray) else value
        if key.startswith(prefix):
            if not isinstance(plain, list) or len(plain) != num_edges:
                shape = len(plain) if isinstance(plain, list) else type(plain).__name__
                raise DataError(f"'{key}' must have an entry per hyperedge, {num_edges}. Got {shape}.")
            edges[key.removeprefix(prefix)] = plain
        elif isinstance(plain, list) and len(plain) == num_nodes:
            nodes[key] = plain
        else:
            rest[key] = plain
    return nodes, edges, rest


def _tensor_or_list(column: Sequence[Any]) -> Tensor | list[Any]:
    """Return a tensor if that changes no value, else a list."""
    values = list(column)
    kinds: set[object] = {type(value) for value in values}
    if len(kinds) != 1:
        return values
    try:
        array = np.array(values)
    except (ValueError, OverflowError):  # lists of several lengths, integers beyond 64 bits
        return values
    if array.ndim > 1:
        kinds = _kinds_within(values)
    same = array.dtype.kind in "bif" and len(kinds) <= 1 and tuple not in kinds
    return torch.from_numpy(array) if same else values


def _kinds_within(values: Sequence[Any]) -> set[object]:
    """Return the types of the entries of nested lists or arrays; tuples are not opened, as no tensor restores them."""
    kinds: set[object] = set(map(type, values))
    if kinds == {list}:
        return set().union(*map(_kinds_within, values))
    return {value.dtype for value in values} if kinds in ({np.ndarray}, {Tensor}) else kinds
