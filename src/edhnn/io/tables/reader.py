"""Reader of incidence tables, with one line per membership, and of the tables of nodes and hyperedges beside them.

    baskets.csv               node,hyperedge[,weight]
    baskets.nodes.csv         id,label,price,size,...      every node, isolated ones too
    baskets.hyperedges.csv    id[,weight,...]              every hyperedge, empty ones too

Options name the columns, or the reader guesses them from their names and reports every guess. The tables may be CSV,
TSV or Parquet, and text tables may be gzip-compressed. The seeds of a diffusion are a table too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.data.columns import ColumnRequest, label_columns, label_fields, numeric_columns, sort_columns
from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.ids import IdColumn, Ids, encode_ids, integers_if_all_canonical, plain_integer
from edhnn.data.limits import Limits
from edhnn.data.values import Column, as_list, first_other, numbers_in, value_codes
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.file_format import TableColumns, TableRequest
from edhnn.io.files import need_utf8_lines
from edhnn.io.tables.arrow import TableFile
from edhnn.io.tables.names import other_neighbours, table_name
from edhnn.io.tables.roles import guess_columns
from edhnn.typing import IndexArray

ID_GUESSES = (
    "id", "node", "node_id", "nodes", "vertex", "vertex_id", "v", "member", "item", "user", "author", "product",
    "hyperedge", "hyperedge_id", "edge", "edge_id", "e", "group", "basket", "order", "committee", "paper",
)  # fmt: skip
_SHOWN = 5
_SAMPLE = 1000
_REPEATED = 0.5  # if fewer rows are of nodes with several rows, it tells nothing that each node has one value


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
    table_notes: list[str] = []
    usual_id = None if request.usual is None else request.usual.id
    nodes_path = _neighbour(file, "nodes", request.nodes, table_notes)
    nodes = _read_listing(file, nodes_path, request.id, usual_id, request.columns, limits, table_notes)
    edges_path = _neighbour(file, "hyperedges", request.hyperedges, table_notes)
    edges = _read_listing(file, edges_path, None, None, None, limits, table_notes)
    roles = _find_roles(file, request, nodes, notes)
    further = _further_columns(file, request, nodes, roles)
    table = _read_memberships(file, request, roles, further)
    roles = _check_roles(file, request, nodes, roles, table, notes)
    mentioned_nodes, mentioned_edges = (_ids(file, table[name], name) for name in (roles.node, roles.edge))
    weight = None if roles.weight is None else _weights(file, table[roles.weight], roles.weight)
    node_ids, node = _number_ids(file, "node", nodes, mentioned_nodes)
    about_nodes = nodes.file if nodes else file
    limits.check_nodes(len(node_ids), about_nodes.path)
    edge_ids, edge = _number_ids(file, "hyperedge", edges, mentioned_edges)

    node_columns = dict(nodes.columns) if nodes else {}
    from_rows = _columns_of_nodes(file, request, roles, table.select(further), node, node_ids, notes)
    node_columns |= from_rows
    if nodes is None:
        _need_no_node_options(file, request, from_rows)

    def locate(row: int) -> str:
        line = row if nodes else int(np.argmax(node == row))
        return f"{about_nodes.locate(line)} (node {node_ids[row]!r})"

    try:
        columns = sort_columns(node_columns, request.columns, len(node_ids), locate)
    except DataError as error:
        raise DataError(error.problem, path=about_nodes.path, where=error.where, remedy=error.remedy) from error
    edge_columns = dict(edges.columns) if edges else {}
    edge_weight = _edge_weights(edges.file, edge_columns, notes) if edges else None
    hypergraph = Hypergraph(
        torch.from_numpy(node), torch.from_numpy(edge), len(node_ids), len(edge_ids), edge_weight, weight
    )
    used = TableColumns(roles.node, roles.edge, roles.weight, nodes.id_column if nodes else None)
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
        provenance=Provenance(
            str(path),
            file.name.kind,
            (*notes, *table_notes, *merged_note(hypergraph), *columns.notes),
            {**columns.details, "columns": msgspec.to_builtins(used)},
        ),
    )


def find_id_columns(path: Path, limits: Limits) -> tuple[str, str]:
    """Return the columns of an incidence table that a reader takes for the nodes and the hyperedges."""
    roles = _find_roles(TableFile.open(path, limits), TableRequest(), None, [])
    return roles.node, roles.edge


def read_seeds(
    path: Path, dataset: NodeDataset, limits: Limits, columns: Sequence[str] = ("value",)
) -> Float[Tensor, "N D"]:
    """Read the seed values of a diffusion; the values of a node without a row are 0.

    Args:
        path: A CSV, TSV or Parquet table with the column `node` and the columns of values.
        dataset: The dataset that contains the nodes.
        limits: Size limits.
        columns: The columns of values.

    Returns:
        A row per node and a column per column of values, float64.

    Raises:
        DataError: if a node is unknown or occurs twice, or a value is not a finite number.
    """
    file, table, nodes = _read_seed_rows(path, dataset, limits, columns)
    x = np.zeros((dataset.hypergraph.num_nodes, len(columns)))
    for number, name in enumerate(columns):
        values = numbers_in(table[name])
        if values is None:  # some values are text: convert each row, so that the error names the wrong one
            values = np.array([_number(value) for value in as_list(table[name])], dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise DataError(
                f"Every value must be a finite number. Got {as_list(table[name])[wrong[0]]!r} in the column {name!r}.",
                path=path,
                where=file.locate(int(wrong[0])),
                remedy="If the column holds classes, use `method='labels'`.",
            )
        x[nodes, number] = values
    return torch.from_numpy(x)


def read_seed_classes(path: Path, dataset: NodeDataset, limits: Limits, column: str = "class") -> list[str | None]:
    """Read the known classes of nodes from a table with the column `node` and a column of classes.

    Returns:
        The class of each node as text; ``None`` for a node without a row.

    Raises:
        DataError: if a node is unknown or occurs twice, or a class is empty.
    """
    file, table, nodes = _read_seed_rows(path, dataset, limits, [column], as_text=[column])
    classes: list[str | None] = [None] * dataset.hypergraph.num_nodes
    for row, (node, name) in enumerate(zip(nodes, as_list(table[column]), strict=True)):
        if name is None or name == "":
            raise DataError("Every seed must have a class. Got an empty field.", path=path, where=file.locate(row))
        classes[node] = str(name)
    return classes


def _read_seed_rows(
    path: Path, dataset: NodeDataset, limits: Limits, columns: Sequence[str], as_text: Sequence[str] = ()
) -> tuple[TableFile, Any, list[int]]:
    """Read columns of a table of seeds; return the file, the table and the node of each row."""
    file = TableFile.open(path, limits, table_name(path))
    if not {"node", *columns} <= set(file.header.columns):
        wanted = " and ".join(repr(name) for name in ("node", *columns))
        got = ", ".join(file.header.columns)
        raise DataError(f"Seeds must have the columns {wanted}. Got {got}.", path=path)
    table = file.read(["node", *columns], as_text=["node", *as_text])
    nodes: list[int] = []
    seen: set[int] = set()
    for row, name in enumerate(as_list(table["node"])):
        node = _find_node(name, dataset)
        if node is None or node in seen:
            rule = "Every seed must be a node of the hypergraph" if node is None else "Each node must occur once"
            raise DataError(f"{rule}. Got {name!r}.", path=path, where=file.locate(row))
        seen.add(node)
        nodes.append(node)
    return file, table, nodes


class _Listing(NamedTuple):
    """A node or hyperedge table: its file, the column of its ids, the ids and the other columns."""

    file: TableFile
    id_column: str
    ids: IdColumn
    columns: dict[str, Column]


class _Roles(NamedTuple):
    """The columns of an incidence table.

    Attributes:
        node: The node column.
        edge: The hyperedge column.
        weight: The weight column.
        given: The roles that the user named: ``node``, ``hyperedge``.
        certain: Whether no other column could be the node.
    """

    node: str
    edge: str
    weight: str | None
    given: tuple[str, ...]
    certain: bool


def _find_roles(file: TableFile, request: TableRequest, nodes: _Listing | None, notes: list[str]) -> _Roles:
    """Return the columns that the user names, those of the training, or guesses from their names."""
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
    given = tuple(kind for kind, name in chosen.items() if name is not None)
    if request.usual is not None:
        for kind, name in msgspec.to_builtins(request.usual).items():
            if kind in chosen and chosen[kind] is None and name in columns and name not in chosen.values():
                chosen[kind] = name
    guess = guess_columns(
        columns,
        node=chosen["node"],
        edge=chosen["hyperedge"],
        weight=chosen["weight"],
        node_ids=None if nodes is None else nodes.id_column,
    )
    node, edge = guess.node, guess.edge
    if node is None or edge is None:
        named = [name for name in (node, edge) if name is not None]
        free = [name for name in columns if name not in (*named, guess.weight)]
        if len(named) + len(free) >= 2:
            node, edge = _guess_from_values(file, node, edge, free)
    if node is None or edge is None or node == edge or guess.weight in (node, edge):
        chosen = {"node": node, "hyperedge": edge, "weight": guess.weight}
        got = ", ".join(f"'{name}' for the {kind}" for kind, name in chosen.items() if name is not None)
        raise UsageError(f"Node, hyperedge and weight must be different columns of '{path.name}'. Got {got}.")
    for kind, name in (("node", node), ("hyperedge", edge), ("weight", guess.weight)):
        if chosen[kind] is None and name is not None:
            notes.append(f"{kind} column guessed: '{name}'")
    return _Roles(node, edge, guess.weight, given, guess.certain)


def _guess_from_values(
    file: TableFile, node: str | None, edge: str | None, free: Sequence[str]
) -> tuple[str | None, str | None]:
    """Guess columns whose names tell nothing by their values: ids occur more than once, and are no fractions or dates.

    Raises:
        DataError: if too many columns are possible. The message shows the first row.
    """
    needed = (node is None) + (edge is None)
    possible = list(free)
    if len(possible) > needed:
        table = file.read_listing(possible, ids=(), labels=(), numbers=())
        possible = [name for name in possible if _repeats(table[name])]
    if len(possible) != needed:
        table = file.read(list(free), as_text=list(free)).slice(0, 1)
        row = ", ".join(f"{name} = {table[name][0].as_py()!r:.40}" for name in free[:_SHOWN] if len(table))
        raise DataError(
            f"The node column and the hyperedge column must be known. {len(free)} columns are possible, and their "
            f"names do not tell. First row: {row or 'none'}.",
            path=file.path,
            remedy=f"Name the columns, for example `node={free[0]!r}` `edge={free[-1]!r}`.",
        )
    names = iter(possible)
    return node or next(names), edge or next(names)


def _repeats(column: pa.ChunkedArray) -> bool:
    """Return whether a column can be an id in memberships: text or integers, neither constant nor all different."""
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        return False
    return 1 < len(pc.unique(column)) < len(column)


def _further_columns(file: TableFile, request: TableRequest, nodes: _Listing | None, roles: _Roles) -> list[str]:
    """Return the other columns of the incidence table that may describe nodes: all, or those that are requested."""
    others = [name for name in file.header.columns if name not in (roles.node, roles.edge, roles.weight)]
    if nodes is None:
        return others
    wanted = request.columns
    encoded = () if wanted.encoding is None else wanted.encoding.names
    asked = {*(wanted.label or wanted.usual_label), *(wanted.features or ()), *wanted.attributes, *encoded}
    return [name for name in others if name in asked and name not in nodes.columns]


def _read_memberships(file: TableFile, request: TableRequest, roles: _Roles, further: Sequence[str]) -> pa.Table:
    ids = [roles.node, roles.edge]
    weights = [] if roles.weight is None else [roles.weight]
    if not further:
        return file.read([*ids, *weights], as_text=ids)
    wanted = request.columns.over(further)
    labels = label_columns(further, wanted)
    return file.read_listing(
        [*ids, *weights, *further],
        ids=ids,
        labels=labels,
        numbers=(*weights, *numeric_columns(labels, wanted)),
        texts=() if wanted.encoding is None else wanted.encoding.text_columns,
    )


def _check_roles(
    file: TableFile, request: TableRequest, nodes: _Listing | None, roles: _Roles, table: pa.Table, notes: list[str]
) -> _Roles:
    """Compare a guess with the ids of the table of nodes and with the label; return the roles that they support."""
    if nodes is None:
        node_fits = edge_fits = 0.0
    elif roles.certain and _share_listed(table[roles.node].slice(0, _SAMPLE), nodes) > 0:
        return roles
    else:
        node_fits, edge_fits = (_share_listed(table[name], nodes) for name in (roles.node, roles.edge))
    if nodes is not None and len(table) and node_fits == 0 and edge_fits > 0:
        swapped = f"`node={roles.edge!r}` `edge={roles.node!r}`"
        if "node" in roles.given or "hyperedge" in roles.given or edge_fits < 1:
            raise DataError(
                f"Every node must be listed in '{nodes.file.path.name}'. None of the column '{roles.node}' is, "
                f"first {table[roles.node][0].as_py()!r}, but {edge_fits:.0%} of '{roles.edge}' are. "
                "Are the columns swapped?",
                path=file.path,
                remedy=f"Try {swapped}.",
            )
        notes.append(
            f"the columns were swapped: '{roles.edge}' is the node, because its values are the ids of "
            f"'{nodes.file.path.name}'"
        )
        return roles._replace(node=roles.edge, edge=roles.node, certain=True)
    if roles.certain or roles.given:
        return roles
    if node_fits == 1 and edge_fits < 1:
        return roles._replace(certain=True)
    if edge_fits == 1 and node_fits < 1:
        notes.append(
            f"the columns were swapped: '{roles.edge}' is the node, because its values are the ids of "
            f"'{nodes.file.path.name if nodes else ''}'"
        )
        return roles._replace(node=roles.edge, edge=roles.node, certain=True)
    labels = [name for name in request.columns.label or () if name in table.column_names]
    if labels:
        per_node, per_edge = (
            all(_is_constant(table[name], table[label]) for label in labels) for name in (roles.node, roles.edge)
        )
        if per_node != per_edge:
            if per_edge:
                roles = roles._replace(node=roles.edge, edge=roles.node)
                notes.append(f"the columns were swapped: '{roles.node}' is the node, because it has one label each")
            return roles._replace(certain=True)
    row = ", ".join(f"{name} = {table[name][0].as_py()!r:.40}" for name in (roles.node, roles.edge) if len(table))
    notes.append(
        f"uncertain: the node could also be '{roles.edge}'. First row: {row or 'none'}. To swap the columns, use "
        f"`node={roles.edge!r}` `edge={roles.node!r}`"
    )
    return roles


def _share_listed(column: pa.ChunkedArray, nodes: _Listing) -> float:
    """Return the share of the distinct values of a column that are ids of the table of nodes."""
    texts = _as_text(column)
    if texts is None:
        return 0.0
    values = pc.unique(texts.drop_null())
    chunks = [chunk.cast(pa.string()) for chunk in nodes.ids.chunks if isinstance(chunk, pa.Array)]
    listed = pa.chunked_array(chunks, pa.string())
    known = pc.is_in(values, value_set=listed.combine_chunks())
    return float(pc.mean(known.cast(pa.float64())).as_py() or 0.0)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column as text; ``None`` for lists and bytes, which a later check refuses."""
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        return None


