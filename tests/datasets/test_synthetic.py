"""Generated data: class counts, the published homophily, exact random streams, and nearest neighbours."""

import hashlib

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from edhnn import UsageError, contextual_sbm
from edhnn.data.fingerprints import tensor_sha256
from edhnn.datasets import label_features
from edhnn.datasets.synthetic import digits
from edhnn.hypergraph.homophily import clique_homophily, clique_homophily_without_self

# alpha: (the paper's row; simulated: with the node itself, without it)
HOMOPHILY = {
    1: (0.875, 0.877, 0.866),
    2: (0.765, 0.772, 0.752),
    3: (0.672, 0.682, 0.656),
    4: (0.596, 0.614, 0.580),
    6: (0.495, 0.526, 0.486),
    7: (0.474, 0.508, 0.466),
}


@pytest.mark.parametrize("alpha", [1, 2, 3, 4, 5, 6, 7])
def test_every_hyperedge_has_alpha_nodes_of_one_class(alpha):
    dataset = contextual_sbm(alpha)
    hypergraph, y = dataset.hypergraph, dataset.y
    assert (hypergraph.num_nodes, hypergraph.num_edges, hypergraph.num_incidences) == (5000, 1000, 15000)
    assert hypergraph.merged_memberships == 0  # drawn without replacement
    assert y.tolist() == [0] * 2500 + [1] * 2500
    of_class_one = y[hypergraph.node_index].reshape(1000, 15).sum(1)
    assert set(of_class_one.tolist()) == {alpha, 15 - alpha}
    minority_is_one = int((of_class_one == alpha).sum())
    assert 430 < minority_is_one < 570  # a fair coin


@pytest.mark.parametrize("alpha", HOMOPHILY)
def test_homophily_is_near_the_published_row(alpha):
    dataset = contextual_sbm(alpha)
    printed, with_self, without_self = HOMOPHILY[alpha]
    found = clique_homophily(dataset.hypergraph, dataset.y)
    alone = clique_homophily_without_self(dataset.hypergraph, dataset.y)
    assert found == pytest.approx(with_self, abs=0.01)
    assert alone == pytest.approx(without_self, abs=0.01)
    assert alone - 0.01 < printed < found + 0.01  # the paper's value lies between the two
    pairs_alike = (alpha * (alpha - 1) + (15 - alpha) * (14 - alpha)) / 210
    assert alone == pytest.approx(pairs_alike, abs=0.01)


def test_each_seed_changes_only_its_part():
    one, same = contextual_sbm(3), contextual_sbm(3)
    other_edges, other_features = contextual_sbm(3, seed=1), contextual_sbm(3, feature_seed=1)
    assert one.hypergraph.same_as(same.hypergraph)
    assert torch.equal(one.x, same.x)
    assert not one.hypergraph.same_as(other_edges.hypergraph)
    assert torch.equal(one.x, other_edges.x)
    assert one.hypergraph.same_as(other_features.hypergraph)
    assert not torch.equal(one.x, other_features.x)
    details = other_features.provenance.details
    assert (details["seed"], details["feature_seed"], details["feature_noise"]) == (0, 1, 1.0)
    assert details["features_sha256"] == tensor_sha256(other_features.x)


def test_the_global_generators_are_not_used():
    np.random.seed(5)
    torch.manual_seed(5)
    expected = np.random.rand(), torch.rand(1)
    np.random.seed(5)
    torch.manual_seed(5)
    contextual_sbm(2, nodes_per_class=20, num_hyperedges=3, edge_size=4)
    assert (np.random.rand(), torch.rand(1)) == expected


@pytest.mark.parametrize(
    ("minority", "sizes"),
    [(16, {}), (-1, {}), (1, dict(nodes_per_class=13)), (5, dict(nodes_per_class=3, edge_size=6))],
)
def test_hyperedges_larger_than_the_classes_raise_an_error(minority, sizes):
    with pytest.raises(UsageError, match=f"Got a minority of {minority} and "):
        contextual_sbm(minority, **sizes)
    assert contextual_sbm(1, nodes_per_class=14).hypergraph.num_nodes == 28


