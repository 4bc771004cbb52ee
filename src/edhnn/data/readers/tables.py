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

import pyarrow as pa
import torch

from edhnn.data.column_values import as_list
from edhnn.data.columns import ColumnRequest, label_columns, sort_columns, told_numbers
from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.files import Limits, need_utf8_lines
from edhnn.data.labels import label_fields
from edhnn.data.readers.arrow_tables import Header, place_of_row, read_columns, read_header
from edhnn.data.readers.as_written import read_as_written
from edhnn.data.readers.table_ids import Listing, as_ids, number_ids
from edhnn.data.readers.table_weights import edge_weights, weights_of
from edhnn.data.table_names import other_neighbours, table_to_read
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
    name = table_to_read(path)
    kind = name.kind
    header = read_header(path, kind, limits)
    notes = [header.note] if header.note else []
    node_column, edge_column, weight_column = _incidence_columns(path, header, request, notes)
    wanted = [name for name in (node_column, edge_column, weight_column) if name is not None]
    unused = [name for name in header.columns if name not in wanted]
    notes += [f"columns of the incidence table left out: {', '.join(unused)}"] if unused else []
    table = read_columns(path, kind, header, limits, columns=wanted, text_columns=[node_column, edge_column])
    mentioned_nodes, mentioned_edges = (as_ids(path, table[name], name, limits) for name in (node_column, edge_column))
    weight = None if weight_column is None else weights_of(path, table[weight_column], weight_column, limits)
    del table

    nodes = _listing(_neighbour(path, "nodes", request.nodes, notes), request.id, request.columns, limits, notes)
    if nodes is None:
        _need_no_nodes(path, request)
    edges = _listing(_neighbour(path, "hyperedges", request.hyperedges, notes), None, None, limits, notes)
    node_ids, node = number_ids(path, "node", nodes, mentioned_nodes, limits)
    limits.check_nodes(len(node_ids), nodes.path if nodes else path)
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
    edge_weight = edge_weights(edges.path, edge_columns, limits, notes) if edges else None
    hypergraph = Hypergraph(
        torch.from_numpy(node), torch.from_numpy(edge), len(node_ids), len(edge_ids), edge_weight, weight
    )
    notes += [*merged_note(hypergraph), *found.notes]
    return NodeDataset(
        name=name.stem,
        hypergraph=hypergraph,
        x=found.x,
        **label_fields(found.labels),
        feature_names=found.feature_names,
        node_ids=node_ids,
        edge_ids=edge_ids,
        node_attributes=found.attributes,
        edge_attributes={name: as_list(column) for name, column in edge_columns.items()},
        provenance=Provenance(str(path), kind, tuple(notes), found.details),
    )


def _neighbour(path: Path, what: str, given: Path | None, notes: list[str]) -> Path | None:
    """The node or hyperedge table: the one given, or the neighbour named after the incidence table.

    One with the same ending comes first; one that ends otherwise is taken if there is no second.
    """
    if given is not None:
        return given
    name = table_to_read(path)
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


def _need_no_nodes(path: Path, request: TableRequest) -> None:
    """A usage error if something was said about the node table, and there is none."""
    asked = {"--label": request.columns.label, "--features": request.columns.features}
    named = {option: names[0] for option, names in asked.items() if names}
    if request.id is not None:
        named["--id-column"] = request.id
    if named:
        option, name = next(iter(named.items()))
        columns = name if option == "--id-column" else f"id,{name}"
        raise UsageError(
            f"{option} names the column '{name}', but '{path.name}' has no table of nodes. Put the column into one "
            f"beside it, '{table_to_read(path).neighbour('nodes')}' ({columns},...), or name one with --nodes."
        )


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
    node, edge, weight = asked.values()
    if node is None or edge is None or node == edge or weight in (node, edge):
        got = ", ".join(f"'{name}' for the {kind}" for kind, name in asked.items() if name is not None)
        raise UsageError(f"Node, hyperedge and weight must be columns of their own in '{path.name}'. Got {got}.")
    return node, edge, weight


def _listing(
    path: Path | None, id_column: str | None, request: ColumnRequest | None, limits: Limits, notes: list[str]
) -> Listing | None:
    """A table of nodes, whose columns are asked for or guessed, or of hyperedges, where only a weight may be."""
    if path is None:
        return None
    kind = table_to_read(path).kind
    header = read_header(path, kind, limits)
    notes += [f"{header.note} in '{path.name}'"] if header.note else []
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
    columns = {name: _plain(path, name, table[name], limits) for name in table.column_names if name != id_column}
    return Listing(path, as_ids(path, table[id_column], id_column, limits), columns)


def _plain(path: Path, name: str, column: pa.ChunkedArray, limits: Limits) -> pa.ChunkedArray:
    """Dates, times and the like as text; numbers, text, truth values and lists of them as they are."""
    kind = column.type
    if _is_plain(kind):
        return column
    try:
        if pa.types.is_binary(kind):
            if table_to_read(path).kind != "parquet":
                need_utf8_lines(path, limits)
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
