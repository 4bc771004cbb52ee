r"""Features made from the hypergraph alone, for data that have none.

Two groups of columns:

- statistics of a node: its degree, the mean, deviation, minimum and maximum of the sizes of its hyperedges, and the
  mean degree of the other nodes in them, all as logarithms. They mean the same in every hypergraph.
- projections: a node's random signs $r_v$ follow from its id and a seed. $P = D_v^{-1} H D_e^{-1} H^\top$ is a step of
  a random walk to a hyperedge and to one of its members. The columns are $P R$, $P^2 R$ and $P^3 R$, each row scaled to
  the same length, so nodes with the same neighbours have nearly the same row.

A new node among known ones gets a row in the same space, because the signs of the known nodes do not change. If no id
is known, the projections are in another space. A model therefore records a sample of its ids (`StructuralFeatures`),
and a prediction without any of them causes a warning.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Annotated, Final

import msgspec
import numpy as np
import scipy.sparse as sp
import torch

from edhnn.data.dataset import NodeDataset
from edhnn.data.ids import Ids
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.seeding import derive_seed
from edhnn.typing import FloatArray, IntArray, JsonObject

KEY: Final = "structural_features"
"""The key of the record in `NodeDataset.reading`."""
_STATISTICS: Final = ("degree", "mean size", "size deviation", "smallest size", "largest size", "mean degree beside")
_WIDTH, _STEPS, _SAMPLE = 64, 3, 64
_ID_BITS = 53  # an integer of JSON that every reader keeps
_ODD: Final = (0xD6E8FEB86659FD93, 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class StructuralFeatures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How structural features were made.

    Attributes:
        seed: The seed of the random signs.
        width: Columns of each projection.
        steps: Steps of the walk, one projection each.
        sample: Numbers of some nodes of the training, by which they are recognised in other data.
    """

    seed: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    width: Annotated[int, msgspec.Meta(ge=1, le=2**12)] = _WIDTH
    steps: Annotated[int, msgspec.Meta(ge=1, le=16)] = _STEPS
    sample: tuple[int, ...] = ()


def with_features(dataset: NodeDataset, like: JsonObject | None = None) -> NodeDataset:
    """Return a dataset with features: its own, or structural ones.

    Args:
        dataset: The dataset.
        like: The reading of a model's training data. If its features were structural, the result has such features,
            made in the same way, whatever the dataset has.

    Returns:
        The same dataset if it needs no new features.
    """
    recorded = None if like is None else like.get(KEY)
    if KEY in dataset.reading:
        return dataset
    if recorded is not None:
        made = _made(dataset, msgspec.convert(recorded, StructuralFeatures))
        note = _note_on_other_nodes(made, recorded["sample"])
        if note is not None:
            warnings.warn(note, stacklevel=2)
        return made
    if like is not None or dataset.num_features or not dataset.hypergraph.num_nodes:
        return dataset
    made = _made(dataset, StructuralFeatures())
    provenance = made.provenance
    note = (
        f"no features: {made.num_features} columns are made from the hypergraph, {len(_STATISTICS)} statistics of "
        f"degrees and sizes and {_STEPS} random projections of the memberships"
    )
    return replace(made, provenance=replace(provenance, notes=(*provenance.notes, note)))


def _made(dataset: NodeDataset, how: StructuralFeatures) -> NodeDataset:
    """Return a dataset with structural features and the record of them."""
    numbers = _numbers_of(dataset.node_ids)
    columns = [_statistics(dataset.hypergraph), *_projections(dataset.hypergraph, numbers, how)]
    names = [f"projection {step}.{column}" for step in range(1, how.steps + 1) for column in range(1, how.width + 1)]
    sample = how.sample or tuple(np.sort(numbers)[:_SAMPLE].tolist())  # the smallest hashes: a random sample of the ids
    record = {"seed": how.seed, "width": how.width, "steps": how.steps, "sample": list(sample)}
    provenance = dataset.provenance
    return replace(
        dataset,
        x=torch.from_numpy(np.concatenate(columns, axis=1).astype(np.float32)),
        feature_names=(*_STATISTICS, *names),
        provenance=replace(provenance, details={**provenance.details, KEY: record}),
    )


