"""Generated data: the contextual hypergraph SBM, features from labels, and digits with neighbour hyperedges.

Every draw uses `numpy.random.RandomState` with an explicit seed, because numpy guarantees its streams. The catalogue
records hashes of the results.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from edhnn.data.dataset import NodeDataset, Provenance
from edhnn.data.fingerprints import tensor_sha256
from edhnn.errors import UsageError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph

MinorityClass = Literal["coin", "fixed"]
FEATURE_WIDTH = 100
MAX_SEED = 2**32 - 1
"""The largest seed that `numpy.random.RandomState` accepts."""


def contextual_sbm(
    minority: int,
    *,
    nodes_per_class: int = 2500,
    num_hyperedges: int = 1000,
    edge_size: int = 15,
    minority_class: MinorityClass = "coin",
    noise: float = 1.0,
    seed: int = 0,
    feature_seed: int = 0,
) -> NodeDataset:
    r"""Draw two classes and hyperedges of $\alpha$ nodes of one class and $|e| - \alpha$ of the other.

    The minority class of each hyperedge is drawn by a fair coin, or is class 0 in all hyperedges. Its nodes are drawn
    without replacement. Small $\alpha$ is homophilic, $\alpha = |e|/2$ heterophilic.
    Paper: Algorithm 3, Section 4.2 and Table 3.
    Differs: the paper does not define which class is the minority; a random one reproduces its homophily row. Read
    literally, Algorithm 3 has the same minority class everywhere (``fixed``). Then the number of hyperedges of a node
    depends on its class, and the labels of the other members of a hyperedge give away the class of a node. The loop
    0..1000 of the pseudo-code would give 1,001 hyperedges. The text and this function use 1,000.

    Args:
        minority: $\alpha$, the number of nodes of the minority class in each hyperedge.
        nodes_per_class: Nodes in each of the two classes.
        num_hyperedges: Number of hyperedges.
        edge_size: Nodes in each hyperedge.
        minority_class: ``coin``: drawn for each hyperedge; ``fixed``: class 0.
        noise: Standard deviation of the features around the one-hot label.
        seed: Seed of the hyperedges.
        feature_seed: Seed of the features.
    """
    majority = edge_size - minority
    if not 0 <= minority <= edge_size or max(minority, majority) > nodes_per_class:
        raise UsageError(
            f"The minority must lie in 0..{edge_size}, and each class must have at least as many nodes as a hyperedge "
            f"takes from it. Got a minority of {minority} and {nodes_per_class} nodes per class."
        )
    if minority_class not in get_args(MinorityClass):
        raise unknown_name("minority class", minority_class, get_args(MinorityClass))
    random = np.random.RandomState(seed)
    members = np.empty((num_hyperedges, edge_size), dtype=np.int64)
    for row in members:
        fewer = int(random.randint(2)) if minority_class == "coin" else 0
        row[:minority] = fewer * nodes_per_class + random.permutation(nodes_per_class)[:minority]
        row[minority:] = (1 - fewer) * nodes_per_class + random.permutation(nodes_per_class)[:majority]
    y = torch.arange(2 * nodes_per_class) // nodes_per_class
    hypergraph = Hypergraph.from_incidence(
        torch.stack([torch.from_numpy(members.ravel()), torch.arange(num_hyperedges).repeat_interleave(edge_size)]),
        num_nodes=2 * nodes_per_class,
        num_edges=num_hyperedges,
    )
    x = label_features(y, noise=noise, seed=feature_seed)
    name = f"csbm-{minority}" if minority_class == "coin" else f"csbm-fixed-{minority}"
    return NodeDataset(
        name=name,
        hypergraph=hypergraph,
        x=x,
        y=y,
        task="classification",
        provenance=Provenance(
            name,
            "synthetic",
            details={"generator": "contextual_sbm", "seed": seed, **feature_record(x, noise, feature_seed)},
        ),
    )


def label_features(
    y: Int[Tensor, " N"], *, noise: float = 1.0, seed: int = 0, width: int = FEATURE_WIDTH
) -> Float[Tensor, "N D"]:
    r"""Draw Gaussian features around the one-hot label, $x_v \sim \mathcal{N}([\mathrm{onehot}(y_v); 0], s^2 I)$.

    The draw is ``numpy.random.RandomState(seed).normal(mean, s, shape)``, rounded to float32; seed 0 gives the draw of
    the released code. Paper: Section 4.1 (Congress, Senate, Walmart, House) and 4.2.

    Args:
        y: Class labels 0..C-1, all known.
        noise: $s$.
        seed: Seed of the draw.
        width: Number of features; the one-hot label is padded with zeros to it.
    """
    classes = int(y.max()) + 1 if len(y) else 0
    if len(y) and int(y.min()) < 0:
        raise UsageError("Features can be drawn from labels only if every node has one.")
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"The seed of the features must lie in 0..{MAX_SEED}. Got {seed}.")
    width = max(width, classes)
    mean = np.zeros((len(y), width))
    mean[np.arange(len(y)), y.numpy()] = 1.0
    return torch.from_numpy(np.random.RandomState(seed).normal(mean, noise, mean.shape).astype(np.float32))


def feature_record(x: Tensor, noise: float, seed: int) -> dict[str, object]:
    """Return the record of drawn features: noise, seed and hash."""
    return {"feature_noise": noise, "feature_seed": seed, "features_sha256": tensor_sha256(x)}


def digits(neighbours: int = 10) -> NodeDataset:
    """Make a dataset of scikit-learn's 1,797 handwritten digits, with a hyperedge per image and its nearest images.

    Features are the 64 pixels divided by 16. Distances are exact integers; of equally near images the earlier is
    chosen.

    Args:
        neighbours: Images in each hyperedge, not counting its own.
    """
    from sklearn.datasets import load_digits  # slow to import, and only needed here

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
