"""The catalogue, run folders and records hold these hashes, so the values must never change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch

from edhnn import Hypergraph, Ids, NodeDataset
from edhnn.data.dataset import sparse_features
from edhnn.data.fingerprints import (
    content_digests,
    dataset_sha256,
    node_hashes,
    search_sha256,
    splits_sha256,
    tensor_sha256,
)
from edhnn.data.splits import random_splits

TABLE = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, 0.0], [-1.0, 0.25]], dtype=np.float32)
DENSE = NodeDataset(
    name="small",
    hypergraph=Hypergraph.from_hyperedges([[0, 1, 2], [2, 3]], num_nodes=4, edge_weight=torch.tensor([1.0, 2.0])),
    x=torch.from_numpy(TABLE),
    y=torch.tensor([0, 1, 0, -1]),
    task="classification",
    node_ids=Ids(["a", 7, "ü", "d"]),
)
SPARSE = replace(DENSE, x=sparse_features(sp.csr_array(TABLE)))
BARE = replace(DENSE, x=None, y=None, task=None)


def test_content_does_not_depend_on_storage():
    assert content_digests(DENSE) == {
        "hyperedges": "12bcbcb9904d308bd6a7ec6fe2d0a32a1e3c087b3ed13c6ae7a7253779accd7b",
        "labels": "455fcc7cc5ecacbe69f85385facc73a05895925ffab656a77bc1033228bfb3c8",
        "features": "b16862c2ba277fa4bd014d2714bbf9210b5df304a103f6726cc984b0ece53a44",
    }
    assert content_digests(SPARSE) == content_digests(DENSE)
    assert content_digests(BARE) == {"hyperedges": content_digests(DENSE)["hyperedges"]}


def test_dataset_hashes_are_pinned():
    assert dataset_sha256(DENSE) == "5ffe798936f15ca3a7ab306edd1979889fe8b2bc94f99c47962f935b22018d40"
    assert dataset_sha256(SPARSE) == "8504dfbaab4496e0ff4d98242feebaff105dc0c076b53d465f188b8daa36446b"
    assert dataset_sha256(BARE) == "acacd786c44d8bd38968ddf8295ea4eab1bbee68ed639af492f962c204c11cfb"


def test_tensor_hashes_are_pinned():
    assert tensor_sha256(torch.from_numpy(TABLE)) == "d48baa61232d2bfe84a4384006f78ab2e95f7df1b7beccbe2f62684f81e115f8"
    assert tensor_sha256(torch.from_numpy(TABLE.T.copy()).T) == tensor_sha256(torch.from_numpy(TABLE))


def test_split_and_search_hashes_are_pinned():
    splits = random_splits(4, 2)
    assert splits_sha256(splits) == "4336c26a958476f5dbcf5589d534c685dac02ebca3606b6e4985af1f9d79866b"
    assert search_sha256([DENSE, SPARSE], splits) == "2cdc8217df50c2d5987a8274b0015c46cfc8e11aaaac86a128782e9f15588b46"


def test_node_hashes_are_pinned():
    assert node_hashes(DENSE).tolist() == [
        17272234481597731470,
        5300913977140660849,
        10607049955742102544,
        8150554332460100063,
    ]
    assert node_hashes(SPARSE).tolist() == node_hashes(DENSE).tolist()
    renamed = replace(DENSE, node_ids=Ids(["a", "7", "ü", "d"]))
    assert node_hashes(renamed).tolist() == node_hashes(DENSE).tolist()


def test_every_difference_changes_the_content_hash():
    def digests(hyperedges=((0, 1), (2,)), labels=(0, 1, 0), features=((1.0,), (0.0,), (2.0,)), nodes=3):
        return content_digests(
            NodeDataset(
                name="x",
                hypergraph=Hypergraph.from_hyperedges(hyperedges, num_nodes=nodes),
                y=torch.tensor(labels),
                x=torch.tensor(features),
                task="classification",
            )
        )

    base = digests()
    assert digests(hyperedges=((2,), (0, 1)))["hyperedges"] != base["hyperedges"]
    assert digests(hyperedges=((0, 1), (2,), ()))["hyperedges"] != base["hyperedges"]
    assert digests(labels=(0, 0, 1))["labels"] != base["labels"]
    assert digests(features=((1.0,), (2.0,), (0.0,)))["features"] != base["features"]
    assert digests(features=((1.0, 0.0), (0.0, 0.0), (2.0, 0.0)))["features"] != base["features"]
