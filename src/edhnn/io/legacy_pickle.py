"""The release folders of HyperGCN, AllSet and ED-HNN, which consist of pickles.

    hypergraph.pickle   a dictionary from hyperedge id to the 0-based numbers of its nodes
    labels.pickle       a class or a one-hot row per node
    features.pickle     a scipy matrix or an array with a row per node (optional)

A separate process (`unpickle.py`) reads each pickle, with an allow-list of names, bounded memory and bounded time. It
returns plain arrays, and this module checks their meaning.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import UNLABELLED, NodeDataset, Provenance, merged_note, sparse_features
from edhnn.data.ids import Ids
from edhnn.data.limits import Limits
from edhnn.errors import DataError, LimitError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.files import open_limited
from edhnn.typing import IntArray, NodeOrEdgeId

HYPERGRAPH, LABELS, FEATURES = "hypergraph.pickle", "labels.pickle", "features.pickle"
BASE_MEMORY, MEMORY_PER_BYTE = 2**28, 60
BASE_SECONDS, BYTES_PER_SECOND = 60, 2**20
_CHILD = Path(__file__).with_name("unpickle.py")


def read_legacy_pickle(path: Path, limits: Limits) -> NodeDataset:
    """Read a release folder without executing code from its pickles.

    Args:
        path: The folder, or one of the pickles in it.
        limits: Size limits, for each file.

    Returns:
        The dataset. Hyperedge ids are the keys of the dictionary if all are text or integers. Classes that are
        not numbered 0, 1, ... are numbered in ascending order, and their original numbers become their names.

    Raises:
        DataError: if a pickle is broken or refers to anything but data, or if the files disagree.
        UsageError: if `hypergraph.pickle` or `labels.pickle` is missing.
    """
    folder = path.parent if path.is_file() else path
    pickled = _unpickle(folder / HYPERGRAPH, limits)
    y, class_names = _labels(_unpickle(folder / LABELS, limits))
    limits.check_nodes(len(y), folder / LABELS)
    x = _features(_unpickle(folder / FEATURES, limits), len(y), limits) if (folder / FEATURES).exists() else None
    hypergraph, edge_ids = _hypergraph(pickled, len(y))
    notes = merged_note(hypergraph)
    if edge_ids is None:
        notes += ("hyperedge ids that are neither text nor integers were replaced by numbers",)
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


class _Unpickled(NamedTuple):
    """The content of a pickle. ``form`` is "dict", "array", "csr", "csc", "coo", or a description of another value."""

    path: Path
    form: str
    facts: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def _unpickle(path: Path, limits: Limits) -> _Unpickled:
    """Read one pickle in a process with limited memory and time."""
    with open_limited(path, limits) as stream:
        data = stream.read()
    memory = BASE_MEMORY + MEMORY_PER_BYTE * len(data)
    seconds = BASE_SECONDS + len(data) // BYTES_PER_SECOND
    command = [sys.executable, "-P", str(_CHILD), str(memory), str(seconds)]
    too_long = LimitError(
        f"Reading the pickle takes more than {seconds} s, the limit for a file of its size.",
        path=path,
        remedy="Save the data as text or .npz instead.",
    )
    try:
        done = subprocess.run(  # noqa: S603  # our own file
            command, input=data, capture_output=True, timeout=2 * seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise too_long from error
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise too_long
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise DataError(f"The file must be an intact pickle of plain data. Cause: {last[0]}.", path=path)
    first_line, _, content = done.stdout.partition(b"\n")
    facts = json.loads(first_line)
    if "error" in facts:
        kind = LimitError if facts["error"] == "limit" else DataError
        raise kind(facts["problem"], path=path, where=facts["where"], remedy=facts["remedy"])
    arrays, offset = {}, 0
    for name, dtype, shape, column_major in facts["arrays"]:
        order: Literal["C", "F"] = "F" if column_major else "C"
        values = np.frombuffer(content, "u1" if "b" in dtype else dtype, math.prod(shape), offset).copy()
        offset += values.nbytes
        arrays[name] = (values != 0 if "b" in dtype else values).reshape(shape, order=order)
    return _Unpickled(path, facts["form"], facts, arrays)


def _labels(pickled: _Unpickled) -> tuple[IntArray, tuple[NodeOrEdgeId, ...] | None]:
    """Return the class of each node, and the original numbers of the classes unless they are 0, 1, ..."""
    if pickled.form != "array":
        raise DataError(f"Labels must be a list or an array of integers. Got {pickled.form}.", path=pickled.path)
    y = _label_numbers(pickled.arrays["values"], pickled.path)
    if y.min(initial=0) < UNLABELLED:
        problem = f"Labels must be 0 or more, or -1 for an unlabelled node. Got {y.min()}."
        raise DataError(problem, path=pickled.path, where=f"label {y.argmin()}")
    names = np.unique(y[y != UNLABELLED])
    if (names == np.arange(len(names))).all():
        return y, None
    return np.where(y == UNLABELLED, UNLABELLED, np.searchsorted(names, y)), tuple(names.tolist())


def _label_numbers(array: npt.NDArray[Any], path: Path) -> IntArray:
    if array.ndim == 0 or array.dtype.kind not in "biuf" or 0 in array.shape[1:]:
        got = f"an array of {array.dtype}, shape {array.shape}"
        raise DataError(f"Labels must be an integer or a one-hot row for each node. Got {got}.", path=path)
    if array.ndim == 2 and array.shape[1] > 1:
        ones = (array == 1).sum(axis=1)
        wrong = np.flatnonzero((ones > 1) | ((array != 0) & (array != 1)).any(axis=1))
        if len(wrong):
            raise DataError(
                "Every row of one-hot labels must consist of zeros and at most one 1.",
                path=path,
                where=f"row {wrong[0]}",
                remedy="This format cannot store several labels per node.",
            )
        return np.where(ones == 0, UNLABELLED, array.argmax(axis=1)).astype(np.int64)
    array = array.reshape(-1)
    bound = float(2**53) if array.dtype.kind == "f" else 2**63 - 1
    if not ((array <= bound) & (array >= -bound)).all() or (array != np.trunc(array)).any():
        raise DataError("Labels must be integers. The array contains other numbers.", path=path)
    return array.astype(np.int64)


def _features(pickled: _Unpickled, nodes: int, limits: Limits) -> Tensor:
    path, values = pickled.path, pickled.arrays.get("values")
    sparse = pickled.form in ("csr", "csc", "coo")
    if not sparse and (values is None or values.ndim != 2 or values.dtype.kind not in "biuf"):
        got = pickled.form if values is None else f"an array of {values.dtype}, shape {values.shape}"
        problem = f"Features must be a scipy matrix or a two-dimensional array of numbers. Got {got}."
        raise DataError(problem, path=path)
    shape = tuple(pickled.facts["shape"]) if values is None else values.shape
    if len(shape) != 2 or shape[0] != nodes:
        raise DataError(f"Features must have a row for each of {nodes} labels. Got shape {shape}.", path=path)
    stored = pickled.arrays["data"] if values is None else values
    limits.check_count("feature columns", shape[1], path, entries=stored.size)
    if values is not None:
        return torch.from_numpy(np.ascontiguousarray(_as_float32(values, path)))
    return sparse_features(_matrix(pickled, shape))


def _matrix(pickled: _Unpickled, shape: tuple[int, ...]) -> sp.csr_array:
    arrays = pickled.arrays
    data = _as_float32(arrays["data"], pickled.path)
    try:
        if pickled.form == "coo":
            return sp.coo_array((data, (arrays["row"], arrays["col"])), shape=shape).tocsr()
        make = sp.csr_array if pickled.form == "csr" else sp.csc_array
        matrix = make((data, arrays["indices"], arrays["indptr"]), shape=shape)
        matrix.check_format(full_check=True)
        return matrix.tocsr()
    except ValueError as error:
        problem = f"The sparse matrix is inconsistent. Cause: {error}."
        raise DataError(problem, path=pickled.path) from error


def _as_float32(values: npt.NDArray[Any], path: Path) -> npt.NDArray[np.float32]:
    """Return the values as native float32, and check that all are finite."""
    with np.errstate(over="ignore"):  # the check below finds values that overflow
        narrow = values.astype(np.float32)
    if not np.isfinite(narrow).all():
        wrong = values[~np.isfinite(narrow)][0]
        raise DataError(f"Features must be finite and fit into 32 bits. Got {wrong}.", path=path)
    return narrow


def _hypergraph(pickled: _Unpickled, nodes: int) -> tuple[Hypergraph, Ids | None]:
    """Return the hypergraph and the ids of its hyperedges, ``None`` if a key is neither text nor an integer."""
    form = pickled.form
    if form != "dict":
        got = "a list or an array" if form == "array" else form if " " in form else f"a {form} matrix"
        problem = f"The hypergraph must be a dictionary from hyperedge to its nodes. Got {got}."
        raise DataError(problem, path=pickled.path)
    keys, node = pickled.facts["keys"], pickled.arrays["members"]
    edge = np.repeat(np.arange(len(keys)), pickled.arrays["sizes"])
    wrong = np.flatnonzero((node < 0) | (node >= nodes))
    if len(wrong):
        number = int(edge[wrong[0]])
        raise DataError(
            f"Node numbers must be 0 or more and less than {nodes}, the number of labels. Got {node[wrong[0]]}.",
            path=pickled.path,
            where=f"hyperedge number {number}" if keys[number] is None else f"hyperedge {ascii(keys[number])[:60]}",
        )
    hypergraph = Hypergraph(torch.from_numpy(node), torch.from_numpy(edge), nodes, len(keys))
    if None in keys:
        return hypergraph, None
    return hypergraph, Ids(range(len(keys)) if keys == list(range(len(keys))) else keys)
