"""Safetensors files, and a dataset as one such file: the parts that worker processes need for training, without ids."""

from __future__ import annotations

import json
import os
from pathlib import Path

import safetensors
import safetensors.torch
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, Provenance, sparse_features
from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.io.files import atomic_file

Tensors = dict[str, Tensor]


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
        if os.fsencode(path) != str(path).encode("utf-8", "replace"):  # safetensors opens only names in UTF-8
            content = path.read_bytes()
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            return safetensors.torch.load(content), header.get("__metadata__") or {}
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except FileNotFoundError as error:
        raise DataError("File not found.", path=path, remedy=remedy) from error
    except (safetensors.SafetensorError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"The file must be intact safetensors. Cause: {error}.", path=path, remedy=remedy) from error


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
