"""Cornell text: `hyperedges-NAME.txt`, a line of 1-based node numbers per hyperedge, and its neighbours.

`node-labels-NAME.txt` contains a 1-based class per node, `label-names-NAME.txt` a name per class and
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
from edhnn.io.integer_lines import edge_of_each, read_integer_lines
from edhnn.typing import IntArray

_PREFIX = "hyperedges-"
_NEIGHBOURS = ("node-labels", "label-names", "node-names")


def read_cornell(hyperedges_path: Path, labels_path: Path | None, limits: Limits) -> NodeDataset:
    """Read a hypergraph in Cornell text.

    Args:
        hyperedges_path: The file of hyperedges, plain or gzip.
        labels_path: The file of labels; by default `node-labels-...` beside it, if that file exists.
        limits: Size limits.

    Returns:
        The dataset. Its ids are the 1-based numbers of the file.
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
    entries = len(members) + (0 if labels is None else len(labels))
    limits.check_nodes(num_nodes, hyperedges_path, entries)
    limits.check_hyperedges(len(sizes), hyperedges_path, entries)
    edge = edge_of_each(sizes)
    members -= 1
    hypergraph = Hypergraph(torch.from_numpy(members), torch.from_numpy(edge), num_nodes, len(sizes))

    names_path = _neighbour(hyperedges_path, "label-names")
    class_names, node_names = (_names(path, limits) for path in (names_path, _neighbour(hyperedges_path, "node-names")))
    if labels is not None:
        _need_distinct(names_path, class_names or [])
    notes = merged_note(hypergraph)
    if node_names is not None and len(node_names) != num_nodes:
        notes += (f"node names ignored: {len(node_names)} names for {num_nodes} nodes",)
        node_names = None
    if labels is not None and len(labels):
        largest = int(np.argmax(labels))
        where = f"line {largest + 1}"
        if class_names is not None and labels[largest] > len(class_names):
            raise DataError(
                f"Labels must be at most {len(class_names)}, the number of label names. Got {labels[largest]}.",
                path=labels_path,
                where=where,
            )
        limits.check_count("classes", int(labels[largest]), labels_path, where, entries=len(labels))
    return NodeDataset(
        name=hyperedges_path.name.removeprefix(_PREFIX).removesuffix(".gz").removesuffix(".txt"),
        hypergraph=hypergraph,
        y=None if labels is None else torch.from_numpy(labels - 1),
        task=None if labels is None else "classification",
        class_names=None if labels is None or class_names is None else tuple(class_names),
        node_ids=Ids(range(1, num_nodes + 1)),
        edge_ids=Ids(range(1, len(sizes) + 1)),
        node_attributes={} if node_names is None else {"name": node_names},
        provenance=Provenance(str(hyperedges_path), "cornell", notes),
    )


def write_cornell(dataset: NodeDataset, target: Path) -> list[Path]:
    """Write `hyperedges-NAME.txt` and, for class labels, `node-labels-NAME.txt` and `label-names-NAME.txt`."""
    if not target.name.startswith(_PREFIX):
        raise UsageError(f"A Cornell file must be named '{_PREFIX}NAME.txt'. Got '{target.name}'.")
    labels: list[int] = dataset.y.tolist() if dataset.y is not None and dataset.task == "classification" else []
    isolated_tail = not labels and bool((dataset.hypergraph.degree[-1:] == 0).any())
    if min(labels, default=0) < 0 or isolated_tail:
        what = "unlabelled nodes" if labels else "a last node without hyperedges and without a label"
        raise DataError(f"Cornell text cannot store {what}.", remedy="Write HIF or a dataset folder instead.")
    labels_path, names_path = (_neighbours(target, what)[0] for what in ("node-labels", "label-names"))
    lines = {labels_path: [str(label + 1) for label in labels]} if labels else {}
    if labels and dataset.class_names is not None:
        lines[names_path] = [str(name) for name in dataset.class_names]
        broken = [name for name in lines[names_path] if "\n" in name or "\r" in name]
        if broken:
            raise DataError(f"Class names in Cornell text must not contain line breaks. Got {broken[0]!r}.")
    with ExitStack() as files:  # write all files or none
        path = files.enter_context(atomic_file(target))
        with compressed_by_name(path, target.name) as stream:
            write_integer_lines(stream, dataset.hypergraph, offset=1)
        for neighbour, content in lines.items():
            path = files.enter_context(atomic_file(neighbour))
            with compressed_by_name(path, neighbour.name) as stream:
                stream.write("".join(f"{line}\n" for line in content).encode())
    return [target, *lines]


def find_cornell(path: Path) -> Path | None:
    """Return the `hyperedges-*.txt` file at a path: the path itself, or the only such file in a folder, or ``None``."""
    if path.is_file():
        return path if path.name.startswith(_PREFIX) else None
    files = sorted(path.glob(f"{_PREFIX}*.txt*"))
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise UsageError(f"The folder '{path}' must contain one {_PREFIX}*.txt. Got {names}. Read one of these files.")
    return files[0] if files else None


def _neighbours(hyperedges_path: Path, what: str) -> list[Path]:
    """Return the possible paths of `node-labels`, `label-names` or `node-names`, first compressed like the hyperedges.

    The second path is left out if a file of hyperedges with the same ending exists, because it belongs to that file.
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
            f"Every line must contain one label. Got {sizes[wrong[0]]}.", path=path, where=f"line {wrong[0] + 1}"
        )
    if (labels == 0).any():
        raise DataError("Labels must start at 1. Got 0.", path=path, where=f"line {np.argmin(labels) + 1}")
    return labels


def _names(path: Path | None, limits: Limits) -> list[str] | None:
    if path is None:
        return None
    with open_limited(path, limits) as stream:
        content = stream.read()
    text = need_utf8(content, "Names", path).replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _need_distinct(path: Path | None, names: list[str]) -> None:
    seen: set[str] = set()
    for line, name in enumerate(names, start=1):
        if name in seen:
            raise DataError(
                f"Class names must be unique. Got {name!r} twice.",
                path=path,
                where=f"line {line}",
                remedy="Rename one of the two classes.",
            )
        seen.add(name)


def _error_at(path: Path, members: IntArray, sizes: IntArray, value: int, problem: str) -> DataError:
    first = int(np.flatnonzero(members == value)[0])
    line = int(np.searchsorted(np.cumsum(sizes), first, side="right")) + 1
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
