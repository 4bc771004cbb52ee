"""The doctor: every finding is triggered and not triggered, and every dataset can be examined."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import Hypergraph, Ids, NodeDataset, Provenance
from edhnn.data.dataset import sparse_features
from edhnn.doctor import checks
from edhnn.doctor.checks import percentage
from edhnn.doctor.diagnose import examine
from edhnn.doctor.summary import facts
from tests.strategies import hyperedge_lists

RING = [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7, 8], [8, 9, 0]]
FEATURES = torch.arange(1.0, 31.0).reshape(10, 3)
LABELS = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
FACT_NAMES = {
    *("name", "num_nodes", "num_hyperedges", "num_hyperedges_without_singletons", "num_incidences", "num_features"),
    *("num_classes", "mean_degree", "mean_hyperedge_size", "clique_homophily", "isolated_nodes"),
    *("singleton_hyperedges", "repeated_hyperedges", "merged_memberships"),
    *("task", "labelled_nodes", "class_names", "class_counts", "max_degree", "max_hyperedge_size", "clique_pairs"),
    *("clique_homophily_without_self", "clique_homophily_weighted", "clique_edge_homophily"),
    *("empty_hyperedges", "components", "largest_component"),
}


def healthy(hyperedges=RING, num_nodes=10, **changes):
    """Ten nodes in a ring of five hyperedges, two classes, three features: nothing to find."""
    hypergraph = changes.pop("hypergraph", None) or Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    plain = {"name": "ring", "hypergraph": hypergraph, "x": FEATURES, "y": LABELS, "task": "classification"}
    return NodeDataset(**{**plain, **changes})


def found(dataset, code, **options):
    """The findings of one code."""
    return [finding for finding in examine(dataset, **options).findings if finding.code == code]


def only(dataset, code, **options):
    (finding,) = found(dataset, code, **options)
    return finding


def features_with(value, row=4, column=1):
    x = FEATURES.clone()
    x[row, column] = value
    return x


def test_a_healthy_dataset_has_no_findings():
    assert examine(healthy()).findings == ()


ODD = {
    "no-nodes": healthy([], 0, x=None, y=None, task=None),
    "no-memberships": healthy([[], []]),
    "isolated-nodes": healthy(RING[:3]),
    "empty-hyperedges": healthy([*RING, []]),
    "singleton-hyperedges": healthy([*RING, [3]]),
    "repeated-hyperedges": healthy([*RING, [2, 1, 0]]),
    "merged-memberships": healthy([*RING, [1, 1, 5]]),
    "hyperedge-of-all-nodes": healthy([*RING, list(range(9))]),
    "several-components": healthy([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [0, 4], [5, 9]]),
    "zero-weights": healthy(hypergraph=Hypergraph.from_hyperedges(RING, edge_weight=[1.0, 0.0, 1.0, 1.0, 1.0])),
    "padded-ids": healthy(node_ids=Ids([" a", *"bcdefghij"])),
    "ids-read-alike": healthy(node_ids=Ids(["b ", *"bcdefghij"])),
    "no-labels": healthy(y=None, task=None),
    "unlabelled-nodes": healthy(y=torch.tensor([-1, 1, 0, 1, 0, 1, 0, 1, 0, 0])),
    "one-class": healthy(y=torch.zeros(10, dtype=torch.int64)),
    "small-class": healthy(y=torch.tensor([0, 1, 0, 1, 0, 1, 0, 0, 0, 0])),
    "empty-class": healthy(class_names=("a", "b", "c")),
    "class-imbalance": healthy(
        RING, 24, x=torch.arange(1.0, 25.0)[:, None], y=torch.tensor([1, 0, 1] + 21 * [0]), task="classification"
    ),
    "label-leak": healthy([*RING, [0, 2, 4, 6, 8]]),
    "possible-label-leak": healthy([*RING, [0, 2, 4, 6, 9]], y=torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, -1, -1])),
    "labels-not-finite": healthy(y=torch.tensor([np.inf, *range(9)]), task="regression"),
    "one-value": healthy(y=torch.full((10,), 2.0), task="regression"),
    "no-features": healthy(x=None),
    "features-not-finite": healthy(x=features_with(np.nan)),
    "constant-features": healthy(x=torch.cat([FEATURES, torch.full((10, 1), 7.0)], dim=1)),
    "zero-features": healthy(x=torch.cat([torch.zeros(1, 3), FEATURES[1:]])),
    "reader": healthy(provenance=Provenance("a file", "csv", notes=("the first column was taken as nodes",))),
}
SEVERITIES = {
    "error": {"no-nodes", "one-class", "label-leak", "labels-not-finite", "one-value", "features-not-finite"},
    "warning": {
        *("no-memberships", "isolated-nodes", "empty-hyperedges", "hyperedge-of-all-nodes", "padded-ids"),
        *("ids-read-alike", "no-labels", "small-class", "class-imbalance", "possible-label-leak"),
    },
}


@pytest.mark.parametrize("code", ODD)
def test_each_oddity_is_found_once_with_its_severity(code):
    finding = only(ODD[code], code)
    expected = next((severity for severity, codes in SEVERITIES.items() if code in codes), "note")
    assert finding.severity == expected
    assert finding.message.endswith(".") or code == "reader"


def test_merged_weights_have_their_own_remedy():
    weighted = Hypergraph(torch.tensor([0, 0, 1]), torch.tensor([0, 0, 0]), 10, 1, None, torch.tensor([1.0, 3.0, 2.0]))
    finding = next(found for found in examine(healthy(hypergraph=weighted)).findings if found.code.startswith("merged"))
    assert finding.message == "1 membership was given more than once and merged; the largest weight of each is used."
    assert finding.remedy == "If the weights should add up, list each membership once, with the sum."


@pytest.mark.parametrize(
    "code, count, examples",
    [
        ("isolated-nodes", 3, (7, 8, 9)),
        ("empty-hyperedges", 1, (5,)),
        ("singleton-hyperedges", 1, (5,)),
        ("repeated-hyperedges", 1, (5,)),
        ("merged-memberships", 1, ()),
        ("hyperedge-of-all-nodes", 1, (5,)),
        ("several-components", 2, ()),
        ("padded-ids", 1, (" a",)),
        ("ids-read-alike", 1, ("b ",)),
        ("unlabelled-nodes", 1, (0,)),
        ("small-class", 1, ()),
        ("label-leak", 1, (5,)),
        ("possible-label-leak", 1, (5,)),
        ("labels-not-finite", 1, (0,)),
        ("features-not-finite", 1, (4,)),
        ("constant-features", 1, ()),
        ("zero-features", 1, (0,)),
    ],
)
def test_findings_have_a_count_and_examples(code, count, examples):
    finding = only(ODD[code], code)
    assert (finding.count, finding.examples) == (count, examples)


def test_errors_come_first():
    dataset = healthy([*RING, [], [0, 2, 4, 6, 8]], x=features_with(np.inf))
    severities = [finding.severity for finding in examine(dataset).findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert severities[0] == "error" and severities[-1] != "error"
    assert examine(dataset).count("error") == 2


def test_few_isolated_nodes_are_a_note():
    hyperedges = [[v, v + 1] for v in range(30)]
    dataset = NodeDataset(name="path", hypergraph=Hypergraph.from_hyperedges(hyperedges, num_nodes=32))
    assert only(dataset, "isolated-nodes").severity == "note"


def test_isolated_nodes_alone_do_not_make_several_components():
    assert not found(healthy(RING[:4]), "several-components")


def test_examples_are_original_ids_and_only_the_first_few():
    ids = Ids([f"author {number}" for number in range(10)])
    finding = only(healthy([[0, 1]], node_ids=ids), "isolated-nodes")
    assert finding.count == 8
    assert finding.examples == ("author 2", "author 3", "author 4", "author 5", "author 6")


@pytest.mark.parametrize("extra", [[0, 2, 4, 6], [0, 2, 4, 6, 8, 9]])
def test_part_of_a_class_or_more_than_it_is_no_leak(extra):
    assert not found(healthy([*RING, extra]), "label-leak")


def test_a_class_of_one_node_is_no_leak():
    labels = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, 0, 2])
    assert not found(healthy([*RING, [9]], y=labels), "label-leak")


def test_a_leak_names_the_class():
    assert "'spam'" in only(healthy([*RING, [0, 2, 4, 6, 8]], class_names=("spam", "ham")), "label-leak").message


def test_a_hyperedge_equal_to_a_label_of_several_is_a_leak():
    y = torch.zeros(10, 2)
    y[[1, 2, 7], 0] = 1
    y[[0, 1], 1] = 1
    dataset = healthy([*RING, [7, 2, 1]], y=y, task="multilabel")
    assert only(dataset, "label-leak").examples == (5,)
    assert not found(healthy(RING, y=y, task="multilabel"), "label-leak")


@given(hyperedge_lists(max_edges=10), st.data())
def test_leaks_equal_a_loop_over_sets(drawn, data):
    num_nodes, hyperedges = drawn
    labels = data.draw(st.lists(st.integers(-1, 2), min_size=num_nodes, max_size=num_nodes))
    classes = [{v for v, label in enumerate(labels) if label == c} for c in range(3)]
    known = {v for v, label in enumerate(labels) if label >= 0}
    leaks, possible = [], []
    for number, members in enumerate(map(set, hyperedges)):
        inside = members & known
        if len(inside) >= 2 and inside in classes and inside != known:
            (leaks if inside == members else possible).append(number)
    dataset = NodeDataset(
        name="drawn",
        hypergraph=Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes),
        y=torch.tensor(labels, dtype=torch.int64),
        task="classification",
    )
    for code, expected in (("label-leak", leaks), ("possible-label-leak", possible)):
        findings = found(dataset, code)
        assert [finding.count for finding in findings] == ([len(expected)] if expected else [])
        assert [finding.examples for finding in findings] == ([tuple(expected[:5])] if expected else [])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_broken_features_name_column_and_node(value, sparse):
    x = features_with(value)
    x = sparse_features(sp.csr_array(x.numpy())) if sparse else x
    dataset = healthy(x=x, feature_names=("age", "height", "weight"), node_ids=Ids(list("abcdefghij")))
    finding = only(dataset, "features-not-finite")
    assert "column 'height'" in finding.message
    assert (finding.count, finding.examples) == (1, ("e",))


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan, np.inf]), min_size=3, max_size=3), min_size=1, max_size=6
    ),
    st.booleans(),
    st.integers(1, 12),
)
def test_dense_and_sparse_scans_of_features_equal_loops(rows, stored_zeros, block):
    x = torch.tensor(rows)
    matrix = sp.csr_array(x.numpy())
    if stored_zeros:
        full = (x.numpy().ravel(), np.tile(np.arange(3), len(rows)), np.arange(0, 3 * len(rows) + 1, 3))
        matrix = sp.csr_array(full, shape=x.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_ENTRIES_PER_BLOCK", block)
        dense = checks._scan_dense(x)
    sparse = checks._scan_sparse(sparse_features(matrix))
    broken = {(r, c) for r, row in enumerate(rows) for c, value in enumerate(row) if not np.isfinite(value)}
    constant = [c for c in range(3) if len({str(row[c]) for row in rows}) == 1 and not np.isnan(rows[0][c])]
    for scan in (dense, sparse):
        assert set(zip(scan.broken_rows.tolist(), scan.broken_columns.tolist(), strict=True)) == broken
        assert scan.constant_columns.tolist() == constant
        assert scan.zero_rows.tolist() == [r for r, row in enumerate(rows) if not any(row)]


def test_scanning_sparse_features_does_not_change_them():
    x = sparse_features(sp.csr_array(([0.0, 1.0], [0, 1], [0, 1, 2]), shape=(2, 2)))
    before = x.values().clone()
    checks._scan_sparse(x)
    assert torch.equal(x.values(), before)


def test_one_node_has_no_constant_features():
    dataset = NodeDataset(name="one", hypergraph=Hypergraph.from_hyperedges([[0]]), x=torch.ones(1, 2))
    assert not found(dataset, "constant-features")


@pytest.mark.parametrize(
    "names, alike",
    [
        (["a", "b"], ()),
        (["a ", "b"], ()),
        (["a ", "a"], ("a ",)),
        (["a ", "\ta"], ("a ", "\ta")),
        ([1, "1"], ("1",)),
        ([1, "2"], ()),
        ([1, " 1"], (" 1",)),
    ],
)
def test_ids_that_differ_only_by_white_space_or_type(names, alike):
    hypergraph = Hypergraph.from_hyperedges([[0, 1]])
    for ids in (
        {"node_ids": Ids(names)},
        {"edge_ids": Ids(names), "hypergraph": Hypergraph.from_hyperedges([[0], [1]])},
    ):
        dataset = NodeDataset(**{"name": "ids", "hypergraph": hypergraph, **ids})
        assert tuple(name for finding in found(dataset, "ids-read-alike") for name in finding.examples) == alike


def test_integer_ids_are_never_padded():
    assert not found(healthy(node_ids=Ids(np.arange(5, 15))), "padded-ids")


def test_class_balance_thresholds():
    def labelled(*counts):
        y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
        hypergraph = Hypergraph.from_hyperedges([], num_nodes=len(y))
        return NodeDataset(name="balance", hypergraph=hypergraph, y=y, task="classification")

    assert not found(labelled(39, 4), "class-imbalance") and not found(labelled(39, 4), "small-class")
    assert "90.9%" in only(labelled(40, 4), "class-imbalance").message
    assert "classes 1, 3" in only(labelled(9, 3, 4, 1), "small-class").message


def test_zero_weights_of_memberships_are_found_too():
    weight = torch.tensor([1.0, 0.0])
    hypergraph = Hypergraph(torch.tensor([0, 1]), torch.tensor([0, 0]), 2, 1, incidence_weight=weight)
    assert "membership" in only(NodeDataset(name="w", hypergraph=hypergraph), "zero-weights").message


def test_costly_homophily_is_skipped_and_reported():
    finding = only(healthy(), "homophily-left-out", max_clique_pairs=44)
    assert finding.count == 45
    skipped = examine(healthy(), max_clique_pairs=44).facts
    assert skipped["clique_homophily"] is None and skipped["clique_homophily_weighted"] is not None
    assert not found(healthy(), "homophily-left-out", max_clique_pairs=45)
    assert not found(healthy(), "homophily-left-out", max_clique_pairs=None)
    assert not found(healthy(y=None, task=None), "homophily-left-out", max_clique_pairs=1)


def test_facts_have_frozen_names_and_are_json():
    known = facts(healthy([*RING, [3], [], [0, 1, 2]], class_names=("a", "b", "c")))
    assert set(known) == FACT_NAMES
    assert json.loads(json.dumps(known, allow_nan=False)) == known
    assert known["num_hyperedges"] == 8 and known["num_hyperedges_without_singletons"] == 6
    assert (known["num_features"], known["num_classes"], known["class_counts"]) == (3, 3, [5, 5, 0])
    assert known["mean_degree"] == pytest.approx(1.9)
    assert known["mean_hyperedge_size"] == pytest.approx(19 / 8)


def test_facts_of_several_labels_and_of_real_ones():
    several = facts(healthy(y=torch.tensor([[1.0, 0.0]] * 9 + [[np.nan, np.nan]]), task="multilabel"))
    assert (several["class_counts"], several["num_classes"], several["labelled_nodes"]) == ([9, 0], 2, 9)
    real = facts(healthy(y=torch.tensor([[np.nan, 1.0]] * 9 + [[np.nan, np.nan]]), task="regression"))
    assert (real["class_counts"], real["num_classes"], real["labelled_nodes"]) == (None, None, 9)
    assert real["clique_homophily"] is several["clique_homophily"] is None


LABELLINGS = {
    "none": lambda n: (None, None),
    "classes": lambda n: (torch.arange(n) % 3 - 1, "classification"),
    "unlabelled": lambda n: (torch.full((n,), -1), "classification"),
    "several": lambda n: (torch.tensor([[1.0, np.nan]]).repeat(n, 1), "multilabel"),
    "real": lambda n: (torch.linspace(0, 1, n), "regression"),
    "unknown": lambda n: (torch.full((n, 2), np.nan), "regression"),
}
FEATURE_KINDS = {
    "none": lambda n: None,
    "dense": lambda n: torch.ones(n, 2),
    "empty": lambda n: torch.ones(n, 0),
    "sparse": lambda n: sparse_features(sp.csr_array((n, 2), dtype=np.float32)),
}


@pytest.mark.parametrize("labelling", LABELLINGS)
@pytest.mark.parametrize("features", FEATURE_KINDS)
@settings(max_examples=15)
@given(drawn=hyperedge_lists(max_nodes=5, max_edges=4))
def test_every_dataset_can_be_examined(labelling, features, drawn):
    num_nodes, hyperedges = drawn
    y, task = LABELLINGS[labelling](num_nodes)
    dataset = NodeDataset(
        name="odd",
        hypergraph=Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes),
        x=FEATURE_KINDS[features](num_nodes),
        y=y,
        task=task,
    )
    json.dumps(examine(dataset).to_json(), allow_nan=False)


def test_shares_never_look_like_zero():
    assert [percentage(part, 10_000) for part in (0, 1, 10, 10_000)] == ["0.0%", "less than 0.1%", "0.1%", "100.0%"]
