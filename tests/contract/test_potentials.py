"""The contract of hyperedge potentials, checked on each potential against its definition."""

from itertools import pairwise, permutations

import cvxpy as cp
import numpy as np
import pytest
import torch

from edhnn import (
    CliqueExpansion,
    DataError,
    DivergenceToMean,
    Hypergraph,
    LovaszCardinality,
    TotalVariation,
    UsageError,
)
from edhnn.hypergraph.incidence import incidence_to_node, node_to_incidence
from edhnn.potentials.base import HyperedgePotential, Proximable
from edhnn.potentials.lovasz import balanced_cut, total_variation_cut
from tests.potentials.cases import (
    CASES,
    HYPEREDGES,
    WEIGHTS,
    arbitrary_cut,
    by_edge,
    clarabel,
    convex_cases,
    cvx_cases,
    draw,
    draw_tied,
    every_case,
    naive_values,
    over,
    proximable_cases,
    scales_of,
    standard,
    weights_of,
)

STEPS = [0.05, 0.5, 4.0]


def close(actual, expected, tolerance):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


@every_case
@pytest.mark.parametrize("weighted", [False, True])
def test_value_agrees_with_the_definition(case, weighted):
    hypergraph = standard(weighted)
    for h_ev in (draw(hypergraph), draw_tied(hypergraph), torch.zeros(hypergraph.num_incidences, 2).double()):
        close(case.potential.value(h_ev, hypergraph), naive_values(case, h_ev, hypergraph), 1e-12)


@every_case
def test_grad_is_the_derivative_of_value(case):
    hypergraph = standard()
    h_ev = draw(hypergraph, seed=1).requires_grad_()
    (derivative,) = torch.autograd.grad(case.potential.value(h_ev, hypergraph).sum(), h_ev)
    grad = case.potential.grad(h_ev.detach(), hypergraph)
    close(grad, derivative, 1e-10)
    assert central_difference_error(case, hypergraph, h_ev.detach(), grad) < 1e-7


def central_difference_error(case, hypergraph, h_ev, grad, delta=1e-6):
    worst = 0.0
    for incidence, edge in enumerate(hypergraph.edge_index.tolist()):
        bump = torch.zeros_like(h_ev)
        bump[incidence] = delta
        up, down = (case.potential.value(h_ev + sign * bump, hypergraph)[edge] for sign in (1, -1))
        difference = (up - down) / (2 * delta)
        worst = max(worst, float((difference - grad[incidence]).abs().max()))
    return worst / float(grad.abs().max())


@every_case
def test_float32_agrees_with_float64(case):
    hypergraph = standard()
    wide = draw(hypergraph, seed=2)
    narrow = wide.float()
    for name in ("value", "grad"):
        ours = getattr(case.potential, name)(narrow, hypergraph)
        assert ours.dtype == torch.float32
        close(ours.double(), getattr(case.potential, name)(narrow.double(), hypergraph), 1e-4)
    if case.proximable:
        ours = case.potential.prox(narrow, hypergraph, step_size=0.5)
        assert ours.dtype == torch.float32
        close(ours.double(), case.potential.prox(narrow.double(), hypergraph, step_size=0.5), 1e-4)


@convex_cases
def test_grad_is_a_subgradient_also_at_ties(case):
    hypergraph = standard()
    for seed in range(3):
        for z in (draw_tied(hypergraph, seed=seed), draw(hypergraph, seed=seed)):
            r = case.potential.grad(z, hypergraph)
            here = case.potential.value(z, hypergraph)
            for other in (draw(hypergraph, seed=seed + 50, scale=3.0), draw_tied(hypergraph, seed=seed + 50)):
                for reach in (1.0, 1e-3):
                    to = z + reach * (other - z)
                    line = here + by_edge(r * (to - z), hypergraph)
                    assert bool((case.potential.value(to, hypergraph) >= line - 1e-10).all())


