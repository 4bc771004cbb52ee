"""Incidence tables: one line per membership, with a node table and a hyperedge table beside it if there are any.

    baskets.csv               node,hyperedge[,weight]
    baskets.nodes.csv         id,label,price,size,...      every node, isolated ones too
    baskets.hyperedges.csv    id[,weight,...]              every hyperedge, empty ones too

Columns are named by options or guessed from their names; every guess is reported. The tables may be CSV, TSV or
Parquet, the text ones gzip-compressed. The seeds of a diffusion are a table too.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.data.columns import (
    Column,
    ColumnRequest,
    as_list,
    first_other,
    label_columns,
    label_fields,
    numbers_in,
    numeric_columns,
    sort_columns,
)
from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.ids import IdColumn, Ids, encode_ids, integers_if_all_canonical, plain_integer
from edhnn.data.limits import Limits
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.file_format import TableRequest
from edhnn.io.files import need_utf8_lines
from edhnn.io.tables.arrow import TableFile
from edhnn.io.tables.names import other_neighbours, table_name
from edhnn.typing import IndexArray

NODE_GUESSES = ("node", "node_id", "nodes", "vertex", "vertex_id", "v", "member", "item", "user", "author", "product")
EDGE_GUESSES = ("hyperedge", "hyperedge_id", "edge", "edge_id", "e", "group", "basket", "order", "committee", "paper")
WEIGHT_GUESSES = ("weight", "w")
ID_GUESSES = ("id", *NODE_GUESSES, *EDGE_GUESSES)


def read_tables(path: Path, request: TableRequest, limits: Limits) -> NodeDataset:
    """Read an incidence table with its neighbours.

    Args:
        path: The incidence table.
        request: Column names and table files.
        limits: Size limits, for each file.

    Returns:
        The dataset; what was guessed stands in its provenance notes.
    """
    file = TableFile.open(path, limits)
    notes = [file.header.note] if file.header.note else []
    node_column, edge_column, weight_column = _incidence_columns(file, request, notes)
    wanted = [name for name in (node_column, edge_column, weight_column) if name is not None]
    unused = [name for name in file.header.columns if name not in wanted]
    notes += [f"columns of the incidence table left out: {', '.join(unused)}"] if unused else []
    table = file.read(wanted, as_text=(node_column, edge_column))
    mentioned_nodes, mentioned_edges = (_ids(file, table[name], name) for name in (node_column, edge_column))
    weight = None if weight_column is None else _weights(file, table[weight_column], weight_column)
    del table

    nodes = _listing(_neighbour(file, "nodes", request.nodes, notes), request.id, request.columns, limits, notes)
    if nodes is None:
        _need_no_nodes(file, request)
    edges = _listing(_neighbour(file, "hyperedges", request.hyperedges, notes), None, None, limits, notes)
    node_ids, node = _number_ids(file, "node", nodes, mentioned_nodes)
    about_nodes = nodes.file if nodes else file
    limits.check_nodes(len(node_ids), about_nodes.path)
    edge_ids, edge = _number_ids(file, "hyperedge", edges, mentioned_edges)

    try:
        found = sort_columns(
            nodes.columns if nodes else {},
            request.columns,
            len(node_ids),
            lambda row: f"{about_nodes.place(row)} (node {node_ids[row]!r})",
        )
    except DataError as error:
        raise DataError(error.problem, path=about_nodes.path, where=error.where, remedy=error.remedy) from error
    edge_columns = dict(edges.columns) if edges else {}
    edge_weight = _edge_weights(edges.file, edge_columns, notes) if edges else None
    hypergraph = Hypergraph(
        torch.from_numpy(node), torch.from_numpy(edge), len(node_ids), len(edge_ids), edge_weight, weight
    )
    notes += [*merged_note(hypergraph), *found.notes]
    return NodeDataset(
        name=file.name.stem,
        hypergraph=hypergraph,
        x=found.x,
        **label_fields(found.labels),
        feature_names=found.feature_names,
        node_ids=node_ids,
        edge_ids=edge_ids,
        node_attributes=found.attributes,
        edge_attributes={name: as_list(column) for name, column in edge_columns.items()},
        provenance=Provenance(str(path), file.name.kind, tuple(notes), found.details),
    )


def read_seeds(path: Path, dataset: NodeDataset, limits: Limits) -> Float[Tensor, " N"]:
    """Read seed values of a diffusion; nodes that are not named have the value 0.

    Args:
        path: A CSV, TSV or Parquet table with the columns `node` and `value`.
        dataset: The dataset whose nodes are named.
        limits: Size limits.

    Returns:
        A value per node, float64.

    Raises:
        DataError: if a node is unknown or named twice, or a value is not a finite number.
    """
    file = TableFile.open(path, limits, table_name(path))
    if not {"node", "value"} <= set(file.header.columns):
        columns = ", ".join(file.header.columns)
        raise DataError(f"Seeds must have the columns 'node' and 'value'. Got {columns}.", path=path)
    table = file.read(["node", "value"], as_text=["node"])
    values = numbers_in(table["value"])
    if values is None:  # text among the numbers: each row for itself, so that the wrong one is named
        values = np.array([_number(value) for value in as_list(table["value"])], dtype=np.float64)
    x = np.zeros(dataset.hypergraph.num_nodes)
    seen: dict[int, int] = {}
    for row, name in enumerate(as_list(table["node"])):
        place = _position(name, dataset)
        if place is None or place in seen:
            what = "Each node must be named once" if place in seen else "Every seed must be a node of the hypergraph"
            raise DataError(f"{what}. Got {name!r}.", path=path, where=file.place(row))
        if not np.isfinite(values[row]):
            raise DataError("Every value must be a finite number.", path=path, where=file.place(row))
        seen[place] = row
        x[place] = values[row]
    return torch.from_numpy(x)


class _Listing(NamedTuple):
    """A node or hyperedge table: its file, its ids and its other columns."""

    file: TableFile
    ids: IdColumn
    columns: dict[str, Column]


def _incidence_columns(file: TableFile, request: TableRequest, notes: list[str]) -> tuple[str, str, str | None]:
    path, columns = file.path, file.header.columns
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
    node, edge, weight = asked.values()
    if node is None or edge is None or node == edge or weight in (node, edge):
        got = ", ".join(f"'{name}' for the {kind}" for kind, name in asked.items() if name is not None)
        raise UsageError(f"Node, hyperedge and weight must be columns of their own in '{path.name}'. Got {got}.")
    return node, edge, weight


def _neighbour(incidences: TableFile, what: str, given: Path | None, notes: list[str]) -> Path | None:
    """Return the node or hyperedge table: the one given, or the neighbour named after the incidence table.

    One with the same ending comes first; one that ends otherwise is taken if there is no second.
    """
    if given is not None:
        return given
    path, name = incidences.path, incidences.name
    found = path.with_name(name.neighbour(what))
    if not found.is_file():
        free, owned = other_neighbours(path, name, what)
        if len(free) > 1:
            names = " and ".join(f"'{table.name}'" for table in free)
            raise UsageError(
                f"One table of {what} may stand beside '{path.name}'. Got {names}. Name one with --{what}, or call it "
                f"'{found.name}'."
            )
        notes += [f"table of {what} not taken, as it belongs to another table: '{table.name}'" for table in owned]
        if not free:
            return None
        found = free[0]
    notes.append(f"table of {what} found beside it: '{found.name}'")
    return found


def _need_no_nodes(file: TableFile, request: TableRequest) -> None:
    """Refuse options about the node table where there is none."""
    asked = {"--label": request.columns.label, "--features": request.columns.features}
    named = {option: names[0] for option, names in asked.items() if names}
    if request.id is not None:
        named["--id-column"] = request.id
    if named:
        option, name = next(iter(named.items()))
        columns = name if option == "--id-column" else f"id,{name}"
        raise UsageError(
            f"{option} names the column '{name}', but '{file.path.name}' has no table of nodes. Put the column into "
            f"one beside it, '{file.name.neighbour('nodes')}' ({columns},...), or name one with --nodes."
        )


def _listing(
    path: Path | None, id_column: str | None, request: ColumnRequest | None, limits: Limits, notes: list[str]
) -> _Listing | None:
    """Read a table of nodes, whose columns are asked for or guessed, or of hyperedges, where only a weight may be."""
    if path is None:
        return None
    file = TableFile.open(path, limits)
    header = file.header
    notes += [f"{header.note} in '{path.name}'"] if header.note else []
    if id_column is not None and id_column not in header.columns:
        raise unknown_name(f"id column of '{path.name}'", id_column, header.columns)
    if id_column is None:
        lower = {name.lower(): name for name in reversed(header.columns)}
        id_column = next((lower[guess] for guess in ID_GUESSES if guess in lower), header.columns[0])
        notes.append(f"id column of '{path.name}' guessed: '{id_column}'")
    others = [name for name in header.columns if name != id_column]
    labels = () if request is None else label_columns(others, request)
    numbers = ("weight",) if request is None else numeric_columns(labels, request)
    table = file.read_listing(id_column, labels=labels, numbers=numbers)
    columns: dict[str, Column] = {name: _plain(file, name, table[name]) for name in others}
    return _Listing(file, _ids(file, table[id_column], id_column), columns)


def _number_ids(
    incidences: TableFile, kind: str, listing: _Listing | None, mentions: IdColumn
) -> tuple[Ids, IndexArray]:
    """Number the ids; with a table of them, each must be listed there once."""
    listed = listing.ids if listing else IdColumn()
    columns = [(mentions, incidences), *([(listed, listing.file)] if listing else [])]
    untyped = [column for column, file in columns if file.is_text]
    if untyped and not any(_is_text(column) for column, file in columns if not file.is_text):
        integers_if_all_canonical(untyped)
    ids, in_listing, in_mentions = encode_ids(listed, mentions)
    if listing is not None:
        first = np.unique(in_listing, return_index=True)[1]
        if len(first) < len(in_listing):
            row = int(np.setdiff1d(np.arange(len(in_listing)), first)[0])
            raise DataError(
                f"Each {kind} must stand once in its table. Got {ids[int(in_listing[row])]!r} again.",
                path=listing.file.path,
                where=listing.file.place(row),
            )
        unknown = np.flatnonzero(in_mentions >= len(in_listing))
        if len(unknown):
            name = ids[int(in_mentions[unknown[0]])]
            raise DataError(
                f"Every {kind} must be listed in '{listing.file.path.name}'. Got {name!r}.",
                path=incidences.path,
                where=incidences.place(int(unknown[0])),
                remedy=f"Add it there, or leave that table out of it; {len(unknown)} row(s) are concerned.",
            )
    return ids, in_mentions


def _ids(file: TableFile, column: pa.ChunkedArray, name: str) -> IdColumn:
    """Return a column of a table as ids: text or 64-bit integers, none missing."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(
            f"Every row must have an id in the column '{name}'. It is empty.",
            path=file.path,
            where=file.place(row),
        )
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    try:
        if pa.types.is_integer(kind):
            column = column.cast(pa.int64())
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            column = column.cast(pa.string())
        elif len(column):
            raise pa.ArrowInvalid(f"Got {kind}")
    except pa.ArrowException as error:
        raise DataError(
            f"The ids in the column '{name}' must be text or 64-bit integers. {error}.", path=file.path
        ) from error
    ids = IdColumn()
    for chunk in column.chunks:
        ids.append_arrow(chunk)
    return ids


