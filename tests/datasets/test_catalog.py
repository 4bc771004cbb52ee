"""The catalogue: recorded hashes hold and are heeded, and folders are searched in their order."""

from dataclasses import replace

import msgspec
import pytest
import torch

from edhnn import DataError, Hypergraph, LimitError, Limits, NodeDataset, UsageError, default_splits, load_dataset
from edhnn import catalog as catalog_of
from edhnn.data.fingerprints import content_digests, splits_sha256, tensor_sha256
from edhnn.data.splits import random_splits
from edhnn.datasets import registry as catalog
from edhnn.datasets.download import published_datasets
from edhnn.io.folder import write_folder

ENTRIES = catalog_of()
EMBEDDED = [name for name, entry in ENTRIES.items() if entry.origin == "embedded"]
PUBLISHED = [name for name, entry in ENTRIES.items() if entry.origin == "published"]


def test_nine_are_published_and_eight_are_made_here():
    assert (len(PUBLISHED), len(EMBEDDED)) == (9, 8)
    assert [*(f"csbm-{alpha}" for alpha in range(1, 8)), "digits"] == EMBEDDED
    assert set(published_datasets()) == set(PUBLISHED)
    assert all((ENTRIES[name].paper is not None) == (name in PUBLISHED) for name in ENTRIES)


@pytest.mark.parametrize("name", EMBEDDED)
def test_what_is_made_here_has_the_recorded_hashes(name):
    entry, dataset = ENTRIES[name], load_dataset(name)
    hypergraph = dataset.hypergraph
    counts = (hypergraph.num_nodes, hypergraph.num_edges, hypergraph.num_incidences)
    assert counts == (entry.num_nodes, entry.num_hyperedges, entry.num_incidences)
    assert dataset.name == name
    assert content_digests(dataset)["hyperedges"] == entry.hyperedges_sha256
    if entry.features == "gaussian":
        assert tensor_sha256(dataset.x) == entry.features_sha256
    assert splits_sha256(default_splits(dataset)) == entry.splits_sha256


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_was_published_has_the_recorded_hashes(real_data, name):
    entry, dataset = ENTRIES[name], load_dataset(name, data_dir=real_data)
    assert dataset.name == name
    digests, recorded = content_digests(dataset), published_datasets()[name].content
    assert digests["hyperedges"] == recorded["hyperedges"]
    assert digests["labels"] == recorded["labels"]
    if entry.features == "stored":
        assert digests["features"] == recorded["features"]
        assert dataset.x.layout == torch.sparse_csr
    else:
        assert "features" not in recorded
        assert tensor_sha256(dataset.x) == entry.features_sha256
    assert splits_sha256(default_splits(dataset)) == entry.splits_sha256
    paper = entry.paper
    assert paper is not None
    assert (dataset.hypergraph.num_nodes, dataset.num_features, dataset.num_classes) == (
        paper.nodes,
        paper.features if entry.features == "stored" else 100,
        paper.classes,
    )


@pytest.fixture
def tampered(monkeypatch):
    """Replaces facts of csbm-1 in the catalogue."""

    def tamper(**facts):
        entries = {**ENTRIES, "csbm-1": msgspec.structs.replace(ENTRIES["csbm-1"], **facts)}
        monkeypatch.setattr(catalog, "catalog", lambda: entries)

    return tamper


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (dict(hyperedges_sha256="0" * 64), "The hyperedges of 'csbm-1' must have the recorded sha256 0000"),
        (dict(features_sha256="0" * 64), "The features of 'csbm-1' must have the recorded sha256 0000"),
        (dict(features_sha256=None), "The features of 'csbm-1' must have the recorded sha256 None"),
        (dict(num_nodes=4999), "'csbm-1' must have 4999, 1000 and 15000 nodes.*Got 5000, 1000, 15000"),
        (dict(num_incidences=1), "fetch csbm-1 --force"),
    ],
)
def test_a_record_that_does_not_hold_stops_the_load(tampered, facts, message):
    tampered(**facts)
    with pytest.raises(DataError, match=message):
        load_dataset("csbm-1")


def test_other_features_than_the_recorded_draw_are_not_compared(tampered):
    tampered(features_sha256="0" * 64)
    assert load_dataset("csbm-1", noise=0.5).provenance.details["feature_noise"] == 0.5
    assert load_dataset("csbm-1", feature_seed=4).provenance.details["feature_seed"] == 4