def shuffled_within(hypergraph, seed):
    """Draw a permutation of incidences within hyperedges."""
    rng, bounds = np.random.default_rng(seed), hypergraph.edge_ptr.tolist()
    blocks = [start + rng.permutation(stop - start) for start, stop in pairwise(bounds)]
    return torch.from_numpy(np.concatenate(blocks))


@over([case for case in CASES if case.invariant])
def test_proposition_2_permuting_members_permutes_grad_and_prox(case):
    hypergraph = standard()
    for seed in range(2):
        order = shuffled_within(hypergraph, seed)
        tied, apart = draw_tied(hypergraph, seed=seed), draw(hypergraph, seed=seed)
        for z in (tied, apart):
            close(case.potential.value(z[order], hypergraph), case.potential.value(z, hypergraph), 1e-12)
            close(case.potential.grad(z[order], hypergraph), case.potential.grad(z, hypergraph)[order], 1e-12)
        if case.proximable:
            # Without convexity, ties have several minimisers.
            for z in (tied, apart) if case.potential.convex_on(hypergraph) else (apart,):
                for eta in STEPS:
                    moved = case.potential.prox(z[order], hypergraph, step_size=eta)
                    close(moved, case.potential.prox(z, hypergraph, step_size=eta)[order], 1e-11)


@every_case
def test_relabelling_nodes_permutes_everything(case):
    hypergraph = standard()
    name = torch.from_numpy(np.random.default_rng(3).permutation(hypergraph.num_nodes))
    renamed = Hypergraph.from_hyperedges(
        [[int(name[v]) for v in members] for members in HYPEREDGES], num_nodes=10, edge_weight=WEIGHTS
    )
    # The incidence (v, e) becomes (name[v], e).
    order = (renamed.edge_index * 10 + torch.argsort(name)[renamed.node_index]).argsort().argsort()
    z = draw(hypergraph, seed=4)
    assert torch.equal(hypergraph.edge_index[order], renamed.edge_index)
    assert torch.equal(name[hypergraph.node_index[order]], renamed.node_index)
    close(case.potential.value(z[order], renamed), case.potential.value(z, hypergraph), 1e-12)
    close(case.potential.grad(z[order], renamed), case.potential.grad(z, hypergraph)[order], 1e-12)
    if case.proximable:
        moved = case.potential.prox(z[order], renamed, step_size=0.5)
        close(moved, case.potential.prox(z, hypergraph, step_size=0.5)[order], 1e-11)


def prox_objective(case, hypergraph, z, a, eta):
    return eta * case.potential.value(z, hypergraph) + by_edge((z - a) ** 2, hypergraph) / 2


@proximable_cases
@pytest.mark.parametrize("eta", STEPS)
def test_prox_minimises_its_objective(case, eta):
    hypergraph = standard()
    for a in (draw(hypergraph, seed=5), draw(hypergraph, seed=6, scale=5.0) - 3, draw_tied(hypergraph, seed=7)):
        z = case.potential.prox(a, hypergraph, step_size=eta)
        best = prox_objective(case, hypergraph, z, a, eta)
        for seed in range(2):
            for reach in (1.0, 1e-2, 1e-4):
                for step in (draw(hypergraph, seed=100 + seed), draw_tied(hypergraph, seed=seed)):
                    near = prox_objective(case, hypergraph, z + reach * step, a, eta)
                    assert bool((near >= best - 1e-11 * (1 + best.abs())).all())
        assert bool((prox_objective(case, hypergraph, a, a, eta) >= best - 1e-11).all())


@over([case for case in CASES if case.name.startswith(("ce", "dtm")) and case.proximable])
@pytest.mark.parametrize("eta", STEPS)
def test_prox_of_a_smooth_convex_potential_is_stationary(case, eta):
    """The prox objective is strongly convex with modulus 1, so this residual bounds the error of the minimiser."""
    hypergraph = standard()
    a = draw(hypergraph, seed=8, scale=2.0)
    z = case.potential.prox(a, hypergraph, step_size=eta)
    residual = eta * case.potential.grad(z, hypergraph) + z - a
    assert float(by_edge(residual**2, hypergraph).sqrt().max()) < 1e-11 * (1 + 100 * eta)


