"""The contract of the registered potentials, for each of their powers. New potentials are tested automatically."""

import pytest
import torch

from edhnn.diffusion.diffusion import diffuse
from edhnn.errors import UsageError
from edhnn.hypergraph import Hypergraph
from edhnn.potentials.base import HyperedgePotential, Proximable, Quadratic, traits_of
from edhnn.potentials.registry import POTENTIALS, make_potential

EDGES = [[0, 1], [0, 1, 2], [2, 3, 4, 5], [1], [], [3, 5, 6, 7, 0], [6, 7]]
WEIGHTS = [1.0, 0.5, 2.0, 1.0, 1.0, 1.5, 0.7]


def powers_of(name):
    def has(power):
        try:
            make_potential(name, power)
        except UsageError:
            return False
        return True

    return [power for power in (1, 2) if has(power)]


NAMED = [(name, power) for name in POTENTIALS for power in powers_of(name)]
every_potential = pytest.mark.parametrize(("name", "power"), NAMED)


def hypergraph(weights=WEIGHTS):
    return Hypergraph.from_hyperedges(EDGES, num_nodes=9, edge_weight=weights)


def values(seed=0, columns=2):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(hypergraph().num_incidences, columns, generator=generator, dtype=torch.float64)


def by_edge(z_ev):
    return z_ev.new_zeros(len(EDGES), z_ev.shape[1]).index_add(0, hypergraph().edge_index, z_ev)


def close(actual, expected, tolerance=1e-9):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", POTENTIALS)
def test_an_unsupported_power_raises_an_error(name):
    assert powers_of(name)
    with pytest.raises(UsageError, match="power|Power"):
        make_potential(name, -1)


@every_potential
def test_the_declared_traits_are_true(name, power):
    potential = make_potential(name, power)
    assert isinstance(potential, HyperedgePotential)
    traits = traits_of(potential)
    assert not traits.has_prox or isinstance(potential, Proximable)
    assert not traits.quadratic or isinstance(potential, Quadratic)
    if traits.smooth:  # no jump of the gradient where values tie
        tied = values().round() + 0.5
        moved = tied + 1e-7 * values(1)
        close(potential.grad(moved, hypergraph()), potential.grad(tied, hypergraph()), 1e-4)
    if traits.quadratic:
        z, step = values(), 1e-3
        close(potential.value(3 * z, hypergraph()), 9 * potential.value(z, hypergraph()))
        incidence = 4
        bump = torch.zeros_like(z)
        bump[incidence] = step
        change = potential.grad(z + bump, hypergraph()) - potential.grad(z - bump, hypergraph())
        close(change[incidence] / (2 * step), potential.curvature(hypergraph(), z)[incidence].expand(2), 1e-6)


@every_potential
def test_grad_is_the_derivative_of_value(name, power):
    potential, z = make_potential(name, power), values().requires_grad_()
    (derivative,) = torch.autograd.grad(potential.value(z, hypergraph()).sum(), z)
    close(potential.grad(z.detach(), hypergraph()), derivative)


@every_potential
def test_permuting_members_permutes_grad_and_prox(name, power):
    potential, graph, z = make_potential(name, power), hypergraph(), values()
    generator = torch.Generator().manual_seed(3)
    shuffled = torch.randperm(len(z), generator=generator)
    order = shuffled[torch.sort(graph.edge_index[shuffled], stable=True).indices]
    close(potential.value(z[order], graph), potential.value(z, graph))
    close(potential.grad(z[order], graph), potential.grad(z, graph)[order])
    if traits_of(potential).has_prox:
        step = dict(step_size=0.3)
        close(potential.prox(z[order], graph, **step), potential.prox(z, graph, **step)[order], 1e-7)


@every_potential
def test_hyperedge_weights_multiply_the_value(name, power):
    potential, z = make_potential(name, power), values()
    weight = hypergraph().edge_weight.double()[:, None]
    close(potential.value(z, hypergraph()), weight * potential.value(z, hypergraph(None)))


@every_potential
def test_prox_minimises_its_objective(name, power):
    potential, a, graph = make_potential(name, power), values(), hypergraph()
    if not traits_of(potential).has_prox:
        pytest.skip("no proximal operator for this power")

    def objective(z):
        return 0.4 * potential.value(z, graph) + by_edge((z - a) ** 2) / 2

    z = potential.prox(a, graph, step_size=0.4)
    least = objective(z)
    for seed in range(20):
        for reach in (1.0, 1e-2, 1e-4):
            assert bool((objective(z + reach * values(seed + 10)) >= least - 1e-9).all())


@every_potential
def test_the_potential_is_convex_if_convex_on_returns_true(name, power):
    potential, graph = make_potential(name, power), hypergraph()
    if not potential.convex_on(graph):
        pytest.skip("not convex")
    for seed in range(10):
        a, b = values(seed), values(seed + 100)
        middle = potential.value((a + b) / 2, graph)
        assert bool((middle <= (potential.value(a, graph) + potential.value(b, graph)) / 2 + 1e-10).all())


@every_potential
def test_the_potential_can_be_diffused_by_name(name, power):
    x = torch.rand(9, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    solution = diffuse(hypergraph(), x, potential=name, power=power, tolerance=1e-3, max_steps=3000, throw=False)
    close(solution.value[8], x[8])  # an isolated node keeps its value
    assert bool(torch.isfinite(solution.value).all())
    if make_potential(name, power).convex_on(hypergraph()):
        assert solution.last.gap <= 1e-2 * abs(solution.last.objective)
