"""Writers of the field's line formats: Cornell text and hMETIS. What they cannot hold is refused or reported."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
from torch import Tensor

from edhnn.data.atomic import atomic_file, compressed_by_name
from edhnn.data.dataset import NodeDataset
from edhnn.data.readers.cornell import neighbours
from edhnn.data.writers.folder import write_integer_lines
from edhnn.errors import DataError, UsageError
from edhnn.hypergraph import Hypergraph

_CORNELL_PREFIX = "hyperedges-"


def cornell_neighbours(target: Path) -> list[Path]:
    """The files of labels, label names and node names that would be read along with `hyperedges-NAME.txt`."""
    return [path for what in ("node-labels", "label-names", "node-names") for path in neighbours(target, what)]


def write_cornell(dataset: NodeDataset, target: Path) -> list[Path]:
    """Write `hyperedges-NAME.txt` and, for class labels, `node-labels-NAME.txt` and `label-names-NAME.txt`."""
    if not target.name.startswith(_CORNELL_PREFIX):
        raise UsageError(f"A Cornell file must be called '{_CORNELL_PREFIX}NAME.txt'. Got '{target.name}'.")
    labels: list[int] = dataset.y.tolist() if dataset.y is not None and dataset.task == "classification" else []
    isolated_tail = not labels and bool((dataset.hypergraph.degree[-1:] == 0).any())
    if min(labels, default=0) < 0 or isolated_tail:
        what = "no unlabelled nodes" if labels else "no isolated last node without labels"
        raise DataError(f"Cornell text holds {what}.", remedy="Write HIF or a dataset folder instead.")
    labels_path, names_path = (neighbours(target, what)[0] for what in ("node-labels", "label-names"))
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


def left_behind_by_text(dataset: NodeDataset, *, hmetis: bool) -> list[str]:
    """What the line formats cannot hold of this dataset, in words."""
    hypergraph: Hypergraph = dataset.hypergraph
    numbers = {"node": dataset.node_ids, "hyperedge": dataset.edge_ids}
    lost = [
        f"the {kind} ids (numbered from 1 instead)"
        for kind, ids in numbers.items()
        if ids.to_list() != list(range(1, len(ids) + 1))
    ]
    lost += ["the features"] if dataset.x is not None else []
    lost += ["the labels"] if dataset.y is not None and (hmetis or dataset.task != "classification") else []
    names = dataset.class_names if dataset.task == "classification" and not hmetis else None
    lost += ["that class names are numbers (written as text)"] if any(isinstance(n, int) for n in names or ()) else []
    lost += ["the incidence weights"] if hypergraph.incidence_weight is not None else []
    lost += ["the hyperedge weights"] if hypergraph.edge_weight is not None and not hmetis else []
    held = {"weight"} if hmetis else set()
    if hmetis and any(type(_plain(weight)) is not int for weight in dataset.node_attributes.get("weight", ())):
        lost.append("that the node weights are not integers (written as whole numbers)")
    lost += [f"the node attribute '{name}'" for name in dataset.node_attributes if name not in held]
    lost += [f"the hyperedge attribute '{name}'" for name in dataset.edge_attributes]
    return lost


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
