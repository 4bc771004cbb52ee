"""A `NodeDataset` as data frames of pandas or polars.

Three frames hold a dataset: incidences, nodes, hyperedges. A frame column has one type, so ids that are partly text and
partly integers are refused, as are sparse features, which would fill the memory with zeros. Provenance stays behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
import torch

from edhnn.data.column_values import exact_array
from edhnn.data.dataset import NodeDataset, Task, as_numpy
from edhnn.data.ids import Ids
from edhnn.data.interop.frames import from_frame
from edhnn.data.interop.lazy import import_library
from edhnn.data.records import LABEL, WEIGHT, label_values
from edhnn.errors import DataError

NODE, EDGE = "node", "hyperedge"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HypergraphFrames:
    """A dataset as three data frames of one library.

    Attributes:
        name: The dataset's name.
        incidences: A row per membership: ``node``, ``hyperedge``, and ``weight`` if memberships have weights.
        nodes: A row per node, isolated ones included: ``node``, labels, features, attributes.
        hyperedges: A row per hyperedge, empty ones included: ``hyperedge``, ``weight`` if they have one, attributes.
        label: The label columns of ``nodes``: ``label`` for one, else a column per class or target.
        features: The feature columns of ``nodes``: their names, or ``x0``, ``x1``, ...
        task: What the labels are.
    """

    name: str
    incidences: Any
    nodes: Any
    hyperedges: Any
    label: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    task: Task | None = None

    def to_dataset(self) -> NodeDataset:
        """The dataset again; features and real labels are float32."""
        return from_frame(
            self.incidences,
            weight=WEIGHT if WEIGHT in self.incidences.columns else None,
            nodes=self.nodes,
            hyperedges=self.hyperedges,
            edge_weight=WEIGHT if WEIGHT in self.hyperedges.columns else None,
            label=None if not self.label else self.label[0] if self.label == (LABEL,) else self.label,
            features=self.features,
            task=self.task,
            name=self.name,
        )


def to_pandas(dataset: NodeDataset) -> HypergraphFrames:
    """A dataset as pandas data frames.

    Classes are a Categorical with every class in its order, also one that no node has. Integer columns with gaps are
    object columns, so that integers stay integers.

    Args:
        dataset: The dataset.

    Returns:
        The frames.

    Raises:
        DataError: if ids or an attribute mix types, features are sparse, or two columns would have one name.

    Example:
        >>> from edhnn import Hypergraph, NodeDataset
        >>> from edhnn.data.interop import to_pandas
        >>> frames = to_pandas(NodeDataset(name="pair", hypergraph=Hypergraph.from_hyperedges([[0, 1]], num_nodes=3)))
        >>> frames.incidences["node"].tolist(), len(frames.nodes)
        ([0, 1], 3)
    """
    pandas = import_library("pandas", "to_pandas")
    frames = [table.to_pandas(integer_object_nulls=True) for table in _tables(dataset)]
    if dataset.task == "classification":
        names = list(_class_names(dataset))
        frames[1][LABEL] = pandas.Categorical(label_values(dataset), categories=names)
    return _result(dataset, frames)


def to_polars(dataset: NodeDataset) -> HypergraphFrames:
    """A dataset as polars data frames.

    Classes named by text are an Enum with every class in its order. Classes that are integers are an integer column;
    it cannot tell of a class that no node has, so such a dataset is refused.

    Args:
        dataset: The dataset.

    Returns:
        The frames.

    Raises:
        DataError: as `to_pandas`, and if integer classes are not exactly those some node has, in ascending order.

    Example:
        >>> from edhnn import Hypergraph, NodeDataset
        >>> from edhnn.data.interop import to_polars
        >>> frames = to_polars(NodeDataset(name="pair", hypergraph=Hypergraph.from_hyperedges([[0, 1]], num_nodes=3)))
        >>> frames.incidences["node"].to_list(), len(frames.nodes)
        ([0, 1], 3)
    """
    polars = import_library("polars", "to_polars")
    frames = [polars.from_arrow(table) for table in _tables(dataset)]
    if dataset.task == "classification":
        names, values = list(_class_names(dataset)), label_values(dataset) or []
        if all(isinstance(name, str) for name in names):
            frames[1] = frames[1].with_columns(polars.Series(LABEL, values, dtype=polars.Enum(names)))
        elif sorted({value for value in values if value is not None}) != names:
            raise DataError(
                "A polars column of integer classes holds only classes that some node has, in ascending order. "
                f"Got the classes {', '.join(map(str, names))}.",
                remedy="Make the class names text.",
            )
    return _result(dataset, frames)


def _result(dataset: NodeDataset, frames: Sequence[Any]) -> HypergraphFrames:
    return HypergraphFrames(
        name=dataset.name,
        incidences=frames[0],
        nodes=frames[1],
        hyperedges=frames[2],
        label=tuple(_label_columns(dataset)),
        features=tuple(_feature_names(dataset)),
        task=dataset.task,
    )


def _tables(dataset: NodeDataset) -> tuple[pa.Table, pa.Table, pa.Table]:
    hypergraph = dataset.hypergraph
    if WEIGHT in dataset.edge_attributes:
        raise DataError("In a hyperedge frame 'weight' is the weight.", remedy="Rename the hyperedge attribute first.")
    node_ids, edge_ids = _id_array("node", dataset.node_ids), _id_array("hyperedge", dataset.edge_ids)
    pairs = {
        NODE: node_ids.take(pa.array(hypergraph.node_index.cpu().numpy())),
        EDGE: edge_ids.take(pa.array(hypergraph.edge_index.cpu().numpy())),
    }
    if hypergraph.incidence_weight is not None:
        pairs[WEIGHT] = pa.array(hypergraph.incidence_weight.cpu().numpy())
    labels, features = _label_columns(dataset), _feature_columns(dataset)
    attributes = {name: _array("node", name, list(column)) for name, column in dataset.node_attributes.items()}
    about_edges = {name: _array("hyperedge", name, list(column)) for name, column in dataset.edge_attributes.items()}
    weight = {} if hypergraph.edge_weight is None else {WEIGHT: pa.array(hypergraph.edge_weight.cpu().numpy())}
    nodes = _table("node", {NODE: node_ids}, labels, features, attributes)
    return pa.table(pairs), nodes, _table("hyperedge", {EDGE: edge_ids}, weight, about_edges)


def _table(kind: str, *parts: dict[str, pa.Array]) -> pa.Table:
    names = [name for part in parts for name in part]
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(
            f"Columns of the {kind} frame must have distinct names. Two would be '{twice}'.",
            remedy="Rename the attribute or feature first.",
        )
    return pa.table({name: column for part in parts for name, column in part.items()})


def _id_array(kind: str, ids: Ids) -> pa.Array:
    if isinstance(ids.values, range | np.ndarray):
        return pa.array(np.asarray(ids.values, dtype=np.int64))
    return _array(kind, "id", ids.to_list(), "Make the ids all text or all integers of 64 bits.")


def _array(kind: str, name: str, values: list[Any], remedy: str = "Convert or remove the attribute.") -> pa.Array:
    try:
        return exact_array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        problem = f"A frame column has one type. The {kind} column '{name}' has several: {error}."
        raise DataError(problem, remedy=remedy) from error


def _class_names(dataset: NodeDataset) -> tuple[Any, ...]:
    names = dataset.class_names
    if names is None:
        return tuple(range(dataset.num_classes or 0))
    if len({isinstance(name, str) for name in names}) > 1:
        raise DataError("Class names must be all text or all integers.", remedy="Rename the classes.")
    return names


def _label_columns(dataset: NodeDataset) -> dict[str, pa.Array]:
    y = dataset.y
    if y is None:
        return {}
    if dataset.task == "classification":
        kind = pa.string() if any(isinstance(name, str) for name in _class_names(dataset)) else pa.int64()
        return {LABEL: pa.array(label_values(dataset), type=kind)}
    if y.dim() == 1:
        return {LABEL: pa.array(as_numpy(y))}
    names = dataset.class_names if dataset.task == "multilabel" else None
    return {
        str(names[place]) if names is not None else f"{LABEL}_{place}": pa.array(as_numpy(column.contiguous()))
        for place, column in enumerate(y.T)
    }


def _feature_columns(dataset: NodeDataset) -> dict[str, pa.Array]:
    x = dataset.x
    if x is None:
        return {}
    if x.layout == torch.sparse_csr:
        raise DataError(
            f"Frames hold dense columns. The {dataset.num_features} feature columns are sparse.",
            remedy="Give dataclasses.replace(dataset, x=dataset.x.to_dense()), or one without features.",
        )
    columns = (pa.array(column) for column in np.ascontiguousarray(as_numpy(x).T))
    return dict(zip(_feature_names(dataset), columns, strict=True))


def _feature_names(dataset: NodeDataset) -> Sequence[str]:
    return dataset.feature_names or [f"x{place}" for place in range(dataset.num_features)]
