"""Cornell text: `hyperedges-NAME.txt`, a line of 1-based node numbers per hyperedge, and its neighbours.

`node-labels-NAME.txt` holds a 1-based class per node, `label-names-NAME.txt` a name per class and
`node-names-NAME.txt` a name per node; the last two are optional.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch

from edhnn.data.dataset import NodeDataset, Provenance, merged_note
from edhnn.data.fingerprints import write_integer_lines
from edhnn.data.ids import Ids
from edhnn.data.limits import Limits
from edhnn.errors import DataError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.file_format import FileFormat, dropped_parts
from edhnn.io.files import atomic_file, compressed_by_name, need_utf8, open_limited
from edhnn.io.integer_lines import read_integer_lines
from edhnn.typing import IntArray

_PREFIX = "hyperedges-"
_NEIGHBOURS = ("node-labels", "label-names", "node-names")


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
    members, sizes = read_integer_lines(hyperedges_path, limits, commas=True)
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


def write_cornell(dataset: NodeDataset, target: Path) -> list[Path]:
    """Write `hyperedges-NAME.txt` and, for class labels, `node-labels-NAME.txt` and `label-names-NAME.txt`."""
    if not target.name.startswith(_PREFIX):
        raise UsageError(f"A Cornell file must be called '{_PREFIX}NAME.txt'. Got '{target.name}'.")
    labels: list[int] = dataset.y.tolist() if dataset.y is not None and dataset.task == "classification" else []
    isolated_tail = not labels and bool((dataset.hypergraph.degree[-1:] == 0).any())
    if min(labels, default=0) < 0 or isolated_tail:
        what = "no unlabelled nodes" if labels else "no isolated last node without labels"
        raise DataError(f"Cornell text holds {what}.", remedy="Write HIF or a dataset folder instead.")
    labels_path, names_path = (_neighbours(target, what)[0] for what in ("node-labels", "label-names"))
    lines = {labels_path: [str(label + 1) for label in labels]} if labels else {}
    if labels and dataset.class_names is not None:
        lines[names_path] = [str(name) for name in dataset.class_names]
        broken = [name for name in lines[names_path] if "\n" in name or "\r" in name]
        if broken:
            raise DataError(f"Class names in Cornell text must stand on one line. Got {broken[0]!r}.")
    with ExitStack() as files:  # all of them or none
        path = files.enter_context(atomic_file(target))
        with compressed_by_name(path, target.name) as stream:
            write_integer_lines(stream, dataset.hypergraph, offset=1)
        for neighbour, content in lines.items():
            path = files.enter_context(atomic_file(neighbour))
            with compressed_by_name(path, neighbour.name) as stream:
                stream.write("".join(f"{line}\n" for line in content).encode())
    return [target, *lines]


def find_cornell(path: Path) -> Path | None:
    """The `hyperedges-*.txt` file that a path means: itself, or the only one in a folder; ``None`` if there is none."""
    if path.is_file():
        return path if path.name.startswith(_PREFIX) else None
    found = sorted(path.glob(f"{_PREFIX}*.txt*"))
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise UsageError(f"The folder '{path}' must hold one {_PREFIX}*.txt. It holds {names}: name one of them.")
    return found[0] if found else None


def _neighbours(hyperedges_path: Path, what: str) -> list[Path]:
    """Where `node-labels`, `label-names` or `node-names` may stand: compressed like the hyperedges, or else not.

    The other spelling belongs to another file of hyperedges if there is one that is spelled so.
    """
    suffix = hyperedges_path.name.removeprefix(_PREFIX)
    other = suffix.removesuffix(".gz") if suffix.endswith(".gz") else f"{suffix}.gz"
    taken = hyperedges_path.with_name(f"{_PREFIX}{other}").exists()
    return [hyperedges_path.with_name(f"{what}-{end}") for end in ((suffix,) if taken else (suffix, other))]


def _neighbour(hyperedges_path: Path, what: str) -> Path | None:
    return next((path for path in _neighbours(hyperedges_path, what) if path.is_file()), None)


def _one_number_per_line(path: Path, limits: Limits) -> IntArray:
    labels, sizes = read_integer_lines(path, limits, commas=True)
    wrong = np.flatnonzero(sizes != 1)
    if len(wrong):
        raise DataError(
            f"Every line must hold one label. Got {sizes[wrong[0]]}.", path=path, where=f"line {wrong[0] + 1}"
        )
    if (labels == 0).any():
        place = int(np.argmin(labels))
        raise DataError("Labels must start at 1. Got 0.", path=path, where=f"line {place + 1}")
    return labels


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


FORMAT = FileFormat(
    name="cornell",
    patterns=("hyperedges-NAME.txt",),
    read=lambda path, _, limits: read_cornell(find_cornell(path) or path, None, limits),
    write=write_cornell,
    dropped=lambda dataset, _: dropped_parts(dataset, holds=("labels",)),
    sign=(f"{_PREFIX}*.txt*", "hyperedges-NAME.txt (Cornell text)"),
    files=lambda target: [target, *(path for what in _NEIGHBOURS for path in _neighbours(target, what))],
)
