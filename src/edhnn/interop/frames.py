"""Data frames of pandas and polars, and Arrow tables, to and from a `NodeDataset`. All go through Arrow.

Three frames hold a dataset. The incidence frame has a row per membership: a node column, a hyperedge column, perhaps a
weight. The node frame and the hyperedge frame number the nodes and hyperedges, hold their columns, and are the only
place for isolated nodes and empty hyperedges; reading does without them. A frame column has one type, so ids that are
partly text and partly integers are refused, as are sparse features, which would fill the memory with zeros. Provenance
is not written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from edhnn.data.columns import Column, ColumnRequest, Labels, exact_array, label_fields, names_in, sort_columns
from edhnn.data.dataset import UNLABELLED, NodeDataset, Provenance, Task, as_numpy, merged_note
from edhnn.data.ids import IdColumn, Ids, encode_ids
from edhnn.data.manifest import LABEL, WEIGHT, label_values
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.interop.records import import_library, wrong_type
from edhnn.typing import FloatArray, IndexArray

NODE, EDGE = "node", "hyperedge"


def from_frame(
    frame: Any,
    *,
    node: str = "node",
    edge: str = "hyperedge",
    weight: str | None = None,
    nodes: Any = None,
    hyperedges: Any = None,
    edge_weight: str | None = None,
    label: str | Sequence[str] | None = None,
    features: str | Sequence[str] = (),
    task: Task | None = None,
    name: str = "frame",
) -> NodeDataset:
    """Make a dataset from data frames of pandas, polars or Arrow.

    Ids are text or integers. With a node frame, nodes are numbered in its order, and every node of ``frame`` must be in
    it; without one, integers in ascending order and text by first mention. The same holds for hyperedges. Columns that
    are neither labels nor features are attributes. A categorical label column (pandas Categorical, polars Enum) keeps
    its order of classes. Features and real labels become float32.

    Args:
        frame: The incidence frame, a row per membership. Columns that are not named here are left out, and a note in
            the provenance says so.
        node: The node column, in ``frame`` and in ``nodes``.
        edge: The hyperedge column, in ``frame`` and in ``hyperedges``.
        weight: The column of ``frame`` with the weights of memberships.
        nodes: The node frame, a row per node.
        hyperedges: The hyperedge frame, a row per hyperedge.
        edge_weight: The column of ``hyperedges`` with their weights.
        label: The column of ``nodes`` with the label, empty where unknown; several for multi-label or several targets.
        features: The column of ``nodes`` that is the feature, or several.
        task: What the labels are; by default inferred from them.
        name: Name of the dataset.

    Returns:
        The dataset.

    Raises:
        UsageError: if a frame is of another library, or a column is not there.
        DataError: if an id is missing, real-valued, mentioned twice where it is defined, or not defined at all.

    Example:
        >>> import pandas
        >>> from edhnn.interop import from_frame
        >>> baskets = pandas.DataFrame({"item": ["milk", "bread", "milk"], "basket": [7, 7, 9]})
        >>> from_frame(baskets, node="item", edge="basket")
        NodeDataset('frame', nodes=2, hyperedges=2, features=0, task=None)
    """
    if nodes is None and (label is not None or features):
        raise UsageError("'label' and 'features' are columns of the node frame: give it as 'nodes'.")
    if hyperedges is None and edge_weight is not None:
        raise UsageError("'edge_weight' is a column of the hyperedge frame: give it as 'hyperedges'.")
    wanted = [node, edge] if weight is None else [node, edge, weight]
    if len(set(wanted)) < len(wanted):
        raise UsageError(f"Node, hyperedge and weight must be columns of their own. Got {', '.join(wanted)}.")
    asked = ColumnRequest(label=() if label is None else names_in(label), features=names_in(features), task=task)
    incidences = _arrow_table(frame, wanted, "incidence frame")
    node_table, node_ids, node_index = _numbered("node", incidences, nodes, node)
    edge_table, edge_ids, edge_index = _numbered("hyperedge", incidences, hyperedges, edge)
    weights = None if weight is None else torch.from_numpy(_number_column(incidences, weight, "incidence frame"))
    edge_weights = None
    if edge_weight is not None:
        edge_weights = torch.from_numpy(_number_column(edge_table, edge_weight, "hyperedge frame"))
        edge_table = edge_table.drop_columns([edge_weight])
    hypergraph = Hypergraph(
        torch.from_numpy(node_index), torch.from_numpy(edge_index), len(node_ids), len(edge_ids), edge_weights, weights
    )
    columns = {column: node_table[column] for column in node_table.column_names}
    labels = _class_column(columns, label) if isinstance(label, str) and task in (None, "classification") else None
    asked = asked if labels is None else replace(asked, label=())
    found = sort_columns(columns, asked, len(node_ids), lambda row: f"row {row} (node {node_ids[row]!r})")
    labels = labels or found.labels
    unused = [column for column in _column_names(frame) if column not in wanted]
    notes = [f"columns of the incidence frame left out: {', '.join(unused)}"] if unused else []
    notes += merged_note(hypergraph)
    return NodeDataset(
        name=name,
        hypergraph=hypergraph,
        x=found.x,
        **label_fields(labels),
        feature_names=found.feature_names,
        node_ids=node_ids,
        edge_ids=edge_ids,
        node_attributes=found.attributes,
        edge_attributes={column: edge_table[column].to_pylist() for column in edge_table.column_names},
        provenance=Provenance(_library_of(frame), "frame", (*notes, *found.notes)),
    )


def to_pandas(dataset: NodeDataset) -> HypergraphFrames:
    """Return a dataset as pandas data frames.

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
        >>> from edhnn.interop import to_pandas
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
    """Return a dataset as polars data frames.

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
        >>> from edhnn.interop import to_polars
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
        """Return the dataset again; features and real labels are float32."""
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


def _library_of(frame: Any) -> str:
    """Return the library of a frame, by the name of its class's module: nothing is imported to find out."""
    kind = type(frame)
    library = kind.__module__.partition(".")[0]
    if (library, kind.__name__) == ("polars", "LazyFrame"):
        raise wrong_type("from_frame", "a polars DataFrame", frame, " Collect it first: frame.collect().")
    if (library, kind.__name__) not in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        raise wrong_type("from_frame", "a pandas or polars DataFrame or an Arrow table", frame)
    return library


