"""The release folders of HyperGCN, AllSet and ED-HNN: `hypergraph.pickle`, `labels.pickle`, `features.pickle`.

`hypergraph.pickle` is a dictionary from hyperedge id to the 0-based numbers of its nodes, in the order of the
hyperedges; `labels.pickle` a class per node, or a one-hot row per node; `features.pickle`, which may be absent, a scipy
matrix or an array with a row per node. The pickles are read as data and never run: see `inert_pickle`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edhnn.data.dataset import UNLABELLED, NodeDataset, Provenance, merged_note, sparse_features
from edhnn.data.files import Limits
from edhnn.data.ids import Ids
from edhnn.data.readers.inert import Inert
from edhnn.data.readers.inert_arrays import as_array_record, as_csr, as_scalar, to_float32
from edhnn.data.readers.inert_pickle import read_inert
from edhnn.errors import DataError, LimitError
from edhnn.hypergraph import Hypergraph
from edhnn.typing import IntArray, NodeOrEdgeId

HYPERGRAPH, LABELS, FEATURES = "hypergraph.pickle", "labels.pickle", "features.pickle"
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_legacy_pickle(path: Path, limits: Limits) -> NodeDataset:
    """Read a release folder without running its pickles.

    Args:
        path: The folder, or one of the pickles in it.
        limits: Size limits, for each file.

    Returns:
        The dataset. Hyperedge ids are the keys of the dictionary where they are text or integers. Classes that are
        not numbered 0, 1, ... are numbered in ascending order and keep their numbers as names.

    Raises:
        DataError: if a pickle is broken, wants anything made that is not data, or the files disagree.
        UsageError: if `hypergraph.pickle` or `labels.pickle` is missing.
    """
    folder = path.parent if path.is_file() else path
    hypergraph_pickle, size = read_inert(folder / HYPERGRAPH, limits)
    labels_pickle, _ = read_inert(folder / LABELS, limits)
    with _named(folder / LABELS):
        y, class_names = _labels(labels_pickle)
    limits.check_nodes(len(y), folder / LABELS)
    x: Tensor | None = None
    if (folder / FEATURES).exists():
        features_pickle, _ = read_inert(folder / FEATURES, limits)
        with _named(folder / FEATURES):
            x = _features(features_pickle, len(y))
        limits.check_count("feature columns", x.shape[1], folder / FEATURES)
    with _named(folder / HYPERGRAPH):
        hypergraph, edge_ids = _hypergraph(hypergraph_pickle, len(y), size)
    notes = merged_note(hypergraph)
    if edge_ids is None:
        notes += ("The hyperedge ids were neither text nor integers; they are numbered.",)
    return NodeDataset(
        name=folder.resolve().name,
        hypergraph=hypergraph,
        x=x,
        y=torch.from_numpy(y),
        task="classification",
        class_names=class_names,
        edge_ids=edge_ids if edge_ids is not None else Ids(range(hypergraph.num_edges)),
        provenance=Provenance(str(folder), "legacy-pickle", notes=notes),
    )


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of the block, which knows no files, name this one."""
    try:
        yield
    except DataError as error:
        if error.path is not None:
            raise
        raise type(error)(error.problem, path=path, where=error.where, remedy=error.remedy) from error


def _labels(value: Any) -> tuple[IntArray, tuple[NodeOrEdgeId, ...] | None]:
    y = _label_numbers(value)
    if y.min(initial=0) < UNLABELLED:
        raise DataError(
            f"Labels must be 0 or more, or -1 for unlabelled. Got {y.min()}.", where=f"label {int(y.argmin())}"
        )
    names = np.unique(y[y != UNLABELLED])
    if (names == np.arange(len(names))).all():
        return y, None
    return np.where(y == UNLABELLED, UNLABELLED, np.searchsorted(names, y)), tuple(names.tolist())


def _label_numbers(value: Any) -> IntArray:
    record = as_array_record(value)
    if record is None:
        if not isinstance(value, list | tuple):
            raise DataError(f"Labels must be a list or an array of integers. Got {_kind(value)}.")
        return np.array(_integers(value, "label"), dtype=np.int64)
    if len(record.shape) == 0 or record.dtype.kind not in "biuf" or 0 in record.shape[1:]:
        raise DataError(
            f"Labels must be an integer, or a one-hot row, per node. Got an array of {record.dtype}, "
            f"shape {record.shape}."
        )
    array = record.build()
    if array.ndim == 2 and array.shape[1] > 1:
        ones = (array == 1).sum(axis=1)
        wrong = np.flatnonzero((ones > 1) | ((array != 0) & (array != 1)).any(axis=1))
        if len(wrong):
            raise DataError(
                "Every row of one-hot labels must hold 0s and at most one 1.",
                where=f"row {wrong[0]}",
                remedy="Several labels per node are not what this format holds.",
            )
        return np.where(ones == 0, UNLABELLED, array.argmax(axis=1)).astype(np.int64)
    array = array.reshape(-1)
    bound = float(2**53) if array.dtype.kind == "f" else 2**63 - 1
    if not ((array <= bound) & (array >= -bound)).all() or (array != np.trunc(array)).any():
        raise DataError("Labels must be integers. The array holds other numbers.")
    return array.astype(np.int64)


