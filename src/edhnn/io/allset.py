"""The files of AllSet: `NAME.content`, lines ``id feature ... label`` and `NAME.edges`, lines ``node hyperedge``.

`NAME.content` may list the hyperedges behind the nodes; these lines are left out. Blanks or tabs separate the fields.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import torch

from edhnn.data.columns import label_fields, sort_columns
from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.ids import Ids, canonical_integers
from edhnn.data.limits import Limits
from edhnn.data.values import Column
from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.file_format import FileFormat, TableRequest
from edhnn.io.files import line_too_long, need_utf8_lines, open_limited

_CONTENT, _EDGES = ".content", ".edges"
_BLANKS = re.compile(rb"[ \t]+")
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


def read_allset(path: Path, request: TableRequest, limits: Limits) -> NodeDataset:
    """Read a hypergraph in the files of AllSet.

    Args:
        path: `NAME.content` or `NAME.edges`, plain or gzip, or the folder of one such dataset.
        request: Labels and features; the columns are `x1`, `x2`, ... and `label`.
        limits: Size limits, for each file.

    Returns:
        The dataset. Its nodes are those of `NAME.content`, in this order.

    Raises:
        DataError: if the files disagree.
        UsageError: if one of them is missing.
    """
    content_path, edges_path = _both(path)
    edges = _read(edges_path, limits, text=(0, 1))
    if edges.num_columns != 2:
        raise DataError(f"Every line must be 'node hyperedge'. Got {edges.num_columns} fields.", path=edges_path)
    content = _read(content_path, limits, text=(0,))
    if content.num_columns < 2:
        raise DataError("Every line must be 'id feature ... label'. Got one field.", path=content_path)
    members, edge_of = (edges[column].combine_chunks() for column in (0, 1))
    edge_names = pc.unique(edge_of)
    listed = content[0].combine_chunks()
    is_node = pc.invert(pc.is_in(listed, value_set=edge_names))
    rows = np.flatnonzero(is_node.to_numpy(zero_copy_only=False))
    nodes = listed.filter(is_node)
    limits.check_nodes(len(nodes), content_path)
    limits.check_hyperedges(len(edge_names), edges_path, len(members))
    if pc.count_distinct(nodes).as_py() < len(nodes):
        first = np.unique(pc.index_in(nodes, value_set=pc.unique(nodes)).to_numpy(), return_index=True)[1]
        row = int(np.setdiff1d(np.arange(len(nodes)), first)[0])
        problem = f"Each node must occur once. Got {nodes[row].as_py()!r} twice."
        raise DataError(problem, path=content_path, where=f"line {_line(content_path, limits, int(rows[row]))}")
    node = pc.index_in(members, value_set=nodes)
    if node.null_count:
        row = int(np.flatnonzero(node.is_null().to_numpy(zero_copy_only=False))[0])
        name = members[row].as_py()
        both = pc.is_in(pa.array([name]), value_set=edge_names)[0].as_py()
        problem = "is a node and a hyperedge, as in a graph of pairs" if both else f"is not in '{content_path.name}'"
        raise DataError(
            f"The first field must be a node of '{content_path.name}', the second another id. {name!r} {problem}.",
            path=edges_path,
            where=f"line {_line(edges_path, limits, row)}",
        )
    hypergraph = Hypergraph(
        torch.from_numpy(node.to_numpy().astype(np.int64)),
        torch.from_numpy(pc.index_in(edge_of, value_set=edge_names).to_numpy().astype(np.int64)),
        len(nodes),
        len(edge_names),
    )
    features: dict[str, pa.ChunkedArray] = {
        f"x{column}": content[column].filter(is_node) for column in range(1, content.num_columns - 1)
    }
    for name, column in features.items():
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)) and len(nodes):
            raise DataError(f"Every feature must be a number. Column {name[1:]} is not.", path=content_path)
    columns: dict[str, Column] = {**features, "label": _labels(content[content.num_columns - 1].filter(is_node))}
    sorted_columns = sort_columns(
        columns,
        request.columns,
        len(nodes),
        lambda row: f"line {_line(content_path, limits, int(rows[row]))} (node {nodes[row].as_py()!r})",
    )
    left_out = len(listed) - len(nodes)
    notes = (f"{left_out} line(s) of hyperedges in '{content_path.name}' left out",) if left_out else ()
    return NodeDataset(
        name=content_path.name.removesuffix(".gz").removesuffix(_CONTENT),
        hypergraph=hypergraph,
        x=sorted_columns.x,
        **label_fields(sorted_columns.labels),
        feature_names=sorted_columns.feature_names,
        node_ids=_ids(nodes),
        edge_ids=_ids(edge_names),
        node_attributes=sorted_columns.attributes,
        provenance=Provenance(
            str(path), "allset", (*notes, *merged_note(hypergraph), *sorted_columns.notes), sorted_columns.details
        ),
    )


def _both(path: Path) -> tuple[Path, Path]:
    """Return the paths of the contents and of the edges."""
    if path.is_dir():
        files = sorted(path.glob(f"*{_CONTENT}*"))
        if len(files) != 1:
            names = ", ".join(f"'{file.name}'" for file in files)
            raise UsageError(f"The folder '{path}' must contain one NAME{_CONTENT}. Got {names or 'none'}.")
        path = files[0]
    name = path.name.removesuffix(".gz")
    stem = name[: -len(_EDGES)] if name.lower().endswith(_EDGES) else name[: -len(_CONTENT)]
    found = []
    for end in (_CONTENT, _EDGES):
        if name.lower().endswith(end):
            found.append(path)
            continue
        ends = (f"{end}.gz", end) if path.name.endswith(".gz") else (end, f"{end}.gz")
        other = next((path.with_name(stem + each) for each in ends if path.with_name(stem + each).is_file()), None)
        if other is None:
            raise UsageError(f"File not found: '{stem}{end}'. It must be beside '{path.name}'.")
        found.append(other)
    return found[0], found[1]


def _read(path: Path, limits: Limits, *, text: tuple[int, ...]) -> pa.Table:
    with open_limited(path, limits) as stream:
        lines = [_BLANKS.sub(b"\t", line.strip()) for line in iter(lambda: _line_of(stream, path, limits), b"")]
    filled = [line for line in lines if line]
    if not filled:
        raise DataError("The file must have lines. It is empty.", path=path)
    names = [f"f{number}" for number in range(filled[0].count(b"\t") + 1)]
    limits.check_count("columns", len(names), path, entries=sum(line.count(b"\t") + 1 for line in filled))
    try:
        table = pa.csv.read_csv(
            io.BytesIO(b"\n".join(filled) + b"\n"),
            read_options=pa.csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=pa.csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pa.csv.ConvertOptions(
                column_types={names[column]: pa.string() for column in text if column < len(names)},
                null_values=[],
                timestamp_parsers=[],
            ),
        )
        if any(pa.types.is_binary(kind) for kind in table.schema.types):
            raise pa.ArrowInvalid("a text is not UTF-8")
        return table
    except pa.ArrowInvalid as error:
        ragged = _RAGGED.search(str(error))
        if ragged is None:
            need_utf8_lines(path, limits)
            raise DataError(f"The table is malformed. Cause: {str(error).splitlines()[0][:200]}.", path=path) from error
        raise DataError(
            f"Every line must have {ragged[2]} fields, as line 1 has. Got {ragged[3]}.",
            path=path,
            where=f"line {_line(path, limits, int(ragged[1]) - 1)}",
        ) from error


def _line_of(stream: io.BufferedReader, path: Path, limits: Limits) -> bytes:
    line = stream.readline(limits.max_record_bytes + 1)
    if len(line) > limits.max_record_bytes:
        raise line_too_long(path, limits, 1)
    return line


def _line(path: Path, limits: Limits, row: int) -> int:
    """Return the number of the line that has a row, because empty lines are skipped."""
    with open_limited(path, limits) as stream:
        for number, line in enumerate(iter(stream.readline, b""), start=1):
            if line.strip():
                if row == 0:
                    return number
                row -= 1
    return row + 1


def _labels(column: pa.ChunkedArray) -> Column:
    """Return labels as whole numbers if they are such in any notation, as `1.0` is, and as text otherwise."""
    if pa.types.is_floating(column.type):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            return column
    return column if pa.types.is_integer(column.type) else column.cast(pa.string())


def _ids(names: pa.Array) -> Ids:
    numbers = canonical_integers(names)
    return Ids(names.to_pylist() if numbers is None else np.asarray(numbers, dtype=np.int64))


FORMAT = FileFormat(
    name="allset",
    patterns=(_CONTENT, _EDGES),
    read=read_allset,
    options="columns",
    sign=(f"*{_CONTENT}*", f"NAME{_CONTENT} (AllSet)"),
)