def _column_names(frame: Any) -> list[str]:
    """Return the names of a frame's columns."""
    return [str(name) for name in (frame.column_names if _library_of(frame) == "pyarrow" else frame.columns)]


def _arrow_table(frame: Any, columns: Sequence[str] | None, what: str, needed: Collection[str] = ()) -> pa.Table:
    """Return a frame, or some of its columns, as an Arrow table.

    Args:
        frame: A pandas or polars data frame, or an Arrow table.
        columns: The columns to take; ``None`` for all.
        what: What the frame is, for errors.
        needed: Columns that must be there if all are taken.

    Returns:
        The table.
    """
    library, names = _library_of(frame), _column_names(frame)
    if len(set(names)) < len(names):
        raise DataError(f"The columns of the {what} must have distinct names. Got {', '.join(names)}.")
    for name in (*(columns or ()), *needed):
        if name not in names:
            raise unknown_name(f"column of the {what}", name, names)
    try:
        if library == "pandas":
            places = [names.index(name) for name in (names if columns is None else columns)]  # labels may be numbers
            return pa.Table.from_pandas(frame.iloc[:, places], preserve_index=False)
        if library == "polars":
            _refuse_objects(frame, names if columns is None else columns, what)
            return _plain_categoricals((frame if columns is None else frame.select(columns)).to_arrow())
        return frame if columns is None else frame.select(list(columns))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise DataError(
            f"Every column of the {what} must be of one type. {'; '.join(map(str, error.args))}.",
            remedy="Convert the column, for example with .astype(str), or leave it out.",
        ) from error


def _refuse_objects(frame: Any, columns: Sequence[str], what: str) -> None:
    schema: Mapping[str, object] = frame.schema
    wrong = next((name for name in columns if str(schema[name]) == "Object"), None)
    if wrong is not None:
        raise DataError(f"Column '{wrong}' of the {what} must be of one type. It holds Python objects.")


def _plain_categoricals(table: pa.Table) -> pa.Table:
    """A polars Categorical is text held compactly, in no order that its owner chose; an Enum has one."""
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_dictionary(kind) and not kind.ordered:
            table = table.set_column(place, table.column_names[place], table[place].cast(kind.value_type))
    return table


