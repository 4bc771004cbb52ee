"""Incidence tables: one line per membership, with a node table and a hyperedge table beside it if there are any.

    baskets.csv               node,hyperedge[,weight]
    baskets.nodes.csv         id,label,price,size,...      every node, isolated ones too
    baskets.hyperedges.csv    id[,weight,...]              every hyperedge, empty ones too

Columns are named by options or guessed from their names; every guess is reported. The tables may be CSV, TSV or
Parquet, the text ones gzip-compressed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from edhnn.data.columns import Column, ColumnRequest, as_list, label_columns, numbers_in, sort_columns, told_numbers
from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.files import Limits
from edhnn.data.readers.arrow_tables import Header, TableKind, place_of_row, read_columns, read_header, table_kind
from edhnn.data.readers.as_written import read_as_written
from edhnn.data.readers.table_ids import Listing, as_ids, number_ids
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.hypergraph import Hypergraph

NODE_GUESSES = ("node", "node_id", "nodes", "vertex", "vertex_id", "v", "member", "item", "user", "author", "product")
EDGE_GUESSES = ("hyperedge", "hyperedge_id", "edge", "edge_id", "e", "group", "basket", "order", "committee", "paper")
WEIGHT_GUESSES = ("weight", "w")
ID_GUESSES = ("id", *NODE_GUESSES, *EDGE_GUESSES)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """What the user said about tables; ``None`` means guess.

    Attributes:
        node: Node column of the incidence table.
        edge: Hyperedge column of the incidence table.
        weight: Weight column of the incidence table.
        nodes: The node table; by default the neighbour ``NAME.nodes.csv``, if there is one.
        hyperedges: The hyperedge table; by default ``NAME.hyperedges.csv``.
        id: Id column of the node table.
        columns: Labels and features of the node table.
    """

    node: str | None = None
    edge: str | None = None
    weight: str | None = None
    nodes: Path | None = None
    hyperedges: Path | None = None
    id: str | None = None
    columns: ColumnRequest = field(default_factory=ColumnRequest)


def read_tables(path: Path, request: TableRequest, limits: Limits) -> NodeDataset:
    """Read an incidence table with its neighbours.

    Args:
        path: The incidence table.
        request: Column names and table files.
        limits: Size limits, for each file.

    Returns:
        The dataset; what was guessed stands in its provenance notes.
    """
    kind = _kind(path)
    header = read_header(path, kind, limits)
    notes = [header.note] if header.note else []
    node_column, edge_column, weight_column = _incidence_columns(path, header, request, notes)
    wanted = [name for name in (node_column, edge_column, weight_column) if name is not None]
    unused = [name for name in header.columns if name not in wanted]
    notes += [f"columns of the incidence table left out: {', '.join(unused)}"] if unused else []
    table = read_columns(path, kind, header, limits, columns=wanted, text_columns=[node_column, edge_column])
    mentioned_nodes, mentioned_edges = (as_ids(path, table[name], name, limits) for name in (node_column, edge_column))
    weight = None if weight_column is None else _weights(path, table[weight_column], weight_column, limits)
    del table

    nodes = _listing(_neighbour(path, "nodes", request.nodes, notes), request.id, request.columns, limits, notes)
    edges = _listing(_neighbour(path, "hyperedges", request.hyperedges, notes), None, None, limits, notes)
    node_ids, node = number_ids(path, "node", nodes, mentioned_nodes, limits)
    edge_ids, edge = number_ids(path, "hyperedge", edges, mentioned_edges, limits)

    try:
        found = sort_columns(
            nodes.columns if nodes else {},
            request.columns,
            len(node_ids),
            lambda row: f"{place_of_row(nodes.path if nodes else path, row, limits)} (node {node_ids[row]!r})",
        )
    except DataError as error:
        place = nodes.path if nodes else path
        raise DataError(error.problem, path=place, where=error.where, remedy=error.remedy) from error
    edge_columns = dict(edges.columns) if edges else {}
    edge_weight = None
    if edges and "weight" in edge_columns and _are_numbers(edge_columns["weight"]):
        edge_weight = _weights(edges.path, edge_columns.pop("weight"), "weight", limits)
    hypergraph = Hypergraph(
        torch.from_numpy(node), torch.from_numpy(edge), len(node_ids), len(edge_ids), edge_weight, weight
    )
    notes += [*merged_note(hypergraph), *found.notes]
    return NodeDataset(
        name=_stem(path),
        hypergraph=hypergraph,
        x=found.x,
        y=None if found.labels is None else found.labels.y,
        task=None if found.labels is None else found.labels.task,
        class_names=None if found.labels is None else found.labels.class_names,
        feature_names=found.feature_names,
        node_ids=node_ids,
        edge_ids=edge_ids,
        node_attributes=found.attributes,
        edge_attributes={name: as_list(column) for name, column in edge_columns.items()},
        provenance=Provenance(str(path), kind, tuple(notes), found.details),
    )


def _kind(path: Path) -> TableKind:
    kind = table_kind(path)
    if kind is None:
        raise UsageError(f"A table must end in .csv, .tsv or .parquet (.gz may follow). Got '{path.name}'.")
    return kind


def _stem(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return name[: name.rfind(".")]


def _neighbour(path: Path, what: str, given: Path | None, notes: list[str]) -> Path | None:
    """The node or hyperedge table: the one given, or the neighbour named after the incidence table."""
    if given is not None:
        return given
    found = path.with_name(f"{_stem(path)}.{what}{path.name.removeprefix(_stem(path))}")
    if not found.is_file():
        return None
    notes.append(f"table of {what} found beside it: '{found.name}'")
    return found


def _incidence_columns(
    path: Path, header: Header, request: TableRequest, notes: list[str]
) -> tuple[str, str, str | None]:
    columns = header.columns
    if len(columns) < 2:
        raise DataError(
            f"An incidence table must have a node and a hyperedge column. Got {', '.join(columns)} only.", path=path
        )
    asked = {"node": request.node, "hyperedge": request.edge, "weight": request.weight}
    for kind, name in asked.items():
        if name is not None and name not in columns:
            raise unknown_name(f"{kind} column of '{path.name}'", name, columns)
    free = [name for name in columns if name not in asked.values()]
    for kind, guesses in (("node", NODE_GUESSES), ("hyperedge", EDGE_GUESSES), ("weight", WEIGHT_GUESSES)):
        if asked[kind] is None:
            asked[kind] = next((name for guess in guesses for name in free if name.lower() == guess), None)
            if asked[kind] is None and kind != "weight" and free:
                asked[kind] = free[0]
            if asked[kind] is not None:
                free.remove(asked[kind])  # type: ignore[arg-type]
                notes.append(f"{kind} column guessed: '{asked[kind]}'")
    node, edge = asked["node"], asked["hyperedge"]
    if node is None or edge is None or node == edge:
        raise UsageError(f"Node and hyperedge must be two columns of '{path.name}'. Got '{node}' and '{edge}'.")
    return node, edge, asked["weight"]


def _listing(
    path: Path | None, id_column: str | None, request: ColumnRequest | None, limits: Limits, notes: list[str]
) -> Listing | None:
    """A table of nodes, whose columns are asked for or guessed, or of hyperedges, where only a weight may be."""
    if path is None:
        return None
    kind = _kind(path)
    header = read_header(path, kind, limits)
    if id_column is not None and id_column not in header.columns:
        raise unknown_name(f"id column of '{path.name}'", id_column, header.columns)
    if id_column is None:
        lower = {name.lower(): name for name in reversed(header.columns)}
        id_column = next((lower[guess] for guess in ID_GUESSES if guess in lower), header.columns[0])
        notes.append(f"id column of '{path.name}' guessed: '{id_column}'")
    others = [name for name in header.columns if name != id_column]
    labels = () if request is None else label_columns(others, request)
    numbers = ("weight",) if request is None else told_numbers(labels, request)
    table = read_as_written(path, kind, header, limits, id_column=id_column, labels=labels, numbers=numbers)
    columns = {name: _plain(path, name, table[name]) for name in table.column_names if name != id_column}
    return Listing(path, as_ids(path, table[id_column], id_column, limits), columns)


def _plain(path: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates, times and the like as text; numbers, text, truth values and lists of them as they are."""
    kind = column.type
    if _is_plain(kind):
        return column
    try:
        if pa.types.is_binary(kind):
            raise pa.ArrowInvalid(f"it is {kind}")
        return column.cast(pa.string())
    except pa.ArrowException as error:
        raise DataError(
            f"The column '{name}' must be UTF-8 text, numbers or truth values: {error}.", path=path
        ) from error


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_list(kind) or types.is_struct(kind):
        return all(_is_plain(kind.field(place).type) for place in range(kind.num_fields))
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_string(kind))


def _are_numbers(column: Column) -> bool:
    return not len(column) or numbers_in(column) is not None


def _weights(path: Path, column: Column, name: str, limits: Limits) -> Tensor:
    numbers = numbers_in(column) if len(column) else np.zeros(0)
    if numbers is None:
        raise DataError(f"The weight column '{name}' must hold numbers.", path=path)
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        raise DataError(
            f"Every weight must be finite and 0 or more. Got {numbers[wrong[0]]}.",
            path=path,
            where=place_of_row(path, int(wrong[0]), limits),
        )
    return torch.tensor(numbers)  # a copy: Arrow's memory is not for writing
