"""Convert data frames of pandas and polars, and Arrow tables, to and from a `NodeDataset`, always through Arrow.

Three frames hold a dataset. The incidence frame has a row per membership: a node column, a hyperedge column and an
optional weight. The optional node frame and hyperedge frame define the order of nodes and hyperedges and hold their
columns; only they can hold isolated nodes and empty hyperedges. A frame column has one type, so ids that mix text and
integers raise an error, as do sparse features, which would fill the memory with zeros. Provenance is not written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from edhnn.data.columns import Labels, label_fields, sort_columns
from edhnn.data.dataset import UNLABELLED, NodeDataset, Provenance, Task, as_numpy, merged_note
from edhnn.data.ids import IdColumn, Ids, encode_ids
from edhnn.data.manifest import LABEL, WEIGHT, label_values, reserved_name
from edhnn.data.values import Column, exact_array
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.interop.records import column_request, import_library, wrong_type
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

    Ids are text or integers. With a node frame, nodes are numbered in its order, and it must contain every node of
    ``frame``; without one, integers are numbered in ascending order and text by first mention. The same holds for
    hyperedges. Columns that are neither labels nor features are attributes. A categorical label column (pandas
    Categorical, polars Enum) keeps its order of classes. Features and real labels become float32.

    Args:
        frame: The incidence frame, a row per membership. Columns that are not named here are left out, and a note in
            the provenance lists them.
        node: The node column, in ``frame`` and in ``nodes``.
        edge: The hyperedge column, in ``frame`` and in ``hyperedges``.
        weight: The column of ``frame`` with the weights of memberships.
        nodes: The node frame, a row per node.
        hyperedges: The hyperedge frame, a row per hyperedge.
        edge_weight: The column of ``hyperedges`` with their weights.
        label: The column of ``nodes`` with the label, empty where unknown; several for multi-label or several targets.
        features: The feature column of ``nodes``, or several.
        task: The kind of labels; by default inferred from them.
        name: Name of the dataset.

    Raises:
        UsageError: if a frame has another type, or a column does not exist.
        DataError: if an id is missing, real-valued, duplicate in its own frame, or not in it.

    Example:
        >>> import pandas
        >>> from edhnn.interop import from_frame
        >>> baskets = pandas.DataFrame({"item": ["milk", "bread", "milk"], "basket": [7, 7, 9]})
        >>> from_frame(baskets, node="item", edge="basket")
        NodeDataset('frame', nodes=2, hyperedges=2, features=0, task=None)
    """
    if nodes is None and (label is not None or features):
        raise UsageError("`label=` and `features=` name columns of the node frame. Pass it with `nodes=`.")
    if hyperedges is None and edge_weight is not None:
        raise UsageError("`edge_weight=` names a column of the hyperedge frame. Pass it with `hyperedges=`.")
    used = [node, edge] if weight is None else [node, edge, weight]
    if len(set(used)) < len(used):
        raise UsageError(f"Node, hyperedge and weight must be different columns. Got {', '.join(used)}.")
    request = column_request(label, features, task)
    incidences = _arrow_table(frame, used, "incidence frame")
    node_table, node_ids, node_index = _number_ids("node", incidences, nodes, node)
    edge_table, edge_ids, edge_index = _number_ids("hyperedge", incidences, hyperedges, edge)
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
    request = request if labels is None else replace(request, label=())
    result = sort_columns(columns, request, len(node_ids), lambda row: f"row {row} (node {node_ids[row]!r})")
    unused = [column for column in _column_names(frame) if column not in used]
    notes = [f"columns of the incidence frame left out: {', '.join(unused)}"] if unused else []
    return NodeDataset(
        name=name,
        hypergraph=hypergraph,
        x=result.x,
        **label_fields(labels or result.labels),
        feature_names=result.feature_names,
        node_ids=node_ids,
        edge_ids=edge_ids,
        node_attributes=result.attributes,
        edge_attributes={column: edge_table[column].to_pylist() for column in edge_table.column_names},
        provenance=Provenance(
            _library_of(frame), "frame", (*notes, *merged_note(hypergraph), *result.notes), result.details
        ),
    )


def to_pandas(dataset: NodeDataset) -> HypergraphFrames:
    """Return a dataset as pandas data frames.

    Classes are a Categorical with every class in its order, including unused ones. Integer columns with missing values
    are object columns, so that integers stay integers.

    Raises:
        DataError: if ids or an attribute mix types, features are sparse, or two columns would have the same name.

    Example:
        >>> from edhnn import Hypergraph, NodeDataset
        >>> from edhnn.interop import to_pandas
        >>> frames = to_pandas(NodeDataset(name="pair", hypergraph=Hypergraph.from_hyperedges([[0, 1]], num_nodes=3)))
        >>> frames.incidences["node"].tolist(), len(frames.nodes)
        ([0, 1], 3)
    """
    pandas = import_library("pandas", "to_pandas")
    frames = _frames(dataset, lambda table: table.to_pandas(integer_object_nulls=True))
    if dataset.task == "classification":
        frames.nodes[LABEL] = pandas.Categorical(label_values(dataset), categories=list(_class_names(dataset)))
    return frames


