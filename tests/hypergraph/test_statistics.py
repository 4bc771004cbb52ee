"""Counts and homophily against slow loops, and on the nine published datasets against the paper."""

import gzip
import json
from itertools import combinations
from math import isnan

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import Hypergraph
from edhnn.hypergraph import statistics as structure
from edhnn.hypergraph.homophily import (
    clique_edge_homophily,
    clique_homophily,
    clique_homophily_weighted,
    clique_homophily_without_self,
    homophilies,
)
from edhnn.hypergraph.statistics import Distribution, class_mixing, component_sizes, describe, first_equal_hyperedge
from tests.strategies import hyperedge_lists

# The paper's Tables 1 and 5: hyperedges, mean degree, mean hyperedge size, CE homophily.
PAPER = {
    "cora": (1579, 1.767, 3.031, 0.897),
    "citeseer": (1079, 1.043, 3.200, 0.893),
    "pubmed": (7963, 1.756, 4.349, 0.952),
    "cora-ca": (1072, 1.693, 4.277, 0.803),
    "dblp-ca": (22363, 2.411, 4.452, 0.869),
    "congress": (83105, 427.237, 8.656, 0.555),
    "senate": (315, 19.177, 17.168, 0.498),
    "walmart": (69906, 5.184, 6.589, 0.530),
    "house": (340, 9.181, 34.730, 0.509),
}


@st.composite
def labelled_hyperedges(draw):
    num_nodes, hyperedges = draw(hyperedge_lists())
    labels = draw(st.lists(st.integers(-1, 2), min_size=num_nodes, max_size=num_nodes))
    return num_nodes, hyperedges, labels


def build(drawn):
    num_nodes, hyperedges, labels = drawn
    sets = [{v for v in hyperedge if labels[v] >= 0} for hyperedge in hyperedges]
    known = [v for v in range(num_nodes) if labels[v] >= 0]
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    return hypergraph, torch.tensor(labels, dtype=torch.int64), sets, known


def mean(values):
    values = [float(value) for value in values]
    return sum(values) / len(values) if values else float("nan")


def agree(value, expected):
    assert (isnan(value) and isnan(expected)) or value == pytest.approx(expected, abs=1e-12)


def neighbours(sets, v):
    return set().union(*(members for members in sets if v in members)) - {v}


@given(labelled_hyperedges())
def test_clique_homophily_by_loops(drawn):
    hypergraph, labels, sets, known = build(drawn)
    circles = [(v, neighbours(sets, v) | {v}) for v in known]
    agree(
        clique_homophily(hypergraph, labels),
        mean(mean(labels[u] == labels[v] for u in circle) for v, circle in circles),
    )


@given(labelled_hyperedges())
def test_clique_homophily_without_self_by_loops(drawn):
    hypergraph, labels, sets, known = build(drawn)
    circles = [(v, circle) for v in known if (circle := neighbours(sets, v))]
    expected = mean(mean(labels[u] == labels[v] for u in circle) for v, circle in circles)
    agree(clique_homophily_without_self(hypergraph, labels), expected)


@given(labelled_hyperedges())
def test_clique_homophily_weighted_by_loops(drawn):
    hypergraph, labels, sets, known = build(drawn)
    circles = [(v, [u for members in sets if v in members for u in members - {v}]) for v in known]
    expected = mean(mean(labels[u] == labels[v] for u in circle) for v, circle in circles if circle)
    agree(clique_homophily_weighted(hypergraph, labels), expected)


@given(labelled_hyperedges())
def test_clique_edge_homophily_by_loops(drawn):
    hypergraph, labels, sets, _ = build(drawn)
    pairs = {pair for members in sets for pair in combinations(sorted(members), 2)}
    agree(clique_edge_homophily(hypergraph, labels), mean(labels[u] == labels[v] for u, v in pairs))


