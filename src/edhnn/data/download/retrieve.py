"""Published files brought into a folder: over HTTP, from inside an archive, or from the Hugging Face hub.

Only https is spoken (plain http to this very machine), redirects included. What may be a passing trouble is tried
again a few times. Sizes are bounded while bytes arrive.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

from edhnn.data.download.archives import unpack
from edhnn.data.download.sources import HubSource, Source, WebSource
from edhnn.data.files import Limits, size_in_words
from edhnn.data.progress import DelayedBar
from edhnn.errors import DownloadError, LimitError, MissingDependencyError

_T = TypeVar("_T")

_CHUNK_BYTES = 2**20
_PASSING_STATUS = (408, 429, 500, 502, 503, 504)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for a server, and how often to ask it again.

    Attributes:
        timeout: Seconds without an answer or a byte after which an attempt is given up.
        attempts: How often to try in all.
        backoff: Seconds before the second attempt; each later pause is twice as long.
    """

    timeout: float = 30.0
    attempts: int = 4
    backoff: float = 1.0


def retrieve(source: Source, folder: Path, limits: Limits, patience: Patience, endpoint: str | None = None) -> None:
    """Bring the files of a source into a folder.

    Args:
        source: Where they are.
        folder: Where they go, under their plain names.
        limits: Size limits, for each file.
        patience: Timeouts and retries.
        endpoint: The hub's address; by default huggingface_hub's own setting (``HF_ENDPOINT``).

    Raises:
        DownloadError: if a file does not arrive, or is not the one whose checksum the source gives.
        LimitError: if a file is too large.
        MissingDependencyError: if the hub is asked for and huggingface_hub is not installed.
    """
    if isinstance(source, HubSource):
        for file in source.files:
            _from_hub(source, file, folder, limits, patience, endpoint)
    elif isinstance(source, WebSource):
        for file in source.files:
            _download(source.address + file, folder / file, source.sha256.get(file), limits, patience)
    else:
        archive = folder / ".archive"
        _download(source.address, archive, source.sha256, limits, patience)
        targets = {f"{source.folder}/{file}": folder / file for file in source.files}
        unpack(archive, targets, limits, address=source.address)
        archive.unlink()


class _PassingTroubleError(DownloadError):
    """A failure that may not happen again."""


def _patiently(patience: Patience, attempt: Callable[[], _T]) -> _T:
    pause = patience.backoff
    for _ in range(patience.attempts - 1):
        try:
            return attempt()
        except _PassingTroubleError:
            time.sleep(pause)
            pause *= 2
    try:
        return attempt()
    except _PassingTroubleError as error:
        raise DownloadError(f"{error} Tried {patience.attempts} times. Try again later.") from error


def _need_safe_address(address: str) -> None:
    parts = urllib.parse.urlsplit(address)
    host = parts.hostname or ""
    try:
        here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    if not (parts.scheme == "https" and host) and not (parts.scheme == "http" and here):
        raise DownloadError(f"Downloads must come over https, or from this machine. Got '{address}'.")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects must be as safe as the address they come from."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        try:
            _need_safe_address(newurl)
        except DownloadError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _download(address: str, target: Path, sha256: str | None, limits: Limits, patience: Patience) -> None:
    _need_safe_address(address)
    found = _patiently(patience, lambda: _download_once(address, target, limits, patience.timeout))
    if sha256 is not None and found != sha256:
        raise DownloadError(f"'{address}' must have the sha256 {sha256}. What arrived has {found}.")


def _download_once(address: str, target: Path, limits: Limits, timeout: float) -> str:
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for chunk in _body(address, limits, timeout):
            out.write(chunk)
            digest.update(chunk)
    return digest.hexdigest()


def _body(address: str, limits: Limits, timeout: float) -> Iterator[bytes]:
    """What the server sends, complete or else an error."""
    opener = urllib.request.build_opener(_SafeRedirects)
    headers = {"Accept-Encoding": "identity", "User-Agent": "edhnn"}
    request = urllib.request.Request(address, headers=headers)  # noqa: S310  # the scheme has been checked
    try:
        with opener.open(request, timeout=timeout) as response:
            claimed = response.headers.get("Content-Length") or ""
            size = int(claimed) if claimed.isdecimal() else None
            _need_within_limits(size or 0, address, limits)
            received = 0
            bar = DelayedBar(f"Downloading {address.rpartition('/')[2]}", size or 0)
            try:
                while chunk := response.read(_CHUNK_BYTES):
                    received += len(chunk)
                    _need_within_limits(received, address, limits)
                    bar.show(received)
                    yield chunk
            finally:
                bar.close()
    except urllib.error.HTTPError as error:
        error.close()
        kind = _PassingTroubleError if error.code in _PASSING_STATUS else DownloadError
        raise kind(f"'{address}' must be there. The server said {error.code} {error.reason}.") from error
    except (http.client.HTTPException, OSError) as error:
        said = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise _PassingTroubleError(f"'{address}' could not be read: {said}.") from error
    if size is not None and received != size:
        raise _PassingTroubleError(f"'{address}' must have {size} bytes. Only {received} arrived.")


def _need_within_limits(size: int, what: str, limits: Limits) -> None:
    if size > limits.max_bytes:
        raise LimitError(
            f"'{what}' must be at most {size_in_words(limits.max_bytes)}. It has at least {size_in_words(size)}."
        )


def _from_hub(
    source: HubSource, file: str, folder: Path, limits: Limits, patience: Patience, endpoint: str | None
) -> None:
    try:
        import huggingface_hub as hub
    except ImportError as error:
        raise MissingDependencyError("huggingface_hub", "Fetching datasets", "hub") from error
    name = f"{source.folder}/{file}"
    where: dict[str, Any] = {"repo_type": "dataset", "revision": source.revision, "endpoint": endpoint}

    def attempt() -> Path:
        # No token: the data are public, and nobody's credentials belong in this request.
        try:
            address = hub.hf_hub_url(source.repository, name, **where)
            size = hub.get_hf_file_metadata(address, token=False, timeout=patience.timeout).size
            _need_within_limits(size or 0, address, limits)
            found: str = hub.hf_hub_download(
                source.repository,
                name,
                **where,
                token=False,
                local_dir=folder / ".hub",
                force_download=True,  # not from its cache, and without its own retries: ours are enough
                etag_timeout=patience.timeout,
            )
            return Path(found)
        except LimitError:
            raise
        except Exception as error:  # the client's transport has changed its exceptions with every major release
            status = _status(error)
            kind = DownloadError if status is not None and status not in _PASSING_STATUS else _PassingTroubleError
            said = " ".join(str(error.__cause__ or error).split())[:300]
            raise kind(f"'{name}' of the hub dataset {source.repository} did not arrive: {said}.") from error

    shutil.move(_patiently(patience, attempt), folder / file)


def _status(error: BaseException | None) -> int | None:
    """The HTTP status behind an error of the hub's client, if there is one."""
    while error is not None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
        error = error.__cause__
    return None