def _features(value: Any, nodes: int) -> Tensor:
    matrix = as_csr(value, nodes)
    if matrix is not None:
        return sparse_features(matrix)
    record = as_array_record(value)
    if record is None or len(record.shape) != 2 or record.dtype.kind not in "biuf":
        got = _kind(value) if record is None else f"an array of {record.dtype}, shape {record.shape}"
        raise DataError(f"Features must be a scipy matrix or a two-dimensional array of numbers. Got {got}.")
    if record.shape[0] != nodes:
        raise DataError(f"Features must have a row for each of {nodes} labels. Got shape {record.shape}.")
    return torch.from_numpy(np.ascontiguousarray(to_float32(record.build())))


def _hypergraph(value: Any, nodes: int, size: int) -> tuple[Hypergraph, Ids | None]:
    """The hypergraph and the ids of its hyperedges, ``None`` if some key is neither text nor an integer.

    A member takes at least a byte, so more members than the pickle has bytes (``size``) mean that it repeats one
    object over and over.
    """
    if not isinstance(value, Inert) or value.maker != "dict":
        raise DataError(f"The hypergraph must be a dictionary from hyperedge to its nodes. Got {_kind(value)}.")
    pairs = [*_initial_pairs(value), *value.items]
    keys = _keys(pairs)
    flat: list[int] = []
    sizes = np.zeros(len(pairs), dtype=np.int64)
    for place, (_, found) in enumerate(pairs):
        try:
            members = _members(found, size - len(flat))
        except DataError as error:
            where = _hyperedge(keys, place)
            raise type(error)(error.problem, where=where, remedy=error.remedy) from error
        sizes[place] = len(members)
        flat += members
    node, edge = np.array(flat, dtype=np.int64), np.repeat(np.arange(len(pairs)), sizes)
    wrong = np.flatnonzero((node < 0) | (node >= nodes))
    if len(wrong):
        raise DataError(
            f"Node numbers must be 0 or more and less than {nodes}, the number of labels. Got {node[wrong[0]]}.",
            where=_hyperedge(keys, int(edge[wrong[0]])),
        )
    hypergraph = Hypergraph(torch.from_numpy(node), torch.from_numpy(edge), nodes, len(pairs))
    return hypergraph, _edge_ids(keys)


def _initial_pairs(value: Inert) -> list[tuple[Any, Any]]:
    """The pairs that Python 2's OrderedDict was made with: a list of two-element lists."""
    given = value.arguments[0] if value.arguments else None
    if not isinstance(given, list):
        return []
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in given):
        raise DataError("The hypergraph's dictionary must be made of pairs.")
    return [(pair[0], pair[1]) for pair in given]


def _members(value: Any, room: int) -> list[int]:
    if isinstance(value, Inert) and value.maker in ("set", "frozenset", "list"):
        given = value.arguments[0] if value.arguments else []
        value = value.items if value.items or not isinstance(given, list | tuple) else given
    record = as_array_record(value)
    count = len(value) if isinstance(value, list | tuple) else record.shape[0] if record and record.shape else 0
    if count > room:
        raise LimitError(
            "The hyperedges must not have more members in all than the pickle has bytes.",
            remedy="The same list stands in it over and over; save the data as text instead.",
        )
    if isinstance(value, list | tuple):
        return _integers(value, "node number")
    if record is None or len(record.shape) != 1 or record.dtype.kind not in "iu":
        got = _kind(value) if record is None else f"an array of {record.dtype}, shape {record.shape}"
        raise DataError(f"The nodes of a hyperedge must be a list, a set or an array of integers. Got {got}.")
    members: list[int] = record.build().astype(np.int64).tolist()
    return members


def _integers(values: list[Any] | tuple[Any, ...], what: str) -> list[int]:
    if all(type(value) is int for value in values):
        return list(values)
    numbers: list[int] = []
    for place, value in enumerate(values):
        number = as_scalar(value)
        if not isinstance(number, int) or not -(2**63) <= number < 2**63:
            raise DataError(f"Every {what} must be an integer. Got {_kind(value)} at place {place}.")
        numbers.append(number)
    return numbers


def _keys(pairs: list[tuple[Any, Any]]) -> list[NodeOrEdgeId | None]:
    """The keys of a dictionary that are text or integers, each of them once; ``None`` in the place of others."""
    keys: list[NodeOrEdgeId | None] = []
    seen: set[NodeOrEdgeId] = set()
    for place, (found, _) in enumerate(pairs):
        key = as_scalar(found)
        keys.append(None if isinstance(key, float) else key)
        if isinstance(key, str) and _SURROGATE.search(key):
            problem = "The key of a hyperedge must be Unicode text. It holds half a surrogate pair."
            raise DataError(problem, where=_hyperedge(keys, place))
        if isinstance(key, str | int):
            if key in seen:
                where = _hyperedge(keys, place)
                raise DataError("Every hyperedge must be there once. It is there twice.", where=where)
            seen.add(key)
    return keys


def _edge_ids(keys: list[NodeOrEdgeId | None]) -> Ids | None:
    names: list[NodeOrEdgeId] = [key for key in keys if key is not None]
    if len(names) != len(keys):
        return None
    return Ids(range(len(names)) if names == list(range(len(names))) else names)


def _hyperedge(keys: list[NodeOrEdgeId | None], place: int) -> str:
    """A hyperedge as an error may name it: never long, never with control characters."""
    key = keys[place]
    return f"hyperedge number {place}" if key is None else f"hyperedge {ascii(key)[:60]}"


def _kind(value: Any) -> str:
    """What a value is, in words that hold nothing of its content."""
    return f"a pickled '{value.maker}'" if isinstance(value, Inert) else f"a value of type {type(value).__name__}"