def to_polars(dataset: NodeDataset) -> HypergraphFrames:
    """Return a dataset as polars data frames.

    Classes named by text are an Enum with every class in its order. Classes that are integers are an integer column,
    which cannot hold a class that no node has, so such a dataset raises an error.

    Raises:
        DataError: as `to_pandas`, and if integer classes are not exactly those that nodes have, in ascending order.

    Example:
        >>> from edhnn import Hypergraph, NodeDataset
        >>> from edhnn.interop import to_polars
        >>> frames = to_polars(NodeDataset(name="pair", hypergraph=Hypergraph.from_hyperedges([[0, 1]], num_nodes=3)))
        >>> frames.incidences["node"].to_list(), len(frames.nodes)
        ([0, 1], 3)
    """
    polars = import_library("polars", "to_polars")
    frames = _frames(dataset, polars.from_arrow)
    if dataset.task == "classification":
        names, values = list(_class_names(dataset)), label_values(dataset) or []
        if all(isinstance(name, str) for name in names):
            classes = polars.Series(LABEL, values, dtype=polars.Enum(names))
            return replace(frames, nodes=frames.nodes.with_columns(classes))
        if sorted({value for value in values if value is not None}) != names:
            raise DataError(
                "A polars column of integer classes can hold only classes that some node has, in ascending order. "
                f"Got the classes {', '.join(map(str, names))}.",
                remedy="Make the class names text.",
            )
    return frames


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
        task: The kind of labels.
    """

    name: str
    incidences: Any
    nodes: Any
    hyperedges: Any
    label: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    task: Task | None = None

    def to_dataset(self) -> NodeDataset:
        """Return the frames as a dataset; features and real labels are float32."""
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
    """Return the library of a frame by the name of its class's module, so that nothing is imported."""
    kind = type(frame)
    library = kind.__module__.partition(".")[0]
    if (library, kind.__name__) == ("polars", "LazyFrame"):
        raise wrong_type("from_frame", "a polars DataFrame", frame, " Collect it first: frame.collect().")
    if (library, kind.__name__) not in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        raise wrong_type("from_frame", "a pandas or polars DataFrame or an Arrow table", frame)
    return library


def _column_names(frame: Any) -> list[str]:
    return [str(name) for name in (frame.column_names if _library_of(frame) == "pyarrow" else frame.columns)]


def _arrow_table(frame: Any, columns: Collection[str], what: str, *, whole: bool = False) -> pa.Table:
    """Return the given columns of a frame, or the whole frame, as an Arrow table.

    Args:
        frame: A pandas or polars data frame, or an Arrow table.
        columns: The columns that must exist.
        what: The name of the frame, for errors.
        whole: Return all columns.
    """
    library, names = _library_of(frame), _column_names(frame)
    if len(set(names)) < len(names):
        raise DataError(f"The columns of the {what} must have distinct names. Got {', '.join(names)}.")
    for name in columns:
        if name not in names:
            raise unknown_name(f"column of the {what}", name, names)
    selected = names if whole else list(columns)
    try:
        if library == "pandas":
            numbers = [names.index(name) for name in selected]  # by number, as pandas columns may have other labels
            return pa.Table.from_pandas(frame.iloc[:, numbers], preserve_index=False)
        if library == "polars":
            wrong = next((name for name in selected if str(frame.schema[name]) == "Object"), None)
            if wrong is not None:
                raise DataError(f"Column '{wrong}' of the {what} must be of one type. It holds Python objects.")
            return _decode_categoricals(frame.select(selected).to_arrow())
        return frame.select(selected)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise DataError(
            f"Every column of the {what} must be of one type. {'; '.join(map(str, error.args))}.",
            remedy="Convert the column, for example with .astype(str), or leave it out.",
        ) from error


def _decode_categoricals(table: pa.Table) -> pa.Table:
    """Convert polars Categoricals, whose categories have no meaningful order, to text; an Enum keeps its order."""
    for number, kind in enumerate(table.schema.types):
        if pa.types.is_dictionary(kind) and not kind.ordered:
            table = table.set_column(number, table.column_names[number], table[number].cast(kind.value_type))
    return table


