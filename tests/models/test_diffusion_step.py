"""The one-layer model of the diffusion experiments."""

import pytest
import torch

from edhnn import Hypergraph, UsageError
from edhnn.models.diffusion_step import DiffusionRegression, DiffusionRegressionConfig


def parameters(inputs, hidden, outputs, layers):
    """Count the parameters of a perceptron with hidden norms and no input norm."""
    if layers == 1:
        return inputs * outputs + outputs
    inner = (layers - 2) * (hidden**2 + hidden)
    return inputs * hidden + hidden + inner + hidden * outputs + outputs + 2 * hidden * (layers - 1)


@pytest.mark.parametrize("option", [{"hidden": 0}, {"restart": 7.0}, {"rho_layers": 0}], ids=str)
def test_invalid_sizes_raise(option):
    with pytest.raises(UsageError, match=next(iter(option))):
        DiffusionRegressionConfig(**option)


@pytest.mark.parametrize(("phi_layers", "rho_layers"), [(1, 1), (2, 2), (3, 2)])
def test_the_number_of_parameters(phi_layers, rho_layers):
    config = DiffusionRegressionConfig(hidden=8, phi_layers=phi_layers, rho_layers=rho_layers)
    count = sum(p.numel() for p in DiffusionRegression(config).parameters())
    assert count == parameters(1, 8, 8, phi_layers) + parameters(9, 8, 1, rho_layers)


@pytest.mark.parametrize("equivariant", [True, False])
def test_a_batch_gives_the_same_as_its_states_one_by_one(equivariant):
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], [1, 4]], num_nodes=6)
    model = DiffusionRegression(DiffusionRegressionConfig(equivariant=equivariant, hidden=8)).double()
    h = torch.randn(4, 6, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    together = model(h, hypergraph)
    for k in range(4):
        torch.testing.assert_close(model(h[k : k + 1], hypergraph)[0], together[k], rtol=1e-12, atol=1e-12)
    assert torch.equal(together[:, 5], 0.5 * h[:, 5])  # an isolated node receives no messages
    together.sum().backward()


def test_only_the_equivariant_layer_distinguishes_members():
    hypergraph = Hypergraph.from_hyperedges([[0, 1]])
    h = torch.tensor([[[1.0], [2.0]]])
    config = DiffusionRegressionConfig(restart=0.0)
    one = DiffusionRegression(config)(h, hypergraph)[0]
    assert not torch.equal(one[0], one[1])
    same = DiffusionRegression(DiffusionRegressionConfig(restart=0.0, equivariant=False))(h, hypergraph)[0]
    assert torch.equal(same[0], same[1])
