"""The dataset folder: plain, safe, diffable files; the same dataset gives the same bytes.

hyperedges.txt.gz    a line of comma-separated 0-based node numbers per hyperedge (required)
labels.txt.gz        a line per node: a class number (-1 unknown), a real value, or several separated by commas
features.npz         a scipy CSR matrix, or an array named `x`
source.json          name, counts, task, names of classes and of label and feature columns, where it came from, and the
                     notes and details of reading it
ids.json.gz          {"nodes": [...], "hyperedges": [...]} when ids are not the numbers
weights.npz          `edge_weight` and `incidence_weight`, the latter in the order of the hyperedge lines
attributes.json.gz   {"nodes": {name: [...]}, "hyperedges": {name: [...]}}

No array of an .npz file is pickled, and none is larger than its file says.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Sequence
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
from edhnn.data.limits import Limits
from edhnn.data.manifest import FloatName
from edhnn.errors import DataError, EdhnnError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.file_format import FileFormat
from edhnn.io.files import atomic_folder, compressed_by_name, open_existing, open_limited, refuse_foreign, too_large
from edhnn.io.integer_lines import read_integer_lines
from edhnn.io.json_files import dropped_details, need_finite_attributes, plain, split_json
from edhnn.typing import ByteWriter, JsonObject

_T = TypeVar("_T")
HYPEREDGES, LABELS, FEATURES, SOURCE = "hyperedges.txt.gz", "labels.txt.gz", "features.npz", "source.json"
IDS, WEIGHTS, ATTRIBUTES = "ids.json.gz", "weights.npz", "attributes.json.gz"
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
    file = path / HYPEREDGES
    members, sizes = read_integer_lines(file, limits, commas=True)
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
            node_attributes=attributes.nodes,
            edge_attributes=attributes.hyperedges,
            provenance=Provenance(str(path), "folder", merged_note(hypergraph), {"source": details, **read_as}),
        )
    except DataError as error:
        raise DataError(error.problem, path=error.path or path, where=error.where, remedy=error.remedy) from error


def write_folder(dataset: NodeDataset, target: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a dataset as a folder; it drops nothing but details of the provenance that are not JSON.

    Args:
        dataset: The dataset.
        target: The folder to make. It must not exist, or be empty.
        overwrite: Replace a dataset folder that is there.

    Returns:
        The folder.

    Raises:
        DataError: if an attribute holds what JSON cannot, such as an infinity; nothing is written.
        UsageError: if something is there that may not be replaced.
    """
    hypergraph = dataset.hypergraph
    need_finite_attributes(dataset, "A dataset folder")
    if overwrite:
        refuse_foreign(target, HYPEREDGES, "dataset")
    with atomic_folder(target, overwrite=overwrite) as folder:
        with compressed_by_name(folder / HYPEREDGES, HYPEREDGES) as stream:
            write_integer_lines(stream, hypergraph)
        if dataset.y is not None:
            with compressed_by_name(folder / LABELS, LABELS) as stream:
                _write_labels(stream, dataset.y)
        if dataset.x is not None:
            _write_features(folder / FEATURES, dataset.x)
        weights = {name: getattr(hypergraph, name) for name in ("edge_weight", "incidence_weight")}
        present = {name: weight.cpu().numpy() for name, weight in weights.items() if weight is not None}
        if present:
            np.savez_compressed(folder / WEIGHTS, **present)
        ids = {
            kind: found.to_list()
            for kind, found in (("nodes", dataset.node_ids), ("hyperedges", dataset.edge_ids))
            if not found.are_numbers
        }
        _write_json(folder / IDS, ids)
        columns = (("nodes", dataset.node_attributes), ("hyperedges", dataset.edge_attributes))
        _write_json(folder / ATTRIBUTES, {kind: dict(found) for kind, found in columns if found})
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
    arrays = _load_npz(path, limits)
    kind: torch.dtype = getattr(torch, source.features_type)
    try:
        if "x" in arrays:
            return torch.from_numpy(np.ascontiguousarray(_as_numbers(arrays["x"], kind))).to(kind)
        if arrays.get("format", np.array(b"csr")).item() not in (b"csr", "csr"):
            raise ValueError(f"the matrix is stored as {arrays['format'].item()}")
        indices, indptr = (_whole_numbers(arrays[part]) for part in ("indices", "indptr"))
        shape = tuple(_whole_numbers(arrays["shape"]).tolist())
        matrix = sp.csr_array((_as_numbers(arrays["data"], kind), indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        return sparse_features(matrix, kind)
    except (KeyError, ValueError, TypeError, IndexError, ArithmeticError, RuntimeError) as error:
        raise DataError(
            f"Features must be a scipy CSR matrix or an array named 'x'. Cause: {error}.", path=path
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
    return _as_numbers(numbers, getattr(torch, source.label_type))


def _read_weights(path: Path, limits: Limits) -> tuple[Tensor | None, Tensor | None]:
    if not path.exists():
        return None, None
    arrays = _load_npz(path, limits)
    found = [arrays.get(name) for name in ("edge_weight", "incidence_weight")]
    try:
        edge, incidence = (
            None if array is None else torch.from_numpy(_as_numbers(array, torch.float64)) for array in found
        )
    except ValueError as error:
        raise DataError(f"Weights must be vectors of numbers. Cause: {error}.", path=path) from error
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
        raise DataError(f"The JSON must have its documented form. Cause: {error}.", path=path) from error


def _ids(path: Path, kind: str, listed: list[int | str] | None, count: int) -> Ids:
    if listed is None:
        return Ids(range(count))
    first: dict[int | str, int] = {}
    for place, name in enumerate(listed):
        if first.setdefault(name, place) != place:
            raise DataError(f"Each id must stand once. Got {name!r} again.", path=path, where=f"{kind}[{place}]")
    return Ids(listed)


def _load_npz(path: Path, limits: Limits) -> dict[str, Any]:
    """Read the arrays of an .npz file, none of them pickled, within the limits."""
    try:
        with open_existing(path) as stream, zipfile.ZipFile(stream) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > limits.max_bytes:
                raise too_large(path, limits)
            return {name.removesuffix(".npy"): _load_array(archive, name) for name in archive.namelist()}
    except EdhnnError:
        raise
    except Exception as error:  # zip, zlib, lzma and numpy's header parser have no common class for broken bytes
        raise DataError(f"The file must be an .npz archive of plain arrays. Cause: {error}.", path=path) from error


def _load_array(archive: zipfile.ZipFile, name: str) -> Any:
    """One array; the size its header claims must be the size its entry holds, before anything is allocated."""
    with archive.open(name) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a header written by Python 2, or by no numpy at all
            shape, _, dtype = read_header(stream)
        claimed = int(np.prod([int(part) for part in shape], dtype=object)) * dtype.itemsize
        if dtype.kind not in "biufSU" or not dtype.itemsize or not 0 <= claimed <= archive.getinfo(name).file_size:
            raise ValueError(f"array '{name}' claims {claimed} bytes of {dtype}")
    with archive.open(name) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _as_numbers(array: Any, kind: torch.dtype) -> Any:
    """The array as floating point of 32 or 64 bits that fits ``kind``: not made from text, nor infinite if it was not.

    Numpy lacks bfloat16, so the narrower types are the caller's to make.
    """
    if array.dtype.kind not in "biuf":
        raise ValueError(f"numbers are needed, not {array.dtype}")
    with np.errstate(over="raise"):
        numbers = array.astype(np.float64 if kind == torch.float64 else np.float32, copy=False)
    if kind in (torch.float16, torch.bfloat16):
        whole = torch.from_numpy(np.ascontiguousarray(numbers))
        if bool((whole.to(kind).isinf() & ~whole.isinf()).any()):
            raise OverflowError(f"a number is beyond {str(kind).removeprefix('torch.')}")
    return numbers


def _whole_numbers(array: Any) -> Any:
    """The array as 64-bit integers, if it is a vector of whole numbers."""
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"a vector of whole numbers is needed, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64, copy=False)


def _source_record(dataset: NodeDataset) -> JsonObject:
    """What source.json says: what the source said about itself, then what this dataset is."""
    hypergraph = dataset.hypergraph
    details = dict(dataset.provenance.details)
    said: JsonObject = {"read_from": dataset.provenance.format}
    if isinstance(details.get("source"), dict):
        said = details.pop("source")
    columns = recorded_columns(details, dataset.y)
    if columns:
        del details["label_columns"]  # stands with the other names
    return {
        **{key: value for key, value in said.items() if key not in _ABOUT_THE_FILES},
        **_came_from(dataset.provenance.notes, split_json(details)[0], said),
        "name": dataset.name,
        "task": dataset.task,
        "class_names": None if dataset.class_names is None else list(dataset.class_names),
        **({"label_columns": list(columns)} if columns else {}),
        "feature_names": None if dataset.feature_names is None else list(dataset.feature_names),
        **_types(dataset),
        "counts": {
            **said.get("counts", {}),
            "nodes": hypergraph.num_nodes,
            "hyperedges": hypergraph.num_edges,
            "incidence_nnz": hypergraph.num_incidences,
        },
    }


def _came_from(notes: Sequence[str], details: JsonObject, said: JsonObject) -> JsonObject:
    """The notes and details of how it was read; those of an earlier reading stay within."""
    if not notes and not details:
        return {}
    earlier = {"provenance": said["provenance"]} if "provenance" in said else {}
    return {"provenance": {"notes": list(notes), "details": {**earlier, **details}}}


def _types(dataset: NodeDataset) -> JsonObject:
    """What the files do not say themselves about labels and features."""
    said: JsonObject = {}
    if dataset.y is not None and dataset.y.dim() == 2:
        said["label_width"] = dataset.y.shape[1]
    for name, tensor in (("label_type", dataset.y), ("features_type", dataset.x)):
        if tensor is not None and tensor.dtype not in (torch.int64, torch.float32):
            said[name] = str(tensor.dtype).removeprefix("torch.")
    return said


def _write_labels(stream: ByteWriter, y: Tensor) -> None:
    rows = (y if y.dim() == 2 else y[:, None]).tolist()
    stream.write(b"".join(",".join(str(value) for value in row).encode() + b"\n" for row in rows))


def _write_features(path: Path, x: Tensor) -> None:
    if x.layout == torch.sparse_csr:
        sp.save_npz(path, features_to_scipy(x))
    else:
        np.savez_compressed(path, x=as_numpy(x))


def _write_json(path: Path, content: JsonObject) -> None:
    if content:
        text = _encode(content)
        with compressed_by_name(path, path.name) as stream:
            stream.write(text)


def _encode(content: JsonObject) -> bytes:
    try:
        return msgspec.json.encode(content, enc_hook=plain)
    except (TypeError, UnicodeEncodeError) as error:
        raise DataError(f"Ids, attributes and provenance must be what JSON can hold: {error}.") from error
