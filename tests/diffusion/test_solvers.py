"""Every solver compared with a convex solver, and every certificate with the true minimum."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from edhnn import (
    ADMM,
    CliqueExpansion,
    ConjugateGradient,
    DiffusionProblem,
    DivergenceToMean,
    GradientDescent,
    Hypergraph,
    LovaszCardinality,
    Outcome,
    SolverError,
    SquaredDistance,
    TotalVariation,
    UsageError,
    diffuse,
    solve,
)
from edhnn.hypergraph.incidence import incidence_to_node, node_to_incidence
from edhnn.potentials import FixedLabels, Logistic
from tests.diffusion.references import minimum, random_hypergraph, random_values
from tests.potentials.cases import BY_NAME, arbitrary_cut, every_case, naive_values, standard

CORNERS = ["tv-1", "tv-2", "tv-1-degree", "tv-2-degree", "lec-1-balanced", "lec-2-balanced", "lec-2-falling"]
SMOOTH = ["ce-none", "ce-degree", "ce-laplacian"]
TIGHT = dict(tolerance=1e-9, max_steps=20_000)
RUNS = [
    *[(name, ADMM(adaptive=True, **TIGHT)) for name in CORNERS + SMOOTH],
    *[(name, ADMM(step_size=0.5, **TIGHT)) for name in ("tv-2", "lec-2-balanced", "ce-laplacian")],
    *[(name, ConjugateGradient(**TIGHT)) for name in SMOOTH],
    *[(name, GradientDescent(**TIGHT)) for name in SMOOTH],
    ("ce-laplacian", GradientDescent(rule="fixed", step_size=0.2, **TIGHT)),
]
LOOSE = [
    (name, GradientDescent(rule="averaging", tolerance=1e-9, max_steps=300))
    for name in ("tv-1", "tv-2", "lec-2-balanced")
]


def label(value):
    if isinstance(value, str):
        return value
    return type(value).__name__ + ("-" + value.rule if isinstance(value, GradientDescent) else "")


def checked(name, solver, hypergraph, seed, *, columns=1, strength=1.0, check_every=10):
    """Solve, compare the gap of every record with the true minimum, and return the final relative error too."""
    x = random_values(hypergraph.num_nodes, columns, seed)
    problem = DiffusionProblem(
        hypergraph=hypergraph, x=x, hyperedge_potential=BY_NAME[name].potential, strength=strength
    )
    solution = solve(problem, solver, throw=False, check_every=check_every)
    least = minimum(name, hypergraph, seed, columns, strength)
    slack = 1e-8 * max(1.0, float(least.max()))  # the error of the convex solver
    for record in solution.history:
        above = record.objective - least.sum()
        assert above >= -slack * columns
        assert above <= columns * record.gap + slack * columns
        if columns == 1:
            assert record.gap >= above - slack
    reached = problem.objective(solution.value).numpy()
    assert float(solution.last.objective) == pytest.approx(reached.sum(), rel=1e-12)
    return solution, float(np.abs((reached - least) / np.maximum(least, 1.0)).max())


@pytest.mark.parametrize(("name", "solver"), RUNS, ids=label)
def test_solvers_reach_the_minimum_and_gaps_bound_the_error(name, solver):
    solution, error = checked(name, solver, random_hypergraph(60, 40, 12, seed=1), seed=1)
    assert solution.outcome is Outcome.CONVERGED
    assert solution.certified_by == "gap"
    assert error < 1e-8


@pytest.mark.usefixtures("without_shape_checks")  # thousands of calls on small tensors
@pytest.mark.parametrize(("name", "solver"), LOOSE, ids=label)
def test_the_subgradient_method_approaches_the_minimum_with_valid_gaps(name, solver):
    solution, error = checked(name, solver, random_hypergraph(25, 15, 6, seed=1), seed=1)
    assert error < 2e-2
    assert solution.last.gap < 0.1 * solution.history[1].gap


@pytest.mark.parametrize("name", ["tv-2", "lec-2-balanced"])
def test_hyperedges_of_up_to_50_nodes(name):
    solution, error = checked(name, ADMM(adaptive=True, **TIGHT), random_hypergraph(120, 40, 50, seed=2), seed=2)
    assert solution.outcome is Outcome.CONVERGED
    assert error < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CORNERS[:-1], *SMOOTH])
def test_two_thousand_nodes(name):
    solver = ADMM(adaptive=True, tolerance=1e-9, max_steps=50_000)
    solution, error = checked(name, solver, random_hypergraph(2000, 800, 50, seed=3), seed=3)
    assert solution.outcome is Outcome.CONVERGED
    assert error < 1e-8


@pytest.mark.parametrize("name", ["tv-2", "ce-none"])
def test_several_columns_are_certified_by_the_worst(name):
    solution, error = checked(name, ADMM(adaptive=True, **TIGHT), random_hypergraph(25, 15, 6, seed=4), 4, columns=3)
    assert solution.outcome is Outcome.CONVERGED
    assert error < 1e-8


@pytest.mark.parametrize("name", ["tv-2", "tv-2-degree", "ce-laplacian", "ce-degree"])
@pytest.mark.parametrize("strength", [0.2, 5.0])
def test_strength_multiplies_potentials_of_every_normalisation(name, strength):
    hypergraph = random_hypergraph(25, 15, 6, seed=5)
    solver = ADMM(adaptive=True, **TIGHT)
    solution, error = checked(name, solver, hypergraph, seed=5, strength=strength)
    assert error < 1e-8
    x = random_values(25, 1, 5)
    diffused = diffuse(hypergraph, x, potential=BY_NAME[name].potential, strength=strength, tolerance=1e-10)
    torch.testing.assert_close(diffused.value, solution.value, atol=1e-3, rtol=0)
    by_loops = ((diffused.value - x) ** 2).sum() + strength * naive_values(
        BY_NAME[name], node_to_incidence(diffused.value, hypergraph), hypergraph
    ).sum()
    assert float(by_loops) == pytest.approx(diffused.last.objective, rel=1e-12)


@every_case
def test_objective_and_grad_agree_with_loops_and_autograd(case):
    hypergraph = standard()
    x, h = random_values(10, 2, 0), random_values(10, 2, 1)
    mu = torch.linspace(0.5, 2, 10, dtype=torch.float64)[:, None]
    node = SquaredDistance(weight=mu)
    problem = DiffusionProblem(
        hypergraph=hypergraph, x=x, hyperedge_potential=case.potential, node_potential=node, strength=0.7
    )
    on_edges = naive_values(case, node_to_incidence(h, hypergraph), hypergraph)
    expected = sum(mu[v] * (h[v] - x[v]) ** 2 for v in range(10)) + 0.7 * on_edges.sum(0)
    torch.testing.assert_close(problem.objective(h), expected, rtol=1e-12, atol=1e-12)
    leaf = h.clone().requires_grad_()
    (derivative,) = torch.autograd.grad(problem.objective(leaf).sum(), leaf)
    torch.testing.assert_close(problem.grad(h), derivative, rtol=1e-10, atol=1e-10)


def small_problem(potential=None, **options):
    hypergraph = random_hypergraph(25, 15, 6, seed=6)
    potential = potential or TotalVariation(power=2)
    return DiffusionProblem(hypergraph=hypergraph, x=random_values(25, 2, 6), hyperedge_potential=potential, **options)


@pytest.mark.parametrize("potential", [TotalVariation(power=2), LovaszCardinality(power=2)], ids=label)
def test_the_first_admm_step_has_a_closed_form(potential):
    problem = small_problem(potential)
    solver = ADMM(step_size=0.5)
    state = solver.step(problem, solver.init(problem))
    hypergraph, x = problem.hypergraph, problem.x
    near = potential.prox(node_to_incidence(x, hypergraph), hypergraph, step_size=0.5)
    expected = (incidence_to_node(near, hypergraph) + x) / (hypergraph.degree[:, None] + 1)
    torch.testing.assert_close(state.h, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["tv-1", "tv-2", "lec-2-balanced", "ce-none"])
@pytest.mark.parametrize("eta", [0.1, 0.5, 2.0])
def test_appendix_a_with_three_variables_gives_the_same_sequence(name, eta):
    """Compare H, R, S and lambda = 1 / eta of Appendix A, written with loops, with Eq. 3 and 4."""
    problem, solver = small_problem(BY_NAME[name].potential), ADMM(step_size=eta)
    hypergraph, x, potential = problem.hypergraph, problem.x, problem.hyperedge_potential
    lam, state = 1 / eta, solver.init(problem)
    h, s = x.clone(), torch.zeros(hypergraph.num_incidences, 2, dtype=torch.float64)
    for _ in range(12):
        r = potential.prox(node_to_incidence(h, hypergraph) - s, hypergraph, step_size=1 / lam)
        h = x.clone()
        for v in range(hypergraph.num_nodes):
            at_v = hypergraph.node_index == v
            d = int(at_v.sum())
            if d:  # argmin of lam/2 sum_e (h - s_ev - r_ev)^2 + (h - x)^2
                h[v] = (lam * (s + r)[at_v].sum(0) + 2 * x[v]) / (lam * d + 2)
        s = s + r - node_to_incidence(h, hypergraph)
        state = solver.step(problem, state)
        torch.testing.assert_close(state.h, h, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    "solver",
    [ADMM(tolerance=0.0, max_steps=7), GradientDescent(rule="averaging", tolerance=0.0, max_steps=7)],
    ids=label,
)
def test_reaching_max_steps_is_reported(solver):
    solution = solve(small_problem(), solver, throw=False)
    assert (solution.outcome, solution.steps) == (Outcome.MAX_STEPS, 7)
    assert [record.step for record in solution.history] == list(range(8))
    with pytest.raises(SolverError, match="not reached within the allowed steps.*After 7 steps the gap is"):
        solve(small_problem(), solver)


def test_divergence_is_reported():
    problem = small_problem(CliqueExpansion())
    solver = GradientDescent(rule="fixed", step_size=1e30)
    solution = solve(problem, solver, throw=False)
    assert solution.outcome is Outcome.DIVERGED
    with pytest.raises(SolverError, match="no longer finite"):
        solve(problem, solver)


def test_watch_is_called_with_every_record():
    seen = []
    solution = solve(small_problem(), ADMM(), watch=lambda record, state: seen.append((record, state)), check_every=3)
    assert tuple(record for record, _ in seen) == solution.history
    assert all(a.seconds <= b.seconds for a, b in pairwise(solution.history))
    steps = [record.step for record in solution.history]
    assert steps == [*range(11), *range(13, solution.steps + 1, 3)]  # a check after each of the first ten steps
    assert torch.equal(seen[-1][1], solution.value)


@pytest.mark.parametrize("potential", [TotalVariation(power=2), CliqueExpansion()], ids=label)
def test_fixed_labels_do_not_move_and_the_other_nodes_are_optimal(potential):
    known = torch.zeros(25, dtype=torch.bool)
    known[::4] = True
    problem = small_problem(potential, node_potential=FixedLabels(known))
    solution = solve(problem, ADMM(tolerance=1e-9, max_steps=20_000))
    assert solution.certified_by == "residual"
    assert torch.equal(solution.value[known], problem.x[known])
    slope = problem.grad(solution.value)[~known]
    if isinstance(potential, CliqueExpansion):
        assert float(slope.abs().max()) < 1e-5
    for seed in range(20):  # no feasible direction descends
        step = torch.where(known[:, None], 0.0, random_values(25, 2, 100 + seed))
        for reach in (1e-2, 1e-4):
            assert bool(
                (problem.objective(solution.value + reach * step) >= problem.objective(solution.value) - 1e-8).all()
            )


def test_gradient_descent_with_fixed_labels_raises_an_error():
    with pytest.raises(UsageError, match="does not keep labels fixed"):
        solve(small_problem(node_potential=FixedLabels(torch.ones(25, dtype=torch.bool))), GradientDescent())


@pytest.mark.parametrize(
    ("potential", "solver"),
    [
        (TotalVariation(power=2), ADMM(adaptive=True, tolerance=1e-6)),
        (CliqueExpansion(), ADMM(adaptive=True, tolerance=1e-6)),
        (CliqueExpansion(normalisation="laplacian"), GradientDescent(max_steps=3000, tolerance=1e-5)),
    ],
    ids=label,
)
def test_logistic_problems_converge(potential, solver):
    """Node 24 is isolated and known, so that its minimum is at infinity. Isolated unknown nodes keep their value."""
    x = random_values(25, 2, 6).sign()
    x[1::3] = 0
    hypergraph = random_hypergraph(25, 15, 6, seed=6)
    if isinstance(solver, GradientDescent):
        x[hypergraph.degree == 0] = 0  # no step length reaches infinity
    problem = DiffusionProblem(hypergraph=hypergraph, x=x, hyperedge_potential=potential, node_potential=Logistic())
    solution = solve(problem, solver)
    assert solution.outcome is Outcome.CONVERGED
    least = problem.objective(solution.value)
    for seed in range(20):
        step = random_values(25, 2, 100 + seed)
        for reach in (1.0, 1e-2):
            assert bool((problem.objective(solution.value + reach * step) >= least - 1e-5).all())


def test_the_gap_is_infinite_without_convexity():
    potential = LovaszCardinality(power=2, cut_weights=arbitrary_cut)
    for solver in (ADMM(max_steps=20), GradientDescent(rule="averaging", max_steps=20), GradientDescent(max_steps=20)):
        solution = solve(small_problem(potential), solver, throw=False)
        assert all(record.gap == float("inf") for record in solution.history)
        assert solution.certified_by == "residual"


def test_no_gap_is_used_if_only_large_hyperedges_are_not_convex():
    def cut(size):
        return [1.0, *[0.0] * (size - 2), -1.0] if size <= 64 else [-1.0, *[0.0] * (size - 2), 1.0]

    hypergraph = Hypergraph.from_hyperedges([range(66), range(30, 70)])
    x = torch.linspace(-1, 1, 70, dtype=torch.float64)[:, None]
    problem = DiffusionProblem(
        hypergraph=hypergraph, x=x, hyperedge_potential=LovaszCardinality(power=1, cut_weights=cut)
    )
    assert solve(problem, ADMM(max_steps=20), throw=False).certified_by == "residual"


def test_gaps_made_negative_by_rounding_are_accepted():
    solution = solve(small_problem(TotalVariation(power=2)), ADMM(tolerance=1e-13, adaptive=True, max_steps=5000))
    assert solution.certified_by == "gap"
    assert abs(solution.last.gap) < 1e-10


@pytest.mark.usefixtures("without_shape_checks")  # thousands of calls on small tensors
def test_admm_and_gradient_descent_agree_on_divergence():
    for mean in ("literal", "power"):
        problem = small_problem(DivergenceToMean(power=2.0, mean=mean))
        one = solve(problem, ADMM(adaptive=True, tolerance=1e-12, max_steps=20_000))
        other = solve(problem, GradientDescent(tolerance=1e-12, max_steps=20_000))
        torch.testing.assert_close(one.value, other.value, atol=1e-5, rtol=0)
        assert one.last.objective == pytest.approx(other.last.objective, rel=1e-11)


def test_solvers_raise_an_error_for_unsupported_potentials():
    with pytest.raises(UsageError, match="power 2 only"):
        solve(small_problem(DivergenceToMean(power=3.0)), ADMM())
    with pytest.raises(UsageError, match="only solve the clique expansion with the squared distance"):
        solve(small_problem(), ConjugateGradient())
    with pytest.raises(UsageError, match="only solve the clique expansion with the squared distance"):
        solve(small_problem(CliqueExpansion(), node_potential=Logistic()), ConjugateGradient())


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ADMM(step_size=0.0), "must be positive. Got 0.0"),
        (lambda: ADMM(step_size=float("nan")), "must be positive. Got nan"),
        (lambda: GradientDescent(rule="quick"), "Got quick"),
        (lambda: GradientDescent(step_size=-1.0), "Got backtracking and -1.0"),
    ],
)
def test_invalid_parameters_raise_an_error(make, message):
    with pytest.raises(UsageError, match=message):
        make()


EMPTY = [
    Hypergraph.from_hyperedges([], num_nodes=4),
    Hypergraph.from_hyperedges([[], []], num_nodes=4),
    Hypergraph.from_hyperedges([[2], []], num_nodes=4),
    Hypergraph.from_hyperedges([], num_nodes=0),
]


@pytest.mark.parametrize("hypergraph", EMPTY, ids=["none", "empty", "singleton", "no-nodes"])
@pytest.mark.parametrize("potential", ["ce", "divergence", "tv", "lec"])
@pytest.mark.parametrize("solver", ["auto", "admm", "gradient"])
def test_x_does_not_change_without_hyperedges_of_two_nodes(hypergraph, potential, solver):
    x = random_values(hypergraph.num_nodes, 2, 7).abs()
    solution = diffuse(hypergraph, x, potential=potential, solver=solver)
    assert solution.outcome is Outcome.CONVERGED
    torch.testing.assert_close(solution.value, x, atol=1e-6, rtol=0)


def test_no_columns():
    solution = diffuse(random_hypergraph(25, 15, 6, seed=6), torch.zeros(25, 0, dtype=torch.float64))
    assert solution.value.shape == (25, 0)


@pytest.mark.parametrize("potential", ["ce", "divergence", "tv", "lec"])
def test_isolated_nodes_keep_x_and_strength_0_returns_x(potential):
    hypergraph, x = random_hypergraph(25, 15, 6, seed=6), random_values(25, 2, 6)
    solution = diffuse(hypergraph, x, potential=potential)
    assert hypergraph.degree[24] == 0
    assert torch.equal(solution.value[24], x[24])
    torch.testing.assert_close(diffuse(hypergraph, x, potential=potential, strength=0.0).value, x, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["tv-1", "tv-2-degree", "lec-2-balanced", "ce-laplacian", "dtm-power-2.0"])
def test_relabelling_nodes_and_reordering_hyperedges_permutes_the_solution(name):
    hypergraph, x = random_hypergraph(25, 15, 6, seed=6), random_values(25, 2, 6)
    rng = np.random.default_rng(8)
    rename, order = rng.permutation(25), rng.permutation(hypergraph.num_edges)
    members = [[int(rename[v]) for v in e] for e in hypergraph.hyperedges()]
    moved = Hypergraph.from_hyperedges(
        [members[e] for e in order], num_nodes=25, edge_weight=hypergraph.edge_weight[torch.from_numpy(order)]
    )
    y = torch.empty_like(x)
    y[torch.from_numpy(rename)] = x
    solver = dict(
        potential=BY_NAME[name].potential, solver="admm", step_size=0.5, tolerance=0.0, max_steps=15, throw=False
    )
    before, after = diffuse(hypergraph, x, **solver), diffuse(moved, y, **solver)
    torch.testing.assert_close(after.value[torch.from_numpy(rename)], before.value, rtol=1e-9, atol=1e-9)


def test_float32_results_are_near_those_of_float64():
    hypergraph, x = random_hypergraph(25, 15, 6, seed=6), random_values(25, 2, 6)
    for potential in ("ce", "divergence", "tv", "lec"):
        narrow = diffuse(hypergraph, x.float(), potential=potential, tolerance=1e-4, strength=0.5)
        wide = diffuse(hypergraph, x, potential=potential, strength=0.5)
        assert narrow.value.dtype == torch.float32
        torch.testing.assert_close(narrow.value.double(), wide.value, atol=5e-2, rtol=0)


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("potential", ["ce", "tv", "lec"])
def test_float32_input_is_solved_in_float64(potential, scale):
    hypergraph, x = random_hypergraph(25, 15, 6, seed=6), (scale * random_values(25, 2, 6)).float()
    narrow = diffuse(hypergraph, x, potential=potential)
    wide = diffuse(hypergraph, x.double(), potential=potential)
    assert [record.gap for record in narrow.history] == [record.gap for record in wide.history]
    assert torch.equal(narrow.value, wide.value.float())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(potential="tvs"), "Did you mean 'tv'"),
        (dict(potential="ce", power=1), "must be 2. Got 1"),
        (dict(potential="tv", power=3), "must be 1 or 2. Got 3"),
        (dict(solver="adm"), "Did you mean 'admm'"),
        (dict(potential="ce", step_size=0.1), "choose their step sizes themselves. Omit `step_size=`"),
        (dict(solver="gradient", step_size=0.1), "chooses its step sizes itself. Omit `step_size=`"),
        (dict(step_size=0.0), "must be positive. Got 0.0"),
        (dict(potential="ce", solver="gradient", step_size=0.0), "a positive step size"),
        (dict(strength=-1.0), "0 or more. Got -1.0"),
        (dict(strength=float("nan")), "0 or more. Got nan"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_invalid_options_raise_an_error(options, message):
    with pytest.raises(UsageError, match=message):
        diffuse(random_hypergraph(25, 15, 6, seed=6), random_values(25, 2, 6), **options)


@pytest.mark.usefixtures("without_shape_checks")  # thousands of calls on small tensors
@pytest.mark.parametrize("potential", ["ce", "divergence", "tv", "lec"])
def test_the_accuracy_does_not_depend_on_the_scale_of_x(potential):
    hypergraph, x = random_hypergraph(30, 25, 6, 0), random_values(30, 2, 0)
    solution = diffuse(hypergraph, x, potential=potential)
    for factor in (1e-6, 1e6):
        scaled = diffuse(hypergraph, factor * x, potential=potential)
        assert scaled.steps == solution.steps
        torch.testing.assert_close(scaled.value / factor, solution.value)


@pytest.mark.parametrize("potential", ["ce", "tv", "lec"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3.3e-7, 1e6])
def test_constant_values_need_at_most_one_step(potential, value):
    hypergraph = random_hypergraph(30, 25, 6, 0)
    x = torch.full((hypergraph.num_nodes, 1), value, dtype=torch.float64)
    found = diffuse(hypergraph, x, potential=potential)
    assert found.steps <= 1
    torch.testing.assert_close(found.value, x)


@pytest.mark.parametrize("potential", ["ce", "tv", "lec"])
def test_a_shift_of_all_values_shifts_the_solution(potential):
    hypergraph, x = random_hypergraph(30, 25, 6, 0), random_values(30, 2, 0)
    found, shifted = (diffuse(hypergraph, x + shift, potential=potential).value for shift in (0.0, 1e6))
    torch.testing.assert_close(shifted - 1e6, found, atol=1e-3, rtol=0)


@pytest.mark.parametrize("name", ["tv", "lec"])
def test_the_strength_is_divided_by_the_mean_degree_and_copies_of_all_hyperedges_change_nothing(name):
    once, x = random_hypergraph(25, 15, 6, seed=6), random_values(25, 2, 6)
    members = [edge.tolist() if hasattr(edge, "tolist") else list(edge) for edge in once.hyperedges()]
    weights = once.edge_weight.tolist()
    often = Hypergraph.from_hyperedges(members * 40, num_nodes=25, edge_weight=weights * 40)
    options = dict(potential=name, tolerance=1e-9)
    found, repeated = diffuse(once, x, **options), diffuse(often, x, **options)
    assert repeated.certified_by == "gap"
    torch.testing.assert_close(repeated.value, found.value, atol=1e-4, rtol=0)
    unscaled = diffuse(often, x, scaling="none", **options)
    assert float((unscaled.value - found.value).abs().max()) > 0.1
    degree = torch.zeros(25, dtype=torch.float64)
    for edge, weight in zip(members, weights, strict=True):
        degree[edge] += weight
    by_hand = diffuse(once, x, scaling="none", strength=1 / float(degree[degree > 0].mean()), **options)
    torch.testing.assert_close(by_hand.value, found.value, atol=1e-9, rtol=0)


@pytest.mark.usefixtures("without_shape_checks")
def test_the_scaling_of_the_strength_is_checked_and_an_object_is_not_scaled():
    hypergraph, x = random_hypergraph(25, 15, 6, seed=6), random_values(25, 2, 6)
    with pytest.raises(UsageError, match="scaling must be one of none, degree. Got 'degrees'"):
        diffuse(hypergraph, x, scaling="degrees")
    as_posed = diffuse(hypergraph, x, potential=TotalVariation(power=2)).value
    torch.testing.assert_close(diffuse(hypergraph, x, scaling="none").value, as_posed, atol=0, rtol=0)


@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
def test_descent_and_admm_agree_on_the_divergence_within_their_certified_gaps(strength):
    hypergraph, x = random_hypergraph(25, 15, 6, seed=6), random_values(25, 2, 6)
    options = dict(potential="divergence", strength=strength, tolerance=1e-8)
    automatic, admm = diffuse(hypergraph, x, **options), diffuse(hypergraph, x, solver="admm", **options)
    assert automatic.certified_by == admm.certified_by == "gap"
    assert automatic.last.objective == pytest.approx(admm.last.objective, rel=1e-7)
