"""Incidence tables written with their node and hyperedge tables beside them, and what tables cannot hold.

See `edhnn.io.tables.reader` for the tables. Some of a dataset is not written, and some of what is written a reader
takes for something else; `dropped_by_tables` names both.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import torch

from edhnn.data.columns import ColumnRequest, exact_array, is_rounded, label_columns, numbers_in, recorded_columns
from edhnn.data.dataset import NodeDataset, as_numpy
from edhnn.data.ids import IdColumn, Ids, integers_if_all_canonical
from edhnn.errors import DataError
from edhnn.io.file_format import FileFormat
from edhnn.io.files import atomic_file, compressed_by_name
from edhnn.io.tables.arrow import inference_may_lose, kept_as_text
from edhnn.io.tables.names import TableName, other_neighbours, table_name
from edhnn.io.tables.reader import read_tables
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
    hypergraph, name = dataset.hypergraph, table_name(target)
    text = name.kind != "parquet"
    node, edge = (index.cpu().numpy() for index in (hypergraph.node_index, hypergraph.edge_index))
    incidences = {
        "node": _ids(dataset.node_ids, node, "node", text=text),
        "hyperedge": _ids(dataset.edge_ids, edge, "hyperedge", text=text),
    }
    if hypergraph.incidence_weight is not None:
        incidences["weight"] = pa.array(hypergraph.incidence_weight.cpu().numpy())
    tables = {target: pa.table(incidences)}
    nodes = _node_columns(dataset, _label_heads(dataset, text=text), text=text)
    if (
        len(nodes) > 1
        or bool((hypergraph.degree == 0).any())
        or not _in_order(dataset.node_ids, node, text=text)
        or other_neighbours(target, name, "nodes").free
    ):
        tables[target.with_name(name.neighbour("nodes"))] = _table(nodes, text=text)
    edges = [("id", _ids(dataset.edge_ids, None, "hyperedge", text=text))]
    edges += [(title, _column(title, column)) for title, column in dataset.edge_attributes.items()]
    if hypergraph.edge_weight is not None:
        edges.append(("weight", pa.array(hypergraph.edge_weight.cpu().numpy())))
    if (
        len(edges) > 1
        or bool((hypergraph.edge_size == 0).any())
        or not _in_order(dataset.edge_ids, edge, text=text)
        or other_neighbours(target, name, "hyperedges").free
    ):
        tables[target.with_name(name.neighbour("hyperedges"))] = _table(edges, text=text)
    with ExitStack() as files:  # all of them or none
        for path, table in tables.items():
            _write(table, files.enter_context(atomic_file(path)), table_name(path))
    return list(tables)


def write_table(table: pa.Table, target: Path) -> None:
    """Write one table, CSV, TSV or Parquet by its name, whole or not at all."""
    name = table_name(target)
    with atomic_file(target) as path:
        _write(table, path, name)


def dropped_by_tables(dataset: NodeDataset, target: Path) -> list[str]:
    """Name what tables cannot hold of this dataset."""
    text = table_name(target).kind != "parquet"
    dropped = ["the sparsity of the features (written as full columns)"] if _is_sparse(dataset) else []
    for name, tensor in (("features", dataset.x), ("labels", dataset.y)):
        if tensor is not None and tensor.dtype not in (torch.float32, torch.int64):
            dropped.append(f"that the {name} are {str(tensor.dtype).removeprefix('torch.')} (a reader takes float32)")
    used: list[Any] = []
    if dataset.y is not None and dataset.task == "classification":
        names: Any = dataset.class_names or range(dataset.num_classes or 0)
        used = sorted({names[number] for number in set(dataset.y.tolist()) if number >= 0})
        dropped += ["the numbers of the classes (a reader sorts those in use)"] if used != list(names) else []
        dropped += ["the labels of the class '' (a reader takes them for unlabelled)"] if "" in used else []
    heads = _label_heads(dataset, text=text)
    guessed = label_columns([*heads, *_feature_heads(dataset), *dataset.node_attributes], ColumnRequest())
    dropped += [
        *_dropped_labels(dataset, heads, guessed),
        *_dropped_features(dataset, () if dataset.y is not None else guessed),
    ]
    if numbers_in(dataset.edge_attributes.get("weight", ("none",))) is not None:
        dropped.append("that 'weight' is an attribute of hyperedges (a reader takes it for their weights)")
    if text:
        ids = {"node": dataset.node_ids, "hyperedge": dataset.edge_ids}
        dropped += [
            f"that the {kind} ids are text (they look like integers)" for kind in ids if _look_like_integers(ids[kind])
        ]
        misread = [heads[0]] if _misread(used, label=True) else []
        for columns in (dataset.node_attributes, dataset.edge_attributes):
            misread += [name for name, column in columns.items() if _misread(column, label=False)]
        dropped += [f"that '{name}' is text (it looks like something else)" for name in misread]
    return dropped


FORMAT = FileFormat(
    name="table",
    patterns=(".csv", ".tsv", ".parquet"),
    read=read_tables,
    write=write_tables,
    dropped=dropped_by_tables,
    options="tables",
    files=lambda target: [
        target,
        *(target.with_name(table_name(target).neighbour(w)) for w in ("nodes", "hyperedges")),
    ],
)


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
    return bool((np.diff(first) > 0).all()) and not (text and _look_like_integers(ids))


def _node_columns(dataset: NodeDataset, heads: Sequence[str], *, text: bool) -> list[tuple[str, pa.Array]]:
    columns = [("id", _ids(dataset.node_ids, None, "node", text=text))]
    if dataset.y is not None:
        columns += zip(heads, _label_columns(dataset), strict=True)
    if dataset.x is not None:
        x = as_numpy(dataset.x.to_dense() if _is_sparse(dataset) else dataset.x)
        columns += [(name, pa.array(x[:, number])) for number, name in enumerate(_feature_heads(dataset))]
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


def _write(table: pa.Table, path: Path, name: TableName) -> None:
    if name.kind == "parquet":
        pa.parquet.write_table(table, path)
        return
    options = pa.csv.WriteOptions(delimiter="\t" if name.kind == "tsv" else ",", quoting_style="needed")
    try:
        with compressed_by_name(path, name.suffix) as stream:
            pa.csv.write_csv(table, stream, options)
    except pa.ArrowException as error:
        raise DataError(
            f"A text table holds text and numbers only: {error}.", remedy="Write HIF or Parquet instead."
        ) from error


def _label_heads(dataset: NodeDataset, *, text: bool) -> tuple[str, ...]:
    """The names of the label columns in a table: those they were read under, if it can hold them."""
    y, names = dataset.y, _label_names(dataset)
    if y is None or (names and all(_can_head(name, dataset, text=text) for name in names)):
        return names
    return ("label",) if y.dim() == 1 else tuple(f"label{number}" for number in range(y.shape[1]))


def _label_names(dataset: NodeDataset) -> tuple[str, ...]:
    """The names that the labels have, if they have any."""
    if dataset.y is not None and dataset.y.dim() == 2 and dataset.class_names is not None:
        return tuple(str(name) for name in dataset.class_names)
    return recorded_columns(dataset.provenance.details, dataset.y)


def _can_head(name: str, dataset: NodeDataset, *, text: bool) -> bool:
    """Whether a label column may be called so: no other column is, and a text table holds it on one line."""
    one_line = not text or not ("\n" in name or "\r" in name)
    return one_line and name != "id" and name not in _feature_heads(dataset) and name not in dataset.node_attributes


def _feature_heads(dataset: NodeDataset) -> tuple[str, ...]:
    """The names of the feature columns."""
    return dataset.feature_names or tuple(f"x{number}" for number in range(dataset.num_features))


def _is_sparse(dataset: NodeDataset) -> bool:
    """Whether the features are sparse."""
    return dataset.x is not None and dataset.x.layout == torch.sparse_csr


def _look_like_integers(ids: Ids) -> bool:
    """Whether these are texts that a reader of a text table takes for integers."""
    if not isinstance(ids.values, list) or not all(isinstance(name, str) for name in ids.values):
        return False
    column = IdColumn()
    column.append(ids.to_list())
    integers_if_all_canonical([column])
    return any(isinstance(chunk, pa.Array) and pa.types.is_integer(chunk.type) for chunk in column.chunks)


def _dropped_labels(dataset: NodeDataset, heads: Sequence[str], guessed: Sequence[str]) -> Iterator[str]:
    """Labels that a reader does not find unless it is told, and what it takes for labels where there are none."""
    y, names = dataset.y, _label_names(dataset)
    if names and names != heads:
        yield f"the names of the label columns {', '.join(names)} (written as {', '.join(heads)})"
    if y is None:
        for name in guessed:
            kind = "a feature" if name in _feature_heads(dataset) else "an attribute"
            yield f"that '{name}' is {kind} (a reader takes it for the label)"
    elif y.dim() == 2:
        options = " ".join(f"--label {shlex.quote(name)}" for name in heads)
        yield f"which columns are labels (read with {options} --task {dataset.task})"
    elif guessed != heads:
        real = " --task regression" if dataset.task == "regression" else ""
        yield f"which column is the label (read with --label {shlex.quote(heads[0])}{real})"
    elif dataset.task == "regression" and bool(((y == y.trunc()) | y.isnan()).all()):
        yield "that the labels are real values (read with --task regression)"


def _dropped_features(dataset: NodeDataset, labels: Sequence[str]) -> Iterator[str]:
    """Attributes that a reader takes for features, and features that it takes for attributes."""
    for name, values in dataset.node_attributes.items():
        column = pa.chunked_array([exact_array(values)])
        numbers = None if name in labels else numbers_in(column)
        if numbers is not None and not is_rounded(column, numbers):
            yield f"that '{name}' is an attribute (a reader takes it for a feature)"
    if dataset.x is not None and dataset.x.dtype == torch.float64:
        x = (dataset.x.to_dense() if _is_sparse(dataset) else dataset.x).cpu().numpy()
        for name, numbers in zip(_feature_heads(dataset), np.ascontiguousarray(x.T), strict=True):
            if is_rounded(numbers.tolist(), numbers):
                yield f"that '{name}' is a feature (a reader leaves it an attribute, as 32 bits would round it)"


def _misread(values: Sequence[Any], *, label: bool) -> bool:
    """Whether these are texts that a reader of a text table takes for numbers, truth values or nothing."""
    texts = pa.table({"": [value for value in values if isinstance(value, str)]})
    if not len(texts):
        return False
    with pa.BufferOutputStream() as stream:
        pa.csv.write_csv(texts, stream, pa.csv.WriteOptions(include_header=False))
        written = stream.getvalue()
    parse = pa.csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True)
    read = pa.csv.read_csv(
        pa.BufferReader(written),
        pa.csv.ReadOptions(column_names=[""], block_size=max(len(written), 1)),
        parse,
        pa.csv.ConvertOptions(timestamp_parsers=[], null_values=[]),
    )[""]
    if "" in texts[""].to_pylist():
        return True
    return not pa.types.is_string(read.type) and not (
        inference_may_lose(read) and kept_as_text(texts[""], read.type, label=label)
    )


def id_column(ids: Ids) -> pa.Array:
    """Make ids a column of a table: integers if all are and fit 64 bits, else text.

    Where an integer and a text would then read alike, as ``1`` and ``"1"`` do, all text stands in quotes as JSON writes
    it: no two ids are ever written the same.
    """
    values = ids.values
    if not isinstance(values, list):
        return pa.array(np.asarray(values, np.int64))
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # text and integers mixed, or beyond 64 bits
        names = [str(name) for name in values]
    if len(set(names)) < len(names):
        names = [json.dumps(name, ensure_ascii=False) for name in values]
    return pa.array(names)