def test_splits_that_changed_are_refused(tampered):
    dataset = load_dataset("csbm-1")
    tampered(splits_sha256="0" * 64)
    with pytest.raises(DataError, match="The splits of 'csbm-1' must have the recorded sha256"):
        default_splits(dataset, 1)


def test_any_number_of_default_splits_begins_with_the_recorded_ones():
    dataset = load_dataset("csbm-1")
    for count in (0, 1, 10, 12):
        splits = default_splits(dataset, count)
        assert splits_sha256(splits) == splits_sha256(random_splits(5000, count))


def test_a_dataset_that_only_shares_the_name_is_not_compared():
    mine = NodeDataset(name="csbm-1", hypergraph=Hypergraph.from_hyperedges([[0, 1]]))
    assert len(default_splits(mine, 2)) == 2


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UsageError, match="dataset must be one of cora, .*Got 'citeser'.*Did you mean 'citeseer'"):
        load_dataset("citeser")


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Three empty places: the folder given, EDHNN_DATA and the cache."""
    folders = {name: tmp_path / name for name in ("given", "environment", "cache")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.setenv("EDHNN_DATA", str(folders["environment"]))
    monkeypatch.setattr(catalog, "cache_folder", lambda: folders["cache"])
    return folders


def put(folder, name="cora"):
    write_folder(NodeDataset(name=name, hypergraph=Hypergraph.from_hyperedges([[0, 1]])), folder / name)


def test_folders_are_searched_in_their_order(places, monkeypatch):
    assert catalog.find_published("cora", places["given"]) is None
    for name in ("cache", "environment", "given"):  # each newly filled place comes before the earlier ones
        put(places[name])
        assert catalog.find_published("cora", places["given"]) == places[name] / "cora"
    assert catalog.find_published("cora") == places["environment"] / "cora"
    monkeypatch.delenv("EDHNN_DATA")
    assert catalog.find_published("cora") == places["cache"] / "cora"
    monkeypatch.setenv("EDHNN_DATA", "")
    assert catalog.find_published("cora") == places["cache"] / "cora"


def test_a_folder_without_hyperedges_is_passed_over(places):
    (places["given"] / "cora").mkdir()
    put(places["cache"])
    assert catalog.find_published("cora", places["given"]) == places["cache"] / "cora"


def test_the_cache_is_the_users(monkeypatch):
    assert catalog.cache_folder().parts[-2:] == ("edhnn", "datasets")


def test_a_dataset_that_is_not_here_says_how_to_get_it(places):
    with pytest.raises(
        UsageError, match=r"not on this machine. Fetch it with `edhnn data fetch cora`, or .*EDHNN_DATA"
    ):
        load_dataset("cora")


def test_something_else_under_a_published_name_is_refused(places):
    put(places["given"])
    with pytest.raises(DataError, match=r"given/cora: 'cora' must have 2708, 1579 and 4786 .*Got 2, 1, 2.*--force"):
        load_dataset("cora", data_dir=places["given"])


def test_limits_are_passed_on(real_data):
    with pytest.raises(LimitError, match="--max-bytes"):
        load_dataset("cora", data_dir=real_data, limits=Limits(max_bytes=1000))


def test_features_from_labels_need_labels_of_every_node():
    bare = NodeDataset(name="x", hypergraph=Hypergraph.from_hyperedges([[0, 1]]))
    with pytest.raises(UsageError, match="from class labels only. 'x' has none"):
        catalog.with_label_features(bare)
    real = replace(bare, y=torch.ones(2), task="regression")
    with pytest.raises(UsageError, match="from class labels only"):
        catalog.with_label_features(real)
    half = replace(bare, y=torch.tensor([0, -1]), task="classification")
    with pytest.raises(UsageError, match="only where every node has one"):
        catalog.with_label_features(half)
    drawn = catalog.with_label_features(replace(half, y=torch.tensor([0, 1])), noise=0.5, feature_seed=3)
    details = drawn.provenance.details
    assert (details["feature_noise"], details["feature_seed"]) == (0.5, 3)
    assert details["features_sha256"] == tensor_sha256(drawn.x)
