"""Reader of incidence tables, with one line per membership, and of the tables of nodes and hyperedges beside them.

    baskets.csv               node,hyperedge[,weight]
    baskets.nodes.csv         id,label,price,size,...      every node, isolated ones too
    baskets.hyperedges.csv    id[,weight,...]              every hyperedge, empty ones too

Options name the columns, or the reader guesses them from their names and reports every guess. The tables may be CSV,
TSV or Parquet, and text tables may be gzip-compressed. The seeds of a diffusion are a table too.
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
        The dataset. Its provenance notes list the guesses.
    """
    file = TableFile.open(path, limits)
    notes = [file.header.note] if file.header.note else []
    node_column, edge_column, weight_column = incidence_columns(file, request, notes)
    used = [name for name in (node_column, edge_column, weight_column) if name is not None]
    unused = [name for name in file.header.columns if name not in used]
    notes += [f"columns of the incidence table left out: {', '.join(unused)}"] if unused else []
    table = file.read(used, as_text=(node_column, edge_column))
    mentioned_nodes, mentioned_edges = (_ids(file, table[name], name) for name in (node_column, edge_column))
    weight = None if weight_column is None else _weights(file, table[weight_column], weight_column)
    del table

    nodes = _read_listing(_neighbour(file, "nodes", request.nodes, notes), request.id, request.columns, limits, notes)
    if nodes is None:
        _need_no_node_options(file, request)
    edges = _read_listing(_neighbour(file, "hyperedges", request.hyperedges, notes), None, None, limits, notes)
    node_ids, node = _number_ids(file, "node", nodes, mentioned_nodes)
    about_nodes = nodes.file if nodes else file
    limits.check_nodes(len(node_ids), about_nodes.path)
    edge_ids, edge = _number_ids(file, "hyperedge", edges, mentioned_edges)

    try:
        columns = sort_columns(
            nodes.columns if nodes else {},
            request.columns,
            len(node_ids),
            lambda row: f"{about_nodes.locate(row)} (node {node_ids[row]!r})",
        )
    except DataError as error:
        raise DataError(error.problem, path=about_nodes.path, where=error.where, remedy=error.remedy) from error
    edge_columns = dict(edges.columns) if edges else {}
    edge_weight = _edge_weights(edges.file, edge_columns, notes) if edges else None
    hypergraph = Hypergraph(
        torch.from_numpy(node), torch.from_numpy(edge), len(node_ids), len(edge_ids), edge_weight, weight
    )
    notes += [*merged_note(hypergraph), *columns.notes]
    return NodeDataset(
        name=file.name.stem,
        hypergraph=hypergraph,
        x=columns.x,
        **label_fields(columns.labels),
        feature_names=columns.feature_names,
        node_ids=node_ids,
        edge_ids=edge_ids,
        node_attributes=columns.attributes,
        edge_attributes={name: as_list(column) for name, column in edge_columns.items()},
        provenance=Provenance(str(path), file.name.kind, tuple(notes), columns.details),
    )


def read_seeds(path: Path, dataset: NodeDataset, limits: Limits) -> Float[Tensor, " N"]:
    """Read the seed values of a diffusion; the value of a node without a row is 0.

    Args:
        path: A CSV, TSV or Parquet table with the columns `node` and `value`.
        dataset: The dataset that contains the nodes.
        limits: Size limits.

    Returns:
        A value per node, float64.

    Raises:
        DataError: if a node is unknown or occurs twice, or a value is not a finite number.
    """
    file = TableFile.open(path, limits, table_name(path))
    if not {"node", "value"} <= set(file.header.columns):
        columns = ", ".join(file.header.columns)
        raise DataError(f"Seeds must have the columns 'node' and 'value'. Got {columns}.", path=path)
    table = file.read(["node", "value"], as_text=["node"])
    values = numbers_in(table["value"])
    if values is None:  # some values are text: convert each row, so that the error names the wrong one
        values = np.array([_number(value) for value in as_list(table["value"])], dtype=np.float64)
    x = np.zeros(dataset.hypergraph.num_nodes)
    seen: set[int] = set()
    for row, name in enumerate(as_list(table["node"])):
        node = _find_node(name, dataset)
        if node is None or node in seen:
            rule = "Every seed must be a node of the hypergraph" if node is None else "Each node must occur once"
            raise DataError(f"{rule}. Got {name!r}.", path=path, where=file.locate(row))
        if not np.isfinite(values[row]):
            raise DataError("Every value must be a finite number.", path=path, where=file.locate(row))
        seen.add(node)
        x[node] = values[row]
    return torch.from_numpy(x)


class _Listing(NamedTuple):
    """A node or hyperedge table: its file, its ids and its other columns."""

    file: TableFile
    ids: IdColumn
    columns: dict[str, Column]


def incidence_columns(file: TableFile, request: TableRequest, notes: list[str]) -> tuple[str, str, str | None]:
    """Return the columns of nodes, hyperedges and weights: those named by the request, or guessed, with a note."""
    path, columns = file.path, file.header.columns
    if len(columns) < 2:
        raise DataError(
            f"An incidence table must have a node column and a hyperedge column. Got {', '.join(columns)} only.",
            path=path,
        )
    chosen = {"node": request.node, "hyperedge": request.edge, "weight": request.weight}
    for kind, name in chosen.items():
        if name is not None and name not in columns:
            raise unknown_name(f"{kind} column of '{path.name}'", name, columns)
    free = [name for name in columns if name not in chosen.values()]
    for kind, guesses in (("node", NODE_GUESSES), ("hyperedge", EDGE_GUESSES), ("weight", WEIGHT_GUESSES)):
        if chosen[kind] is None:
            guess = next((name for guess in guesses for name in free if name.lower() == guess), None)
            if guess is None and kind != "weight" and free:
                guess = free[0]
            if guess is not None:
                chosen[kind] = guess
                free.remove(guess)
                notes.append(f"{kind} column guessed: '{guess}'")
    node, edge, weight = chosen.values()
    if node is None or edge is None or node == edge or weight in (node, edge):
        got = ", ".join(f"'{name}' for the {kind}" for kind, name in chosen.items() if name is not None)
        raise UsageError(f"Node, hyperedge and weight must be different columns of '{path.name}'. Got {got}.")
    return node, edge, weight