def prox_by_clarabel(case, hypergraph, a, eta):
    """Solve one column, with all hyperedges in one problem."""
    scale, bounds, weights = np.array(scales_of(hypergraph)), hypergraph.edge_ptr.tolist(), weights_of(hypergraph)
    nodes = hypergraph.node_index.numpy()
    z = cp.Variable(hypergraph.num_incidences)
    total = cp.sum_squares(z - a) / 2
    for e, (start, stop) in enumerate(pairwise(bounds)):
        if stop > start and weights[e] > 0:
            total = total + eta * weights[e] * case.cvx(z[start:stop], scale[nodes[start:stop]])
    clarabel(total)
    return z.value


def prox_error(case, eta, seed):
    hypergraph = standard()
    a = draw(hypergraph, seed=seed, columns=1)
    expected = prox_by_clarabel(case, hypergraph, a[:, 0].numpy(), eta)
    return float(np.abs(case.potential.prox(a, hypergraph, step_size=eta)[:, 0].numpy() - expected).max())


@cvx_cases
@pytest.mark.parametrize("eta", [0.1, 1.0])
def test_prox_agrees_with_a_convex_solver(case, eta):
    assert prox_error(case, eta, seed=9) < 1e-8


@pytest.mark.parametrize("power", [1, 2])
def test_prox_with_arbitrary_cut_weights_is_the_minimum_over_all_orders(power):
    """For arbitrary y the problem is convex on the cone of each order; the least of all 24 is the global minimum."""
    potential = LovaszCardinality(power=power, cut_weights=arbitrary_cut)
    quartet, y, eta = Hypergraph.from_hyperedges([[0, 1, 2, 3]]), np.array(arbitrary_cut(4)), 0.7
    a = torch.tensor([[0.3], [-1.1], [0.9], [0.2]], dtype=torch.float64)
    z, target = cp.Variable(4), cp.Parameter(4)
    cut = y @ z
    objective = eta * (cut if power == 1 else cp.square(cut)) + cp.sum_squares(z - target) / 2
    values = []
    for order in permutations(range(4)):
        target.value = a[list(order), 0].numpy()
        values.append(clarabel(objective, [z[:-1] >= z[1:]]))
    ours = potential.prox(a, quartet, step_size=eta)
    reached = eta * potential.value(ours, quartet) + ((ours - a) ** 2).sum() / 2
    assert float(reached) == pytest.approx(min(values), abs=1e-9)


@over([case for case in CASES if case.proximable and case.potential.convex_on(standard())])
def test_proposition_1_prox_of_a_convex_potential_is_1_lipschitz(case):
    hypergraph = standard()
    for seed in range(2):
        a = draw(hypergraph, seed=seed, scale=2.0)
        for b in (draw(hypergraph, seed=seed + 40, scale=2.0), a + 0.01 * draw(hypergraph, seed=seed + 40)):
            for eta in STEPS:
                moved = [case.potential.prox(point, hypergraph, step_size=eta) for point in (a, b)]
                apart = by_edge((moved[0] - moved[1]) ** 2, hypergraph).sqrt()
                assert bool((apart <= by_edge((a - b) ** 2, hypergraph).sqrt() * (1 + 1e-10) + 1e-12).all())


@over([case for case in CASES if case.name in ("ce-none", "tv-1", "tv-2") or case.name.endswith("balanced")])
def test_prox_keeps_means_orders_and_translations(case):
    hypergraph = standard()
    a = draw(hypergraph, seed=10)
    z = case.potential.prox(a, hypergraph, step_size=0.5)
    close(by_edge(z, hypergraph), by_edge(a, hypergraph), 1e-12)
    close(case.potential.prox(a + 2, hypergraph, step_size=0.5), z + 2, 1e-11)
    same = hypergraph.edge_index[:, None] == hypergraph.edge_index[None]
    ordered = (a[:, None] > a[None]) & same[..., None]
    assert bool((z[:, None] - z[None])[ordered].min() >= -1e-12)


