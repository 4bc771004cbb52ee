"""The dataset folder: files without code that can be compared. The same dataset gives the same bytes.

hyperedges.txt.gz    a line of comma-separated 0-based node numbers per hyperedge (required)
labels.txt.gz        a line per node: a class number (-1 unknown), a real value, or several separated by commas
features.npz         a scipy CSR matrix, or an array named `x`
source.json          name, counts, task, names of classes and of label and feature columns, the origin, and the
                     notes and details of reading it
ids.json.gz          {"nodes": [...], "hyperedges": [...]} unless the ids are the numbers 0, 1, ...
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

from edhnn.data.columns import recorded_columns
from edhnn.data.dataset import (
    NodeDataset,
    Provenance,
    Task,
    as_numpy,
    features_to_scipy,
    merged_note,
    sparse_features,
)
from edhnn.data.fingerprints import write_integer_lines
from edhnn.data.ids import Ids
from edhnn.data.limits import FREE_ARRAYS, Limits
from edhnn.data.manifest import FloatName
from edhnn.errors import DataError, LimitError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.file_format import FileFormat
from edhnn.io.files import atomic_folder, compressed_by_name, need_bytes, open_limited, refuse_foreign
from edhnn.io.integer_lines import edge_of_each, read_integer_lines
from edhnn.io.json_files import dropped_details, need_finite_attributes, plain, split_json
from edhnn.io.tensors import read_npz
from edhnn.typing import JsonObject

_T = TypeVar("_T")
HYPEREDGES, LABELS, FEATURES, SOURCE = "hyperedges.txt.gz", "labels.txt.gz", "features.npz", "source.json"
IDS, WEIGHTS, ATTRIBUTES = "ids.json.gz", "weights.npz", "attributes.json.gz"
_LABEL_BYTES = 2**18  # lines are Python objects while they are parsed, so few at a time
_ABOUT_THE_FILES = ("label_width", "label_type", "label_names", "label_columns", "features_type")


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
    members, sizes = read_integer_lines(path / HYPEREDGES, limits, commas=True)
    source_text = _read(path / SOURCE, limits)
    source = _decode(path / SOURCE, source_text, _Source)
    x = _read_features(path / FEATURES, source, limits)
    values = 0 if x is None else (x if x.layout == torch.strided else x.values()).numel()
    limits.check_count("feature columns", 0 if x is None else int(x.shape[-1]), path / FEATURES, entries=values)
    y, task = _read_labels(path / LABELS, source, limits)
    num_nodes = _agree_on_nodes(path, int(members.max(initial=-1)) + 1, x, y, source.counts.get("nodes"))
    entries = len(members) + values + (0 if y is None else len(y))
    limits.check_nodes(num_nodes, path, entries)
    limits.check_hyperedges(len(sizes), path / HYPEREDGES, entries)
    edge = edge_of_each(sizes)
    edge_weight, incidence_weight = _read_weights(path / WEIGHTS, limits)
    ids = _decode(path / IDS, _read(path / IDS, limits) or b"{}", _IdFile)
    attributes = _decode(path / ATTRIBUTES, _read(path / ATTRIBUTES, limits) or b"{}", _AttributeFile)
    details: JsonObject = _decode(path / SOURCE, source_text, dict)
    provenance = details.get("provenance")  # earlier releases stored the label columns here
    columns = recorded_columns(details, y) or recorded_columns(
        isinstance(provenance, dict) and provenance.get("details"), y
    )
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
            node_attributes=attributes.nodes,
            edge_attributes=attributes.hyperedges,
            provenance=Provenance(str(path), "folder", merged_note(hypergraph), {"source": details, **read_as}),
        )
    except DataError as error:
        raise DataError(error.problem, path=error.path or path, where=error.where, remedy=error.remedy) from error


def write_folder(dataset: NodeDataset, target: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a dataset as a folder. It drops only details of the provenance that JSON cannot store.

    Args:
        dataset: The dataset.
        target: The new folder. It must be missing or empty, unless ``overwrite``.
        overwrite: Replace an existing dataset folder.

    Returns:
        The folder.

    Raises:
        DataError: if JSON cannot store an attribute, for example an infinity. Nothing is written then.
        UsageError: if the target exists and may not be replaced.
    """
    hypergraph, x, y = dataset.hypergraph, dataset.x, dataset.y
    need_finite_attributes(dataset, "A dataset folder")
    if overwrite:
        refuse_foreign(target, HYPEREDGES, "dataset")
    with atomic_folder(target, overwrite=overwrite) as folder:
        with compressed_by_name(folder / HYPEREDGES, HYPEREDGES) as stream:
            write_integer_lines(stream, hypergraph)
        if y is not None:
            rows = (y if y.dim() == 2 else y[:, None]).tolist()
            with compressed_by_name(folder / LABELS, LABELS) as stream:
                stream.write(b"".join(",".join(str(value) for value in row).encode() + b"\n" for row in rows))
        if x is not None and x.layout == torch.sparse_csr:
            sp.save_npz(folder / FEATURES, features_to_scipy(x))
        elif x is not None:
            np.savez_compressed(folder / FEATURES, x=as_numpy(x))
        weights = {name: getattr(hypergraph, name) for name in ("edge_weight", "incidence_weight")}
        present = {name: weight.cpu().numpy() for name, weight in weights.items() if weight is not None}
        if present:
            np.savez_compressed(folder / WEIGHTS, **present)
        ids = {
            kind: names.to_list()
            for kind, names in (("nodes", dataset.node_ids), ("hyperedges", dataset.edge_ids))
            if not names.are_numbers
        }
        _write_json(folder / IDS, ids)
        attributes = (("nodes", dataset.node_attributes), ("hyperedges", dataset.edge_attributes))
        _write_json(folder / ATTRIBUTES, {kind: dict(columns) for kind, columns in attributes if columns})
        (folder / SOURCE).write_bytes(msgspec.json.format(_encode(_source_record(dataset)), indent=1))
    return [target]


