"""Incidence tables written with their node and hyperedge tables beside them; see `edhnn.data.readers.tables`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import torch

from edhnn.data.dataset import NodeDataset
from edhnn.data.files import atomic_file, compressed_by_name
from edhnn.data.ids import Ids
from edhnn.data.readers.arrow_tables import table_kind
from edhnn.errors import DataError
from edhnn.typing import IndexArray


def write_tables(dataset: NodeDataset, target: Path) -> list[Path]:
    """Write a dataset as CSV, TSV or Parquet tables.

    The node table is written when there is something to say about nodes or a node is isolated; the hyperedge table
    when there is something to say about hyperedges or one is empty.

    Args:
        dataset: The dataset.
        target: The incidence table; the neighbours are named after it.

    Returns:
        The files written.
    """
    hypergraph = dataset.hypergraph
    incidences = {
        "node": _ids(dataset.node_ids, hypergraph.node_index.cpu().numpy(), "node"),
        "hyperedge": _ids(dataset.edge_ids, hypergraph.edge_index.cpu().numpy(), "hyperedge"),
    }
    if hypergraph.incidence_weight is not None:
        incidences["weight"] = pa.array(hypergraph.incidence_weight.cpu().numpy())
    tables = {target: pa.table(incidences)}
    nodes = _node_columns(dataset)
    if nodes or bool((hypergraph.degree == 0).any()):
        tables[neighbour(target, "nodes")] = pa.table({"id": _ids(dataset.node_ids, None, "node"), **nodes})
    edges = {name: _column(name, column) for name, column in dataset.edge_attributes.items()}
    if hypergraph.edge_weight is not None:
        edges["weight"] = pa.array(hypergraph.edge_weight.cpu().numpy())
    if edges or bool((hypergraph.edge_size == 0).any()):
        tables[neighbour(target, "hyperedges")] = pa.table({"id": _ids(dataset.edge_ids, None, "hyperedge"), **edges})
    for path, table in tables.items():
        _write(table, path)
    return list(tables)


def left_behind_by_tables(dataset: NodeDataset) -> list[str]:
    """What tables cannot hold of this dataset, in words."""
    return ["the sparsity of the features (written as full columns)"] if _is_sparse(dataset) else []


def _is_sparse(dataset: NodeDataset) -> bool:
    return dataset.x is not None and dataset.x.layout == torch.sparse_csr


def neighbour(target: Path, what: str) -> Path:
    """The node or hyperedge table beside an incidence table."""
    name = target.name.removesuffix(".gz")
    stem = name[: name.rfind(".")]
    return target.with_name(f"{stem}.{what}{target.name.removeprefix(stem)}")


def _ids(ids: Ids, numbers: IndexArray | None, kind: str) -> pa.Array:
    try:
        if isinstance(ids.values, list):
            names = pa.array(ids.values)
            return names if numbers is None else names.take(pa.array(numbers))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(
            f"The {kind} ids in a table must be all text or all 64-bit integers. These are mixed.",
            remedy="Write HIF or a dataset folder instead.",
        ) from error
    values = np.asarray(ids.values, dtype=np.int64)
    return pa.array(values if numbers is None else values[numbers])


def _node_columns(dataset: NodeDataset) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if dataset.y is not None:
        columns |= _label_columns(dataset)
    if dataset.x is not None:
        x = (dataset.x.to_dense() if _is_sparse(dataset) else dataset.x).cpu().numpy()
        names = dataset.feature_names or tuple(f"x{number}" for number in range(x.shape[1]))
        columns |= {name: pa.array(x[:, number]) for number, name in enumerate(names)}
    for name, column in dataset.node_attributes.items():
        if name in columns:
            raise DataError(f"Column names must differ. '{name}' is an attribute and a label or feature.")
        columns[name] = _column(name, column)
    return columns


def _label_columns(dataset: NodeDataset) -> dict[str, pa.Array]:
    assert dataset.y is not None
    y = dataset.y.cpu()
    if dataset.task == "classification":
        names: Any = dataset.class_names or range(dataset.num_classes or 0)
        return {"label": _column("label", [None if number < 0 else names[number] for number in y.tolist()])}
    if y.dim() == 1:
        return {"label": pa.array(y.numpy(), from_pandas=True)}
    width = y.shape[1]
    heads = dataset.class_names or (f"label{number}" for number in range(width))
    return {str(head): pa.array(y[:, number].numpy(), from_pandas=True) for number, head in enumerate(heads)}


def _column(name: str, values: Any) -> pa.Array:
    try:
        return pa.array(list(values))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(
            f"A table column must be of one kind. The attribute '{name}' is not: {error}.",
            remedy="Write HIF or a dataset folder instead.",
        ) from error


def _write(table: pa.Table, target: Path) -> None:
    kind = table_kind(target)
    with atomic_file(target) as path:
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