def _numbered(kind: str, incidences: pa.Table, frame: Any, column: str) -> tuple[pa.Table, Ids, IndexArray]:
    """Return the table about nodes or hyperedges without its ids, the ids, and their numbers in the incidence frame."""
    mentioned = _id_column(incidences, column, "incidence frame")
    if frame is None:
        ids, _, numbers = encode_ids(IdColumn(), mentioned)
        return pa.table({}), ids, numbers
    table = _arrow_table(frame, None, f"{kind} frame", needed=(column,))
    defined = _id_column(table, column, f"{kind} frame")
    ids, own, numbers = encode_ids(defined, mentioned)
    again = np.flatnonzero(own != np.arange(len(own)))
    if len(again):
        row = int(again[0])
        problem = f"Every {kind} must have one row in the {kind} frame. {ids[int(own[row])]!r} has several."
        raise DataError(problem, where=f"row {row}", remedy="Remove the row that is not meant.")
    unknown = np.flatnonzero(numbers >= len(own))
    if len(unknown):
        row = int(unknown[0])
        raise DataError(
            f"Every {kind} of the incidence frame must be in the {kind} frame. {ids[int(numbers[row])]!r} is not.",
            where=f"row {row}",
            remedy="Add it there; an integer and a text are never the same id.",
        )
    return table.drop_columns([column]), ids, numbers


def _id_column(table: pa.Table, name: str, what: str) -> IdColumn:
    """Return a column of ids: int64 or text, none missing."""
    column: pa.ChunkedArray = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if len(column) and pa.types.is_floating(column.type):
        raise DataError(
            f"The ids in column '{name}' of the {what} must be text or integers. Got real numbers.",
            remedy="Where integers have gaps pandas makes them real: fill or drop the gaps, then .astype('int64').",
        )
    if column.null_count:
        row = int(np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False))[0])
        raise DataError(
            f"Every row of the {what} must have an id in column '{name}'. There is none.",
            where=f"row {row}",
            remedy="Fill it, or drop the row.",
        )
    if pa.types.is_integer(column.type):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"The ids in column '{name}' of the {what} must fit 64 bits: {error}.") from error
    elif any(test(column.type) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        column = column.cast(pa.large_string())
    elif len(column):
        raise DataError(
            f"The ids in column '{name}' of the {what} must be text or integers. Got {column.type}.",
            remedy="Convert the column to text first.",
        )
    ids = IdColumn()
    for chunk in column.chunks:
        ids.append_arrow(chunk)
    return ids


def _number_column(table: pa.Table, name: str, what: str) -> FloatArray:
    """Return a column of numbers, none missing."""
    if name not in table.column_names:
        raise unknown_name(f"column of the {what}", name, table.column_names)
    column: pa.ChunkedArray = table[name]
    if len(column) and not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise DataError(f"Column '{name}' of the {what} must hold numbers. Got {column.type}.")
    try:
        numbers: FloatArray = column.cast(pa.float64()).to_numpy().astype(np.float64)
    except pa.ArrowInvalid as error:
        raise DataError(f"Column '{name}' of the {what} must hold numbers that 64 bits can: {error}.") from error
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        row = int(wrong[0])
        given = "nothing" if np.isnan(numbers[row]) else str(numbers[row])
        raise DataError(
            f"Every '{name}' must be a finite number, 0 or more. Got {given}.", where=f"row {row} of the {what}"
        )
    return numbers


def _class_column(columns: dict[str, Column], name: str) -> Labels | None:
    """Take a categorical label column out of ``columns``: its categories are the classes, in their order."""
    column: Any = columns.get(name)
    if column is None or not pa.types.is_dictionary(column.type):
        return None
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) and whole.num_chunks else whole
    if not isinstance(whole, pa.DictionaryArray):
        return None
    names = whole.dictionary.to_pylist()
    if any(isinstance(each, bool) or not isinstance(each, str | int) for each in names):
        raise DataError(f"The categories of the label '{name}' must be text or integers. Got {whole.dictionary.type}.")
    del columns[name]
    y = pc.fill_null(whole.indices.cast(pa.int64()), UNLABELLED).to_numpy()
    return Labels(torch.from_numpy(y.copy()), "classification", tuple(names))


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
