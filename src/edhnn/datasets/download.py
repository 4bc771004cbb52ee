"""Download the published datasets of the catalogue, convert them and verify their content.

`sources.toml` lists the sources of each dataset, which are tried in order, and the checksums of its content. No source
is trusted: the files are converted to a dataset folder, which must have these checksums (`edhnn.data.fingerprints`).

pooch downloads the files, with retries, checksums and temporary files. This module adds size limits, which hold while
bytes arrive and while archives are unpacked, https for every address of a redirect, and the check of the content.
Decisions: docs/adr/0003, docs/adr/0016.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import tarfile
import tempfile
import time
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib import resources
from itertools import islice
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import IO, Any, Literal, final
from urllib.parse import urljoin, urlsplit

import msgspec

from edhnn.data.dataset import NodeDataset, Provenance
from edhnn.data.fingerprints import content_digests
from edhnn.data.limits import MAX_BYTES, Limits, size_in_words
from edhnn.errors import DataError, DownloadError, LimitError, UsageError, unknown_name
from edhnn.io.cornell import read_cornell
from edhnn.io.files import DelayedBar, check_folder, open_limited, refuse_foreign, replace_folder
from edhnn.io.folder import HYPEREDGES, read_folder, write_folder
from edhnn.io.legacy_pickle import read_legacy_pickle

HUB = "https://huggingface.co"


class _Files(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="via"):
    """Files of one source. Plain names only, so that no file can be written outside the target folder."""

    files: tuple[str, ...]

    def __post_init__(self) -> None:
        for file in self.files:
            if not file or file in (".", "..") or PurePosixPath(file).name != file or "\\" in file:
                raise UsageError(f"The files of a source must be plain file names. Got '{file}'.")


class HubSource(_Files, frozen=True, kw_only=True, tag="hub"):
    """Files of one folder of a public dataset repository on the Hugging Face hub."""

    repository: str
    folder: str
    revision: str = "main"

    def address(self, endpoint: str | None) -> str:
        """Return the folder's address; ``endpoint`` or the environment variable ``HF_ENDPOINT`` sets a mirror."""
        hub = endpoint or os.environ.get("HF_ENDPOINT") or HUB
        return f"{hub.rstrip('/')}/datasets/{self.repository}/resolve/{self.revision}/{self.folder}/"

    def __str__(self) -> str:
        return f"hub dataset {self.repository}@{self.revision}, folder {self.folder}"


class WebSource(_Files, frozen=True, kw_only=True, tag="web"):
    """Files at one address, which ends in a slash; ``sha256`` holds the known checksums by file name."""

    address: str
    sha256: dict[str, str] = {}

    def __str__(self) -> str:
        return self.address


class ArchiveSource(_Files, frozen=True, kw_only=True, tag="archive"):
    """Files of one folder of a zip or tar archive; ``sha256`` is the checksum of the archive, if known."""

    address: str
    folder: str
    sha256: str | None = None

    def __str__(self) -> str:
        return f"{self.address}, folder {self.folder}"


Source = HubSource | WebSource | ArchiveSource


class PublishedDataset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dataset as it was published.

    Attributes:
        format: ``legacy-pickle`` (three pickles) or ``cornell`` (`hyperedges-*.txt` and `node-labels-*.txt`).
        licence: The licence, as far as its publisher states it.
        content: The checksums that `content_digests` must return after conversion.
        sources: The sources, in the order to try them.
        name: Its name in the catalogue.
        class_names: Names of the classes, for formats without class names.
    """

    format: Literal["legacy-pickle", "cornell"]
    licence: str
    content: dict[str, str]
    sources: tuple[Source, ...]
    name: str = ""
    class_names: tuple[str, ...] | None = None


@cache
def published_datasets() -> dict[str, PublishedDataset]:
    """Return the datasets that can be fetched, by name."""
    text = resources.files("edhnn.datasets").joinpath("sources.toml").read_text("utf-8")
    datasets = msgspec.convert(tomllib.loads(text), dict[str, PublishedDataset])
    return {name: msgspec.structs.replace(dataset, name=name) for name, dataset in datasets.items()}


def published_dataset(name: str) -> PublishedDataset:
    """Return the published dataset of this name; raise `UsageError` with the known names if there is none."""
    datasets = published_datasets()
    if name not in datasets:
        raise unknown_name("dataset", name, datasets)
    return datasets[name]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeout and retries of a download.

    Attributes:
        timeout: Seconds without a response or a byte after which an attempt fails.
        attempts: The most attempts.
        deadline: Seconds after which the download of a dataset fails, even if bytes still arrive.
    """

    timeout: float = 30.0
    attempts: int = 4
    deadline: float = 1800.0