def test_pure_hyperedges_and_no_hyperedges():
    pure = contextual_sbm(0, nodes_per_class=4, num_hyperedges=6, edge_size=4)
    assert set(map(tuple, pure.hypergraph.hyperedges())) <= {(0, 1, 2, 3), (4, 5, 6, 7)}
    none = contextual_sbm(1, nodes_per_class=4, num_hyperedges=0, edge_size=2)
    assert none.hypergraph.num_edges == 0


@pytest.mark.parametrize(("noise", "seed", "width"), [(1.0, 0, 100), (0.6, 3, 7), (0.0, 0, 5)])
def test_label_features_equal_the_draw_of_the_released_code(noise, seed, width):
    y = torch.tensor([2, 0, 1, 1, 4])
    mean = np.zeros((5, width))
    for node, label in enumerate(y.tolist()):
        mean[node, label] = 1.0
    expected = np.random.RandomState(seed).normal(mean, noise, mean.shape).astype(np.float32)
    found = label_features(y, noise=noise, seed=seed, width=width)
    assert found.dtype == torch.float32
    np.testing.assert_array_equal(found.numpy(), expected)


def test_there_are_at_least_as_many_features_as_classes():
    assert label_features(torch.tensor([3, 0]), width=2).shape == (2, 4)
    assert label_features(torch.zeros(0, dtype=torch.int64)).shape == (0, 100)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_outside_numpys_range_raise_an_error(seed):
    with pytest.raises(UsageError, match=f"seed of the features must lie in 0..4294967295. Got {seed}"):
        label_features(torch.tensor([0, 1]), seed=seed)


def test_label_features_of_unlabelled_nodes_raise_an_error():
    with pytest.raises(UsageError, match="only if every node has one"):
        label_features(torch.tensor([0, -1]))


def test_the_hash_of_a_tensor_depends_on_shape_and_bytes():
    tensor = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    content = b"(2, 2)" + np.array([1, 2, 3, 4], "<f4").tobytes()
    assert tensor_sha256(tensor) == hashlib.sha256(content).hexdigest()
    assert tensor_sha256(tensor.T.contiguous().T) == tensor_sha256(tensor)
    assert tensor_sha256(tensor) != tensor_sha256(tensor.reshape(4, 1))


def test_each_digit_shares_a_hyperedge_with_its_nearest_neighbours():
    """Compare with scikit-learn's brute force: the same distances, and the same neighbours where there is no tie."""
    pixels, target = load_digits(return_X_y=True)
    dataset = digits()
    assert dataset.y.tolist() == target.tolist()
    np.testing.assert_array_equal(dataset.x.numpy(), (pixels / 16).astype(np.float32))
    ours = np.array(list(dataset.hypergraph.hyperedges()))
    assert ours.shape == (1797, 11)
    assert (ours == np.arange(1797)[:, None]).any(axis=1).all()  # each image is in its own hyperedge
    search = NearestNeighbors(n_neighbors=12, algorithm="brute").fit(pixels)
    distance, theirs = search.kneighbors(pixels)
    found = np.sort(np.linalg.norm(pixels[ours] - pixels[:, None], axis=2), axis=1)
    np.testing.assert_allclose(found, distance[:, :11], atol=1e-6)
    clear = distance[:, 11] - distance[:, 10] > 1e-6
    assert clear.sum() > 1500
    np.testing.assert_array_equal(ours[clear], np.sort(theirs[clear, :11], axis=1))


def test_of_equally_near_digits_the_earlier_is_chosen():
    pixels = load_digits().data.astype(np.int64)
    for node, members in list(enumerate(digits(3).hypergraph.hyperedges()))[::97]:
        distance = ((pixels - pixels[node]) ** 2).sum(axis=1)
        others = sorted((number for number in range(1797) if number != node), key=lambda v: (distance[v], v))
        assert members == sorted([node, *others[:3]])