def _note_on_other_nodes(dataset: NodeDataset, sample: Collection[int]) -> str | None:
    """Return a note if none of a sample of the training's nodes is in the dataset."""
    if np.isin(_numbers_of(dataset.node_ids), list(sample)).any():
        return None
    return (
        f"The model's features are made from the hypergraph and the ids of the nodes. None of {len(sample)} nodes of "
        f"the training is in '{dataset.name}', so only degrees and sizes can be compared. Answers may be wrong"
    )


def _numbers_of(ids: Ids) -> IntArray:
    """Hash every id to a whole number. The ids 7 and "7" give the same, as in text files."""
    digests = (hashlib.blake2b(f"{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in ids)
    numbers: IntArray = (np.frombuffer(b"".join(digests), dtype="<u8") >> np.uint64(64 - _ID_BITS)).astype(np.int64)
    return numbers


def _statistics(hypergraph: Hypergraph) -> FloatArray:
    """Return a column per name in `_STATISTICS`."""
    node, edge = hypergraph.node_index.cpu().numpy(), hypergraph.edge_index.cpu().numpy()
    nodes, edges = hypergraph.num_nodes, hypergraph.num_edges
    degree = np.bincount(node, minlength=nodes).astype(np.float64)
    size = np.bincount(edge, minlength=edges).astype(np.float64)
    logs, many = np.log(np.maximum(size, 1))[edge], np.maximum(degree, 1)
    mean = np.bincount(node, logs, nodes) / many
    spread = np.bincount(node, (logs - mean[node]) ** 2, nodes) / many
    smallest, largest = np.full(nodes, np.inf), np.zeros(nodes)
    np.minimum.at(smallest, node, logs)
    np.maximum.at(largest, node, logs)
    log_degree = np.log1p(degree)
    total = np.bincount(edge, log_degree[node], edges)[edge] - log_degree[node]
    beside = np.bincount(node, total / np.maximum(size[edge] - 1, 1), nodes) / many
    smallest = np.where(degree > 0, smallest, 0)
    columns: FloatArray = np.stack([log_degree, mean, np.sqrt(spread), smallest, largest, beside], axis=1)
    return columns


def _projections(hypergraph: Hypergraph, numbers: IntArray, how: StructuralFeatures) -> Iterator[FloatArray]:
    """Yield the projections, a step of the walk each."""
    node, edge = hypergraph.node_index.cpu().numpy(), hypergraph.edge_index.cpu().numpy()
    shape = hypergraph.num_nodes, hypergraph.num_edges
    membership = sp.csr_array((np.ones(len(node)), (node, edge)), shape=shape)
    to_nodes = sp.diags_array(1 / np.maximum(membership.sum(axis=1), 1)) @ membership
    to_edges = sp.diags_array(1 / np.maximum(membership.sum(axis=0), 1)) @ membership.T
    z = _signs(numbers, how.width, how.seed)
    for _ in range(how.steps):
        z = to_nodes @ (to_edges @ z)
        length = np.sqrt((z**2).sum(axis=1, keepdims=True) / how.width)
        yield np.divide(z, length, out=np.zeros_like(z), where=length > 0)


def _signs(numbers: IntArray, width: int, seed: int) -> FloatArray:
    """Return a row of random signs per node, which depends on its number and the seed only (splitmix64)."""
    blocks = np.arange(1, -(-width // 64) + 1, dtype=np.uint64)
    z = numbers.astype(np.uint64)[:, None] ^ np.uint64(derive_seed(seed, "signs"))
    z = z * np.uint64(_ODD[0]) + blocks[None, :] * np.uint64(_ODD[1])
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_ODD[2])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_ODD[3])
    z ^= z >> np.uint64(31)
    bits = np.unpackbits(z.astype("<u8").view(np.uint8), axis=1)[:, :width]
    return 2.0 * bits.astype(np.float64) - 1.0