def _is_constant(ids: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    """Return whether all known values of an id are the same."""
    names, texts = _as_text(ids), _as_text(values)
    if names is None or texts is None:
        return False
    pairs = pa.table({"id": names, "value": texts}).drop_null()
    distinct = pairs.group_by(["id", "value"]).aggregate([])
    return len(distinct) == len(pc.unique(pairs["id"]))


def _columns_of_nodes(
    file: TableFile,
    request: TableRequest,
    roles: _Roles,
    table: pa.Table,
    node: IndexArray,
    node_ids: Ids,
    notes: list[str],
) -> dict[str, Column]:
    """Return the columns of the incidence table that have one value for each node; name the others in a note.

    Raises:
        DataError: if a requested column has two values for a node.
    """
    found: dict[str, Column] = {}
    used, wanted = {roles.node, roles.edge, roles.weight, *table.column_names}, request.columns
    left_out = [name for name in file.header.columns if name not in used]
    encoded = () if wanted.encoding is None else wanted.encoding.names
    asked = {*(wanted.label or ()), *(wanted.features or ()), *wanted.attributes, *encoded}
    for name in table.column_names:
        column = _plain(file, name, table[name])
        if pa.types.is_nested(column.type):
            left_out.append(f"{name} (lists)")
            continue
        codes = value_codes(column)
        known = np.flatnonzero(codes >= 0)
        first = np.full(len(node_ids), -1)
        first[node[known][::-1]] = known[::-1]  # the first row of a node is assigned last
        differing = known[codes[known] != codes[first[node[known]]]]
        if not len(differing) and name not in asked and _repeated(node[known]) < _REPEATED:
            left_out.append(f"{name} (too few nodes have two rows)")
            continue
        if not len(differing):
            found[name] = column.take(pa.array(first, mask=first < 0))
            continue
        row = int(differing[0])
        one, other = (column[number].as_py() for number in (int(first[node[row]]), row))
        nodes = len(np.unique(node[differing]))
        if name in asked:
            raise DataError(
                f"A label or feature must have one value for each node. Node {node_ids[int(node[row])]!r} has "
                f"{one!r:.60} and {other!r:.60} in the column '{name}'; {nodes} such node(s) in all.",
                path=file.path,
                where=file.locate(row),
                remedy="Correct the values, or put one value per node into a table of nodes.",
            )
        left_out.append(f"{name} (node {node_ids[int(node[row])]!r} has {one!r:.40} and {other!r:.40})")
    if found:
        notes.append(f"columns of the incidence table with one value for each node: {', '.join(found)}")
    if left_out:
        notes.append(f"columns of the incidence table left out: {', '.join(left_out)}")
    return found


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


def _repeated(node: IndexArray) -> float:
    """Return the share of rows whose node has another row."""
    return float((np.bincount(node)[node] > 1).mean()) if len(node) else 0.0


def _need_no_node_options(file: TableFile, request: TableRequest, columns: Collection[str]) -> None:
    """Raise a `UsageError` for an option about the node table that does not exist and whose column is nowhere else."""
    options = {
        "label": request.columns.label,
        "features": request.columns.features,
        "id": None if request.id is None else (request.id,),
    }
    for option, names in options.items():
        lacking = [name for name in names or () if option == "id" or name not in columns]
        if lacking:
            shown = lacking[0] if option == "id" else f"id,{lacking[0]}"
            raise UsageError(
                f"`{option}=` names the column '{lacking[0]}', but '{file.path.name}' has no table of nodes. Create "
                f"the file '{file.name.neighbour('nodes')}' with the columns {shown},... or name a table with `nodes=`."
            )


def _read_listing(
    incidences: TableFile,
    path: Path | None,
    id_column: str | None,
    usual_id: str | None,
    request: ColumnRequest | None,
    limits: Limits,
    notes: list[str],
) -> _Listing | None:
    """Read a table of nodes, or a table of hyperedges (``request`` is ``None``)."""
    if path is None:
        return None
    file = TableFile.open(path, limits)
    header = file.header
    notes += [f"{header.note} in '{path.name}'"] if header.note else []
    if id_column is not None and id_column not in header.columns:
        raise unknown_name(f"id column of '{path.name}'", id_column, header.columns)
    if id_column is None and usual_id in header.columns:
        id_column = usual_id
    if id_column is None:
        lower = {name.lower(): name for name in reversed(header.columns)}
        shared = [name for name in header.columns if name in incidences.header.columns]
        usual = shared[0] if len(shared) == 1 else header.columns[0]
        id_column = next((lower[guess] for guess in ID_GUESSES if guess in lower), usual)
        notes.append(f"id column of '{path.name}' guessed: '{id_column}'")
    others = [name for name in header.columns if name != id_column]
    wanted = None if request is None else request.over(others)
    labels = () if wanted is None else label_columns(others, wanted)
    table = file.read_listing(
        header.columns,
        ids=[id_column],
        labels=labels,
        numbers=("weight",) if wanted is None else numeric_columns(labels, wanted),
        texts=() if wanted is None or wanted.encoding is None else wanted.encoding.text_columns,
    )
    columns: dict[str, Column] = {name: _plain(file, name, table[name]) for name in others}
    return _Listing(file, id_column, _ids(file, table[id_column], id_column), columns)


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