def _neighbour(incidences: TableFile, what: str, given: Path | None, notes: list[str]) -> Path | None:
    """Return the node or hyperedge table: the one given, or the file named after the incidence table.

    A file with the same ending wins. A file with another ending is used if it is the only one.
    """
    if given is not None:
        return given
    path, name = incidences.path, incidences.name
    table = path.with_name(name.neighbour(what))
    if not table.is_file():
        free, owned = other_neighbours(path, name, what)
        if len(free) > 1:
            names = " and ".join(f"'{other.name}'" for other in free)
            raise UsageError(
                f"Several tables of {what} match '{path.name}': {names}. Name one with `{what}=`, or rename it to "
                f"'{table.name}'."
            )
        notes += [f"table of {what} ignored, because it belongs to another table: '{other.name}'" for other in owned]
        if not free:
            return None
        table = free[0]
    notes.append(f"table of {what} found beside it: '{table.name}'")
    return table


def _need_no_node_options(file: TableFile, request: TableRequest) -> None:
    """Raise a `UsageError` for an option about the node table, because there is no such table."""
    options = {
        "label": request.columns.label,
        "features": request.columns.features,
        "id": None if request.id is None else (request.id,),
    }
    for option, names in options.items():
        if names:
            columns = names[0] if option == "id" else f"id,{names[0]}"
            raise UsageError(
                f"`{option}=` names the column '{names[0]}', but '{file.path.name}' has no table of nodes. Create the "
                f"file '{file.name.neighbour('nodes')}' with the columns {columns},... or name a table with `nodes=`."
            )


def _read_listing(
    path: Path | None, id_column: str | None, request: ColumnRequest | None, limits: Limits, notes: list[str]
) -> _Listing | None:
    """Read a table of nodes, or a table of hyperedges (``request`` is ``None``)."""
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
    """Return the distinct ids and the number of each mention. Check that each id occurs once in its table, if any."""
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
                f"Each {kind} must occur once in this table. Got {ids[int(in_listing[row])]!r} twice.",
                path=listing.file.path,
                where=listing.file.locate(row),
            )
        unknown = np.flatnonzero(in_mentions >= len(in_listing))
        if len(unknown):
            name = ids[int(in_mentions[unknown[0]])]
            raise DataError(
                f"Every {kind} must be listed in '{listing.file.path.name}'. Got {name!r}.",
                path=incidences.path,
                where=incidences.locate(int(unknown[0])),
                remedy=f"Add it there, or do not use that table. {len(unknown)} row(s) have this problem.",
            )
    return ids, in_mentions


def _ids(file: TableFile, column: pa.ChunkedArray, name: str) -> IdColumn:
    """Return a column as ids, and check that they are text or 64-bit integers and none is missing."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(
            f"Every row must have an id in the column '{name}'. It is empty.",
            path=file.path,
            where=file.locate(row),
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
    """Remove the hyperedge weights from the columns and return them; leave them there, with a note, if not numbers."""
    if "weight" not in columns:
        return None
    if len(columns["weight"]) and numbers_in(columns["weight"]) is None:
        row, value = first_other(columns["weight"])
        reason = "one is empty" if value is None else f"{value!r} is not a number"
        notes.append(f"hyperedge weights ignored, because {reason}: '{file.path.name}', {file.locate(row)}")
        return None
    return _weights(file, columns.pop("weight"), "weight")


def _weights(file: TableFile, column: Column, name: str) -> Tensor:
    """Return a column of weights, and check that they are finite numbers of 0 or more."""
    numbers = numbers_in(column) if len(column) else np.zeros(0)
    if numbers is None:
        row, value = first_other(column)
        raise DataError(
            f"The weight column '{name}' must contain numbers. Got {'nothing' if value is None else repr(value)}.",
            path=file.path,
            where=file.locate(row),
        )
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        raise DataError(
            f"Every weight must be finite and 0 or more. Got {numbers[wrong[0]]}.",
            path=file.path,
            where=file.locate(int(wrong[0])),
        )
    return torch.tensor(numbers)  # copies, because Arrow's memory is read-only


def _plain(file: TableFile, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers, text, booleans and lists of them unchanged, and other types such as dates as text."""
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
            f"The column '{name}' must be UTF-8 text, numbers or booleans. Cause: {error}.", path=file.path
        ) from error


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_list(kind) or types.is_struct(kind):
        return all(_is_plain(kind.field(index).type) for index in range(kind.num_fields))
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_string(kind))


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def _find_node(name: object, dataset: NodeDataset) -> int | None:
    """Return the number of the node with this id; if no id is that text, try the integer that it spells."""
    if not isinstance(name, str | int) or isinstance(name, bool):
        return None
    node = dataset.node_ids.position(name)
    number = plain_integer(name) if node is None and isinstance(name, str) else None
    return node if number is None else dataset.node_ids.position(number)
