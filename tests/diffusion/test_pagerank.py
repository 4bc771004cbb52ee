"""PageRank as a diffusion problem compared with networkx, and sweep cuts with brute force."""

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edhnn import ADMM, CliqueExpansion, DataError, Hypergraph, UsageError, diffuse, pagerank_problem, solve, sweep_cut
from tests.strategies import hyperedge_lists


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("restart", [0.15, 0.6])
def test_pagerank_on_pairs_agrees_with_networkx(weighted, restart):
    graph = networkx.karate_club_graph()
    nodes, pairs = graph.number_of_nodes(), list(graph.edges)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(pairs)) if weighted else np.ones(len(pairs))
    networkx.set_edge_attributes(graph, dict(zip(pairs, weights.tolist(), strict=True)), "weight")
    hypergraph = Hypergraph.from_hyperedges(pairs, num_nodes=nodes, edge_weight=weights.tolist() if weighted else None)
    seeds = torch.zeros(nodes, 1, dtype=torch.float64)
    seeds[3], seeds[20] = 0.75, 0.25
    problem = pagerank_problem(hypergraph, seeds, restart=restart)
    h = solve(problem, ADMM(adaptive=True, tolerance=1e-15, max_steps=3000), throw=False).value[:, 0]
    degree = torch.tensor([float(d) for _, d in graph.degree(weight="weight")], dtype=torch.float64)
    expected = networkx.pagerank(
        graph, alpha=1 - restart, personalization={3: 0.75, 20: 0.25}, tol=1e-15, max_iter=10_000, weight="weight"
    )
    expected = torch.tensor([expected[v] for v in range(nodes)], dtype=torch.float64)
    torch.testing.assert_close(degree * h, expected, atol=1e-7, rtol=0)
    assert float((degree * h).sum()) == pytest.approx(1, abs=1e-6)


def test_invalid_pagerank_arguments_raise_an_error():
    hypergraph = Hypergraph.from_hyperedges([[0, 1]], num_nodes=3)
    seeds = torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.float64)
    with pytest.raises(UsageError, match="Node 2 is not"):
        pagerank_problem(hypergraph, seeds)
    for restart in (0.0, 1.0, float("nan")):
        with pytest.raises(UsageError, match="between 0 and 1"):
            pagerank_problem(hypergraph, seeds.flip(0), restart=restart)


def test_pagerank_weights_a_normalised_potential_by_one_minus_restart():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3]])
    seeds = torch.tensor([[1.0], [0.0], [0.0], [0.0]], dtype=torch.float64)
    potential = CliqueExpansion(normalisation="laplacian")
    problem = pagerank_problem(hypergraph, seeds, restart=0.3, potential=potential)
    h = torch.tensor([[0.3], [0.1], [-0.2], [0.5]], dtype=torch.float64)
    degree = hypergraph.degree[:, None]
    on_edges = potential.value(h[hypergraph.node_index], hypergraph).sum()
    expected = 0.3 * (degree * (h - seeds / degree) ** 2).sum() + 0.7 * on_edges
    assert float(problem.objective(h)) == pytest.approx(float(expected), rel=1e-13)


def naive_conductance(hyperedges, weights, num_nodes, chosen):
    members = [set(e) for e in hyperedges]
    cut = sum(w for e, w in zip(members, weights, strict=True) if e & chosen and e - chosen)
    degree = [sum(w for e, w in zip(members, weights, strict=True) if v in e) for v in range(num_nodes)]
    inside = sum(degree[v] for v in chosen)
    smaller = min(inside, sum(degree) - inside)
    return cut / smaller if smaller > 1e-12 else float("inf")


