"""Downloads from a server on this machine: files are converted and verified, and a failure leaves no file."""

import gzip
import hashlib
import io
import pickle
import re
import shutil
import socket
import tarfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pooch
import pytest
import scipy.sparse as sp
import torch

from edhnn import Hypergraph, NodeDataset
from edhnn.data.dataset import features_to_scipy, sparse_features
from edhnn.data.fingerprints import content_digests
from edhnn.data.limits import Limits
from edhnn.datasets.download import (
    ArchiveSource,
    HubSource,
    Patience,
    PublishedDataset,
    WebSource,
    fetch,
    published_dataset,
    published_datasets,
)
from edhnn.errors import DownloadError, EdhnnError, LimitError, UsageError
from edhnn.io.folder import read_folder

QUICK = Patience(timeout=0.5, attempts=3)
LIMITS = Limits(max_bytes=2**20)

MATRIX = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3], [0, 0, 1]], dtype=np.float32)
TOY = NodeDataset(
    name="toy",
    hypergraph=Hypergraph.from_hyperedges([[0, 2, 3], [1, 3]], num_nodes=4),
    x=sparse_features(sp.csr_array(MATRIX)),
    y=torch.tensor([0, 1, 1, 0]),
    task="classification",
)
PICKLES = {
    "hypergraph.pickle": pickle.dumps({"a": [3, 0, 2], "b": [1, 3, 3]}, 4),
    "labels.pickle": pickle.dumps([0, 1, 1, 0], 4),
    "features.pickle": pickle.dumps(sp.csr_matrix(MATRIX), 4),
}
CORNELL = {"hyperedges-toy.txt": b"4,1,3\n2,4,4\n", "node-labels-toy.txt": b"1\n2\n2\n1\n"}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def published(*sources, form="legacy-pickle", **changes) -> PublishedDataset:
    content = content_digests(TOY)
    if form == "cornell":
        del content["features"]
    facts = {"format": form, "licence": "none", "content": content, "sources": sources, "name": "toy", **changes}
    return PublishedDataset(**facts)


@dataclass
class Site:
    """The files of the server, its failures, and the requests that it received."""

    files: dict[str, bytes] = field(default_factory=dict)
    address: str = ""
    requests: Counter = field(default_factory=Counter)
    headers: list = field(default_factory=list)
    statuses: dict[str, list[int]] = field(default_factory=dict)
    """Error statuses to send for a path before the file."""
    claim_more: int = 0
    """By how many bytes Content-Length exceeds the body; the connection is closed early."""
    stall: threading.Event | None = None
    redirects: dict[str, str] = field(default_factory=dict)
    chunked: bool = False
    meanwhile: Callable[[], object] = lambda: None
    """A function that is called during every request."""

    def web(self, files=PICKLES, **changes) -> WebSource:
        self.files |= {f"/web/{name}": content for name, content in files.items()}
        return WebSource(address=f"{self.address}/web/", files=tuple(files), **changes)

    def hub(self, files=PICKLES) -> HubSource:
        base = "/datasets/someone/toys/resolve/main/data/toy/"
        self.files |= {base + name: content for name, content in files.items()}
        return HubSource(repository="someone/toys", folder="data/toy", files=tuple(files))

    def archive(self, content: bytes, files=PICKLES, name="toy.zip", **changes) -> ArchiveSource:
        self.files[f"/{name}"] = content
        return ArchiveSource(address=f"{self.address}/{name}", folder="data/toy", files=tuple(files), **changes)


@pytest.fixture
def site(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=lambda seconds: None))
    with serving() as served:
        yield served


@contextmanager
def serving():
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            site.requests[self.path] += 1
            site.headers.append(self.headers)
            site.meanwhile()
            if site.stall is not None:
                site.stall.wait(5)
                return
            waiting = site.statuses.get(self.path, [])
            if waiting or self.path not in {**site.files, **site.redirects}:
                self.send_error(waiting.pop(0) if waiting else 404)
                return
            if self.path in site.redirects:
                self.send_response(302)
                self.send_header("Location", site.redirects[self.path])
                self.end_headers()
                return
            content = site.files[self.path]
            self.send_response(200)
            if not site.chunked:
                self.send_header("Content-Length", str(len(content) + site.claim_more))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        if site.stall is not None:
            site.stall.set()
        server.shutdown()
        server.server_close()
        thread.join()