def _is_text(column: IdColumn) -> bool:
    return any(isinstance(chunk, pa.Array) and pa.types.is_string(chunk.type) for chunk in column.chunks)


def _edge_weights(file: TableFile, columns: dict[str, Column], notes: list[str]) -> Tensor | None:
    """Take the weights of hyperedges out of their columns; left there, with a note, if they are not numbers."""
    if "weight" not in columns:
        return None
    if len(columns["weight"]) and numbers_in(columns["weight"]) is None:
        row, value = first_other(columns["weight"])
        what = "it is empty" if value is None else f"{value!r} is not a number"
        notes.append(f"weights of hyperedges not taken, as {what}: '{file.path.name}', {file.place(row)}")
        return None
    return _weights(file, columns.pop("weight"), "weight")


def _weights(file: TableFile, column: Column, name: str) -> Tensor:
    """Return a column of weights as numbers; a data error names the line if one is no finite number of 0 or more."""
    numbers = numbers_in(column) if len(column) else np.zeros(0)
    if numbers is None:
        row, value = first_other(column)
        raise DataError(
            f"The weight column '{name}' must hold numbers. Got {'nothing' if value is None else repr(value)}.",
            path=file.path,
            where=file.place(row),
        )
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        raise DataError(
            f"Every weight must be finite and 0 or more. Got {numbers[wrong[0]]}.",
            path=file.path,
            where=file.place(int(wrong[0])),
        )
    return torch.tensor(numbers)  # a copy: Arrow's memory is not for writing


def _plain(file: TableFile, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return dates, times and the like as text; numbers, text, truth values and lists of them as they are."""
    kind = column.type
    if _is_plain(kind):
        return column
    try:
        if pa.types.is_binary(kind):
            if file.is_text:
                need_utf8_lines(file.path, file.limits)
            raise pa.ArrowInvalid(f"it is {kind}")
        return column.cast(pa.string())
    except pa.ArrowException as error:
        raise DataError(
            f"The column '{name}' must be UTF-8 text, numbers or truth values: {error}.", path=file.path
        ) from error


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_list(kind) or types.is_struct(kind):
        return all(_is_plain(kind.field(place).type) for place in range(kind.num_fields))
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_string(kind))


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def _position(name: object, dataset: NodeDataset) -> int | None:
    """The node of this id; text that spells an integer may mean the integer."""
    if not isinstance(name, str | int) or isinstance(name, bool):
        return None
    found = dataset.node_ids.position(name)
    number = plain_integer(name) if found is None and isinstance(name, str) else None
    return found if number is None else dataset.node_ids.position(number)
