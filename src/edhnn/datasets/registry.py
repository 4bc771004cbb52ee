"""The catalogue: datasets by name. Nine were published, eight are made here; `catalog.toml` holds their facts.

Published datasets are looked for in a folder given by the user, then in ``EDHNN_DATA``, then in the user's cache, where
`edhnn data fetch` puts them. What is drawn here (hyperedges, label features, splits) is compared with recorded hashes,
so that a change in a random stream cannot pass silently.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec
import platformdirs

from edhnn.data.dataset import NodeDataset
from edhnn.data.fingerprints import content_digests, splits_sha256
from edhnn.data.limits import Limits
from edhnn.data.splits import Split, random_splits
from edhnn.datasets.synthetic import contextual_sbm, digits, feature_record, label_features
from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.io.folder import HYPEREDGES, read_folder

RECORDED_SPLITS = 10


class PaperRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dataset's column of the paper's Tables 1 and 5, as printed."""

    nodes: int
    hyperedges: int
    features: int
    classes: int
    mean_degree: float
    mean_hyperedge_size: float
    clique_homophily: float


class CatalogEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the catalogue knows of a dataset.

    Attributes:
        description: One line for people.
        origin: ``published`` (found on disk) or ``embedded`` (made here).
        num_nodes: Number of nodes.
        num_hyperedges: Number of hyperedges.
        num_incidences: Number of memberships.
        features: ``stored`` with the data, or ``gaussian``, drawn from the labels.
        splits_sha256: Hash of the first ten default splits.
        features_sha256: Hash of the default draw of gaussian features.
        hyperedges_sha256: Hash of the hyperedges of an embedded dataset.
        paper: What the paper prints.
    """

    description: str
    origin: Literal["published", "embedded"]
    num_nodes: int
    num_hyperedges: int
    num_incidences: int
    features: Literal["stored", "gaussian"]
    splits_sha256: str
    features_sha256: str | None = None
    hyperedges_sha256: str | None = None
    paper: PaperRow | None = None


@cache
def catalog() -> dict[str, CatalogEntry]:
    """All datasets, by name."""
    text = resources.files("edhnn.datasets").joinpath("catalog.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, CatalogEntry])


def cache_folder() -> Path:
    """Where `edhnn data fetch` keeps datasets."""
    return platformdirs.user_cache_path("edhnn") / "datasets"


def find_published(name: str, data_dir: Path | None = None) -> Path | None:
    """The folder of a published dataset: in ``data_dir``, ``EDHNN_DATA`` or the user's cache; ``None`` if in none."""
    given = [data_dir, Path(os.environ["EDHNN_DATA"]) if os.environ.get("EDHNN_DATA") else None, cache_folder()]
    folders = (folder / name for folder in given if folder is not None)
    return next((folder for folder in folders if (folder / HYPEREDGES).is_file()), None)


def find_entry(name: str) -> CatalogEntry:
    """What the catalogue says of a dataset.

    Raises:
        UsageError: if there is no such name; the message lists what there is.
    """
    entries = catalog()
    if name not in entries:
        raise unknown_name("dataset", name, entries)
    return entries[name]


def is_catalogued(dataset: NodeDataset) -> bool:
    """Whether a dataset is one of the catalogue, and does not only bear its name."""
    entry, hypergraph = catalog().get(dataset.name), dataset.hypergraph
    return entry is not None and (entry.num_nodes, entry.num_hyperedges, entry.num_incidences) == (
        hypergraph.num_nodes, hypergraph.num_edges, hypergraph.num_incidences
    )  # fmt: skip