DOWNLOAD_LIMITS = Limits(max_bytes=2**30)
"""Much larger than every published file of the catalogue."""


def fetch(
    published: PublishedDataset,
    destination: Path,
    *,
    force: bool = False,
    limits: Limits = DOWNLOAD_LIMITS,
    patience: Patience | None = None,
    endpoint: str | None = None,
) -> Path:
    """Download a published dataset, convert it and verify its content.

    Sources are tried in order until one has the pinned content: hyperedges, class labels and features. The ids of the
    published files are dropped. A failure leaves no file. A destination that already has the pinned content is returned
    without access to the network.

    Args:
        published: The dataset, from `edhnn.datasets.download.published_dataset`.
        destination: The dataset folder to make; missing parent folders are made.
        force: Download even if the destination has the pinned content, and replace the destination.
        limits: Size limits, for each file.
        patience: Timeout and retries.
        endpoint: The hub's address; by default the environment variable ``HF_ENDPOINT``, else huggingface.co.

    Returns:
        The destination.

    Raises:
        DownloadError: if no source has the pinned content, or the destination has other content.
        UsageError: if the destination is a file, or a folder that is not a dataset folder.
        LimitError: if a file is larger than the limits allow.
    """
    check_folder(destination)
    try:
        if not force and _occupied(destination):
            _check_content(published, destination, limits)
            return destination
        refuse_foreign(destination, HYPEREDGES, "dataset")
        destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{destination.name}.", dir=destination.parent) as name:
            made = _from_first_good_source(published, Path(name), limits, patience or Patience(), endpoint)
            if not force and _occupied(destination):  # another process was faster
                _check_content(published, destination, limits)
            else:
                refuse_foreign(destination, HYPEREDGES, "dataset")
                replace_folder(destination, made, aside=Path(name) / "replaced")
    except LimitError as error:
        remedy = "The published files are much smaller, so that this is another file. Fetch it again with `force=True`."
        raise LimitError(error.problem, path=error.path, where=error.where, remedy=remedy) from error
    except OSError as error:
        raise DownloadError(f"'{published.name}' could not be written to '{destination}': {error}.") from error
    return destination


