"""The dataset folder: plain, safe, diffable files.

hyperedges.txt.gz    a line of comma-separated 0-based node numbers per hyperedge (required)
labels.txt.gz        a line per node: a class number (-1 unknown), a real value, or several separated by commas
features.npz         a scipy CSR matrix, or an array named `x`
source.json          name, counts, task, names of classes and of label and feature columns, where it came from, and the
                     notes and details of reading it
ids.json.gz          {"nodes": [...], "hyperedges": [...]} when ids are not the numbers
weights.npz          `edge_weight` and `incidence_weight`, the latter in the order of the hyperedge lines
attributes.json.gz   {"nodes": {name: [...]}, "hyperedges": {name: [...]}}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import Attributes, NodeDataset, Provenance, Task, merged_note, sparse_features
from edhnn.data.files import Limits, open_limited
from edhnn.data.ids import Ids
from edhnn.data.labels import recorded_columns
from edhnn.data.readers.integer_lines import IntegerLines
from edhnn.data.readers.npz import as_numbers, load_npz, whole_numbers
from edhnn.data.records import FloatName
from edhnn.errors import DataError
from edhnn.hypergraph import Hypergraph
from edhnn.typing import JsonObject

_T = TypeVar("_T")

HYPEREDGES, LABELS, FEATURES, SOURCE = "hyperedges.txt.gz", "labels.txt.gz", "features.npz", "source.json"
IDS, WEIGHTS, ATTRIBUTES = "ids.json.gz", "weights.npz", "attributes.json.gz"


class _Source(msgspec.Struct, forbid_unknown_fields=False):
    """The parts of source.json that are read back."""

    name: str | None = None
    task: Task | None = None
    class_names: list[int | str] | None = None
    label_names: list[str] | None = None
    feature_names: list[str] | None = None
    label_width: int | None = None
    label_type: FloatName = "float32"
    features_type: FloatName = "float32"
    counts: dict[str, Any] = {}


class _IdFile(msgspec.Struct, forbid_unknown_fields=True):
    nodes: list[int | str] | None = None
    hyperedges: list[int | str] | None = None


class _AttributeFile(msgspec.Struct, forbid_unknown_fields=True):
    nodes: dict[str, list[Any]] = {}
    hyperedges: dict[str, list[Any]] = {}


def read_folder(path: Path, limits: Limits) -> NodeDataset:
    """Read a dataset folder.

    Args:
        path: The folder.
        limits: Size limits, for each file.

    Returns:
        The dataset.

    Raises:
        DataError: if a file is broken or the files disagree about the number of nodes.
    """
    file = path / HYPEREDGES
    with open_limited(file, limits) as stream:
        members, sizes = IntegerLines(stream, file, limits, commas=True).read_all()
    source_text = _read(path / SOURCE, limits)
    source = _decode(path / SOURCE, source_text, _Source) if source_text is not None else _Source()
    x = _read_features(path / FEATURES, source, limits)
    limits.check_count("feature columns", 0 if x is None else int(x.shape[-1]), path / FEATURES)
    y, task = _read_labels(path / LABELS, source, limits)
    num_nodes = _agree_on_nodes(path, int(members.max(initial=-1)) + 1, x, y, source.counts.get("nodes"))
    limits.check_nodes(num_nodes, path)
    edge = np.repeat(np.arange(len(sizes)), sizes)
    edge_weight, incidence_weight = _read_weights(path / WEIGHTS, limits)
    ids = _decode(path / IDS, _read(path / IDS, limits) or b"{}", _IdFile)
    attributes = _decode(path / ATTRIBUTES, _read(path / ATTRIBUTES, limits) or b"{}", _AttributeFile)
    details: JsonObject = _decode(path / SOURCE, source_text, dict) if source_text is not None else {}
    earlier = details.get("provenance")  # where they stood before they stood with the other names
    columns = recorded_columns(details, y) or recorded_columns(isinstance(earlier, dict) and earlier.get("details"), y)
    read_as: JsonObject = {"label_columns": list(columns)} if columns else {}
    names = source.class_names if source.class_names is not None else source.label_names
    try:
        hypergraph = Hypergraph(
            torch.from_numpy(members), torch.from_numpy(edge), num_nodes, len(sizes), edge_weight, incidence_weight
        )
        return NodeDataset(
            name=source.name or path.resolve().name,
            hypergraph=hypergraph,
            x=x,
            y=y,
            task=task,
            class_names=tuple(names) if names is not None and task in ("classification", "multilabel") else None,
            feature_names=None if source.feature_names is None else tuple(source.feature_names),
            node_ids=_ids(path / IDS, "nodes", ids.nodes, num_nodes),
            edge_ids=_ids(path / IDS, "hyperedges", ids.hyperedges, len(sizes)),
            node_attributes=_columns(attributes.nodes),
            edge_attributes=_columns(attributes.hyperedges),
            provenance=Provenance(str(path), "folder", merged_note(hypergraph), {"source": details, **read_as}),
        )
    except DataError as error:
        raise DataError(error.problem, path=error.path or path, where=error.where, remedy=error.remedy) from error


def _read_features(path: Path, source: _Source, limits: Limits) -> Tensor | None:
    if not path.exists():
        return None
    arrays = load_npz(path, limits)
    kind: torch.dtype = getattr(torch, source.features_type)
    try:
        if "x" in arrays:
            return torch.from_numpy(np.ascontiguousarray(as_numbers(arrays["x"], kind))).to(kind)
        if arrays.get("format", np.array(b"csr")).item() not in (b"csr", "csr"):
            raise ValueError(f"the matrix is stored as {arrays['format'].item()}")
        indices, indptr = (whole_numbers(arrays[part]) for part in ("indices", "indptr"))
        shape = tuple(whole_numbers(arrays["shape"]).tolist())
        matrix = sp.csr_array((as_numbers(arrays["data"], kind), indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        return sparse_features(matrix, kind)
    except (KeyError, ValueError, TypeError, IndexError, ArithmeticError, RuntimeError) as error:
        raise DataError(
            f"Features must be a scipy CSR matrix or an array named 'x'. Reading them said: {error}.", path=path
        ) from error


def _read_labels(path: Path, source: _Source, limits: Limits) -> tuple[Tensor | None, Task | None]:
    if not path.exists():
        return None, None
    with open_limited(path, limits) as stream:
        lines = stream.read().decode("utf-8", "replace").splitlines()
    task, vector = source.task, source.label_width is None and source.task != "multilabel"
    width = lines[0].count(",") + 1 if lines else max(source.label_width or 1, 1)
    limits.check_count("label columns", width, path if lines else path.with_name(SOURCE))
    for place, line in enumerate(lines):
        if line.count(",") + 1 != width:
            raise DataError(
                f"Every line must hold {width} label(s), as the first does. Got '{line[:60]}'.",
                path=path,
                where=f"line {place + 1}",
            )
    whole = task == "classification" or (task is None and width == 1 and not any("." in line for line in lines))
    try:
        numbers = _parse_labels(lines, source, whole=whole)
    except (ValueError, ArithmeticError):
        for place, line in enumerate(lines):
            try:
                _parse_labels([line], source, whole=whole)
            except (ValueError, ArithmeticError) as error:
                kind = "whole numbers, -1 for unknown" if whole else "numbers"
                raise DataError(
                    f"Labels must be {kind}. Got '{line[:60]}'.", path=path, where=f"line {place + 1}"
                ) from error
        raise
    if whole and len(numbers):
        place = int(numbers.argmax())
        limits.check_count("classes", int(numbers[place]) + 1, path, f"line {place + 1}")
    y = torch.from_numpy(numbers if width == 1 and vector else numbers.reshape(-1, width))
    y = y if whole else y.to(getattr(torch, source.label_type))
    return y, "classification" if whole else task or ("regression" if width == 1 else "multilabel")


def _parse_labels(lines: list[str], source: _Source, *, whole: bool) -> Any:
    words = ",".join(lines).split(",") if lines else []
    numbers = np.array(words, dtype=np.int64 if whole else np.float64)
    if whole:
        return numbers
    for place in np.flatnonzero(np.isinf(numbers)).tolist():
        if "inf" not in words[place].lower():
            raise OverflowError(f"{words[place]} is beyond 64 bits")
    return as_numbers(numbers, getattr(torch, source.label_type))


def _read_weights(path: Path, limits: Limits) -> tuple[Tensor | None, Tensor | None]:
    if not path.exists():
        return None, None
    arrays = load_npz(path, limits)
    found = [arrays.get(name) for name in ("edge_weight", "incidence_weight")]
    try:
        edge, incidence = (
            None if array is None else torch.from_numpy(as_numbers(array, torch.float64)) for array in found
        )
    except ValueError as error:
        raise DataError(f"Weights must be vectors of numbers. Reading them said: {error}.", path=path) from error
    return edge, incidence


def _agree_on_nodes(path: Path, least: int, x: Tensor | None, y: Tensor | None, stored: object) -> int:
    counts = {
        LABELS: None if y is None else len(y),
        FEATURES: None if x is None else x.shape[0],
        SOURCE: stored if isinstance(stored, int) and not isinstance(stored, bool) else None,
    }
    found = {name: count for name, count in counts.items() if count is not None}
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in found.items())
        raise DataError(f"The files must agree on the number of nodes. Got {listed}.", path=path)
    if not found:
        return least
    name, count = next(iter(found.items()))
    if least > count:
        raise DataError(
            f"Node numbers must be less than {count}, the number of nodes in {name}. Got {least - 1}.",
            path=path / HYPEREDGES,
        )
    return count


def _read(path: Path, limits: Limits) -> bytes | None:
    if not path.exists():
        return None
    with open_limited(path, limits) as stream:
        return stream.read()


def _decode(path: Path, text: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DataError(f"The JSON must have its documented form. Reading it said: {error}.", path=path) from error


def _ids(path: Path, kind: str, listed: list[int | str] | None, count: int) -> Ids:
    if listed is None:
        return Ids(range(count))
    first: dict[int | str, int] = {}
    for place, name in enumerate(listed):
        if first.setdefault(name, place) != place:
            raise DataError(f"Each id must stand once. Got {name!r} again.", path=path, where=f"{kind}[{place}]")
    return Ids(listed)


def _columns(columns: dict[str, list[Any]]) -> Attributes:
    return dict(columns)
