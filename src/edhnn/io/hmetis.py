"""hMETIS `.hgr`: a header `hyperedges nodes [format]`, then a line of 1-based node numbers per hyperedge.

In format 1 every hyperedge line starts with an integer weight. In format 10 a line with the weight of each node follows
the hyperedges. Format 11 has both. Lines that start with ``%`` are comments.
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
from edhnn.io.integer_lines import edge_of_each, read_integer_lines
from edhnn.typing import IntArray


def read_hmetis(path: Path, limits: Limits) -> NodeDataset:
    """Read an hMETIS file.

    Args:
        path: The file, plain or gzip.
        limits: Size limits.

    Returns:
        The dataset. Its ids are the 1-based numbers of the file. Node weights become the node attribute `weight`.

    Raises:
        DataError: if the header and the lines disagree, or a node number is out of range.
    """
    numbers, sizes = read_integer_lines(path, limits, commas=False, comment=b"%")
    num_edges, num_nodes, form = _header(path, numbers, sizes)
    limits.check_nodes(num_nodes, path, entries=len(numbers))
    node_weighted, edge_weighted = form >= 10, form % 10 == 1
    expected = 1 + num_edges + (num_nodes if node_weighted else 0)
    if len(sizes) < expected or sizes[expected:].any():
        given = int(np.flatnonzero(sizes)[-1]) + 1
        raise DataError(
            f"The header declares {expected} lines ({num_edges} hyperedges"
            f"{f' and {num_nodes} node weights' if node_weighted else ''}). Got {given}.",
            path=path,
        )
    begin = int(sizes[0])
    edge_lines = sizes[1 : 1 + num_edges]
    stop = begin + int(edge_lines.sum())
    content, edge_weight = numbers[begin:stop], None
    if (edge_lines < 1 + edge_weighted).any():
        empty = int(np.argmin(edge_lines))
        raise DataError("A hyperedge must have at least one node.", path=path, where=f"hyperedge {empty + 1}")
    if edge_weighted:
        firsts = np.cumsum(edge_lines) - edge_lines
        edge_weight = torch.from_numpy(content[firsts].astype(np.float64))
        content, edge_lines = np.delete(content, firsts), edge_lines - 1
    edge = edge_of_each(edge_lines)
    wrong = np.flatnonzero((content < 1) | (content > num_nodes))
    if len(wrong):
        raise DataError(
            f"Node numbers must be from 1 to {num_nodes}, the number in the header. Got {content[wrong[0]]}.",
            path=path,
            where=f"hyperedge {edge[wrong[0]] + 1}",
        )
    weights = numbers[stop : stop + num_nodes].tolist() if node_weighted else None
    if weights is not None and (sizes[1 + num_edges : expected] != 1).any():
        raise DataError("Each node weight must be on a separate line.", path=path)
    hypergraph = Hypergraph(torch.from_numpy(content - 1), torch.from_numpy(edge), num_nodes, num_edges, edge_weight)
    return NodeDataset(
        name=path.name.removesuffix(".gz").removesuffix(".hgr"),
        hypergraph=hypergraph,
        node_ids=Ids(range(1, num_nodes + 1)),
        edge_ids=Ids(range(1, num_edges + 1)),
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
            where="the first line that is not a comment",
        )
    num_edges, num_nodes = int(numbers[0]), int(numbers[1])
    if num_edges > len(sizes):
        raise DataError(f"The header declares {num_edges} hyperedges. Got {len(sizes) - 1} lines.", path=path)
    return num_edges, num_nodes, form


def write_hmetis(dataset: NodeDataset, target: Path) -> list[Path]:
    """Write an hMETIS file, with hyperedge weights and the node attribute `weight` if they are integers."""
    hypergraph = dataset.hypergraph
    empty = int((hypergraph.edge_size == 0).sum())
    if empty:
        raise DataError(
            f"hMETIS cannot store empty hyperedges. Got {empty}.", remedy="Write HIF or a dataset folder instead."
        )
    edge_weight = _integer_weights("hyperedge", hypergraph.edge_weight)
    node_weight = _integer_weights("node", dataset.node_attributes.get("weight"))
    form = (10 if node_weight else 0) + (1 if edge_weight else 0)
    with atomic_file(target) as path, compressed_by_name(path, target.name) as stream:
        header = f"{hypergraph.num_edges} {hypergraph.num_nodes}{f' {form}' if form else ''}\n"
        stream.write(header.encode())
        if edge_weight:
            for weight, members in zip(edge_weight, hypergraph.hyperedges(), strict=True):
                numbers = (weight, *(node + 1 for node in members))
                stream.write(" ".join(str(number) for number in numbers).encode() + b"\n")
        else:
            write_integer_lines(stream, hypergraph, offset=1, separator=b" ")
        if node_weight:
            stream.write("".join(f"{weight}\n" for weight in node_weight).encode())
    return [target]


def _dropped(dataset: NodeDataset, _: Path) -> list[str]:
    dropped = dropped_parts(dataset, holds=("edge_weight", "weight"))
    for weight in dataset.node_attributes.get("weight", ()):
        if type(weight.item() if isinstance(weight, np.generic | Tensor) else weight) is not int:
            return [*dropped, "the type of the node weights (written as integers)"]
    return dropped


def _integer_weights(kind: str, weights: object) -> list[int] | None:
    if weights is None:
        return None
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        array = np.array([np.nan])
    if not (np.isfinite(array) & (array == np.floor(array)) & (array >= 0) & (array < 2**53)).all():
        raise DataError(
            f"In hMETIS, {kind} weights must be integers of 0 or more and less than 2**53.",
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
