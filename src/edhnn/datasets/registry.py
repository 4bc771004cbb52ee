"""The catalogue: datasets by name. Nine are published, the others are generated; `catalog.toml` lists their properties.

Published datasets are searched in ``data_dir``, then in ``EDHNN_DATA``, then in the user's cache, where
`edhnn data fetch` stores them. Random draws (hyperedges, label features, splits) are compared with recorded hashes, so
that a change in a random stream raises an error.
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
from edhnn.datasets.synthetic import MinorityClass, contextual_sbm, digits, feature_record, label_features
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
    """A dataset of the catalogue.

    Attributes:
        description: A description of one line.
        origin: ``published`` (read from disk) or ``embedded`` (generated).
        num_nodes: Number of nodes.
        num_hyperedges: Number of hyperedges.
        num_incidences: Number of memberships.
        features: ``stored`` with the data, or ``gaussian``, drawn from the labels.
        splits_sha256: Hash of the first ten default splits.
        features_sha256: Hash of the default draw of gaussian features.
        hyperedges_sha256: Hash of the hyperedges of an embedded dataset.
        paper: The numbers printed in the paper.
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
    """Return all datasets, by name."""
    text = resources.files("edhnn.datasets").joinpath("catalog.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, CatalogEntry])


def cache_folder() -> Path:
    """Return the folder where `edhnn data fetch` stores datasets."""
    return platformdirs.user_cache_path("edhnn") / "datasets"


def find_published(name: str, data_dir: Path | None = None) -> Path | None:
    """Find a published dataset in ``data_dir``, ``EDHNN_DATA`` or the user's cache; return ``None`` if in none."""
    for parent in (data_dir, os.environ.get("EDHNN_DATA"), cache_folder()):
        if parent and (Path(parent) / name / HYPEREDGES).is_file():
            return Path(parent) / name
    return None


def find_entry(name: str) -> CatalogEntry:
    """Return the entry of a dataset; raise `UsageError` with the known names if there is none."""
    entries = catalog()
    if name not in entries:
        raise unknown_name("dataset", name, entries)
    return entries[name]


def is_catalogued(dataset: NodeDataset) -> bool:
    """Return whether a dataset has the name and the counts of one in the catalogue."""
    entry = catalog().get(dataset.name)
    return entry is not None and _counts(dataset) == _recorded_counts(entry)


def load_dataset(
    name: str, *, data_dir: Path | None = None, noise: float = 1.0, feature_seed: int = 0, limits: Limits | None = None
) -> NodeDataset:
    """Load a dataset of the catalogue, with features.

    Args:
        name: Its name; `catalog` lists them.
        data_dir: The folder to search first for published datasets.
        noise: Standard deviation of features drawn from labels, if the dataset has no features.
        feature_seed: Seed of that draw; 0 gives the draw of the released code.
        limits: Size limits.

    Raises:
        UsageError: if the name is unknown, or a published dataset is not on this machine.
        DataError: if the counts or hashes differ from those in the catalogue.

    Example:
        >>> from edhnn import load_dataset
        >>> load_dataset("csbm-4")
        NodeDataset('csbm-4', nodes=5000, hyperedges=1000, features=100, classes=2)
    """
    entry = find_entry(name)
    if entry.origin == "embedded":
        if name == "digits":
            dataset = digits()
        else:
            kind: MinorityClass = "fixed" if "-fixed-" in name else "coin"
            dataset = contextual_sbm(
                int(name.rpartition("-")[2]), minority_class=kind, noise=noise, feature_seed=feature_seed
            )
        _compare(name, "hyperedges", content_digests(dataset)["hyperedges"], entry.hyperedges_sha256)
    else:
        folder = find_published(name, data_dir)
        if folder is None:
            raise UsageError(
                f"The dataset '{name}' is not on this machine. Fetch it with `edhnn data fetch {name}`, "
                "or name the folder that contains it with `data_dir=` or with the environment variable EDHNN_DATA."
            )
        dataset = replace(read_folder(folder, limits or Limits()), name=name)
        if entry.features == "gaussian":
            dataset = with_label_features(dataset, noise=noise, feature_seed=feature_seed)
    counts, recorded = _counts(dataset), _recorded_counts(entry)
    if counts != recorded:
        raise DataError(
            f"'{name}' must have {recorded} nodes, hyperedges and memberships. Got {counts}.",
            path=dataset.provenance.source,
            remedy=f"Delete this folder and fetch the dataset again with `edhnn data fetch {name}`.",
        )
    if entry.features == "gaussian" and (noise, feature_seed) == (1.0, 0):
        _compare(name, "features", str(dataset.provenance.details["features_sha256"]), entry.features_sha256)
    return dataset


def with_label_features(dataset: NodeDataset, *, noise: float = 1.0, feature_seed: int = 0) -> NodeDataset:
    """Add features drawn from the labels (`label_features`) to a dataset, and their hash to its provenance."""
    if dataset.task != "classification" or dataset.y is None:
        raise UsageError(f"Features can be drawn from class labels only. '{dataset.name}' has no class labels.")
    x = label_features(dataset.y, noise=noise, seed=feature_seed)
    details = {**dataset.provenance.details, **feature_record(x, noise, feature_seed)}
    return replace(dataset, x=x, feature_names=None, provenance=replace(dataset.provenance, details=details))


def default_splits(dataset: NodeDataset, count: int = RECORDED_SPLITS) -> list[Split]:
    """Draw the default splits of a dataset: 50 % train, 25 % validation, 25 % test, seed 0.

    For a dataset of the catalogue, raise `DataError` if their hash differs from the recorded one.
    """
    drawn = random_splits(dataset.hypergraph.num_nodes, max(count, RECORDED_SPLITS))
    entry = catalog().get(dataset.name)
    if entry is not None and entry.num_nodes == dataset.hypergraph.num_nodes:
        _compare(dataset.name, "splits", splits_sha256(drawn[:RECORDED_SPLITS]), entry.splits_sha256)
    return drawn[:count]


def _counts(dataset: NodeDataset) -> tuple[int, int, int]:
    hypergraph = dataset.hypergraph
    return hypergraph.num_nodes, hypergraph.num_edges, hypergraph.num_incidences


def _recorded_counts(entry: CatalogEntry) -> tuple[int, int, int]:
    return entry.num_nodes, entry.num_hyperedges, entry.num_incidences


def _compare(name: str, part: str, sha256: str, recorded: str | None) -> None:
    if sha256 != recorded:
        raise DataError(
            f"The {part} of '{name}' must have the recorded sha256 {recorded}. Got {sha256}.",
            remedy="A random stream or the data of a library has changed, so that results are not comparable. "
            "Install the versions in constraints.txt.",
        )
