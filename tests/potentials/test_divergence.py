"""The proximal operator of the divergence to the mean, which finds a root in each hyperedge, over wide ranges."""

import pytest
import torch

from edhnn import DivergenceToMean
from tests.potentials.cases import standard


@pytest.mark.parametrize("mean", ["literal", "power"])
@pytest.mark.parametrize("step_size", [1e-6, 1e-2, 0.5, 10.0, 1e4])
@pytest.mark.parametrize("magnitude", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("kind", ["positive", "of both signs", "one large", "equal"])
def test_the_proximal_point_is_stationary(mean, step_size, magnitude, kind):
    hypergraph, potential = standard(), DivergenceToMean(mean=mean)
    a = torch.rand(hypergraph.num_incidences, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    if kind == "of both signs":
        a = a - 0.5
    elif kind == "one large":
        a = torch.where(a > 0.7, a, 1e-9 * a)
    elif kind == "equal":
        a = torch.ones_like(a)
    a = magnitude * a
    z = potential.prox(a, hypergraph, step_size=step_size)
    slope = z - a + step_size * potential.grad(z, hypergraph)
    assert float(slope.abs().max()) <= 1e-12 * magnitude * (1 + step_size)