FORMAT = FileFormat(
    name="folder",
    patterns=("NAME/",),
    read=lambda path, _, limits: read_folder(path, limits),
    write=lambda dataset, target: write_folder(dataset, target, overwrite=True),
    dropped=lambda dataset, _: dropped_details(dataset),
    sign=(HYPEREDGES, f"{HYPEREDGES} (a dataset folder)"),
)


def _read_features(path: Path, source: _Source, limits: Limits) -> Tensor | None:
    if not path.exists():
        return None
    arrays = read_npz(path, limits)
    kind: torch.dtype = getattr(torch, source.features_type)
    try:
        if "x" in arrays:
            _need_bytes(arrays["x"].size * kind.itemsize, path, limits)
            return torch.from_numpy(np.ascontiguousarray(_as_numbers(arrays["x"], kind))).to(kind)
        if arrays.get("format", np.array(b"csr")).item() not in (b"csr", "csr"):
            raise ValueError(f"the matrix is stored as {arrays['format'].item()}")
        indices, indptr = (_whole_numbers(arrays[part]) for part in ("indices", "indptr"))
        shape = tuple(_whole_numbers(arrays["shape"]).tolist())
        _need_bytes(len(indices) * (2 * indices.itemsize + kind.itemsize), path, limits)  # scipy may copy the indices
        matrix = sp.csr_array((_as_numbers(arrays["data"], kind), indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        return sparse_features(matrix, kind)
    except LimitError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, ArithmeticError, RuntimeError) as error:
        raise DataError(
            f"Features must be a scipy CSR matrix or an array named 'x'. Cause: {error}.", path=path
        ) from error


def _read_labels(path: Path, source: _Source, limits: Limits) -> tuple[Tensor | None, Task | None]:
    if not path.exists():
        return None, None
    with open_limited(path, limits) as stream:
        blocks = list(iter(lambda: stream.read(_LABEL_BYTES) + stream.readline(), b""))
    task, vector = source.task, source.label_width is None and source.task != "multilabel"
    first = next(iter(_lines(blocks[0])), "") if blocks else ""
    width = first.count(",") + 1 if blocks else max(source.label_width or 1, 1)
    limits.check_count(
        "label columns", width, path if blocks else path.with_name(SOURCE), entries=width if blocks else 0
    )
    whole = task == "classification" or (task is None and width == 1 and not any(b"." in block for block in blocks))
    parts: list[Any] = [_parse_labels([], source, whole=whole)]
    line_number = 1
    for block in blocks:
        lines = _lines(block)
        for number, line in enumerate(lines, start=line_number):
            if line.count(",") + 1 != width:
                raise DataError(
                    f"Every line must contain {width} label(s), as the first line does. Got '{line[:60]}'.",
                    path=path,
                    where=f"line {number}",
                )
        try:
            parts.append(_parse_labels(lines, source, whole=whole))
        except (ValueError, ArithmeticError):
            for number, line in enumerate(lines, start=line_number):
                try:
                    _parse_labels([line], source, whole=whole)
                except (ValueError, ArithmeticError) as error:
                    kind = "integers, -1 for an unknown class" if whole else "numbers"
                    raise DataError(
                        f"Labels must be {kind}. Got '{line[:60]}'.", path=path, where=f"line {number}"
                    ) from error
            raise
        line_number += len(lines)
    numbers = np.concatenate(parts)
    if whole and len(numbers):
        largest = int(numbers.argmax())
        limits.check_count("classes", int(numbers[largest]) + 1, path, f"line {largest + 1}", entries=len(numbers))
    y = torch.from_numpy(numbers if width == 1 and vector else numbers.reshape(-1, width))
    y = y if whole else y.to(getattr(torch, source.label_type))
    return y, "classification" if whole else task or ("regression" if width == 1 else "multilabel")


def _lines(block: bytes) -> list[str]:
    return block.decode("utf-8", "replace").splitlines()


def _parse_labels(lines: list[str], source: _Source, *, whole: bool) -> Any:
    words = ",".join(lines).split(",") if lines else []
    numbers = np.array(words, dtype=np.int64 if whole else np.float64)
    if whole:
        return numbers
    for index in np.flatnonzero(np.isinf(numbers)).tolist():
        if "inf" not in words[index].lower():
            raise OverflowError(f"{words[index]} is beyond 64 bits")
    return _as_numbers(numbers, getattr(torch, source.label_type))


def _read_weights(path: Path, limits: Limits) -> tuple[Tensor | None, Tensor | None]:
    if not path.exists():
        return None, None
    arrays = read_npz(path, limits)
    weights = [arrays.get(name) for name in ("edge_weight", "incidence_weight")]
    try:
        edge, incidence = (
            None if array is None else torch.from_numpy(_as_numbers(array, torch.float64)) for array in weights
        )
    except ValueError as error:
        raise DataError(f"Weights must be vectors of numbers. Cause: {error}.", path=path) from error
    return edge, incidence


def _agree_on_nodes(path: Path, least: int, x: Tensor | None, y: Tensor | None, stored: object) -> int:
    counts: dict[str, int] = {}
    if y is not None:
        counts[LABELS] = len(y)
    if x is not None:
        counts[FEATURES] = x.shape[0]
    if isinstance(stored, int) and not isinstance(stored, bool):
        counts[SOURCE] = stored
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise DataError(f"The files must agree on the number of nodes. Got {listed}.", path=path)
    if not counts:
        return least
    name, count = next(iter(counts.items()))
    if least > count:
        raise DataError(
            f"Node numbers must be less than {count}, the number of nodes in {name}. Got {least - 1}.",
            path=path / HYPEREDGES,
        )
    return count


def _read(path: Path, limits: Limits) -> bytes:
    """Return the content of a JSON file, or an empty object if there is no such file."""
    if not path.exists():
        return b"{}"
    with open_limited(path, limits) as stream:
        return stream.read()


def _decode(path: Path, text: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DataError(f"The JSON does not have the form of this file. Cause: {error}.", path=path) from error


def _ids(path: Path, kind: str, listed: list[int | str] | None, count: int) -> Ids:
    if listed is None:
        return Ids(range(count))
    seen: set[int | str] = set()
    for index, name in enumerate(listed):
        if name in seen:
            raise DataError(f"Ids must be unique. Got {name!r} twice.", path=path, where=f"{kind}[{index}]")
        seen.add(name)
    return Ids(listed)


def _need_bytes(size: int, path: Path, limits: Limits) -> None:
    """Raise a `LimitError` if the arrays of a file take too many bytes for its size."""
    need_bytes(size, path.stat().st_size, path, limits, FREE_ARRAYS)


def _as_numbers(array: Any, kind: torch.dtype) -> Any:
    """Return numbers as float32 or float64, and check that they do not overflow ``kind``.

    Numpy has no bfloat16, so the caller converts to narrower types.
    """
    if array.dtype.kind not in "biuf":
        raise ValueError(f"the array must contain numbers, not {array.dtype}")
    with np.errstate(over="raise"):
        numbers = array.astype(np.float64 if kind == torch.float64 else np.float32, copy=False)
    if kind in (torch.float16, torch.bfloat16):
        wide = torch.from_numpy(np.ascontiguousarray(numbers))
        if bool((wide.to(kind).isinf() & ~wide.isinf()).any()):
            raise OverflowError(f"a number is beyond {str(kind).removeprefix('torch.')}")
    return numbers


def _whole_numbers(array: Any) -> Any:
    """Check that an array is a vector of integers, and return it with 64 bits."""
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"the array must be a vector of integers, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64, copy=False)


def _source_record(dataset: NodeDataset) -> JsonObject:
    """Return the content of source.json: the facts of the original source, then those of this dataset."""
    hypergraph = dataset.hypergraph
    details = dict(dataset.provenance.details)
    source: JsonObject = {"read_from": dataset.provenance.format}
    if isinstance(details.get("source"), dict):
        source = details.pop("source")
    columns = recorded_columns(details, dataset.y)
    if columns:
        del details["label_columns"]  # written below, with the other names
    notes, details = dataset.provenance.notes, split_json(details)[0]
    earlier = {"provenance": source["provenance"]} if "provenance" in source else {}  # of an earlier reading
    types: JsonObject = {}  # the files do not show them
    if dataset.y is not None and dataset.y.dim() == 2:
        types["label_width"] = dataset.y.shape[1]
    for name, tensor in (("label_type", dataset.y), ("features_type", dataset.x)):
        if tensor is not None and tensor.dtype not in (torch.int64, torch.float32):
            types[name] = str(tensor.dtype).removeprefix("torch.")
    return {
        **{key: value for key, value in source.items() if key not in _ABOUT_THE_FILES},
        **({"provenance": {"notes": list(notes), "details": {**earlier, **details}}} if notes or details else {}),
        "name": dataset.name,
        "task": dataset.task,
        "class_names": None if dataset.class_names is None else list(dataset.class_names),
        **({"label_columns": list(columns)} if columns else {}),
        "feature_names": None if dataset.feature_names is None else list(dataset.feature_names),
        **types,
        "counts": {
            **source.get("counts", {}),
            "nodes": hypergraph.num_nodes,
            "hyperedges": hypergraph.num_edges,
            "incidence_nnz": hypergraph.num_incidences,
        },
    }


def _write_json(path: Path, content: JsonObject) -> None:
    if content:
        text = _encode(content)
        with compressed_by_name(path, path.name) as stream:
            stream.write(text)


def _encode(content: JsonObject) -> bytes:
    try:
        return msgspec.json.encode(content, enc_hook=plain)
    except (TypeError, UnicodeEncodeError) as error:
        raise DataError(f"JSON cannot store the ids, attributes or provenance. Cause: {error}.") from error
