"""Diffusion with degree-normalised Lovász/cardinality potentials: certified, and equal to a convex solver."""

import pytest

from edhnn import ADMM, Outcome, diffuse
from tests.diffusion.references import minimum, random_hypergraph, random_values
from tests.diffusion.test_solvers import checked
from tests.potentials.cases import BY_NAME

pytestmark = pytest.mark.usefixtures("without_shape_checks")  # thousands of calls on small tensors


@pytest.mark.parametrize("name", ["lec-1-balanced-degree", "lec-2-falling-degree"])
def test_admm_reaches_the_minimum_with_a_certified_gap(name):
    solver = ADMM(adaptive=True, tolerance=1e-9, max_steps=20_000)
    solution, error = checked(name, solver, random_hypergraph(10, 5, 4, seed=1), seed=1)
    assert solution.outcome is Outcome.CONVERGED
    assert solution.certified_by == "gap"
    assert error < 1e-8


def test_diffuse_accepts_a_degree_normalised_potential():
    hypergraph, x = random_hypergraph(10, 5, 4, seed=2), random_values(10, 2, 2)
    potential = BY_NAME["lec-2-balanced-degree"].potential
    solution = diffuse(hypergraph, x, potential=potential, strength=3.0, tolerance=1e-7)
    assert solution.certified_by == "gap"
    least = minimum("lec-2-balanced-degree", hypergraph, 2, 2, 3.0).sum()
    assert solution.last.objective == pytest.approx(least, rel=1e-6)