def load_dataset(
    name: str, *, data_dir: Path | None = None, noise: float = 1.0, feature_seed: int = 0, limits: Limits | None = None
) -> NodeDataset:
    """A dataset of the catalogue.

    Args:
        name: Its name; `catalog` lists them.
        data_dir: Where to look for published datasets first.
        noise: Standard deviation of features drawn from labels, where the dataset has no own.
        feature_seed: Seed of that draw; 0 is what the released code draws.
        limits: Size limits.

    Returns:
        The dataset, with features.

    Raises:
        UsageError: if there is no such name, or a published dataset is not on this machine.
        DataError: if what is there is not what the catalogue records.

    Example:
        >>> from edhnn import load_dataset
        >>> load_dataset("csbm-4")
        NodeDataset('csbm-4', nodes=5000, hyperedges=1000, features=100, classes=2)
    """
    entry = find_entry(name)
    if entry.origin == "embedded":
        dataset = _embedded(name, noise, feature_seed)
        _compare(name, "hyperedges", content_digests(dataset)["hyperedges"], entry.hyperedges_sha256)
    else:
        folder = find_published(name, data_dir)
        if folder is None:
            raise UsageError(
                f"The dataset '{name}' is not on this machine. Fetch it with `edhnn data fetch {name}`, "
                "or say where it is with --data-dir or EDHNN_DATA."
            )
        dataset = read_folder(folder, limits or Limits())
        dataset = replace(dataset, name=name)
        if entry.features == "gaussian":
            dataset = with_label_features(dataset, noise=noise, feature_seed=feature_seed)
    hypergraph = dataset.hypergraph
    found = (hypergraph.num_nodes, hypergraph.num_edges, hypergraph.num_incidences)
    if found != (entry.num_nodes, entry.num_hyperedges, entry.num_incidences):
        expected = f"{entry.num_nodes}, {entry.num_hyperedges} and {entry.num_incidences}"
        raise DataError(
            f"'{name}' must have {expected} nodes, hyperedges and memberships. Got {', '.join(map(str, found))}.",
            path=dataset.provenance.source,
            remedy=f"Fetch it again: `edhnn data fetch {name} --force`.",
        )
    if entry.features == "gaussian" and (noise, feature_seed) == (1.0, 0):
        _compare(name, "features", str(dataset.provenance.details["features_sha256"]), entry.features_sha256)
    return dataset


def with_label_features(dataset: NodeDataset, *, noise: float = 1.0, feature_seed: int = 0) -> NodeDataset:
    """The dataset with features drawn from its labels (`label_features`); their hash goes into the provenance."""
    if dataset.task != "classification" or dataset.y is None:
        raise UsageError(f"Features can be drawn from class labels only. '{dataset.name}' has none.")
    x = label_features(dataset.y, noise=noise, seed=feature_seed)
    details = {**dataset.provenance.details, **feature_record(x, noise, feature_seed)}
    return replace(dataset, x=x, feature_names=None, provenance=replace(dataset.provenance, details=details))


def default_splits(dataset: NodeDataset, count: int = RECORDED_SPLITS) -> list[Split]:
    """The default splits of a dataset; for those of the catalogue their hash is compared with the record.

    Args:
        dataset: The dataset.
        count: Number of splits.

    Returns:
        The splits: 50 % train, 25 % validation, 25 % test, seed 0.
    """
    drawn = random_splits(dataset.hypergraph.num_nodes, max(count, RECORDED_SPLITS))
    entry = catalog().get(dataset.name)
    if entry is not None and entry.num_nodes == dataset.hypergraph.num_nodes:
        _compare(dataset.name, "splits", splits_sha256(drawn[:RECORDED_SPLITS]), entry.splits_sha256)
    return drawn[:count]


def _embedded(name: str, noise: float, feature_seed: int) -> NodeDataset:
    if name == "digits":
        return digits()
    return contextual_sbm(int(name.removeprefix("csbm-")), noise=noise, feature_seed=feature_seed)


def _compare(name: str, what: str, found: str, recorded: str | None) -> None:
    if found != recorded:
        raise DataError(
            f"The {what} of '{name}' must have the recorded sha256 {recorded}. Got {found}.",
            remedy="A random stream or a library's data has changed: results would not compare. Use the versions in "
            "constraints.txt.",
        )