@given(hyperedge_lists(), st.data())
def test_sweep_cut_agrees_with_brute_force_over_prefixes(drawn, data):
    num_nodes, hyperedges = drawn
    num_nodes = max(num_nodes, 2)
    weights = data.draw(st.lists(st.integers(0, 4), min_size=len(hyperedges), max_size=len(hyperedges)))
    scores = data.draw(st.lists(st.integers(-3, 3), min_size=num_nodes, max_size=num_nodes))
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes, edge_weight=[float(w) for w in weights])
    found = sweep_cut(hypergraph, torch.tensor(scores, dtype=torch.float64))
    order = sorted(range(num_nodes), key=lambda v: -scores[v])
    assert found.order.tolist() == order
    profile = [
        naive_conductance(hyperedges, weights, num_nodes, set(order[: size + 1])) for size in range(num_nodes - 1)
    ]
    assert found.profile.tolist() == pytest.approx(profile, abs=1e-12)
    assert found.conductance == pytest.approx(min(profile), abs=1e-12)
    assert found.members.tolist() == order[: len(found.members)]
    assert profile[len(found.members) - 1] == pytest.approx(min(profile), abs=1e-12)


def test_sweep_finds_the_two_halves_and_respects_max_size():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [0, 1], [3, 4, 5], [4, 5], [2, 3]])
    scores = torch.tensor([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    found = sweep_cut(hypergraph, scores)
    assert found.members.tolist() == [0, 1, 2]
    assert found.conductance == pytest.approx(1 / 6)
    assert len(sweep_cut(hypergraph, scores, max_size=2).members) <= 2


@pytest.mark.usefixtures("without_shape_checks")
def test_invalid_sweep_arguments_raise_an_error():
    with pytest.raises(UsageError, match="at least two nodes"):
        sweep_cut(Hypergraph.from_hyperedges([[0]]), torch.ones(1))
    pair = Hypergraph.from_hyperedges([[0, 1]])
    for scores in (torch.ones(3), torch.ones(2, 1)):
        with pytest.raises(UsageError, match="Got 2 nodes and scores of shape"):
            sweep_cut(pair, scores)
    for size in (0, -1):
        with pytest.raises(UsageError, match="must be 1 or more"):
            sweep_cut(pair, torch.ones(2), max_size=size)
    with pytest.raises(DataError, match="seeds must be floating point"):
        pagerank_problem(pair, torch.ones(2, 1, dtype=torch.int64))
    for shape in ((2,), (3, 1), (2, 1, 1)):
        with pytest.raises(DataError, match=r"of shape \[2, D\].*Got .* of shape"):
            pagerank_problem(pair, torch.ones(shape))


def test_scores_scale_with_seeds_spread_over_many_nodes():
    nodes = 2000
    pairs = Hypergraph.from_hyperedges([[node, (7 * node + 1) % nodes] for node in range(nodes)] + [[0, 1]])
    seeds = (torch.arange(nodes) % 2)[:, None].double()
    scaled = solve(pagerank_problem(pairs, seeds / seeds.sum()), ADMM(adaptive=True)).value * seeds.sum()
    torch.testing.assert_close(scaled, solve(pagerank_problem(pairs, seeds), ADMM(adaptive=True)).value)


@pytest.mark.usefixtures("without_shape_checks")
def test_integer_scores_do_not_round_the_weights():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], [3, 4]], edge_weight=[0.5, 0.25, 0.5])
    scores = torch.tensor([5, 4, 3, 2, 1])
    integer, real = sweep_cut(hypergraph, scores), sweep_cut(hypergraph, scores.double())
    assert integer.profile.tolist() == real.profile.tolist()
    assert 0 < integer.conductance < 1


@pytest.mark.usefixtures("without_shape_checks")
def test_x_must_have_the_right_shape_and_be_finite():
    pair = Hypergraph.from_hyperedges([[0, 1]])
    with pytest.raises(DataError, match=r"shape \[2, D\]"):
        diffuse(pair, torch.ones(3, 1))
    with pytest.raises(DataError, match="floating point"):
        diffuse(pair, torch.ones(2, 1, dtype=torch.int64))
    with pytest.raises(DataError, match="at node 1"):
        diffuse(pair, torch.tensor([[0.0], [float("nan")]]))
