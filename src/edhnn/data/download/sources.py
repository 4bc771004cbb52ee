"""Where the catalogue's datasets were published and what they must contain: `sources.toml`, parsed.

Sources of a dataset are tried in their order. None is trusted: whatever arrives is converted and must have the pinned
content (`edhnn.data.digests`).
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from edhnn.errors import UsageError, unknown_name


def _need_plain_names(files: tuple[str, ...]) -> None:
    """Files are named by their last part only, so that none can be written outside the folder meant for it."""
    for file in files:
        if not file or file in (".", "..") or PurePosixPath(file).name != file or "\\" in file:
            raise UsageError(f"A source must list plain file names. Got '{file}'.")


class HubSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="via", tag="hub"):
    """Files of one folder of a dataset repository on the Hugging Face hub."""

    repository: str
    folder: str
    files: tuple[str, ...]
    revision: str = "main"

    def __post_init__(self) -> None:
        _need_plain_names(self.files)

    def __str__(self) -> str:
        return f"hub dataset {self.repository}@{self.revision}, folder {self.folder}"


class WebSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="via", tag="web"):
    """Files at one address, which ends in a slash; ``sha256`` gives the checksum of those for which it is known."""

    address: str
    files: tuple[str, ...]
    sha256: dict[str, str] = {}

    def __post_init__(self) -> None:
        _need_plain_names(self.files)

    def __str__(self) -> str:
        return self.address


class ArchiveSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="via", tag="archive"):
    """Files of one folder of a zip or tar archive; ``sha256`` is that of the archive, where it is known."""

    address: str
    folder: str
    files: tuple[str, ...]
    sha256: str | None = None

    def __post_init__(self) -> None:
        _need_plain_names(self.files)

    def __str__(self) -> str:
        return f"{self.address}, folder {self.folder}"


Source = HubSource | WebSource | ArchiveSource


class PublishedDataset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dataset as it was published.

    Attributes:
        format: ``legacy-pickle`` (three pickles) or ``cornell`` (`hyperedges-*.txt` and `node-labels-*.txt`).
        licence: Under which terms, as far as its publisher says.
        content: The checksums that `content_digests` must give after conversion.
        sources: Where to get it, in the order to try.
        name: The catalogue's name.
        class_names: Names of the classes, for formats that do not carry them.
    """

    format: Literal["legacy-pickle", "cornell"]
    licence: str
    content: dict[str, str]
    sources: tuple[Source, ...]
    name: str = ""
    class_names: tuple[str, ...] | None = None


@cache
def published_datasets() -> dict[str, PublishedDataset]:
    """The datasets that can be fetched, by name."""
    text = resources.files("edhnn.data.download").joinpath("sources.toml").read_text("utf-8")
    found = msgspec.convert(tomllib.loads(text), dict[str, PublishedDataset])
    return {name: msgspec.structs.replace(dataset, name=name) for name, dataset in found.items()}


def published_dataset(name: str) -> PublishedDataset:
    """The published dataset of this name; a usage error that suggests the nearest if there is none."""
    found = published_datasets()
    if name not in found:
        raise unknown_name("dataset", name, found)
    return found[name]