def _number_ids(kind: str, incidences: pa.Table, frame: Any, column: str) -> tuple[pa.Table, Ids, IndexArray]:
    """Return the node or hyperedge table without its ids, the ids, and their numbers in the incidence frame."""
    mentioned = _id_column(incidences, column, "incidence frame")
    if frame is None:
        ids, _, numbers = encode_ids(IdColumn(), mentioned)
        return pa.table({}), ids, numbers
    table = _arrow_table(frame, [column], f"{kind} frame", whole=True)
    ids, listed, numbers = encode_ids(_id_column(table, column, f"{kind} frame"), mentioned)
    duplicates = np.flatnonzero(listed != np.arange(len(listed)))
    if len(duplicates):
        row = int(duplicates[0])
        problem = f"Every {kind} must have one row in the {kind} frame. {ids[int(listed[row])]!r} has several."
        raise DataError(problem, where=f"row {row}", remedy="Remove the duplicate row.")
    unknown = np.flatnonzero(numbers >= len(listed))
    if len(unknown):
        row = int(unknown[0])
        raise DataError(
            f"Every {kind} of the incidence frame must be in the {kind} frame. {ids[int(numbers[row])]!r} is not.",
            where=f"row {row}",
            remedy="Add it there. An integer and a text are never the same id.",
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
            remedy="pandas makes integers real if some are missing: fill or drop those, then .astype('int64').",
        )
    if column.null_count:
        row = int(np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False))[0])
        raise DataError(
            f"Every row of the {what} must have an id in column '{name}'. It is missing.",
            where=f"row {row}",
            remedy="Fill it, or drop the row.",
        )
    if pa.types.is_integer(column.type):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"The ids in column '{name}' of the {what} must fit 64 bits. Cause: {error}.") from error
    elif any(test(column.type) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        column = column.cast(pa.large_string())
    elif len(column):
        raise DataError(
            f"The ids in column '{name}' of the {what} must be text or integers. Got {column.type}.",
            remedy="Convert the column to text first.",
        )
    return IdColumn(column.chunks)


def _number_column(table: pa.Table, name: str, what: str) -> FloatArray:
    """Return a column of finite numbers, 0 or more, none missing."""
    if name not in table.column_names:
        raise unknown_name(f"column of the {what}", name, table.column_names)
    column: pa.ChunkedArray = table[name]
    if len(column) and not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise DataError(f"Column '{name}' of the {what} must hold numbers. Got {column.type}.")
    try:
        numbers: FloatArray = column.cast(pa.float64()).to_numpy().astype(np.float64)
    except pa.ArrowInvalid as error:
        problem = f"Column '{name}' of the {what} must hold numbers that fit a 64-bit float. Cause: {error}."
        raise DataError(problem) from error
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        row = int(wrong[0])
        value = "nothing" if np.isnan(numbers[row]) else str(numbers[row])
        raise DataError(
            f"Every '{name}' must be a finite number, 0 or more. Got {value}.", where=f"row {row} of the {what}"
        )
    return numbers


def _class_column(columns: dict[str, Column], name: str) -> Labels | None:
    """Remove a categorical label column from ``columns``: its categories are the classes, in their order."""
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


def _frames(dataset: NodeDataset, convert: Callable[[pa.Table], Any]) -> HypergraphFrames:
    """Write a dataset to Arrow tables and convert each to a frame."""
    hypergraph = dataset.hypergraph
    if WEIGHT in dataset.edge_attributes:
        raise reserved_name("hyperedge", WEIGHT)
    node_ids, edge_ids = _id_array("node", dataset.node_ids), _id_array("hyperedge", dataset.edge_ids)
    pairs = {
        NODE: node_ids.take(pa.array(hypergraph.node_index.cpu().numpy())),
        EDGE: edge_ids.take(pa.array(hypergraph.edge_index.cpu().numpy())),
    }
    if hypergraph.incidence_weight is not None:
        pairs[WEIGHT] = pa.array(hypergraph.incidence_weight.cpu().numpy())
    labels, features = _label_columns(dataset), _feature_columns(dataset)
    of_nodes, of_edges = (
        {name: _array(kind, name, list(column)) for name, column in attributes.items()}
        for kind, attributes in (("node", dataset.node_attributes), ("hyperedge", dataset.edge_attributes))
    )
    weight = {} if hypergraph.edge_weight is None else {WEIGHT: pa.array(hypergraph.edge_weight.cpu().numpy())}
    return HypergraphFrames(
        name=dataset.name,
        incidences=convert(pa.table(pairs)),
        nodes=convert(_table("node", {NODE: node_ids}, labels, features, of_nodes)),
        hyperedges=convert(_table("hyperedge", {EDGE: edge_ids}, weight, of_edges)),
        label=tuple(labels),
        features=tuple(_feature_names(dataset)),
        task=dataset.task,
    )


def _table(kind: str, *parts: dict[str, pa.Array]) -> pa.Table:
    names = [name for part in parts for name in part]
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(
            f"Columns of the {kind} frame must have distinct names. Two would be called '{twice}'.",
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
        problem = f"A frame column must have one type. The {kind} column '{name}' has several. Cause: {error}."
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
        str(names[number]) if names is not None else f"{LABEL}_{number}": pa.array(as_numpy(column.contiguous()))
        for number, column in enumerate(y.T)
    }


def _feature_columns(dataset: NodeDataset) -> dict[str, pa.Array]:
    x = dataset.x
    if x is None:
        return {}
    if x.layout == torch.sparse_csr:
        raise DataError(
            f"Frames can hold only dense columns. The {dataset.num_features} feature columns are sparse.",
            remedy="Pass dataclasses.replace(dataset, x=dataset.x.to_dense()), or a dataset without features.",
        )
    columns = (pa.array(column) for column in np.ascontiguousarray(as_numpy(x).T))
    return dict(zip(_feature_names(dataset), columns, strict=True))


def _feature_names(dataset: NodeDataset) -> Sequence[str]:
    return dataset.feature_names or [f"x{number}" for number in range(dataset.num_features)]
