"""Catalogue datasets from where they were published, converted to dataset folders and verified by content."""

from __future__ import annotations

import tempfile
from pathlib import Path

from edhnn.data.atomic import refuse_foreign, replace_folder
from edhnn.data.dataset import NodeDataset, Provenance
from edhnn.data.digests import content_digests
from edhnn.data.download.retrieve import Patience, retrieve
from edhnn.data.download.sources import PublishedDataset, Source
from edhnn.data.files import Limits
from edhnn.data.readers.cornell import read_cornell
from edhnn.data.readers.folder import HYPEREDGES, read_folder
from edhnn.data.readers.legacy_pickle import read_legacy_pickle
from edhnn.data.writers.folder import write_folder
from edhnn.errors import DataError, DownloadError, LimitError, MissingDependencyError, UsageError

DOWNLOAD_LIMITS = Limits(max_bytes=2**30)
"""No published file of the catalogue comes near this."""


def fetch(
    published: PublishedDataset,
    destination: Path,
    *,
    force: bool = False,
    limits: Limits = DOWNLOAD_LIMITS,
    patience: Patience | None = None,
    endpoint: str | None = None,
) -> Path:
    """Download a published dataset, convert it and verify what it contains.

    Sources are tried in their order until one gives the pinned content. Only what is pinned is kept: hyperedges,
    class labels and features, not the ids of the published files. Nothing is left behind by a failure.

    Args:
        published: The dataset, from `edhnn.data.download.sources.published_dataset`.
        destination: The dataset folder to make; folders above it are made as needed.
        force: Download even if the destination holds the dataset already, and replace what it holds.
        limits: Size limits, for each file.
        patience: Timeouts and retries.
        endpoint: The hub's address; by default huggingface_hub's own setting (``HF_ENDPOINT``).

    Returns:
        The destination. If it held the pinned content already, the network was not touched.

    Raises:
        DownloadError: if no source gives the pinned content, or the destination holds something else.
        UsageError: if the destination is a file, or holds something that is no dataset folder.
        LimitError: if a file is larger than the limits allow.
        MissingDependencyError: if the only source is the hub and huggingface_hub is not installed.
    """
    if destination.exists() and not destination.is_dir():
        raise UsageError(f"'{destination}' must be a folder, or not exist yet. It is a file.")
    try:
        if not force and _occupied(destination):
            _need_pinned(published, destination, limits)
            return destination
        refuse_foreign(destination, HYPEREDGES, "dataset")
        destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{destination.name}.", dir=destination.parent) as name:
            made = _from_first_good_source(published, Path(name), limits, patience or Patience(), endpoint)
            if not force and _occupied(destination):  # somebody else was faster
                _need_pinned(published, destination, limits)
            else:
                refuse_foreign(destination, HYPEREDGES, "dataset")
                replace_folder(destination, made, aside=Path(name) / "replaced")
    except LimitError as error:
        remedy = (
            "No published file comes near this, so it is another file. Fetch again, with --force if it is here already."
        )
        raise LimitError(error.problem, path=error.path, where=error.where, remedy=remedy) from error
    except OSError as error:
        raise DownloadError(f"'{published.name}' could not be written to '{destination}': {error}.") from error
    return destination


def _occupied(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _from_first_good_source(
    published: PublishedDataset, folder: Path, limits: Limits, patience: Patience, endpoint: str | None
) -> Path:
    """The converted and verified dataset folder, made inside ``folder``."""
    failures: list[DownloadError | MissingDependencyError] = []
    for place, source in enumerate(published.sources):
        raw, made = folder / f"raw-{place}", folder / f"made-{place}"
        raw.mkdir()
        try:
            retrieve(source, raw, limits, patience, endpoint)
            write_folder(_convert(published, source, raw, limits), made)
            _need_pinned(published, made, limits)
        except (DownloadError, MissingDependencyError) as error:
            failures.append(error)
        else:
            return made
    if len(failures) == 1:
        raise failures[0]
    told = "".join(f"\n{source}: {error}" for source, error in zip(published.sources, failures, strict=True))
    raise DownloadError(f"No source gave the dataset '{published.name}'.{told}")


def _convert(published: PublishedDataset, source: Source, raw: Path, limits: Limits) -> NodeDataset:
    try:
        if published.format == "cornell":
            hyperedges = next(raw.glob("hyperedges-*.txt"))
            read = read_cornell(hyperedges, None, limits)
        else:
            read = read_legacy_pickle(raw, limits)
    except LimitError:
        raise
    except (DataError, UsageError, StopIteration) as error:
        raise DownloadError(f"What arrived from {source} cannot be read. {error}") from error
    record = {"source": str(source), "licence": published.licence, "content_sha256": published.content}
    return NodeDataset(
        name=published.name,
        hypergraph=read.hypergraph,
        x=read.x,
        y=read.y,
        task=read.task,
        class_names=published.class_names or read.class_names,
        provenance=Provenance(str(source), published.format, details={"source": record}),
    )


def _need_pinned(published: PublishedDataset, folder: Path, limits: Limits) -> None:
    """Refuse a dataset folder whose content is not the pinned one."""
    try:
        found = content_digests(read_folder(folder, limits))
    except LimitError:
        raise
    except (DataError, UsageError) as error:
        raise DownloadError(f"'{folder}' must hold the dataset '{published.name}'. {error}") from error
    for part in sorted({*found, *published.content}):
        pinned, got = published.content.get(part, "absent"), found.get(part, "absent")
        if pinned != got:
            raise DownloadError(
                f"The {part} of the dataset '{published.name}' must have the sha256 {pinned}. "
                f"Those in '{folder}' have {got}."
            )
