"""Safetensors files, NumPy files, and a dataset as one safetensors file.

The dataset's file has the parts that worker processes need for training, without ids. Arrays of NumPy files are never
pickled, and the size in an array's header must match the file.
"""

from __future__ import annotations

import json
import os
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import safetensors
import safetensors.torch
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, Provenance, sparse_features
from edhnn.data.limits import FREE_ARRAYS, Limits
from edhnn.errors import DataError, EdhnnError, UsageError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.files import atomic_file, need_bytes, need_regular, open_existing

Tensors = dict[str, Tensor]
_TYPES: Final = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")
"""The types of tensors that are read; torch cannot compute with the others, such as 8-bit floats."""


def write_tensors(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file atomically."""
    content = safetensors.torch.save(tensors, metadata)
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def read_tensors(path: Path, remedy: str) -> tuple[Tensors, dict[str, str]]:
    """Read the tensors and the metadata of a safetensors file.

    Raises:
        DataError: if the file is missing or damaged. The message ends with the remedy.
    """
    try:
        need_regular(path)
        if os.fsencode(path) != str(path).encode("utf-8", "replace"):  # safetensors opens only names in UTF-8
            content = path.read_bytes()
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            return safetensors.torch.load(content), header.get("__metadata__") or {}
        with safetensors.safe_open(path, framework="pt") as file:
            names = list(file.keys())
            for name in names:
                kind = file.get_slice(name).get_dtype()
                if kind not in _TYPES:
                    problem = f"A tensor must be of type {', '.join(_TYPES)}. '{name}' is of type {kind}."
                    raise DataError(problem, path=path, remedy=remedy)
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except UsageError as error:
        raise DataError(str(error), remedy=remedy) from error
    except (safetensors.SafetensorError, OSError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"The file must be intact safetensors. Cause: {error}.", path=path, remedy=remedy) from error


def read_npz(path: Path, limits: Limits) -> dict[str, Any]:
    """Read the arrays of an .npz file within the limits.

    Raises:
        DataError: if the file is damaged, or an array is not of numbers or text.
    """
    try:
        with open_existing(path) as stream, zipfile.ZipFile(stream) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            need_bytes(size, path.stat().st_size, path, limits, FREE_ARRAYS)
            return {name.removesuffix(".npy"): _read_entry(archive, name) for name in archive.namelist()}
    except EdhnnError:
        raise
    except Exception as error:  # zip, zlib, lzma and numpy's header parser raise many classes for broken bytes
        raise DataError(f"The file must be an .npz archive of plain arrays. Cause: {error}.", path=path) from error


def read_npy(path: Path) -> Any:
    """Read the array of an .npy file.

    Raises:
        DataError: if the file is damaged, or the array is not of numbers or text.
    """
    try:
        with open_existing(path) as stream:
            _check_header(stream, path.name, path.stat().st_size)
            stream.seek(0)
            return np.lib.format.read_array(stream, allow_pickle=False)
    except EdhnnError:
        raise
    except Exception as error:  # numpy's header parser raises many classes for broken bytes
        raise DataError(f"The file must be an .npy file of a plain array. Cause: {error}.", path=path) from error


def _read_entry(archive: zipfile.ZipFile, name: str) -> Any:
    with archive.open(name) as stream:
        _check_header(stream, name, archive.getinfo(name).file_size)
    with archive.open(name) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _check_header(stream: IO[bytes], name: str, size: int) -> None:
    """Check the size in an array's header against the size of its file before memory is allocated."""
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns about a header that Python 2 or another program wrote
        shape, _, dtype = read_header(stream)
    claimed = int(np.prod([int(part) for part in shape], dtype=object)) * dtype.itemsize
    if dtype.kind not in "biufSU" or not dtype.itemsize or not 0 <= claimed <= size:
        raise ValueError(f"the header of array '{name}' declares {claimed} bytes of {dtype}")


_HYPERGRAPH = ("node_index", "edge_index", "edge_weight", "incidence_weight")


def write_training_data(dataset: NodeDataset, path: Path) -> None:
    """Write the hypergraph, features and labels of a dataset."""
    hypergraph, x, y = dataset.hypergraph, dataset.x, dataset.y
    assert x is not None and y is not None
    tensors = {name: getattr(hypergraph, name) for name in _HYPERGRAPH}
    if x.layout == torch.sparse_csr:
        tensors |= {"x_rows": x.crow_indices(), "x_columns": x.col_indices(), "x_values": x.values()}
    else:
        tensors["x"] = x
    tensors["y"] = y
    facts = {
        "name": dataset.name,
        "num_nodes": hypergraph.num_nodes,
        "num_edges": hypergraph.num_edges,
        "num_features": dataset.num_features,
        "task": dataset.task,
        "class_names": dataset.class_names,
        "feature_names": dataset.feature_names,
        "reading": dataset.reading,
    }
    present = {name: tensor.contiguous() for name, tensor in tensors.items() if tensor is not None}
    write_tensors(present, path, {"dataset": json.dumps(facts)})


def read_training_data(path: Path) -> NodeDataset:
    """Read a file of `write_training_data`."""
    tensors, metadata = read_tensors(path, "Start the run again with `resume=True`.")
    facts = json.loads(metadata["dataset"])
    hypergraph = Hypergraph(
        tensors["node_index"],
        tensors["edge_index"],
        facts["num_nodes"],
        facts["num_edges"],
        tensors.get("edge_weight"),
        tensors.get("incidence_weight"),
    )
    x = tensors.get("x")
    if x is None:
        parts = tuple(tensors[name].numpy() for name in ("x_values", "x_columns", "x_rows"))
        matrix = sp.csr_array(parts, shape=(facts["num_nodes"], facts["num_features"]))
        x = sparse_features(matrix, tensors["x_values"].dtype)
    return NodeDataset(
        name=facts["name"],
        hypergraph=hypergraph,
        x=x,
        y=tensors["y"],
        task=facts["task"],
        class_names=None if facts["class_names"] is None else tuple(facts["class_names"]),
        feature_names=None if facts["feature_names"] is None else tuple(facts["feature_names"]),
        provenance=Provenance("memory", "python", details=facts["reading"]),
    )
