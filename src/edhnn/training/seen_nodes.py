"""Which nodes a run has learned from: known again by id and features, whatever else of the data has changed.

Rows in another order, hyperedges or labels that came later, more nodes: the labels a model was trained on must not
count when it is judged. So a run keeps a hash of every node's id and features (``nodes.npy``).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from edhnn.data.atomic import atomic_file
from edhnn.data.dataset import NodeDataset, features_to_scipy
from edhnn.errors import DataError
from edhnn.training.run_folder import RunFolder

Hashes = npt.NDArray[np.uint64]


def node_hashes(dataset: NodeDataset) -> Hashes:
    """A number for each node by its id and its features, the latter in 32 bits."""
    assert dataset.x is not None
    matrix = features_to_scipy(dataset.x).astype(np.float32)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    columns, values = matrix.indices.astype("<i8"), matrix.data.astype("<f4")
    found = np.empty(matrix.shape[0], dtype=np.uint64)
    for node, name in enumerate(dataset.node_ids):
        begin, end = matrix.indptr[node], matrix.indptr[node + 1]
        digest = blake2b(f"{name}\n".encode("utf-8", "surrogatepass"), digest_size=8)  # 7 and "7" are one: files differ
        digest.update(columns[begin:end].tobytes())
        digest.update(values[begin:end].tobytes())
        found[node] = int.from_bytes(digest.digest(), "little")
    return found


def write_nodes(dataset: NodeDataset, folder: RunFolder) -> None:
    """Keep what tells a run's nodes again; written anew when the run is resumed, as the file may have been damaged."""
    with atomic_file(folder.nodes) as temporary, temporary.open("wb") as stream:
        np.save(stream, node_hashes(dataset))


def seen_nodes(folder: RunFolder, dataset: NodeDataset, splits: Sequence[int]) -> list[Tensor]:
    """The nodes of a dataset that the models of a run were trained on or selected by.

    Args:
        folder: The run's folder.
        dataset: A dataset, its columns in the models' order.
        splits: Which of the run's models.

    Returns:
        For each model a mask over the dataset's nodes.

    Raises:
        DataError: if the run's files are damaged.
    """
    theirs, ours = node_hashes(dataset), _read(folder, int(folder.plan()[1]["dataset"]["num_nodes"]))
    if not np.isin(theirs, ours).any():
        return [torch.zeros(len(theirs), dtype=torch.bool)] * len(splits)
    parts = folder.read_splits()
    learned = [torch.cat([parts[number].train, parts[number].valid]).numpy() for number in splits]
    return [torch.from_numpy(np.isin(theirs, ours[nodes])) for nodes in learned]


def _read(folder: RunFolder, num_nodes: int) -> Hashes:
    try:
        found: Hashes = np.load(folder.nodes, allow_pickle=False)
        if found.shape != (num_nodes,) or found.dtype != np.uint64:
            raise ValueError(f"an array of {found.dtype} of shape {list(found.shape)}")
    except (OSError, ValueError) as error:
        raise DataError(
            f"The file must hold a number for each node of the run. It does not: {error}.",
            path=folder.nodes,
            remedy="Resume the run, which writes it anew.",
        ) from error
    return found
