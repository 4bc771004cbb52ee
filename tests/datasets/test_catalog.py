"""The catalogue: recorded hashes are checked, and folders are searched in order."""

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


def test_nine_datasets_are_published_and_fifteen_generated():
    assert (len(PUBLISHED), len(EMBEDDED)) == (9, 15)
    drawn = [f"{kind}-{alpha}" for kind in ("csbm", "csbm-fixed") for alpha in range(1, 8)]
    assert [*drawn, "digits"] == EMBEDDED
    assert set(published_datasets()) == set(PUBLISHED)
    assert all((ENTRIES[name].paper is not None) == (name in PUBLISHED) for name in ENTRIES)


@pytest.mark.parametrize("name", EMBEDDED)
def test_generated_datasets_have_the_recorded_hashes(name):
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
def test_published_datasets_have_the_recorded_hashes(real_data, name):
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
    """Replace values of csbm-1 in the catalogue."""

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
        (dict(num_nodes=4999), r"'csbm-1' must have \(4999, 1000, 15000\) nodes.*Got \(5000, 1000, 15000\)"),
        (dict(num_incidences=1), "edhnn data fetch csbm-1"),
    ],
)
def test_a_difference_from_the_record_raises_an_error(tampered, facts, message):
    tampered(**facts)
    with pytest.raises(DataError, match=message):
        load_dataset("csbm-1")


def test_only_the_default_features_are_compared(tampered):
    tampered(features_sha256="0" * 64)
    assert load_dataset("csbm-1", noise=0.5).provenance.details["feature_noise"] == 0.5
    assert load_dataset("csbm-1", feature_seed=4).provenance.details["feature_seed"] == 4


def test_changed_splits_raise_an_error(tampered):
    dataset = load_dataset("csbm-1")
    tampered(splits_sha256="0" * 64)
    with pytest.raises(DataError, match="The splits of 'csbm-1' must have the recorded sha256"):
        default_splits(dataset, 1)


def test_any_number_of_default_splits_starts_with_the_recorded_ones():
    dataset = load_dataset("csbm-1")
    for count in (0, 1, 10, 12):
        splits = default_splits(dataset, count)
        assert splits_sha256(splits) == splits_sha256(random_splits(5000, count))


def test_a_dataset_that_only_shares_the_name_is_not_compared():
    other = NodeDataset(name="csbm-1", hypergraph=Hypergraph.from_hyperedges([[0, 1]]))
    assert len(default_splits(other, 2)) == 2


def test_an_unknown_name_suggests_the_closest():
    with pytest.raises(UsageError, match="dataset must be one of cora, .*Got 'citeser'.*Did you mean 'citeseer'"):
        load_dataset("citeser")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Make the three folders that are searched: the given one, EDHNN_DATA and the cache."""
    made = {name: tmp_path / name for name in ("given", "environment", "cache")}
    for folder in made.values():
        folder.mkdir()
    monkeypatch.setenv("EDHNN_DATA", str(made["environment"]))
    monkeypatch.setattr(catalog, "cache_folder", lambda: made["cache"])
    return made


def put(folder, name="cora"):
    write_folder(NodeDataset(name=name, hypergraph=Hypergraph.from_hyperedges([[0, 1]])), folder / name)


def test_folders_are_searched_in_order(folders, monkeypatch):
    assert catalog.find_published("cora", folders["given"]) is None
    for name in ("cache", "environment", "given"):  # each is searched before the earlier ones
        put(folders[name])
        assert catalog.find_published("cora", folders["given"]) == folders[name] / "cora"
    assert catalog.find_published("cora") == folders["environment"] / "cora"
    monkeypatch.delenv("EDHNN_DATA")
    assert catalog.find_published("cora") == folders["cache"] / "cora"
    monkeypatch.setenv("EDHNN_DATA", "")
    assert catalog.find_published("cora") == folders["cache"] / "cora"


def test_a_folder_without_hyperedges_is_skipped(folders):
    (folders["given"] / "cora").mkdir()
    put(folders["cache"])
    assert catalog.find_published("cora", folders["given"]) == folders["cache"] / "cora"


def test_the_cache_folder_belongs_to_edhnn():
    assert catalog.cache_folder().parts[-2:] == ("edhnn", "datasets")


def test_the_error_for_a_missing_dataset_explains_how_to_get_it(folders):
    message = r"not on this machine. Fetch it with `edhnn data fetch cora`, or .*`data_dir=`.*EDHNN_DATA"
    with pytest.raises(UsageError, match=message):
        load_dataset("cora")


def test_other_content_under_a_published_name_raises_an_error(folders):
    put(folders["given"])
    message = r"given/cora: 'cora' must have \(2708, 1579, 4786\) nodes.*Got \(2, 1, 2\).*Delete this folder"
    with pytest.raises(DataError, match=message):
        load_dataset("cora", data_dir=folders["given"])


def test_limits_are_passed_to_the_reader(real_data):
    with pytest.raises(LimitError, match="max[-_]bytes"):
        load_dataset("cora", data_dir=real_data, limits=Limits(max_bytes=1000))


def test_features_from_labels_need_labels_of_every_node():
    bare = NodeDataset(name="x", hypergraph=Hypergraph.from_hyperedges([[0, 1]]))
    with pytest.raises(UsageError, match="from class labels only. 'x' has no class labels"):
        catalog.with_label_features(bare)
    real = replace(bare, y=torch.ones(2), task="regression")
    with pytest.raises(UsageError, match="from class labels only"):
        catalog.with_label_features(real)
    half = replace(bare, y=torch.tensor([0, -1]), task="classification")
    with pytest.raises(UsageError, match="only if every node has one"):
        catalog.with_label_features(half)
    drawn = catalog.with_label_features(replace(half, y=torch.tensor([0, 1])), noise=0.5, feature_seed=3)
    details = drawn.provenance.details
    assert (details["feature_noise"], details["feature_seed"]) == (0.5, 3)
    assert details["features_sha256"] == tensor_sha256(drawn.x)
