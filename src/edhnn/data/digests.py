"""What a dataset contains, as checksums that do not depend on how it is stored.

A published file changes its bytes when it is compressed again, pickled by another Python or given other line ends,
while the hypergraph in it stays the same. So the catalogue pins content:

hyperedges   sha256 of the text with a line per hyperedge: its 0-based node numbers, ascending, each once, separated by
             commas; lines end with a single newline, the last one too
labels       sha256 of the text with a line per node: its class number, -1 where unknown
features     sha256 of the canonical CSR matrix (columns ascending within a row, duplicates summed, no stored zeros):
             its number of rows and of columns, then row pointers and column indices, all as little-endian int64, then
             the values as little-endian float32
"""

from __future__ import annotations

import hashlib

import numpy as np

from edhnn.data.dataset import NodeDataset, features_to_scipy
from edhnn.data.writers.folder import write_integer_lines
from edhnn.errors import DataError


def content_digests(dataset: NodeDataset) -> dict[str, str]:
    """The checksums of a dataset's hyperedges, class labels and features; what it does not have is left out.

    Args:
        dataset: The dataset.

    Returns:
        sha256 in hexadecimal under ``hyperedges`` and, where there are any, ``labels`` and ``features``.

    Raises:
        DataError: if the labels are not classes, for which no text is defined.
    """
    digests = {"hyperedges": _Digest()}
    write_integer_lines(digests["hyperedges"], dataset.hypergraph)
    if dataset.y is not None:
        if dataset.task != "classification":
            raise DataError(f"Only class labels have a checksum. The dataset '{dataset.name}' is for {dataset.task}.")
        digests["labels"] = _Digest()
        digests["labels"].write("".join(f"{label}\n" for label in dataset.y.tolist()).encode())
    if dataset.x is not None:
        digests["features"] = _Digest()
        matrix = features_to_scipy(dataset.x).astype(np.float32)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        for numbers, kind in (
            (matrix.shape, "<i8"),
            (matrix.indptr, "<i8"),
            (matrix.indices, "<i8"),
            (matrix.data, "<f4"),
        ):
            digests["features"].write(np.asarray(numbers).astype(kind).tobytes())
    return {name: digest.hexdigest() for name, digest in digests.items()}


class _Digest:
    """A place for bytes that keeps only their checksum."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()

    def write(self, data: bytes, /) -> int:
        self._sha256.update(data)
        return len(data)

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()
