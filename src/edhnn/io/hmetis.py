"""hMETIS `.hgr`: a header `hyperedges nodes [format]`, then a line of 1-based node numbers per hyperedge.

Format 1 puts an integer weight first on every hyperedge line, format 10 adds a line with a weight per node after the
hyperedges, 11 does both. Lines that start with ``%`` are comments.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.fingerprints import write_integer_lines
from edhnn.data.ids import Ids
from edhnn.data.limits import Limits
from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.file_format import FileFormat, dropped_parts
from edhnn.io.files import atomic_file, compressed_by_name
from edhnn.io.integer_lines import read_integer_lines
from edhnn.typing import IntArray


def read_hmetis(path: Path, limits: Limits) -> NodeDataset:
    """Read an hMETIS file.

    Args:
        path: The file, plain or gzip.
        limits: Size limits.

    Returns:
        The dataset; ids are the 1-based numbers of the file, node weights are the node attribute `weight`.

    Raises:
        DataError: if the header and the lines disagree, or a node number is out of range.
    """
    numbers, sizes = read_integer_lines(path, limits, commas=False, comment=b"%")
    num_edges, num_nodes, form = _header(path, numbers, sizes)
    limits.check_nodes(num_nodes, path)
    node_weighted, edge_weighted = form >= 10, form % 10 == 1
    expected = 1 + num_edges + (num_nodes if node_weighted else 0)
    if len(sizes) < expected or sizes[expected:].any():
        given = int(np.flatnonzero(sizes)[-1]) + 1
        raise DataError(
            f"The header promises {expected} lines ({num_edges} hyperedges"
            f"{f' and {num_nodes} node weights' if node_weighted else ''}). Got {given}.",
            path=path,
        )
    begin = int(sizes[0])
    edge_lines = sizes[1 : 1 + num_edges]
    stop = begin + int(edge_lines.sum())
    content, edge_weight = numbers[begin:stop], None
    if (edge_lines < 1 + edge_weighted).any():
        place = int(np.argmin(edge_lines))
        raise DataError("A hyperedge must have a node, in this format.", path=path, where=f"hyperedge {place + 1}")
    if edge_weighted:
        firsts = np.cumsum(edge_lines) - edge_lines
        edge_weight = torch.from_numpy(content[firsts].astype(np.float64))
        content, edge_lines = np.delete(content, firsts), edge_lines - 1
    edge = np.repeat(np.arange(num_edges), edge_lines)
    wrong = np.flatnonzero((content < 1) | (content > num_nodes))
    if len(wrong):
        raise DataError(
            f"Node numbers must lie in 1..{num_nodes}, by the header. Got {content[wrong[0]]}.",
            path=path,
            where=f"hyperedge {edge[wrong[0]] + 1}",
        )
    weights = numbers[stop : stop + num_nodes].tolist() if node_weighted else None
    if weights is not None and (sizes[1 + num_edges : expected] != 1).any():
        raise DataError("Every node weight must stand on a line of its own.", path=path)
    hypergraph = Hypergraph(torch.from_numpy(content - 1), torch.from_numpy(edge), num_nodes, num_edges, edge_weight)
    return NodeDataset(
        name=path.name.removesuffix(".gz").removesuffix(".hgr"),
        hypergraph=hypergraph,
        node_ids=Ids(np.arange(1, num_nodes + 1)),
        edge_ids=Ids(np.arange(1, num_edges + 1)),
        node_attributes={} if weights is None else {"weight": weights},
        provenance=Provenance(str(path), "hmetis", merged_note(hypergraph)),
    )


def _header(path: Path, numbers: IntArray, sizes: IntArray) -> tuple[int, int, int]:
    shown = " ".join(str(number) for number in numbers[: int(sizes[0])][:5].tolist()) if len(sizes) else ""
    form = int(numbers[2]) if len(sizes) and sizes[0] == 3 else 0
    if not len(sizes) or sizes[0] not in (2, 3) or form not in (0, 1, 10, 11):
        raise DataError(
            f"The header must be 'hyperedges nodes' or 'hyperedges nodes format' with format 1, 10 or 11. "
            f"Got '{shown}'.",
            path=path,
            where="the first line that is no comment",
        )
    num_edges, num_nodes = int(numbers[0]), int(numbers[1])
    if num_edges > len(sizes):
        raise DataError(f"The header promises {num_edges} hyperedges. Got {len(sizes) - 1} lines.", path=path)
    return num_edges, num_nodes, form


def write_hmetis(dataset: NodeDataset, target: Path) -> list[Path]:
    """Write an hMETIS file; whole-number hyperedge weights and the node attribute `weight` go along."""
    hypergraph = dataset.hypergraph
    empty = int((hypergraph.edge_size == 0).sum())
    if empty:
        raise DataError(
            f"hMETIS holds no empty hyperedges; there are {empty}.", remedy="Write HIF or a folder instead."
        )
    edge_weight = _whole("hyperedge", hypergraph.edge_weight)
    node_weight = _whole("node", dataset.node_attributes.get("weight"))
    form = (10 if node_weight else 0) + (1 if edge_weight else 0)
    with atomic_file(target) as path, compressed_by_name(path, target.name) as stream:
        header = f"{hypergraph.num_edges} {hypergraph.num_nodes}{f' {form}' if form else ''}\n"
        stream.write(header.encode())
        if edge_weight:
            lines = hypergraph.hyperedges()
            for weight, line in zip(edge_weight, lines, strict=True):
                stream.write(" ".join(str(number) for number in (weight, *(v + 1 for v in line))).encode() + b"\n")
        else:
            write_integer_lines(stream, hypergraph, offset=1, separator=b" ")
        if node_weight:
            stream.write("".join(f"{weight}\n" for weight in node_weight).encode())
    return [target]


def _dropped(dataset: NodeDataset, _: Path) -> list[str]:
    dropped = dropped_parts(dataset, holds=("edge_weight", "weight"))
    if any(type(_plain(weight)) is not int for weight in dataset.node_attributes.get("weight", ())):
        dropped.append("that the node weights are not integers (written as whole numbers)")
    return dropped


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic | Tensor) else value


def _whole(kind: str, weights: object) -> list[int] | None:
    if weights is None:
        return None
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        array = np.array([np.nan])
    if not (np.isfinite(array) & (array == np.floor(array)) & (array >= 0) & (array < 2**53)).all():
        raise DataError(
            f"hMETIS holds whole-number {kind} weights only, 0 or more and less than 2 to the 53rd.",
            remedy="Round them, or write HIF instead.",
        )
    return [int(weight) for weight in array]


FORMAT = FileFormat(
    name="hmetis",
    patterns=(".hgr",),
    read=lambda path, _, limits: read_hmetis(path, limits),
    write=write_hmetis,
    dropped=_dropped,
)