def get(dataset, folder, site=None, **options):
    options = {"limits": LIMITS, "patience": QUICK, "endpoint": site.address if site else None, **options}
    return fetch(dataset, folder / "toy", **options)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def check(folder: Path, features: bool = True) -> None:
    dataset = read_folder(folder, LIMITS)
    assert dataset.hypergraph.same_as(TOY.hypergraph)
    assert dataset.y.tolist() == TOY.y.tolist()
    assert (dataset.x is not None) == features
    assert dataset.node_ids.are_numbers
    assert dataset.edge_ids.are_numbers
    names = {path.name for path in folder.iterdir()}
    assert names == {"hyperedges.txt.gz", "labels.txt.gz", "source.json"} | ({"features.npz"} if features else set())


def fails(dataset, folder, message, site=None, error=DownloadError, **options) -> str:
    with pytest.raises(error, match=message) as caught:
        get(dataset, folder, site, **options)
    assert files_in(folder) == []
    assert list(folder.iterdir()) == []
    assert not re.search("max[-_]bytes", str(caught.value))  # `edhnn data fetch` has no such option
    return str(caught.value)


def zipped(files, compression=zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(files, mode="w:gz", links=()) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for name, target, kind in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            archive.addfile(entry)
    return stream.getvalue()


def in_folder(files) -> dict[str, bytes]:
    return {f"data/toy/{name}": content for name, content in files.items()}


# Sources that work


def test_web_pickles(site, tmp_path):
    checksums = {name: sha256(content) for name, content in PICKLES.items()}
    assert get(published(site.web(sha256=checksums)), tmp_path) == tmp_path / "toy"
    check(tmp_path / "toy")
    record = msgspec.json.decode((tmp_path / "toy" / "source.json").read_bytes())
    assert record["source"] == f"{site.address}/web/"
    assert record["content_sha256"] == content_digests(TOY)
    assert files_in(tmp_path) == [
        f"toy/{name}" for name in ("features.npz", "hyperedges.txt.gz", "labels.txt.gz", "source.json")
    ]


def test_web_cornell_text(site, tmp_path):
    get(published(site.web(CORNELL), form="cornell", class_names=("left", "right")), tmp_path)
    check(tmp_path / "toy", features=False)
    assert read_folder(tmp_path / "toy", LIMITS).class_names == ("left", "right")


def test_hub_files_without_credentials(site, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    get(published(site.hub()), tmp_path, site)
    check(tmp_path / "toy")
    assert set(site.requests) == set(site.files)
    assert not any("authorization" in headers for headers in site.headers)
    shutil.rmtree(tmp_path / "toy")
    monkeypatch.setenv("HF_ENDPOINT", f"{site.address}/")
    get(published(site.hub(CORNELL), form="cornell"), tmp_path)
    check(tmp_path / "toy", features=False)


@pytest.mark.parametrize(
    "pack",
    [zipped, lambda files: zipped(files, zipfile.ZIP_STORED), tarred, lambda files: tarred(files, "w")],
    ids=["zip", "stored zip", "tar.gz", "tar"],
)
def test_archives(site, tmp_path, pack):
    content = pack({"README": b"hello", **in_folder(PICKLES), "../evil": b"x", "/evil": b"x"})
    get(published(site.archive(content, sha256=sha256(content))), tmp_path / "deep" / "cache")
    check(tmp_path / "deep" / "cache" / "toy")
    assert all("evil" not in name for name in files_in(tmp_path))


def test_a_body_without_a_length_and_a_redirect_within_this_machine(site, tmp_path):
    site.chunked = True
    source = site.web()
    site.redirects["/web/labels.pickle"] = f"{site.address}/moved"
    site.files["/moved"] = PICKLES["labels.pickle"]
    get(published(source), tmp_path)
    check(tmp_path / "toy")


# Existing folders


def test_an_existing_dataset_is_verified_without_a_download(site, tmp_path):
    dataset = published(site.web())
    get(dataset, tmp_path)
    site.requests.clear()
    get(dataset, tmp_path)
    assert not site.requests
    get(dataset, tmp_path, force=True)
    assert site.requests
    check(tmp_path / "toy")
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_a_folder_that_is_not_a_dataset_is_never_replaced(site, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "thesis.txt").write_text("three years")
    with pytest.raises(UsageError, match="toy' is not a dataset folder, so it is not replaced"):
        get(published(site.web()), tmp_path, force=True)
    assert not site.requests
    assert (tmp_path / "toy" / "thesis.txt").read_text() == "three years"
    (tmp_path / "toy" / "thesis.txt").unlink()
    get(published(site.web()), tmp_path, force=True)
    check(tmp_path / "toy")


def test_an_existing_dataset_beyond_the_limits_raises_an_error(site, tmp_path):
    dataset = published(site.web(PICKLES))
    folder = get(dataset, tmp_path)
    with pytest.raises(LimitError, match="must be at most 10 bytes.*much smaller.*`force=True`") as caught:
        get(dataset, tmp_path, limits=Limits(max_bytes=10))
    assert not re.search("max[-_]bytes", str(caught.value))
    check(folder)


def test_an_existing_folder_with_other_content_is_not_changed(site, tmp_path):
    dataset = published(site.web())
    get(dataset, tmp_path)
    (tmp_path / "toy" / "labels.txt.gz").unlink()
    before = files_in(tmp_path)
    with pytest.raises(DownloadError, match="toy"):
        get(dataset, tmp_path)
    assert files_in(tmp_path) == before
    get(dataset, tmp_path, force=True)
    check(tmp_path / "toy")


def test_a_failed_replacement_keeps_the_existing_folder(site, tmp_path):
    get(published(site.web()), tmp_path)
    before = files_in(tmp_path)
    site.files.clear()
    with pytest.raises(DownloadError, match="404"):
        get(
            published(site.web({}), sources=(WebSource(address=f"{site.address}/gone/", files=("labels.pickle",)),)),
            tmp_path,
            force=True,
        )
    assert files_in(tmp_path) == before
    check(tmp_path / "toy")


def test_two_processes_can_fetch_the_same_dataset(site, tmp_path):
    get(published(site.web()), tmp_path / "first")
    site.meanwhile = lambda: shutil.copytree(tmp_path / "first" / "toy", tmp_path / "toy", dirs_exist_ok=True)
    get(published(site.web()), tmp_path)
    check(tmp_path / "toy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "toy"]


def test_a_replacement_that_fails_at_the_last_step_keeps_the_existing_folder(site, tmp_path, monkeypatch):
    get(published(site.web()), tmp_path)
    before = files_in(tmp_path)
    replace = Path.replace

    def fail(self, target):
        if self.name.startswith("made"):
            raise PermissionError("not today")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(DownloadError, match="could not be written .* not today"):
        get(published(site.web()), tmp_path, force=True)
    assert files_in(tmp_path) == before


def test_an_existing_file_is_not_replaced(site, tmp_path):
    (tmp_path / "toy").write_text("a file")
    for force in (False, True):
        with pytest.raises(UsageError, match="must be a folder"):
            get(published(site.web()), tmp_path, force=force)
    assert (tmp_path / "toy").read_text() == "a file"


# Sources that fail


def test_a_wrong_checksum_of_a_file_raises_an_error(site, tmp_path):
    fails(published(site.web(sha256={"labels.pickle": "0" * 64})), tmp_path, "labels.pickle' must have the sha256 000")
    archive = zipped(in_folder(PICKLES))
    fails(published(site.archive(archive, sha256="0" * 64)), tmp_path, "toy.zip' must have the sha256 000")


@pytest.mark.parametrize("part", ["hyperedges", "labels", "features"])
def test_wrong_content_raises_an_error(site, tmp_path, part):
    content = content_digests(TOY) | {part: "0" * 64}
    fails(published(site.web(), content=content), tmp_path, f"The {part} of the dataset 'toy' must have the sha256 000")
    del content[part]
    fails(published(site.web(), content=content), tmp_path, f"The {part} .* must have the sha256 absent")


def test_missing_features_raise_an_error(site, tmp_path):
    files = {name: content for name, content in PICKLES.items() if name != "features.pickle"}
    fails(published(site.web(files)), tmp_path, "The features .* Got absent in '.*")


def test_a_missing_file_is_requested_once(site, tmp_path):
    source = site.web()
    del site.files["/web/labels.pickle"]
    fails(published(source), tmp_path, "labels.pickle' is not available. The server answered 404")
    assert site.requests["/web/labels.pickle"] == 1


def test_a_truncated_body_raises_an_error(site, tmp_path):
    site.claim_more = 10
    fails(published(site.web()), tmp_path, "could not be read: .*IncompleteRead.* Made 3 attempts")


@pytest.mark.parametrize("status", [500, 503, 429])
def test_transient_failures_are_retried(site, tmp_path, status):
    source = site.web()
    site.statuses["/web/labels.pickle"] = [status, status]
    get(published(source), tmp_path)
    check(tmp_path / "toy")
    assert site.requests["/web/labels.pickle"] == 3
    site.statuses["/web/labels.pickle"] = [status] * 9
    with pytest.raises(DownloadError, match=f"could not be read: {status} .* Made 3 attempts"):
        get(published(source), tmp_path, force=True)
    check(tmp_path / "toy")


def test_a_server_without_a_response_times_out(site, tmp_path):
    site.stall = threading.Event()
    fails(published(site.web()), tmp_path, "timed out", patience=Patience(timeout=0.1, attempts=2))


def test_a_refused_connection_raises_an_error(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    source = WebSource(address=f"{address}/", files=("labels.pickle",))
    fails(published(source), tmp_path, "refused", patience=Patience(attempts=1))


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org/",
        "ftp://127.0.0.1/",
        "file:///etc/",
        "https:///nothing",
        "//127.0.0.1/",
        "http://127.0.0.1.example.org/",
    ],
)
def test_unsafe_addresses_raise_an_error(tmp_path, address):
    source = WebSource(address=address, files=("passwd",))
    fails(published(source), tmp_path, "must use https or come from this machine")


@pytest.mark.parametrize("target", ["http://example.org/x", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_unsafe_redirects_raise_an_error(site, tmp_path, target):
    source = site.web()
    site.redirects["/web/hypergraph.pickle"] = target
    fails(published(source), tmp_path, "must use https or come from this machine")


def test_endless_redirects_raise_an_error(site, tmp_path):
    source = site.web()
    site.redirects["/web/hypergraph.pickle"] = "/web/hypergraph.pickle"
    fails(published(source), tmp_path, "at most 5 redirects")


@contextmanager
def raw_server(*pieces, pause=0.0):
    """Serve the same bytes to every connection, in pieces."""
    stop = threading.Event()

    def answer(connection):
        with connection, suppress(OSError):
            connection.recv(2**16)
            for piece in pieces:
                connection.sendall(piece)
                if stop.wait(pause):
                    break

    def accept():
        while not stop.is_set():
            with suppress(OSError):
                answer(listener.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            stop.set()
            thread.join()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # urllib3 leaves its socket open
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\r\n\r\n",
        b"\x1b[31mgarbage\xff\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 302 Found\r\n\r\nno location",
        b"HTTP/1.1 302 Found\r\nLocation: \r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: relative\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: //\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:99999/\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: https://a..b\xff\x1b/\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: \xe2\x80\xae\r\n\r\n",
        b"HTTP/1.1 404 \x1b[2J\r\n\r\n",
        OK + b"Content-Length: abc\r\n\r\nbody",
        OK + b"Content-Length: -5\r\n\r\nbody",
        OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nbody",
        OK + b"Content-Length: 3, 4\r\n\r\nbody",
        OK + b"Content-Length: " + 5000 * b"9" + b"\r\n\r\nbody",
        OK + b"Content-Length: 100\r\n\r\nbody",
        OK + b"Content-Length: 2\r\n\r\nbody",
        OK + b"Transfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nab",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nab",
        OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbody",
        OK + 200 * b"A: b\r\n" + b"\r\n",
        OK + b"A: " + 70_000 * b"b" + b"\r\n\r\n",
        b"HTTP/1.1 200 " + 70_000 * b"b",
    ],
    ids=lambda answer: repr(answer[:60]),
)
def test_malformed_answers_raise_an_error_of_one_safe_line(site, tmp_path, answer):
    with raw_server(answer) as address:
        source = WebSource(address=address, files=("hypergraph.pickle",))
        message = fails(published(source), tmp_path, ".", patience=Patience(timeout=2, attempts=1), error=EdhnnError)
    assert message.isprintable()
    assert address in message or "https" in message
    assert "sha256 None" not in message


@pytest.mark.parametrize(
    "pieces",
    [[OK + b"Content-Length: 9999\r\n\r\n", *(200 * [b"x"])], [OK, *(200 * [b"A"])], 200 * [b"H"]],
    ids=["body", "headers", "status"],
)
def test_a_slow_server_cannot_pass_the_deadline(site, tmp_path, pieces):
    started = time.monotonic()
    with raw_server(*pieces, pause=0.05) as address:
        source = WebSource(address=address, files=("hypergraph.pickle",))
        patience = Patience(timeout=0.3, attempts=2, deadline=0.4)
        message = fails(published(source, source), tmp_path, "must arrive within 0 seconds", patience=patience)
    assert "`deadline=`" in message
    assert time.monotonic() - started < 4  # without the deadline 10 s


@pytest.mark.parametrize("chunked", [False, True])
def test_a_file_beyond_the_limits_raises_an_error(site, tmp_path, chunked):
    site.chunked = chunked
    dataset = published(site.web({"labels.pickle": b"x" * 5000}))
    fails(dataset, tmp_path, "must be at most 4.0 KiB", error=LimitError, limits=Limits(max_bytes=4096))


def test_a_file_beyond_the_limits_after_decompression_raises_an_error(site, tmp_path):
    files = PICKLES | {"labels.pickle": gzip.compress(b"x" * 10**6)}
    fails(published(site.web(files)), tmp_path, "after decompression", error=LimitError, limits=Limits(max_bytes=10**5))


@pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar.gz"])
def test_archive_bombs_raise_an_error(site, tmp_path, pack):
    content = pack(in_folder(PICKLES | {"labels.pickle": b"\0" * 2**22}))
    assert len(content) < 2**14
    fails(published(site.archive(content)), tmp_path, "must be at most 1.0 MiB", error=LimitError)


def test_a_bomb_in_another_entry_of_a_tar_archive_raises_an_error(site, tmp_path):
    content = tarred({"other": b"\0" * 2**22, **in_folder(PICKLES)})
    fails(published(site.archive(content)), tmp_path, "must be at most 1.0 MiB", error=LimitError)


def test_a_zip_bomb_with_a_false_size_raises_an_error(site, tmp_path):
    content = bytearray(zipped(in_folder(PICKLES | {"labels.pickle": b"\0" * 2**22})))
    real = (2**22).to_bytes(4, "little")
    assert content.count(real) == 2
    forged = bytes(content).replace(real, (10).to_bytes(4, "little"))
    fails(published(site.archive(forged)), tmp_path, "valid zip|cannot be read", error=EdhnnError)


def test_missing_entries_and_entries_that_are_not_regular_files_raise_an_error(site, tmp_path):
    some = {name: content for name, content in PICKLES.items() if name != "labels.pickle"}
    message = "must contain the regular files data/toy/labels.pickle"
    fails(published(site.archive(zipped(in_folder(some)))), tmp_path, message)
    secret = tmp_path.parent / "secret.pickle"
    secret.write_bytes(PICKLES["labels.pickle"])
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
        links = [("data/toy/labels.pickle", str(secret), kind)]
        fails(published(site.archive(tarred(in_folder(some), links=links))), tmp_path, message)
    many = tarred({f"{number}": b"" for number in range(10_001)} | in_folder(PICKLES))
    fails(published(site.archive(many)), tmp_path, "must contain the regular files", limits=Limits(max_bytes=2**26))


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"no archive at all", zipped(in_folder(PICKLES))[:-30], tarred(in_folder(PICKLES))[:-30]]
)
def test_broken_archives_raise_an_error(site, tmp_path, content):
    fails(published(site.archive(content)), tmp_path, "toy.zip|gzip", error=EdhnnError)


def test_file_names_with_a_path_raise_an_error():
    for name in ("../evil", "/evil", "a/b", "..", "", "a\\b"):
        for make in (
            lambda files: WebSource(address="https://example.org/", files=files),
            lambda files: HubSource(repository="a/b", folder="c", files=files),
            lambda files: ArchiveSource(address="https://example.org/a.zip", folder="c", files=files),
        ):
            with pytest.raises(UsageError, match="must be plain file names"):
                make((name,))


def test_a_hostile_pickle_raises_an_error(site, tmp_path):
    files = PICKLES | {"labels.pickle": b"cos\nsystem\n(S'touch marker'\ntR."}
    fails(published(site.web(files)), tmp_path, "cannot be read. .*'os.system'")


def test_text_without_data_raises_an_error(site, tmp_path):
    files = CORNELL | {"hyperedges-toy.txt": b"<html>"}
    fails(published(site.web(files), form="cornell"), tmp_path, "cannot be read. .*line 1")
    fails(published(site.web(PICKLES), form="cornell"), tmp_path, "cannot be read")


def test_the_next_source_is_tried_and_all_failures_are_reported(site, tmp_path):
    gone = WebSource(address=f"{site.address}/gone/", files=("labels.pickle",))
    other = site.archive(zipped(in_folder(PICKLES | {"labels.pickle": pickle.dumps([0, 0, 0, 1])})))
    message = fails(published(gone, other), tmp_path, "All sources of the dataset 'toy' failed")
    assert "404" in message
    assert "The labels of the dataset 'toy' must have the sha256" in message
    get(published(gone, other, site.web()), tmp_path)
    check(tmp_path / "toy")


# The catalogue


def test_every_published_dataset_has_sources_and_checksums():
    found = published_datasets()
    assert list(found) == ["cora", "citeseer", "pubmed", "cora-ca", "dblp-ca", "congress", "senate", "walmart", "house"]
    for name, dataset in found.items():
        assert dataset.name == name
        assert all(len(digest) == 64 for digest in dataset.content.values())
        assert [type(source) for source in dataset.sources][:2] == [HubSource, WebSource]
        assert ("features" in dataset.content) == (dataset.format == "legacy-pickle")
    assert published_dataset("dblp-ca").sources[0].folder == "coauthorship/dblp"
    with pytest.raises(UsageError, match="Did you mean 'cora'"):
        published_dataset("corra")


@pytest.mark.parametrize("name", published_datasets())
def test_the_pinned_checksums_match_the_real_data(real_data, name):
    dataset = read_folder(real_data / name, Limits())
    assert content_digests(dataset) == published_dataset(name).content


@pytest.mark.parametrize("name", ["cora", "senate"])
def test_a_fetched_real_dataset_has_its_pinned_content(site, tmp_path, real_data, name):
    real = read_folder(real_data / name, Limits())
    dataset = published_dataset(name)
    if dataset.format == "cornell":
        lines = (",".join(str(v + 1) for v in reversed(members)) for members in real.hypergraph.hyperedges())
        contents = ("\r\n".join(lines).encode(), "".join(f"{label + 1}\n" for label in real.y.tolist()).encode())
    else:
        hyperedges = {f"author {number}": set(members) for number, members in enumerate(real.hypergraph.hyperedges())}
        contents = [
            pickle.dumps(part, 3) for part in (hyperedges, real.y.numpy(), sp.csc_matrix(features_to_scipy(real.x)))
        ]
    files = dict(zip(dataset.sources[0].files, contents, strict=True))
    get(msgspec.structs.replace(dataset, sources=(site.hub(files),)), tmp_path, site, limits=Limits())
    found = read_folder(tmp_path / "toy", Limits())
    assert found.hypergraph.same_as(real.hypergraph)
    assert found.class_names == real.class_names