@every_case
def test_convex_on_agrees_with_midpoint_convexity(case):
    """`convex_on` decides whether a gap is reported, so that a wrong True is a false certificate."""
    hypergraph = standard(weighted=False)
    generator = torch.Generator().manual_seed(0)
    dips = []
    for _ in range(15):
        z = torch.rand(hypergraph.num_incidences, 50, generator=generator, dtype=torch.float64)
        z = torch.where(torch.rand(z.shape, generator=generator, dtype=torch.float64) < 0.3, 0.0, z)
        step = torch.randn(z.shape, generator=generator, dtype=torch.float64)
        step = step * (torch.rand(z.shape, generator=generator, dtype=torch.float64) < 0.3) * 0.05
        ends = case.potential.value(z + step, hypergraph) + case.potential.value(z - step, hypergraph)
        dips.append(float((ends / 2 - case.potential.value(z, hypergraph)).min()))
    assert case.potential.convex_on(hypergraph) == (min(dips) > -1e-12), min(dips)


@every_case
def test_incidence_weights_raise_an_error(case):
    plain = standard()
    weighted = Hypergraph(
        plain.node_index, plain.edge_index, 10, plain.num_edges, incidence_weight=torch.ones(plain.num_incidences)
    )
    z = draw(plain)
    with pytest.raises(DataError, match="do not support incidence weights"):
        case.potential.value(z, weighted)
    with pytest.raises(DataError, match="do not support incidence weights"):
        case.potential.grad(z, weighted)
    if case.proximable:
        with pytest.raises(DataError, match="do not support incidence weights"):
            case.potential.prox(z, weighted, step_size=1.0)


@every_case
def test_hypergraphs_without_incidences_or_hyperedges(case):
    for hypergraph in (Hypergraph.from_hyperedges([], num_nodes=2), Hypergraph.from_hyperedges([[], []])):
        nothing = torch.zeros(0, 2, dtype=torch.float64)
        assert case.potential.value(nothing, hypergraph).tolist() == [[0.0, 0.0]] * hypergraph.num_edges
        assert case.potential.grad(nothing, hypergraph).shape == (0, 2)
        if case.proximable:
            assert case.potential.prox(nothing, hypergraph, step_size=1.0).shape == (0, 2)