@settings(max_examples=30)  # the values themselves are compared with loops above
@given(labelled_hyperedges())
def test_homophilies_returns_the_four_values_by_name(drawn):
    hypergraph, labels, _, _ = build(drawn)
    together = homophilies(hypergraph, labels)
    for function in (
        clique_homophily,
        clique_homophily_without_self,
        clique_homophily_weighted,
        clique_edge_homophily,
    ):
        value = function(hypergraph, labels)
        assert getattr(together, function.__name__) == (None if isnan(value) else value)


def test_weighted_homophily_with_many_classes():
    """300 classes in 200 hyperedges of 2: a table would have 60,000 entries for 400 memberships."""
    generator = np.random.default_rng(5)
    pairs = [generator.choice(300, size=2, replace=False).tolist() for _ in range(200)]
    hypergraph = Hypergraph.from_hyperedges([*pairs, list(range(300))], num_nodes=300)
    labels = torch.from_numpy(generator.integers(0, 300, 300))
    sets = [set(pair) for pair in [*pairs, range(300)]]
    circles = [(v, [u for members in sets if v in members for u in members - {v}]) for v in range(300)]
    expected = mean(mean(bool(labels[u] == labels[v]) for u in circle) for v, circle in circles)
    agree(clique_homophily_weighted(hypergraph, labels), expected)


@given(hyperedge_lists(max_edges=12))
def test_first_equal_hyperedge_by_loops(drawn):
    num_nodes, hyperedges = drawn
    sets = [frozenset(hyperedge) for hyperedge in hyperedges]
    found = first_equal_hyperedge(Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes))
    assert found.tolist() == [sets.index(members) for members in sets]


@given(drawn=hyperedge_lists(max_nodes=4, max_edges=12))
def test_hyperedges_with_equal_hashes_are_distinguished(drawn):
    num_nodes, hyperedges = drawn
    sets = [frozenset(hyperedge) for hyperedge in hyperedges]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "_set_hashes", lambda node, ptr: np.zeros(len(ptr) - 1, dtype=np.int64))
        found = first_equal_hyperedge(Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes))
    assert found.tolist() == [sets.index(members) for members in sets]


def components_by_loops(num_nodes, hyperedges):
    groups = [{v} for v in range(num_nodes)]
    for hyperedge in hyperedges:
        touched = [group for group in groups if group & set(hyperedge)]
        groups = [group for group in groups if not group & set(hyperedge)]
        if touched:
            groups.append(set().union(*touched))
    return sorted(map(len, groups), reverse=True)


@given(hyperedge_lists())
def test_component_sizes_by_loops(drawn):
    num_nodes, hyperedges = drawn
    found = component_sizes(Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes))
    assert found.tolist() == components_by_loops(num_nodes, hyperedges)


@given(labelled_hyperedges())
def test_class_mixing_by_loops(drawn):
    hypergraph, labels, sets, _ = build(drawn)
    pairs = np.zeros((3, 3))
    for members in sets:
        for u, v in combinations(members, 2):
            pairs[labels[u], labels[v]] += 1
            pairs[labels[v], labels[u]] += 1
    found = class_mixing(hypergraph, labels, 3)
    for row in range(3):
        expected = pairs[row] / pairs[row].sum() if pairs[row].any() else np.full(3, np.nan)
        np.testing.assert_allclose(found[row], expected)


@given(labelled_hyperedges())
def test_describe_agrees_with_loops(drawn):
    num_nodes, hyperedges, drawn_labels = drawn
    hypergraph, labels, _, known = build(drawn)
    sets = [frozenset(hyperedge) for hyperedge in hyperedges]
    found = describe(hypergraph, labels)
    assert (found.num_nodes, found.num_hyperedges) == (num_nodes, len(sets))
    assert found.num_incidences == sum(map(len, sets))
    assert found.isolated_nodes == num_nodes - len(frozenset().union(*sets))
    assert found.empty_hyperedges == sum(not members for members in sets)
    assert found.singleton_hyperedges == sum(len(members) == 1 for members in sets)
    assert found.num_hyperedges_without_singletons == sum(len(members) >= 2 for members in sets)
    assert found.repeated_hyperedges == len(sets) - len(set(sets))
    assert found.merged_memberships == sum(map(len, hyperedges)) - sum(map(len, sets))
    components = components_by_loops(num_nodes, hyperedges)
    assert (found.components, found.largest_component) == (len(components), max(components, default=0))
    assert sum(found.class_counts) == len(known)
    assert all(count == drawn_labels.count(c) for c, count in enumerate(found.class_counts))


