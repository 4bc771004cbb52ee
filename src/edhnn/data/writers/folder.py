"""Writes the dataset folder that `edhnn.data.readers.folder` describes; the same dataset gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.atomic import ByteWriter, atomic_folder, compressed_by_name, refuse_foreign
from edhnn.data.dataset import NodeDataset, as_numpy, features_to_scipy
from edhnn.data.json_values import need_finite_attributes, plain, what_json_holds
from edhnn.data.labels import recorded_columns
from edhnn.data.readers.folder import ATTRIBUTES, FEATURES, HYPEREDGES, IDS, LABELS, SOURCE, WEIGHTS
from edhnn.errors import DataError
from edhnn.hypergraph import Hypergraph
from edhnn.typing import JsonObject

_ABOUT_THE_FILES = ("label_width", "label_type", "label_names", "label_columns", "features_type")


def write_folder(dataset: NodeDataset, target: Path, *, overwrite: bool = False) -> None:
    """Write a dataset as a folder; nothing of it is left behind but details of its provenance that are not JSON.

    Args:
        dataset: The dataset.
        target: The folder to make. It must not exist, or be empty.
        overwrite: Replace a dataset folder that is there.

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
        (folder / SOURCE).write_bytes(msgspec.json.format(_encode(source_record(dataset)), indent=1))


def source_record(dataset: NodeDataset) -> JsonObject:
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
        **_came_from(dataset.provenance.notes, what_json_holds(details)[0], said),
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


def write_integer_lines(
    stream: ByteWriter, hypergraph: Hypergraph, *, offset: int = 0, separator: bytes = b",", block: int = 100_000
) -> None:
    """A line of node numbers (plus ``offset``) per hyperedge, in blocks of hyperedges."""
    members, bounds = hypergraph.node_index.cpu().numpy() + offset, hypergraph.edge_ptr.cpu().numpy()
    for start in range(0, hypergraph.num_edges, block):
        ends = bounds[start : start + block + 1]
        words: npt.NDArray[np.bytes_] = members[ends[0] : ends[-1]].astype("S20")
        lines = (separator.join(words[a - ends[0] : b - ends[0]]) for a, b in pairwise(ends))
        stream.write(b"\n".join(lines) + b"\n")


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
