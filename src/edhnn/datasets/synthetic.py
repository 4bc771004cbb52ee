"""Data made here: the contextual hypergraph SBM, features from labels, and digits with neighbour hyperedges.

Every draw comes from `numpy.random.RandomState`, whose streams numpy keeps as they are for ever, with its seed named;
the catalogue records hashes of what is drawn.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from edhnn.data.dataset import NodeDataset, Provenance
from edhnn.data.fingerprints import tensor_sha256
from edhnn.errors import UsageError
from edhnn.hypergraph.hypergraph import Hypergraph

FEATURE_WIDTH = 100
MAX_SEED = 2**32 - 1
"""The largest seed that `numpy.random.RandomState` takes."""


def contextual_sbm(
    minority: int,
    *,
    nodes_per_class: int = 2500,
    num_hyperedges: int = 1000,
    edge_size: int = 15,
    noise: float = 1.0,
    seed: int = 0,
    feature_seed: int = 0,
) -> NodeDataset:
    r"""Two classes; each hyperedge holds $\alpha$ nodes of one class and the rest of the other.

    Each hyperedge tosses a fair coin for its minority class, then draws $\alpha$ nodes of it and $|e| - \alpha$ of the
    other, without replacement. Small $\alpha$ is homophilic, $\alpha = |e|/2$ heterophilic.
    Paper: Algorithm 3, Section 4.2 and Table 3.
    Differs: the paper does not say which class is the minority; a random one reproduces its homophily row. The
    pseudo-code's loop 0..1000 would give 1,001 hyperedges; the text says 1,000, and so do we.

    Args:
        minority: $\alpha$, the number of nodes of the minority class in each hyperedge.
        nodes_per_class: Nodes in each of the two classes.
        num_hyperedges: Number of hyperedges.
        edge_size: Nodes in each hyperedge.
        noise: Standard deviation of the features around the one-hot label.
        seed: Seed of the hyperedges.
        feature_seed: Seed of the features.

    Returns:
        The dataset, features included.
    """
    if not 0 <= minority <= edge_size or max(minority, edge_size - minority) > nodes_per_class:
        raise UsageError(
            f"The minority must lie in 0..{edge_size} and both parts fit into {nodes_per_class} nodes. Got {minority}."
        )
    random = np.random.RandomState(seed)
    members = np.empty((num_hyperedges, edge_size), dtype=np.int64)
    for row in members:
        few = int(random.randint(2))
        for kind, count, place in (
            (few, minority, slice(minority)),
            (1 - few, edge_size - minority, slice(minority, None)),
        ):
            row[place] = kind * nodes_per_class + random.permutation(nodes_per_class)[:count]
    y = torch.arange(2 * nodes_per_class) // nodes_per_class
    hypergraph = Hypergraph.from_incidence(
        torch.stack([torch.from_numpy(members.ravel()), torch.arange(num_hyperedges).repeat_interleave(edge_size)]),
        num_nodes=2 * nodes_per_class,
        num_edges=num_hyperedges,
    )
    x = label_features(y, noise=noise, seed=feature_seed)
    return NodeDataset(
        name=f"csbm-{minority}",
        hypergraph=hypergraph,
        x=x,
        y=y,
        task="classification",
        provenance=Provenance(
            f"csbm-{minority}",
            "synthetic",
            details={"generator": "contextual_sbm", "seed": seed, **feature_record(x, noise, feature_seed)},
        ),
    )


def label_features(
    y: Int[Tensor, " N"], *, noise: float = 1.0, seed: int = 0, width: int = FEATURE_WIDTH
) -> Float[Tensor, "N D"]:
    r"""Gaussian features around the one-hot label, $x_v \sim \mathcal{N}([\mathrm{onehot}(y_v); 0], s^2 I)$.

    Drawn as ``numpy.random.RandomState(seed).normal(mean, s, shape)``, which is what the released code draws at its
    default seed 0, then rounded to float32. Paper: Section 4.1 (Congress, Senate, Walmart, House) and 4.2.

    Args:
        y: Class labels 0..C-1, all known.
        noise: $s$.
        seed: Seed of the draw.
        width: Number of features; the one-hot label is padded with zeros to it.

    Returns:
        The features.
    """
    classes = int(y.max()) + 1 if len(y) else 0
    if len(y) and int(y.min()) < 0:
        raise UsageError("Features can be drawn from labels only where every node has one.")
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"The seed of features must lie in 0..{MAX_SEED}. Got {seed}.")
    width = max(width, classes)
    mean = np.zeros((len(y), width))
    mean[np.arange(len(y)), y.numpy()] = 1.0
    return torch.from_numpy(np.random.RandomState(seed).normal(mean, noise, mean.shape).astype(np.float32))


def feature_record(x: Tensor, noise: float, seed: int) -> dict[str, object]:
    """Return the record of drawn features: noise, seed and hash."""
    return {"feature_noise": noise, "feature_seed": seed, "features_sha256": tensor_sha256(x)}


def digits(neighbours: int = 10) -> NodeDataset:
    """Scikit-learn's 1,797 handwritten digits; a hyperedge per image: itself and its nearest images.

    Distances are exact integers; of equally near images the earlier comes first.

    Args:
        neighbours: Images in each hyperedge beside its own.

    Returns:
        The dataset; features are the 64 pixels over 16.
    """
    from sklearn.datasets import load_digits  # slow to import, and only wanted here

    bunch = load_digits()
    pixels = bunch.data.astype(np.int64)
    squares = (pixels**2).sum(axis=1)
    distance = squares[:, None] + squares[None, :] - 2 * pixels @ pixels.T
    np.fill_diagonal(distance, -1)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, : neighbours + 1]
    count = len(pixels)
    pairs = np.stack([nearest.ravel(), np.repeat(np.arange(count), neighbours + 1)])
    return NodeDataset(
        name="digits",
        hypergraph=Hypergraph.from_incidence(torch.from_numpy(pairs), num_nodes=count, num_edges=count),
        x=torch.from_numpy((pixels / 16).astype(np.float32)),
        y=torch.from_numpy(bunch.target.astype(np.int64)),
        task="classification",
        provenance=Provenance("digits", "synthetic", details={"generator": "digits", "neighbours": neighbours}),
    )
