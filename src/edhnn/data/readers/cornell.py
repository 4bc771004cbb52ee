"""Cornell text: `hyperedges-NAME.txt`, a line of 1-based node numbers per hyperedge, and its neighbours.

`node-labels-NAME.txt` holds a 1-based class per node, `label-names-NAME.txt` a name per class and
`node-names-NAME.txt` a name per node; the last two are optional.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.files import Limits, need_utf8, open_limited
from edhnn.data.ids import Ids
from edhnn.data.readers.integer_lines import IntegerLines
from edhnn.errors import DataError, UsageError
from edhnn.hypergraph import Hypergraph
from edhnn.typing import IntArray

_PREFIX = "hyperedges-"


def find_cornell(path: Path) -> Path | None:
    """The `hyperedges-*.txt` file that a path means: itself, or the only one in a folder; ``None`` if there is none."""
    if path.is_file():
        return path if path.name.startswith(_PREFIX) else None
    found = sorted(path.glob(f"{_PREFIX}*.txt*"))
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise UsageError(f"The folder '{path}' must hold one {_PREFIX}*.txt. It holds {names}: name one of them.")
    return found[0] if found else None


def read_cornell(hyperedges_path: Path, labels_path: Path | None, limits: Limits) -> NodeDataset:
    """Read a hypergraph in Cornell text.

    Args:
        hyperedges_path: The file of hyperedges, plain or gzip.
        labels_path: The file of labels; by default the neighbour named `node-labels-...`, if there is one.
        limits: Size limits.

    Returns:
        The dataset; ids are the 1-based numbers of the file.
    """
    labels_path = labels_path or _neighbour(hyperedges_path, "node-labels")
    with open_limited(hyperedges_path, limits) as stream:
        members, sizes = IntegerLines(stream, hyperedges_path, limits, commas=True).read_all()
    if (members == 0).any():
        raise _error_at(hyperedges_path, members, sizes, 0, "Node numbers must start at 1. Got 0.")
    labels = None if labels_path is None else _one_number_per_line(labels_path, limits)
    num_nodes = int(members.max(initial=0)) if labels is None else len(labels)
    if members.max(initial=0) > num_nodes:
        first = int(members[members > num_nodes][0])
        raise _error_at(
            hyperedges_path,
            members,
            sizes,
            first,
            f"Node numbers must be at most {num_nodes}, the number of labels in {labels_path}. Got {first}.",
        )
    limits.check_nodes(num_nodes, hyperedges_path)
    edge = np.repeat(np.arange(len(sizes)), sizes)
    hypergraph = Hypergraph(torch.from_numpy(members - 1), torch.from_numpy(edge), num_nodes, len(sizes))

    names_path = _neighbour(hyperedges_path, "label-names")
    class_names, node_names = (_names(path, limits) for path in (names_path, _neighbour(hyperedges_path, "node-names")))
    _need_distinct(names_path, (class_names or []) if labels is not None else [])
    notes = merged_note(hypergraph)
    if node_names is not None and len(node_names) != num_nodes:
        notes += (f"node names passed over: there are {len(node_names)}, for {num_nodes} nodes",)
        node_names = None
    if labels is not None and class_names is not None and labels.max(initial=0) > len(class_names):
        place = int(np.argmax(labels))
        raise DataError(
            f"Labels must be at most {len(class_names)}, the number of label names. Got {labels[place]}.",
            path=labels_path,
            where=f"line {place + 1}",
        )
    if labels is not None and labels_path is not None and len(labels):
        place = int(np.argmax(labels))
        limits.check_count("classes", int(labels[place]), labels_path, f"line {place + 1}")
    return NodeDataset(
        name=hyperedges_path.name.removeprefix(_PREFIX).removesuffix(".gz").removesuffix(".txt"),
        hypergraph=hypergraph,
        y=None if labels is None else torch.from_numpy(labels - 1),
        task=None if labels is None else "classification",
        class_names=None if labels is None or class_names is None else tuple(class_names),
        node_ids=Ids(np.arange(1, num_nodes + 1)),
        edge_ids=Ids(np.arange(1, len(sizes) + 1)),
        node_attributes={} if node_names is None else {"name": node_names},
        provenance=Provenance(str(hyperedges_path), "cornell", notes),
    )


def _one_number_per_line(path: Path, limits: Limits) -> IntArray:
    with open_limited(path, limits) as stream:
        labels, sizes = IntegerLines(stream, path, limits, commas=True).read_all()
    wrong = np.flatnonzero(sizes != 1)
    if len(wrong):
        raise DataError(
            f"Every line must hold one label. Got {sizes[wrong[0]]}.", path=path, where=f"line {wrong[0] + 1}"
        )
    if (labels == 0).any():
        place = int(np.argmin(labels))
        raise DataError("Labels must start at 1. Got 0.", path=path, where=f"line {place + 1}")
    return labels


def neighbours(hyperedges_path: Path, what: str) -> list[Path]:
    """Where `node-labels`, `label-names` or `node-names` may stand: compressed like the hyperedges, or else not.

    The other spelling belongs to another file of hyperedges if there is one that is spelled so.
    """
    suffix = hyperedges_path.name.removeprefix(_PREFIX)
    other = suffix.removesuffix(".gz") if suffix.endswith(".gz") else f"{suffix}.gz"
    taken = hyperedges_path.with_name(f"{_PREFIX}{other}").exists()
    return [hyperedges_path.with_name(f"{what}-{end}") for end in ((suffix,) if taken else (suffix, other))]


def _neighbour(hyperedges_path: Path, what: str) -> Path | None:
    return next((path for path in neighbours(hyperedges_path, what) if path.is_file()), None)


def _names(path: Path | None, limits: Limits) -> list[str] | None:
    if path is None:
        return None
    with open_limited(path, limits) as stream:
        content = stream.read()
    text = need_utf8(content, "Names", path).replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _need_distinct(path: Path | None, names: list[str]) -> None:
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        if first.setdefault(name, place) != place:
            raise DataError(
                f"Every class must have a name of its own. Got {name!r} again.",
                path=path,
                where=f"line {place + 1}",
                remedy="Rename one of the two.",
            )


def _error_at(path: Path, members: IntArray, sizes: IntArray, value: int, problem: str) -> DataError:
    place = int(np.flatnonzero(members == value)[0])
    line = int(np.searchsorted(np.cumsum(sizes), place, side="right")) + 1
    return DataError(problem, path=path, where=f"line {line}")