def _occupied(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _from_first_good_source(
    published: PublishedDataset, folder: Path, limits: Limits, patience: Patience, endpoint: str | None
) -> Path:
    """Make the converted and verified dataset folder inside ``folder``."""
    failures: list[DownloadError] = []
    ends = time.monotonic() + patience.deadline
    for number, source in enumerate(published.sources):
        raw, made = folder / f"raw-{number}", folder / f"made-{number}"
        raw.mkdir()
        try:
            retrieve(source, raw, limits, patience, ends, endpoint)
            write_folder(_convert(published, source, raw, limits), made)
            _check_content(published, made, limits)
        except DownloadError as error:
            failures.append(error)
        else:
            return made
    if len(failures) == 1:
        raise failures[0]
    causes = "".join(f" {source}: {error}" for source, error in zip(published.sources, failures, strict=True))
    raise DownloadError(f"All sources of the dataset '{published.name}' failed.{causes}")


def _convert(published: PublishedDataset, source: Source, raw: Path, limits: Limits) -> NodeDataset:
    try:
        if published.format == "cornell":
            read = read_cornell(next(raw.glob("hyperedges-*.txt")), None, limits)
        else:
            read = read_legacy_pickle(raw, limits)
    except LimitError:
        raise
    except (DataError, UsageError, StopIteration) as error:
        raise DownloadError(f"The files from {source} cannot be read. {error}") from error
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


def _check_content(published: PublishedDataset, folder: Path, limits: Limits) -> None:
    """Check that a dataset folder has the pinned content."""
    try:
        digests = content_digests(read_folder(folder, limits))
    except LimitError:
        raise
    except (DataError, UsageError) as error:
        raise DownloadError(f"'{folder}' must hold the dataset '{published.name}'. {error}") from error
    for part in sorted({*digests, *published.content}):
        pinned, digest = published.content.get(part, "absent"), digests.get(part, "absent")
        if pinned != digest:
            raise DownloadError(
                f"The {part} of the dataset '{published.name}' must have the sha256 {pinned}. "
                f"Got {digest} in '{folder}'."
            )


_TRANSIENT_STATUS = (408, 429, 500, 502, 503, 504)
_MAX_REDIRECTS = 5
_MAX_ENTRIES = 10_000


def retrieve(
    source: Source, folder: Path, limits: Limits, patience: Patience, ends: float, endpoint: str | None = None
) -> None:
    """Download the files of a source into a folder, until the monotonic clock shows ``ends``.

    Raises:
        DownloadError: if a download fails, or a file does not have the checksum of the source.
        LimitError: if a file is too large.
    """
    if isinstance(source, ArchiveSource):
        archive = folder / ".archive"
        _download(source.address, archive, source.sha256, limits, patience, ends)
        unpack(archive, {f"{source.folder}/{file}": folder / file for file in source.files}, limits, source.address)
        archive.unlink()
        return
    address = source.address(endpoint) if isinstance(source, HubSource) else source.address
    checksums = {} if isinstance(source, HubSource) else source.sha256
    for file in source.files:
        _download(address + file, folder / file, checksums.get(file), limits, patience, ends)


class _TooLargeError(Exception):
    """A body exceeds the limits. This is not a `ValueError`, because pooch retries after those."""


class _RedirectError(Exception):
    """The server redirects to another address."""


def _download(address: str, target: Path, sha256: str | None, limits: Limits, patience: Patience, ends: float) -> None:
    import pooch  # slow to import, and only needed here
    import requests

    pooch.get_logger().setLevel("WARNING")
    files = pooch.create(
        path=target.parent,
        base_url="",
        registry={target.name: sha256},
        urls={target.name: address},
        retry_if_failed=patience.attempts - 1,
    )
    downloader = _Downloader(limits, patience.timeout)
    # A timeout of the socket begins again with every byte. So another thread reads, and this one watches the clock.
    work: Future[object] = Future()
    reader = Thread(target=_fulfil, args=(work, lambda: files.fetch(target.name, downloader=downloader)), daemon=True)
    reader.start()
    try:
        work.result(max(ends - time.monotonic(), 0))
    except TimeoutError as error:
        raise DownloadError(
            f"'{address}' must arrive within {patience.deadline:,.0f} seconds. Try again later, or allow more with "
            "`deadline=`."
        ) from error
    except _TooLargeError as error:
        raise LimitError(
            f"'{address}' must be at most {size_in_words(limits.most_bytes(MAX_BYTES))}. {error}"
        ) from error
    except requests.RequestException as error:
        cause = getattr(error.args[0] if error.args else None, "reason", None) or error
        raise DownloadError(
            f"'{address}' could not be read: {cause}. Made {patience.attempts} attempts. Try again later."
        ) from error
    except ValueError as error:
        raise DownloadError(f"'{address}' must have the sha256 {sha256}. {error}") from error
    finally:
        if not work.done():
            downloader.stop()
            reader.join(1)


def _fulfil(future: Future[object], work: Callable[[], object]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # the thread that waits raises it
        future.set_exception(error)


class _Downloader:
    """pooch's HTTP download with bounded sizes, checked redirects and no credentials."""

    def __init__(self, limits: Limits, timeout: float) -> None:
        self.limits, self.timeout = limits, timeout
        self.response: Any = None
        self.bar: DelayedBar | None = None
        self.stopped = False

    def __call__(self, url: str, output_file: str, _pooch: object) -> None:
        from pooch import HTTPDownloader
        from requests import RequestException
        from urllib3.exceptions import HTTPError

        download = HTTPDownloader(
            chunk_size=2**16,
            timeout=self.timeout,
            headers={"Accept-Encoding": "identity", "User-Agent": "edhnn"},
            auth=lambda request: request,  # without it, requests sends the credentials of ~/.netrc
            allow_redirects=False,  # `begin` raises an error instead, so that every address is checked
            hooks={"response": self.begin},
        )
        for _ in range(_MAX_REDIRECTS):
            try:
                self._check_running()
                _check_address(url)
                with Path(output_file).open("wb") as self.out:
                    download(url, self, None)
                return
            except _RedirectError as redirect:
                url = str(redirect)
            except RequestException:
                raise
            except (ValueError, HTTPError) as error:  # an invalid address or header
                raise DownloadError(f"'{url}' could not be read: {error}.") from error
            finally:
                for opened in (self.response, self.bar):
                    if opened is not None:
                        opened.close()
        raise DownloadError(f"There must be at most {_MAX_REDIRECTS} redirects. The last leads to '{url}'.")

    def stop(self) -> None:
        """Make a download that runs in another thread fail soon."""
        self.stopped = True
        with suppress(
            AttributeError, OSError, RuntimeError, ValueError
        ):  # nothing was received, or all, or old urllib3
            self.response.raw.shutdown()

    def begin(self, response: Any, **_: object) -> None:
        """Check a response before its body is read."""
        self.response, status = response, response.status_code
        if response.is_redirect:
            raise _RedirectError(urljoin(response.url, response.headers["Location"]))
        if status != HTTPStatus.OK and status not in _TRANSIENT_STATUS:
            raise DownloadError(f"'{response.url}' is not available. The server answered {status} {response.reason}.")
        length = response.headers.get("Content-Length") or ""
        self._check(size := int(length) if length.isdecimal() else 0)
        self.bar = DelayedBar(f"Downloading {response.url.rpartition('/')[2]}", size)

    def write(self, chunk: bytes) -> None:
        """Write a piece of the body; pooch uses the downloader as the output file."""
        self._check_running()
        received = self.out.tell() + len(chunk)
        self._check(received)
        self.out.write(chunk)
        if self.bar is not None:
            self.bar.show(received)

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is closed."""

    def _check_running(self) -> None:
        if self.stopped:
            raise DownloadError("The download was stopped.")

    def _check(self, size: int) -> None:
        if size > self.limits.most_bytes(MAX_BYTES):
            raise _TooLargeError(f"Got at least {size_in_words(size)}.")


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    host = parts.hostname or ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not (parts.scheme == "https" and host) and not (parts.scheme == "http" and local):
        raise DownloadError(f"A download must use https or come from this machine. Got '{address}'.")


def unpack(archive: Path, targets: Mapping[str, Path], limits: Limits, address: str) -> None:
    """Write some entries of a zip or tar archive (plain or gzip) to files.

    Only the requested entries are read, and each is written to its target, so that no path or link in an archive can
    write elsewhere.

    Args:
        archive: The archive.
        targets: The file to write for each entry, by its full name in the archive.
        limits: Size limits, for each file and for an unpacked tar archive.
        address: The address of the archive, for messages.

    Raises:
        DownloadError: if the archive is invalid, or an entry is missing or not a regular file.
        LimitError: if an entry or a tar archive is too large when unpacked.
    """
    missing = dict(targets)
    most = limits.most_bytes(archive.stat().st_size)
    entries = _zip_entries(archive, targets) if zipfile.is_zipfile(archive) else _tar_entries(archive, targets, limits)
    try:
        for name, size, stream in entries:
            if size > most:
                got = size_in_words(size)
                raise LimitError(f"'{name}' must be at most {size_in_words(most)} when unpacked. Got {got}.")
            with targets[name].open("wb") as out:
                shutil.copyfileobj(stream, out)
            missing.pop(name, None)
    except LimitError:
        raise
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise DownloadError(f"'{address}' must be a valid zip or tar archive. Cause: {error}.") from error
    if missing:
        raise DownloadError(f"The archive '{address}' must contain the regular files {', '.join(missing)}.")


def _zip_entries(archive: Path, names: Container[str]) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield name, size and content. A zip entry yields no more bytes than the size it states."""
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            piecewise = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others unpack at once
            if entry.filename in names and piecewise:
                with opened.open(entry) as stream:
                    yield entry.filename, entry.file_size, stream


def _tar_entries(archive: Path, names: Container[str], limits: Limits) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield name, size and content of regular files. A link could point to a file of this machine."""
    with open_limited(archive, limits) as plain, tarfile.open(fileobj=plain, mode="r|") as opened:
        for entry in islice(opened, _MAX_ENTRIES):
            if entry.name in names and entry.isreg() and (stream := opened.extractfile(entry)) is not None:
                yield entry.name, entry.size, stream
