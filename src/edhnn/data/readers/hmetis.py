"""hMETIS `.hgr`: a header `hyperedges nodes [format]`, then a line of 1-based node numbers per hyperedge.

Format 1 puts an integer weight first on every hyperedge line, format 10 adds a line with a weight per node after the
hyperedges, 11 does both. Lines that start with ``%`` are comments.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.files import Limits, open_limited
from edhnn.data.ids import Ids
from edhnn.data.readers.integer_lines import IntegerLines
from edhnn.errors import DataError
from edhnn.hypergraph import Hypergraph
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
    with open_limited(path, limits) as stream:
        numbers, sizes = IntegerLines(stream, path, limits, commas=False, comment=b"%").read_all()
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
