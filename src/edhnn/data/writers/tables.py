"""Incidence tables written with their node and hyperedge tables beside them; see `edhnn.data.readers.tables`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from edhnn.data.atomic import atomic_file, compressed_by_name
from edhnn.data.column_values import exact_array
from edhnn.data.dataset import NodeDataset, as_numpy
from edhnn.data.ids import Ids
from edhnn.data.table_names import other_neighbours, table_kind, table_name, table_neighbour
from edhnn.data.writers.table_losses import feature_heads, is_sparse, label_heads, look_like_integers
from edhnn.errors import DataError
from edhnn.typing import IndexArray


def write_tables(dataset: NodeDataset, target: Path) -> list[Path]:
    """Write a dataset as CSV, TSV or Parquet tables.

    The node table is written when there is something to say about nodes, a node is isolated, or the memberships alone
    would number the nodes differently, or where another that ends otherwise would be read along; the hyperedge table
    likewise.

    Args:
        dataset: The dataset.
        target: The incidence table; the neighbours are named after it.

    Returns:
        The files written.

    Raises:
        DataError: if a table cannot hold the ids or an attribute, or two columns have one name; nothing is written.
    """
    hypergraph, text = dataset.hypergraph, table_kind(target) != "parquet"
    node, edge = (index.cpu().numpy() for index in (hypergraph.node_index, hypergraph.edge_index))
    incidences = {
        "node": _ids(dataset.node_ids, node, "node", text=text),
        "hyperedge": _ids(dataset.edge_ids, edge, "hyperedge", text=text),
    }
    if hypergraph.incidence_weight is not None:
        incidences["weight"] = pa.array(hypergraph.incidence_weight.cpu().numpy())
    tables = {target: pa.table(incidences)}
    nodes = _node_columns(dataset, label_heads(dataset, target), text=text)
    if (
        len(nodes) > 1
        or bool((hypergraph.degree == 0).any())
        or not _in_order(dataset.node_ids, node, text=text)
        or other_neighbours(target, table_name(target), "nodes").free
    ):
        tables[table_neighbour(target, "nodes")] = _table(nodes, text=text)
    edges = [("id", _ids(dataset.edge_ids, None, "hyperedge", text=text))]
    edges += [(name, _column(name, column)) for name, column in dataset.edge_attributes.items()]
    if hypergraph.edge_weight is not None:
        edges.append(("weight", pa.array(hypergraph.edge_weight.cpu().numpy())))
    if (
        len(edges) > 1
        or bool((hypergraph.edge_size == 0).any())
        or not _in_order(dataset.edge_ids, edge, text=text)
        or other_neighbours(target, table_name(target), "hyperedges").free
    ):
        tables[table_neighbour(target, "hyperedges")] = _table(edges, text=text)
    with ExitStack() as files:  # all of them or none
        for path, table in tables.items():
            _write(table, files.enter_context(atomic_file(path)), path)
    return list(tables)


def _ids(ids: Ids, numbers: IndexArray | None, kind: str, *, text: bool) -> pa.Array:
    try:
        if isinstance(ids.values, list):
            names = pa.array(ids.values)
            if text and "" in ids.values:
                raise DataError(
                    f"A text table holds no empty ids. A {kind} has one.", remedy="Write Parquet or HIF instead."
                )
            return names if numbers is None else names.take(pa.array(numbers))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(
            f"The {kind} ids in a table must be all text or all 64-bit integers. These are mixed.",
            remedy="Write HIF or a dataset folder instead.",
        ) from error
    values = np.asarray(ids.values, dtype=np.int64)
    return pa.array(values if numbers is None else values[numbers])


def _in_order(ids: Ids, mentions: IndexArray, *, text: bool) -> bool:
    """Whether a reader numbers the ids as they are: integers ascending, text by first mention."""
    names: list[Any] = ids.to_list() if not isinstance(ids.values, range) else []
    if all(isinstance(name, int) for name in names):
        return all(a < b for a, b in pairwise(names))
    first = np.unique(mentions, return_index=True)[1]
    return bool((np.diff(first) > 0).all()) and not (text and look_like_integers(ids))


def _node_columns(dataset: NodeDataset, heads: Sequence[str], *, text: bool) -> list[tuple[str, pa.Array]]:
    columns = [("id", _ids(dataset.node_ids, None, "node", text=text))]
    if dataset.y is not None:
        columns += zip(heads, _label_columns(dataset), strict=True)
    if dataset.x is not None:
        x = as_numpy(dataset.x.to_dense() if is_sparse(dataset) else dataset.x)
        columns += [(name, pa.array(x[:, number])) for number, name in enumerate(feature_heads(dataset))]
    return columns + [(name, _column(name, column)) for name, column in dataset.node_attributes.items()]


def _label_columns(dataset: NodeDataset) -> list[pa.Array]:
    assert dataset.y is not None
    if dataset.task == "classification":
        names: Any = dataset.class_names or range(dataset.num_classes or 0)
        return [_column("label", [None if number < 0 else names[number] for number in dataset.y.tolist()])]
    y = as_numpy(dataset.y)
    return [pa.array(column, from_pandas=True) for column in (y[:, None] if y.ndim == 1 else y).T]


def _table(columns: list[tuple[str, pa.Array]], *, text: bool) -> pa.Table:
    names = [name for name, _ in columns]
    for name, times in Counter(names).items():
        if times > 1:
            raise DataError(
                f"Column names must differ. '{name}' is the name of two of the ids, weights, labels, features and "
                "attributes."
            )
        if text and ("\n" in name or "\r" in name):
            raise DataError(f"Names of columns in a text table must stand on one line. Got {name!r}.")
    return pa.table([column for _, column in columns], names)


def _column(name: str, values: Any) -> pa.Array:
    try:
        return exact_array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(
            f"A table column must be of one kind. The attribute '{name}' is not: {error}.",
            remedy="Write HIF or a dataset folder instead.",
        ) from error


def write_table(table: pa.Table, target: Path) -> None:
    """Write one table, CSV, TSV or Parquet by its name, whole or not at all."""
    table_name(target)
    with atomic_file(target) as path:
        _write(table, path, target)


def _write(table: pa.Table, path: Path, target: Path) -> None:
    kind = table_kind(target)
    if kind == "parquet":
        pa.parquet.write_table(table, path)
        return
    options = pa.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",", quoting_style="needed")
    try:
        with compressed_by_name(path, target.name) as stream:
            pa.csv.write_csv(table, stream, options)
    except pa.ArrowException as error:
        raise DataError(
            f"A text table holds text and numbers only: {error}.", remedy="Write HIF or Parquet instead."
        ) from error