def test_distribution_of_counts():
    assert Distribution.of(torch.tensor([4, 1, 2, 3, 10])) == Distribution(
        mean=4.0, minimum=1, lower_quartile=2.0, median=3.0, upper_quartile=4.0, maximum=10
    )
    assert Distribution.of(torch.zeros(0, dtype=torch.int64)) is None


def test_a_budget_skips_only_the_homophilies_that_expand_cliques():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3]])
    labels = torch.tensor([0, 0, 1, 1])
    within, beyond = (describe(hypergraph, labels, max_clique_pairs=budget).homophily for budget in (13, 12))
    assert within == homophilies(hypergraph, labels)
    assert beyond.clique_homophily is beyond.clique_homophily_without_self is beyond.clique_edge_homophily is None
    assert beyond.clique_homophily_weighted == within.clique_homophily_weighted is not None


def test_homophily_is_none_without_labels():
    found = describe(Hypergraph.from_hyperedges([[0, 1]]))
    assert found.class_counts is None
    assert found.homophily.clique_homophily is None


@pytest.mark.parametrize("num_nodes, hyperedges", [(0, []), (0, [[]]), (3, []), (1, [[0]])])
def test_describe_works_on_degenerate_hypergraphs(num_nodes, hyperedges):
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    found = describe(hypergraph, torch.zeros(num_nodes, dtype=torch.int64))
    assert found.homophily.clique_homophily == (1.0 if num_nodes else None)
    assert found.homophily.clique_edge_homophily is None
    assert found.components == num_nodes
    unlabelled = describe(hypergraph, torch.full((num_nodes,), -1))
    assert unlabelled.class_counts == ()
    assert unlabelled.homophily.clique_homophily is None


def load(folder):
    with gzip.open(folder / "hyperedges.txt.gz", "rt") as lines:
        hyperedges = [[int(v) for v in line.split(",")] for line in lines]
    with gzip.open(folder / "labels.txt.gz", "rt") as lines:
        labels = torch.tensor([int(line) for line in lines])
    return Hypergraph.from_hyperedges(hyperedges, num_nodes=len(labels)), labels


@pytest.mark.parametrize("name", PAPER)
def test_describe_reproduces_the_published_numbers(real_data, name):
    hypergraph, labels = load(real_data / name)
    record = json.loads((real_data / name / "source.json").read_text())
    counts, values = record["counts"], record["statistics"]
    found = describe(hypergraph, labels)

    hyperedges, mean_degree, mean_size, homophily = PAPER[name]
    assert found.num_hyperedges_without_singletons == hyperedges == counts["hyperedges_size_ge_2"]
    assert round(found.degree.mean, 3) == mean_degree
    assert round(found.edge_size.mean, 3) == mean_size
    assert round(found.homophily.clique_homophily, 3) == homophily

    assert found.num_hyperedges == counts["hyperedges"]
    assert found.num_incidences == counts["incidence_nnz"]
    assert found.singleton_hyperedges == counts["singleton_hyperedges"]
    assert found.isolated_nodes == counts["isolated_nodes"]
    assert found.repeated_hyperedges == counts["repeated_hyperedges"]
    assert list(found.class_counts) == counts["class_counts"]
    assert (found.edge_size.maximum, found.degree.maximum) == (counts["max_hyperedge_size"], counts["max_node_degree"])

    assert round(found.homophily.clique_homophily, 4) == values["ce_homophily_with_self"]
    without_self = round(found.homophily.clique_homophily_without_self, 4)
    assert without_self == values["ce_homophily_without_self_skipping_isolated"]
    weighted = round(found.homophily.clique_homophily_weighted, 4)
    assert weighted == values["ce_homophily_without_self_weighted_by_multiplicity"]
    assert round(found.homophily.clique_edge_homophily, 4) == values["ce_edge_homophily_without_self"]
