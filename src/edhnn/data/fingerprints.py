"""Hashes of a dataset's content, of the data that a model uses, of splits and of nodes.

The bytes of a published file change when it is compressed again, pickled by another Python or given other line ends,
but its hypergraph does not. Therefore the catalogue pins the content (`content_digests`):

hyperedges   sha256 of the text with a line per hyperedge: its 0-based node numbers, ascending, each once, separated by
             commas; every line ends with a single newline
labels       sha256 of the text with a line per node: its class number, -1 where unknown
features     sha256 of the canonical CSR matrix (columns ascending within a row, duplicates summed, no stored zeros):
             the numbers of rows and columns, then row pointers and column indices, all as little-endian int64, then
             the values as little-endian float32

Run folders, experiment records and ``catalog.toml`` hold these hashes, so no function here may change its result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, features_to_scipy
from edhnn.data.splits import Split
from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.typing import ByteWriter

NodeHashes = npt.NDArray[np.uint64]


def content_digests(dataset: NodeDataset) -> dict[str, str]:
    """Hash a dataset's hyperedges, class labels and features, independently of how they are stored.

    Returns:
        sha256 in hexadecimal under ``hyperedges`` and, if the dataset has them, ``labels`` and ``features``.

    Raises:
        DataError: if the labels are not classes: no text is defined for others.
    """
    digests = {"hyperedges": _Sha256()}
    write_integer_lines(digests["hyperedges"], dataset.hypergraph)
    if dataset.y is not None:
        if dataset.task != "classification":
            raise DataError(f"Only class labels have a checksum. The dataset '{dataset.name}' is for {dataset.task}.")
        digests["labels"] = _Sha256("".join(f"{label}\n" for label in dataset.y.tolist()).encode())
    if dataset.x is not None:
        matrix = _canonical_csr(dataset.x)
        header = [_bytes(part, "<i8") for part in (matrix.shape, matrix.indptr, matrix.indices)]
        digests["features"] = _Sha256(*header, _bytes(matrix.data, "<f4"))
    return {name: digest.hexdigest() for name, digest in digests.items()}


def dataset_sha256(dataset: NodeDataset) -> str:
    """Hash the data that a model uses: hyperedges, weights, features and labels, as they are stored."""
    hypergraph, x = dataset.hypergraph, dataset.x
    parts = [hypergraph.node_index, hypergraph.edge_index, hypergraph.edge_weight, hypergraph.incidence_weight]
    if x is not None and x.layout == torch.sparse_csr:
        parts += [x.crow_indices(), x.col_indices(), x.values()]
    else:
        parts.append(x)
    digest = _Sha256(f"{hypergraph.num_nodes},{hypergraph.num_edges},{dataset.num_features}".encode())
    for part in (*parts, dataset.y):
        if part is None:
            digest.write(b"none")
        else:
            array = part.cpu().numpy()
            digest.write(f"{array.dtype.newbyteorder('<').str}{array.shape}".encode())
            digest.write(_bytes(array))
    return digest.hexdigest()


def tensor_sha256(tensor: Tensor) -> str:
    """Hash the shape and the values of a dense tensor."""
    return _Sha256(repr(tuple(tensor.shape)).encode(), _bytes(tensor)).hexdigest()


def splits_sha256(splits: Iterable[Split]) -> str:
    """Hash splits: size and node numbers of each part, in order."""
    parts = (part for split in splits for part in (split.train, split.valid, split.test))
    return _Sha256(*(len(part).to_bytes(8, "little") + _bytes(part, "<i8") for part in parts)).hexdigest()


def search_sha256(datasets: Sequence[NodeDataset], splits: Sequence[Split]) -> str:
    """Hash the data that a hyperparameter search uses: for each split its dataset, training and validation nodes."""
    digest = _Sha256()
    for dataset, split in zip(datasets, splits, strict=True):
        digest.write(dataset_sha256(dataset).encode() + _bytes(split.train, "<i8") + _bytes(split.valid, "<i8"))
    return digest.hexdigest()


def node_hashes(dataset: NodeDataset) -> NodeHashes:
    """Hash every node's id and features (in 32 bits), to recognise the node in other data.

    Features that are made from the hypergraph change with it, so then the ids alone are hashed. The ids 7 and "7" give
    the same hash, because text files do not distinguish them.
    """
    assert dataset.x is not None
    matrix = _canonical_csr(dataset.x)
    if "structural_features" in dataset.reading:
        matrix = sp.csr_array(matrix.shape, dtype=np.float32)
    columns, values = matrix.indices.astype("<i8"), matrix.data.astype("<f4")
    hashes = np.empty(matrix.shape[0], dtype=np.uint64)
    for node, (name, (begin, end)) in enumerate(zip(dataset.node_ids, pairwise(matrix.indptr), strict=True)):
        digest = hashlib.blake2b(f"{name}\n".encode("utf-8", "surrogatepass"), digest_size=8)
        digest.update(columns[begin:end].tobytes())
        digest.update(values[begin:end].tobytes())
        hashes[node] = int.from_bytes(digest.digest(), "little")
    return hashes


def nodes_sha256(hashes: NodeHashes) -> str:
    """Hash the hashes of all nodes, in order."""
    return _Sha256(_bytes(hashes, "<u8")).hexdigest()


def write_integer_lines(
    stream: ByteWriter, hypergraph: Hypergraph, *, offset: int = 0, separator: bytes = b",", block: int = 100_000
) -> None:
    """Write a line of node numbers (plus ``offset``) per hyperedge, in blocks of hyperedges."""
    members, bounds = hypergraph.node_index.cpu().numpy() + offset, hypergraph.edge_ptr.cpu().numpy()
    for start in range(0, hypergraph.num_edges, block):
        ends = bounds[start : start + block + 1]
        words: npt.NDArray[np.bytes_] = members[ends[0] : ends[-1]].astype("S20")
        lines = (separator.join(words[a - ends[0] : b - ends[0]]) for a, b in pairwise(ends))
        stream.write(b"\n".join(lines) + b"\n")


class _Sha256:
    """A stream that keeps only the sha256 of the bytes written to it."""

    def __init__(self, *parts: bytes) -> None:
        self._digest = hashlib.sha256(b"".join(parts))
        self.hexdigest = self._digest.hexdigest

    def write(self, data: bytes, /) -> int:
        self._digest.update(data)
        return len(data)


def _bytes(values: Any, kind: str | None = None) -> bytes:
    """Return the little-endian bytes of numbers, row by row, as ``kind`` or in their own type."""
    array = values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    return bytes(array.astype(kind or array.dtype.newbyteorder("<"), copy=False).tobytes())


def _canonical_csr(x: Tensor) -> sp.csr_array:
    matrix = features_to_scipy(x).astype(np.float32)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