@every_case
def test_protocols_and_representation(case):
    assert isinstance(case.potential, HyperedgePotential)
    assert isinstance(case.potential, Proximable)
    assert type(case.potential).__name__ in repr(case.potential)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CliqueExpansion(normalisation="degrees"), "Did you mean 'degree'"),
        (lambda: DivergenceToMean(power=0.5), "at least 1. Got 0.5"),
        (lambda: DivergenceToMean(power=float("nan")), "at least 1. Got nan"),
        (lambda: DivergenceToMean(mean="powr"), "Did you mean 'power'"),
        (lambda: TotalVariation(power=3), "must be 1 or 2. Got 3"),
        (lambda: LovaszCardinality(power=0), "must be 1 or 2. Got 0"),
    ],
)
def test_invalid_parameters_raise_an_error(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_divergence_has_a_prox_for_power_2_only():
    with pytest.raises(UsageError, match="power 2 only. Got power 3"):
        DivergenceToMean(power=3.0).prox(draw(standard()), standard(), step_size=1.0)


def test_cut_weights_of_the_wrong_length_raise_an_error():
    with pytest.raises(DataError, match="nodes must be 7 numbers. Got 3"):
        potential = LovaszCardinality(cut_weights=lambda size: [0.0] * size if size < 7 else [1.0, 0.0, -1.0])
        potential.value(draw(standard()), standard())


@pytest.mark.parametrize("power", [1, 2])
def test_degree_normalised_prox_without_convexity_raises_an_error(power):
    potential = LovaszCardinality(power=power, cut_weights=arbitrary_cut, degree_normalised=True)
    with pytest.raises(DataError, match="exact solver is known for convex potentials only"):
        potential.prox(draw(standard()), standard(), step_size=1.0)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("normalised", [False, True])
def test_total_variation_is_lovasz_with_the_total_variation_cut(power, normalised):
    hypergraph = standard()
    one = TotalVariation(power=power, degree_normalised=normalised)
    other = LovaszCardinality(power=power, cut_weights=total_variation_cut, degree_normalised=normalised)
    for z in (draw(hypergraph), draw_tied(hypergraph)):
        close(one.value(z, hypergraph), other.value(z, hypergraph), 1e-12)
        close(one.grad(z, hypergraph), other.grad(z, hypergraph), 1e-12)
        for eta in STEPS:
            close(one.prox(z, hypergraph, step_size=eta), other.prox(z, hypergraph, step_size=eta), 1e-11)


def test_the_example_of_section_3_3():
    trio = Hypergraph.from_hyperedges([[0, 1, 2]])
    potential = LovaszCardinality(power=2, cut_weights=lambda size: (1.0, -1.0, 0.0))
    grad = potential.grad(torch.tensor([[0.7], [0.5], [0.3]], dtype=torch.float64), trio)
    close(grad[:, 0], torch.tensor([0.4, -0.4, 0.0], dtype=torch.float64), 1e-15)


def test_balanced_cut_agrees_with_appendix_f5():
    assert balanced_cut(4) == [0.5, 0.5, -0.5, -0.5]
    assert balanced_cut(5) == [0.5, 0.5, 0.0, -0.5, -0.5]
    assert (balanced_cut(0), balanced_cut(1), balanced_cut(2)) == ([], [0.0], [1.0, -1.0])
    assert (total_variation_cut(0), total_variation_cut(1), total_variation_cut(3)) == ([], [0.0], [1.0, 0.0, -1.0])


def test_the_laplacian_gradient_is_i_minus_theta():
    hypergraph = Hypergraph.from_hyperedges(
        [[0, 1, 2], [2, 3], [1, 3, 4, 5], [0]], num_nodes=6, edge_weight=[1.0, 0.5, 2.0, 1.5]
    )
    h = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    incidence = torch.from_numpy(hypergraph.to_scipy().toarray())
    weight = torch.diag(hypergraph.edge_weight)
    root = torch.diag((incidence @ hypergraph.edge_weight) ** -0.5)
    theta = root @ incidence @ weight @ torch.diag(1 / hypergraph.edge_size.double()) @ incidence.T @ root
    potential = CliqueExpansion(normalisation="laplacian")
    summed = incidence_to_node(potential.grad(node_to_incidence(h, hypergraph), hypergraph), hypergraph)
    close(summed, h - theta @ h, 1e-13)


@over([case for case in CASES if case.name.startswith("ce")])
def test_curvature_is_the_diagonal_of_the_second_derivative(case):
    hypergraph = standard()
    units = torch.eye(hypergraph.num_incidences, dtype=torch.float64)
    diagonal = case.potential.grad(units, hypergraph).diagonal()[:, None]
    close(case.potential.curvature(hypergraph, units), diagonal, 1e-13)


def test_large_values_do_not_cancel_or_overflow():
    hypergraph = standard(weighted=False)
    z = draw(hypergraph, seed=11)
    shifted = CliqueExpansion().value(z + 1e8, hypergraph)
    torch.testing.assert_close(shifted, CliqueExpansion().value(z, hypergraph), rtol=1e-6, atol=1e-6)
    huge = DivergenceToMean(power=3.0).value(1e120 * z, hypergraph)
    torch.testing.assert_close(huge / 1e240, DivergenceToMean(power=3.0).value(z, hypergraph))
