"""Writer of incidence tables with their tables of nodes and hyperedges, and the list of parts that tables drop.

See `edhnn.io.tables.reader` for the tables. Tables cannot store some parts of a dataset, and a reader interprets some
columns differently. `dropped_by_tables` names both.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import torch

from edhnn.data.columns import ColumnRequest, label_columns, recorded_columns, without_encoding
from edhnn.data.dataset import NodeDataset, as_numpy
from edhnn.data.ids import IdColumn, Ids, integers_if_all_canonical
from edhnn.data.values import exact_array, is_rounded, numbers_in
from edhnn.errors import DataError
from edhnn.io.file_format import FileFormat
from edhnn.io.files import atomic_file, compressed_by_name
from edhnn.io.tables.arrow import inference_may_lose, must_stay_text
from edhnn.io.tables.names import TableName, other_neighbours, table_name
from edhnn.io.tables.reader import read_tables
from edhnn.typing import IndexArray

_FORMULA = r"^[=+\-@\t\r\n']"  # the apostrophe too, so that different texts stay different


def write_tables(dataset: NodeDataset, target: Path) -> list[Path]:
    """Write a dataset as CSV, TSV or Parquet tables.

    The node table is written if nodes have labels, features or attributes, if a node is isolated, if the memberships
    alone would number the nodes differently, or if a reader would use an existing node table with another ending. The
    same holds for the hyperedge table.

    Args:
        dataset: The dataset.
        target: The incidence table. The other tables are named after it.

    Returns:
        The files written.

    Raises:
        DataError: if a table cannot store the ids or an attribute, or two columns have the same name. Nothing is
            written then.
    """
    dataset = without_encoding(dataset)
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
    with ExitStack() as files:  # write all files or none
        for path, table in tables.items():
            _write(table, files.enter_context(atomic_file(path)), table_name(path))
    return list(tables)


def write_table(table: pa.Table, target: Path, *, spreadsheet_safe: bool = False) -> None:
    """Write one table atomically, as CSV, TSV or Parquet according to its name.

    Args:
        table: The table.
        target: The file.
        spreadsheet_safe: Write an apostrophe before texts that a spreadsheet program would run as a formula.
    """
    name = table_name(target)
    with atomic_file(target) as path:
        _write(_without_formulas(table) if spreadsheet_safe else table, path, name)


def _without_formulas(table: pa.Table) -> pa.Table:
    columns = []
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            runs = pa.compute.match_substring_regex(column, _FORMULA)
            quoted = pa.compute.binary_join_element_wise(
                pa.scalar("'", column.type), column, pa.scalar("", column.type)
            )
            columns.append(pa.compute.if_else(runs, quoted, column))
        else:
            columns.append(column)
    heads = [f"'{name}" if re.match(_FORMULA, name) else name for name in table.column_names]
    return pa.table(columns, heads)


def dropped_by_tables(dataset: NodeDataset, target: Path) -> list[str]:
    """Describe the parts of a dataset that its tables drop, or that a reader interprets differently."""
    text = table_name(target).kind != "parquet"
    dataset = without_encoding(dataset)
    sparse = dataset.x is not None and dataset.x.layout == torch.sparse_csr
    dropped = ["the sparsity of the features (written as full columns)"] if sparse else []
    for name, tensor in (("features", dataset.x), ("labels", dataset.y)):
        if tensor is not None and tensor.dtype not in (torch.float32, torch.int64):
            dropped.append(f"that the {name} are {str(tensor.dtype).removeprefix('torch.')} (a reader uses float32)")
    used: list[Any] = []
    if dataset.y is not None and dataset.task == "classification":
        names: Any = dataset.class_names or range(dataset.num_classes or 0)
        used = sorted({names[number] for number in set(dataset.y.tolist()) if number >= 0})
        dropped += ["the numbers of the classes (a reader sorts the names in use)"] if used != list(names) else []
        dropped += ["the labels of the class '' (a reader treats them as missing)"] if "" in used else []
    heads = _label_heads(dataset, text=text)
    guessed = label_columns([*heads, *_feature_heads(dataset), *dataset.node_attributes], ColumnRequest())
    dropped += [
        *_dropped_labels(dataset, heads, guessed),
        *_dropped_features(dataset, () if dataset.y is not None else guessed),
    ]
    if numbers_in(dataset.edge_attributes.get("weight", ("none",))) is not None:
        dropped.append("that 'weight' is an attribute of hyperedges (a reader uses it as their weight)")
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


WORKBOOK = FileFormat(name="xlsx", patterns=(".xlsx",), read=read_tables, options="tables")


def _ids(ids: Ids, numbers: IndexArray | None, kind: str, *, text: bool) -> pa.Array:
    try:
        if isinstance(ids.values, list):
            names = pa.array(ids.values)
            if text and "" in ids.values:
                raise DataError(
                    f"A text table cannot store an empty {kind} id.", remedy="Write Parquet or HIF instead."
                )
            return names if numbers is None else names.take(pa.array(numbers))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(
            f"The {kind} ids in a table must be all text or all 64-bit integers. They are not.",
            remedy="Write HIF or a dataset folder instead.",
        ) from error
    values = np.asarray(ids.values, dtype=np.int64)
    return pa.array(values if numbers is None else values[numbers])


def _in_order(ids: Ids, mentions: IndexArray, *, text: bool) -> bool:
    """Return whether a reader would number the ids the same: integers ascending, text by first occurrence."""
    names: list[Any] = ids.to_list() if not isinstance(ids.values, range) else []
    if all(isinstance(name, int) for name in names):
        return all(a < b for a, b in pairwise(names))
    first = np.unique(mentions, return_index=True)[1]
    return bool((np.diff(first) > 0).all()) and not (text and _look_like_integers(ids))


def _node_columns(dataset: NodeDataset, heads: Sequence[str], *, text: bool) -> list[tuple[str, pa.Array]]:
    columns = [("id", _ids(dataset.node_ids, None, "node", text=text))]
    encoded = "encoding" in dataset.provenance.details  # NaN is then a missing value
    if dataset.y is not None:
        columns += zip(heads, _label_columns(dataset), strict=True)
    if dataset.x is not None:
        x = as_numpy(dataset.x.to_dense())
        columns += [
            (name, pa.array(x[:, number], from_pandas=encoded)) for number, name in enumerate(_feature_heads(dataset))
        ]
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
                f"Column names must be unique. '{name}' occurs twice among ids, weights, labels, features and "
                "attributes."
            )
        if text and ("\n" in name or "\r" in name):
            raise DataError(f"Column names in a text table must not contain line breaks. Got {name!r}.")
    return pa.table([column for _, column in columns], names)


def _column(name: str, values: Any) -> pa.Array:
    try:
        return exact_array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(
            f"The values of a table column must have one type. The attribute '{name}' is mixed. Cause: {error}.",
            remedy="Write HIF or a dataset folder instead.",
        ) from error


def _write(table: pa.Table, path: Path, name: TableName) -> None:
    if name.kind == "parquet":
        with path.open("wb") as file:  # Arrow opens only names in UTF-8
            pa.parquet.write_table(table, file)
        return
    options = pa.csv.WriteOptions(delimiter="\t" if name.kind == "tsv" else ",", quoting_style="needed")
    try:
        with compressed_by_name(path, name.suffix) as stream:
            pa.csv.write_csv(table, stream, options)
    except pa.ArrowException as error:
        raise DataError(
            f"A text table can store only text and numbers. Cause: {error}.", remedy="Write HIF or Parquet instead."
        ) from error


def _label_heads(dataset: NodeDataset, *, text: bool) -> tuple[str, ...]:
    """Return the names of the label columns in a table: the original names, if the table can store them."""
    y, names = dataset.y, _label_names(dataset)
    taken = {"id", *_feature_heads(dataset), *dataset.node_attributes}
    one_line = not text or not any("\n" in name or "\r" in name for name in names)
    if y is None or (names and one_line and taken.isdisjoint(names)):
        return names
    return ("label",) if y.dim() == 1 else tuple(f"label{number}" for number in range(y.shape[1]))


def _label_names(dataset: NodeDataset) -> tuple[str, ...]:
    """Return the original names of the label columns, if there are any."""
    if dataset.y is not None and dataset.y.dim() == 2 and dataset.class_names is not None:
        return tuple(str(name) for name in dataset.class_names)
    return recorded_columns(dataset.provenance.details, dataset.y)


def _feature_heads(dataset: NodeDataset) -> tuple[str, ...]:
    """Return the names of the feature columns."""
    return dataset.feature_names or tuple(f"x{number}" for number in range(dataset.num_features))


def _look_like_integers(ids: Ids) -> bool:
    """Return whether all ids are text that a reader of a text table would interpret as integers."""
    if not isinstance(ids.values, list) or not all(isinstance(name, str) for name in ids.values):
        return False
    column = IdColumn()
    column.append(ids.to_list())
    integers_if_all_canonical([column])
    return any(isinstance(chunk, pa.Array) and pa.types.is_integer(chunk.type) for chunk in column.chunks)


def _dropped_labels(dataset: NodeDataset, heads: Sequence[str], guessed: Sequence[str]) -> Iterator[str]:
    """Describe labels that a reader finds only with options, and columns that it would guess to be labels."""
    y, names = dataset.y, _label_names(dataset)
    if names and names != heads:
        yield f"the names of the label columns {', '.join(names)} (written as {', '.join(heads)})"
    if y is None:
        for name in guessed:
            kind = "a feature" if name in _feature_heads(dataset) else "an attribute"
            yield f"that '{name}' is {kind} (a reader uses it as the label)"
    elif y.dim() == 2:
        yield f"which columns are labels (read with `label={list(heads)}` `task={dataset.task!r}`)"
    elif guessed != heads:
        task = " `task='regression'`" if dataset.task == "regression" else ""
        yield f"which column is the label (read with `label={heads[0]!r}`{task})"
    elif dataset.task == "regression" and bool(((y == y.trunc()) | y.isnan()).all()):
        yield "that the labels are real values (read with `task='regression'`)"


def _dropped_features(dataset: NodeDataset, labels: Sequence[str]) -> Iterator[str]:
    """Describe attributes that a reader uses as features, and features that it uses as attributes."""
    for name, values in dataset.node_attributes.items():
        column = pa.chunked_array([exact_array(values)])
        numbers = None if name in labels else numbers_in(column)
        if numbers is not None and not is_rounded(column, numbers):
            yield f"that '{name}' is an attribute (a reader uses it as a feature)"
    if dataset.x is not None and dataset.x.dtype == torch.float64:
        x = np.ascontiguousarray(dataset.x.to_dense().cpu().numpy().T)
        for name, numbers in zip(_feature_heads(dataset), x, strict=True):
            if is_rounded(numbers.tolist(), numbers):
                yield f"that '{name}' is a feature (a reader uses it as an attribute, because 32 bits would round it)"


def _misread(values: Sequence[Any], *, label: bool) -> bool:
    """Return whether these are texts that a reader of a text table would interpret as numbers, booleans or missing."""
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
        inference_may_lose(read) and must_stay_text(texts[""], read.type, label=label)
    )


def id_column(ids: Ids) -> pa.Array:
    """Return ids as a column of a table: integers if all are integers of 64 bits, else text.

    If an integer and a text would look the same, as ``1`` and ``"1"`` do, all texts are quoted as in JSON, so that
    different ids stay different.
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
