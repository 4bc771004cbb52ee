"""What tables cannot hold of a dataset, in words: what is not written, and what a reader takes for something else."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import torch

from edhnn.data.column_values import exact_array, is_rounded, numbers_in
from edhnn.data.columns import ColumnRequest, label_columns
from edhnn.data.dataset import NodeDataset
from edhnn.data.ids import IdColumn, Ids
from edhnn.data.labels import recorded_columns
from edhnn.data.plain_integers import integers_if_all_canonical
from edhnn.data.readers.as_written import kept_as_text, may_say_less
from edhnn.data.table_names import table_kind


def left_behind_by_tables(dataset: NodeDataset, target: Path) -> list[str]:
    """What tables cannot hold of this dataset, in words."""
    lost = ["the sparsity of the features (written as full columns)"] if is_sparse(dataset) else []
    for name, tensor in (("features", dataset.x), ("labels", dataset.y)):
        if tensor is not None and tensor.dtype not in (torch.float32, torch.int64):
            lost.append(f"that the {name} are {str(tensor.dtype).removeprefix('torch.')} (a reader takes float32)")
    used: list[Any] = []
    if dataset.y is not None and dataset.task == "classification":
        names: Any = dataset.class_names or range(dataset.num_classes or 0)
        used = sorted({names[number] for number in set(dataset.y.tolist()) if number >= 0})
        lost += ["the numbers of the classes (a reader sorts those in use)"] if used != list(names) else []
        lost += ["the labels of the class '' (a reader takes them for unlabelled)"] if "" in used else []
    heads = label_heads(dataset, target)
    guessed = label_columns([*heads, *feature_heads(dataset), *dataset.node_attributes], ColumnRequest())
    lost += [*_labels(dataset, heads, guessed), *_features(dataset, () if dataset.y is not None else guessed)]
    if numbers_in(dataset.edge_attributes.get("weight", ("none",))) is not None:
        lost.append("that 'weight' is an attribute of hyperedges (a reader takes it for their weights)")
    if table_kind(target) != "parquet":
        ids = {"node": dataset.node_ids, "hyperedge": dataset.edge_ids}
        lost += [
            f"that the {kind} ids are text (they look like integers)" for kind in ids if look_like_integers(ids[kind])
        ]
        misread = [heads[0]] if _misread(used, label=True) else []
        for columns in (dataset.node_attributes, dataset.edge_attributes):
            misread += [name for name, column in columns.items() if _misread(column, label=False)]
        lost += [f"that '{name}' is text (it looks like something else)" for name in misread]
    return lost


def is_sparse(dataset: NodeDataset) -> bool:
    """Whether the features are sparse."""
    return dataset.x is not None and dataset.x.layout == torch.sparse_csr


def label_heads(dataset: NodeDataset, target: Path) -> tuple[str, ...]:
    """The names of the label columns in a table: those they were read under, if it can hold them."""
    y, names = dataset.y, _label_names(dataset)
    if y is None or (names and all(_can_head(name, dataset, target) for name in names)):
        return names
    return ("label",) if y.dim() == 1 else tuple(f"label{number}" for number in range(y.shape[1]))


def _label_names(dataset: NodeDataset) -> tuple[str, ...]:
    """The names that the labels have, if they have any."""
    if dataset.y is not None and dataset.y.dim() == 2 and dataset.class_names is not None:
        return tuple(str(name) for name in dataset.class_names)
    return recorded_columns(dataset.provenance.details, dataset.y)


def _can_head(name: str, dataset: NodeDataset, target: Path) -> bool:
    """Whether a label column may be called so: no other column is, and a text table holds it on one line."""
    one_line = table_kind(target) == "parquet" or not ("\n" in name or "\r" in name)
    return one_line and name != "id" and name not in feature_heads(dataset) and name not in dataset.node_attributes


def feature_heads(dataset: NodeDataset) -> tuple[str, ...]:
    """The names of the feature columns."""
    return dataset.feature_names or tuple(f"x{number}" for number in range(dataset.num_features))


def look_like_integers(ids: Ids) -> bool:
    """Whether these are texts that a reader of a text table takes for integers."""
    if not isinstance(ids.values, list) or not all(isinstance(name, str) for name in ids.values):
        return False
    column = IdColumn()
    column.append(ids.to_list())
    integers_if_all_canonical([column])
    return any(isinstance(chunk, pa.Array) and pa.types.is_integer(chunk.type) for chunk in column.chunks)


def _labels(dataset: NodeDataset, heads: Sequence[str], guessed: Sequence[str]) -> Iterator[str]:
    """Labels that a reader does not find unless it is told, and what it takes for labels where there are none."""
    y, names = dataset.y, _label_names(dataset)
    if names and names != heads:
        yield f"the names of the label columns {', '.join(names)} (written as {', '.join(heads)})"
    if y is None:
        for name in guessed:
            kind = "a feature" if name in feature_heads(dataset) else "an attribute"
            yield f"that '{name}' is {kind} (a reader takes it for the label)"
    elif y.dim() == 2:
        options = " ".join(f"--label {shlex.quote(name)}" for name in heads)
        yield f"which columns are labels (read with {options} --task {dataset.task})"
    elif guessed != heads:
        real = " --task regression" if dataset.task == "regression" else ""
        yield f"which column is the label (read with --label {shlex.quote(heads[0])}{real})"
    elif dataset.task == "regression" and bool(((y == y.trunc()) | y.isnan()).all()):
        yield "that the labels are real values (read with --task regression)"


def _features(dataset: NodeDataset, labels: Sequence[str]) -> Iterator[str]:
    """Attributes that a reader takes for features, and features that it takes for attributes."""
    for name, values in dataset.node_attributes.items():
        column = pa.chunked_array([exact_array(values)])
        numbers = None if name in labels else numbers_in(column)
        if numbers is not None and not is_rounded(column, numbers):
            yield f"that '{name}' is an attribute (a reader takes it for a feature)"
    if dataset.x is not None and dataset.x.dtype == torch.float64:
        x = (dataset.x.to_dense() if is_sparse(dataset) else dataset.x).cpu().numpy()
        for name, numbers in zip(feature_heads(dataset), np.ascontiguousarray(x.T), strict=True):
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
        may_say_less(read) and kept_as_text(texts[""], read.type, label=label)
    )
