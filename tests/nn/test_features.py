"""The first layer: sparse features give what dense ones give."""

import pytest
import torch

from edhnn import DataError, Hypergraph
from edhnn.models.registry import make_model
from edhnn.nn.features import FeatureLayer, links_of
from edhnn.nn.mlp import MLP
from edhnn.seeding import SeedStream

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")


def features(seed=0):
    x = torch.randn(7, 9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x * (x > 0.4)


def layer(dropout=0.0):
    generator = torch.Generator().manual_seed(0)
    return FeatureLayer(9, 4, dropout=dropout, seeds=SeedStream(1), generator=generator).double()


def test_sparse_features_give_what_dense_ones_give():
    dense, sparse = layer(), layer()
    x = features()
    a, b = dense(x), sparse(x.to_sparse_csr())
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    a.square().sum().backward()
    b.square().sum().backward()
    torch.testing.assert_close(dense.linear.weight.grad, sparse.linear.weight.grad, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("without_shape_checks")  # thousands of small calls
def test_dropout_on_stored_entries_keeps_the_mean():
    x = features().to_sparse_csr()
    training = layer(0.5)
    mean = torch.stack([training(x) for _ in range(3000)]).mean(0)
    exact = training.eval()(x)
    assert float((mean - exact).detach().abs().max()) < 0.1 * float(exact.detach().abs().max())


def test_links_are_found_once_for_a_matrix():
    x = features().to_sparse_csr()
    assert links_of(x) is links_of(x)
    assert links_of(features(1).to_sparse_csr()) is not links_of(x)


@pytest.mark.parametrize("kernels", ["torch", "native"])
def test_what_is_kept_from_inference_serves_training(kernels, monkeypatch):
    monkeypatch.setattr("edhnn.kernels.backend._active", kernels)
    x = features().float().to_sparse_csr()
    with torch.inference_mode():
        hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3, 4], [6, 5]])
        model = make_model("ed-hnn", in_features=9, num_classes=2, hidden=4, classifier_hidden=4)
    model = make_model("ed-hnn", in_features=9, num_classes=2, hidden=4, classifier_hidden=4)
    with torch.inference_mode():
        model(x, hypergraph)
    model(x, hypergraph).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_mixed_precision_is_refused_by_a_part_outside_a_model():
    part = MLP(9, 4, 2, 2, input_norm=False)
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(DataError, match="Leave torch.autocast out"):
        part(torch.ones(3, 9))
