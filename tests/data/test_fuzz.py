"""Every reader beside broken input: it refuses with an error of ours, in bounded time and memory, and leaves no file.

Two kinds of input: random bytes, and valid files with bytes flipped, slices cut out, repeated or moved, and tokens put
in that parsers dislike. Compressed files are broken outside and inside their compression.

    python -m tests.data.test_fuzz 2000        2,000 fresh examples per reader and kind, and a table of their fates
"""

import gzip
import io
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from edhnn import EdhnnError, Hypergraph, Ids, Limits, NodeDataset, read_dataset, write_dataset
from edhnn.data.dataset import sparse_features

EVERYDAY_EXAMPLES = 150
SLOW_EXAMPLES = 5000

LIMITS = Limits(max_bytes=2**20, max_record_bytes=2**16, max_nodes=10**5)
SECONDS = 10
MEGABYTES = 400

TOKENS = [
    *(b"0", b"1", b"-1", b"7.5", b"9" * 18, b"9" * 20, b"9" * 400, b"1" * 5000, b"1e999", b"1e300", b"-0", b"0x1F"),
    *(b"NaN", b"nan", b"inf", b"-inf", b"null", b"true", b"false", b'""', b"2020-01-01", b"12:30", b"head"),
    *(b'"', b"'", b"\\", b",", b";", b"|", b"\t", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"%", b"#", b":"),
    *(b"{", b"}", b"[", b"]", b"{}", b"[]", b"[" * 2000, b'{"a":' * 2000, b" " * 3000, b"\n" * 1000, b"," * 500),
    *(b"\x00", b"\x00" * 8, b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\\u0000",
        b"\\ud800",
        b"\xe2\x80\xa8",
        b"\xff\xff\xff\x7f",
        b"\x80\x80\x80\x80\x01",
    ),
    *(
        b"\x1f\x8b",
        b"PK\x03\x04",
        b"PAR1",
        b"\x93NUMPY",
        b"node",
        b"edge",
        b"incidences",
        b"attrs",
        b"weight",
        b"label",
    ),
]


WORD = re.compile(rb'"[^"\n]*"|[^\s,;:{}\[\]"]+')
VALUES = [
    *(b"0", b"1", b"2", b"-1", b"1.5", b"1.0", b"1e30", b"1e300", b"1e39", b"9" * 19, b"9" * 30, b"9" * 400, b"-0"),
    *(b"null", b"true", b"false", b'""', b'"x"', b'"1"', b'"label"', b'"features"', b'"weight"', b'"node"', b'"edhnn"'),
    *(b"[]", b"{}", b"[1]", b"[null]", b'["a"]', b'{"a":1}', b'{"0":1}', b'{"-1":1}', b"[[1]]", b"[1,2,3]", b"nan"),
    *(b'"classification"', b'"multilabel"', b'"regression"', b'"float64"', b'"float16"', b"inf", b"", b"x"),
]


@dataclass(frozen=True)
class Subject:
    """A reader's input: files that are valid together, of which one at a time is broken.

    Attributes:
        files: Name and content of each file.
        target: What is read: a file, or "" for the folder itself.
    """

    files: dict[str, bytes]
    target: str


def zoo() -> NodeDataset:
    """A small dataset with something of everything."""
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], [], [4], [0, 4]], num_nodes=6)
    return NodeDataset(
        name="zoo",
        hypergraph=Hypergraph(
            hypergraph.node_index,
            hypergraph.edge_index,
            6,
            5,
            torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0], dtype=torch.float64),
            torch.arange(hypergraph.num_incidences, dtype=torch.float64),
        ),
        x=sparse_features(sp.csr_array(np.array([[1.5, 0], [0, 2], [0, 0], [3, 4], [0, 0], [0, 1]]))),
        feature_names=("height", "weight in kg"),
        y=torch.tensor([0, 1, 2, -1, 0, 1]),
        task="classification",
        class_names=("bird", "cat", "dog"),
        node_ids=Ids(["a", "b", "c", 'quo"te', "e,f", "gé"]),
        edge_ids=Ids([10, 20, 30, 40, 50]),
        node_attributes={
            "colour": ["red", None, "blue", "red", "", "x\ny"],
            "wild": [True, False, True, None, True, True],
        },
        edge_attributes={"year": [1999, 2000, None, 2001, 2002]},
    )


def written(dataset: NodeDataset, name: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(dataset, Path(folder) / name)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


def plain() -> NodeDataset:
    return NodeDataset(
        name="plain",
        hypergraph=Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], [4], [0, 4]], edge_weight=[1.0, 2.0, 3.0, 4.0]),
        y=torch.tensor([0, 1, 1, 0, 2]),
        task="classification",
        class_names=("bird", "cat", "dog"),
        node_attributes={"weight": [3, 1, 4, 1, 5]},
    )


FOREIGN_HIF = b"""{"network-type": "directed", "metadata": {"by": "hand", "list": [1, 2.5, null]},
"nodes": [{"node": 1, "weight": 2, "attrs": {"label": "x", "size": 1.5}}, {"node": "b", "attrs": {"size": 2}}],
"edges": [{"edge": "e", "attrs": {"year": 1999}}, {"edge": 0, "weight": 0.5}],
"incidences": [{"edge": "e", "node": 1, "direction": "head"}, {"edge": 0, "node": "b", "attrs": {"since": 3}},
{"edge": "e", "node": 12345678901234567890, "weight": 2}]}
"""
BASKETS = b'item,basket,weight\nmilk,1,0.5\n"bread, white",1,2\n\nmilk,2,1\n"two\nlines",2,1\n'


def subjects() -> dict[str, Subject]:
    table, text = zoo(), plain()
    return {
        "hif": Subject(written(table, "x.hif.json"), "x.hif.json"),
        "hif from elsewhere": Subject({"x.json": FOREIGN_HIF}, "x.json"),
        "hif.gz": Subject(written(table, "x.hif.json.gz"), "x.hif.json.gz"),
        "csv": Subject({"x.csv": BASKETS}, "x.csv"),
        "csv with tables": Subject(written(table, "x.csv"), "x.csv"),
        "csv.gz": Subject(written(table, "x.csv.gz"), "x.csv.gz"),
        "tsv": Subject(written(table, "x.tsv"), "x.tsv"),
        "parquet": Subject(written(table, "x.parquet"), "x.parquet"),
        "cornell": Subject(
            {**written(text, "hyperedges-x.txt"), "node-names-x.txt": b"a\nb\nc\nd\ne\n"}, "hyperedges-x.txt"
        ),
        "folder": Subject(written(table, "x"), ""),
        "folder, dense": Subject({**written(text, "x"), "features.npz": dense_features()}, ""),
        "hmetis": Subject(written(text, "x.hgr"), "x.hgr"),
    }


def dense_features() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, x=np.arange(10.0).reshape(5, 2))
    return stream.getvalue()


# How a file's bytes are broken: as they are, or inside their compression, which is put around them again.


def inside_gzip(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    return gzip.compress(change(gzip.decompress(data)), mtime=0)


def inside_zip(data: bytes, change: Callable[[bytes], bytes], member: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        for place, name in enumerate(old.namelist()):
            content = old.read(name)
            new.writestr(name, change(content) if place == member % len(old.namelist()) else content)
    return stream.getvalue()


def broken(data: bytes, change: Callable[[bytes], bytes], inside: bool, member: int) -> bytes:
    if inside and data[:2] == b"\x1f\x8b":
        return inside_gzip(data, change)
    if inside and data[:2] == b"PK":
        return inside_zip(data, change, member)
    return change(data)


OPERATIONS = st.sampled_from(
    ["word", "word", "word", "flip", "set", "delete", "insert", "overwrite", "truncate", "duplicate", "move"]
)
PLACES = st.integers(0, 2**16)
STEPS = st.lists(
    st.tuples(OPERATIONS, PLACES, st.integers(0, 40), st.sampled_from(TOKENS), PLACES), min_size=1, max_size=4
)


def mutated(data: bytes, steps: list[tuple[str, int, int, bytes, int]]) -> bytes:
    for operation, place, length, token, other in steps:
        at = place % (len(data) + 1)
        if operation == "word" and (words := list(WORD.finditer(data))):  # the grammar stays, the meaning goes
            word = words[place % len(words)]
            data = data[: word.start()] + VALUES[other % len(VALUES)] + data[word.end() :]
        elif operation == "flip" and data:
            at %= len(data)
            data = data[:at] + bytes([data[at] ^ (1 << length % 8)]) + data[at + 1 :]
        elif operation == "set":
            data = data[:at] + bytes([other % 256]) + data[at + 1 :]
        elif operation == "delete":
            data = data[:at] + data[at + length :]
        elif operation == "insert":
            data = data[:at] + token + data[at:]
        elif operation == "overwrite":
            data = data[:at] + token + data[at + len(token) :]
        elif operation == "truncate":
            data = data[:at]
        elif operation == "duplicate":
            data = data[:at] + data[at : at + length] * (1 + other % 3) + data[at:]
        elif operation == "move":
            piece, rest = data[at : at + length], data[:at] + data[at + length :]
            to = other % (len(rest) + 1)
            data = rest[:to] + piece + rest[to:]
    return data


RANDOM_BYTES = st.binary(max_size=600) | st.lists(st.sampled_from(TOKENS), max_size=12).map(b"".join)


@dataclass
class Tally:
    """What became of the examples of one reader and one kind."""

    accepted: int = 0
    refused: int = 0
    tracebacks: Counter[str] = field(default_factory=Counter)

    @property
    def tried(self) -> int:
        return self.accepted + self.refused + self.tracebacks.total()


@contextmanager
def time_limit():
    """A reader that does not come back is stopped, and so becomes a traceback."""

    def stop(*_):
        raise TimeoutError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def read_broken(folder: Path, subject: Subject, name: str, content: bytes, tally: Tally, *, strict: bool) -> None:
    """Put one broken file among the valid ones, read, and put the valid one back."""
    (folder / name).write_bytes(content)
    begun = time.monotonic()
    try:
        with time_limit():
            dataset = read_dataset(folder / subject.target, limits=LIMITS, keep_missing=True)
        assert isinstance(dataset, NodeDataset)
        tally.accepted += 1
    except EdhnnError as error:
        assert str(error)
        tally.refused += 1
    except Exception as error:
        place = next((f for f in reversed(traceback.extract_tb(error.__traceback__)) if "/edhnn/" in f.filename), None)
        where = f"{Path(place.filename).name}:{place.lineno}" if place else "?"
        tally.tracebacks[f"{name}: {type(error).__name__} at {where}: {str(error)[:100]}"] += 1
        if strict:
            raise
    finally:
        (folder / name).write_bytes(subject.files[name])
    assert time.monotonic() - begun < SECONDS
    assert {path.name for path in folder.rglob("*")} == set(subject.files)


def fuzz(folder: Path, subject: Subject, kind: str, examples: int, *, strict: bool, fresh: bool = False) -> Tally:
    """Run examples of one kind ("bytes" or "mutations"); strict stops at the first traceback and shrinks it.

    A subject of several files has each of them broken in turn, and the examples are shared among them.
    """
    tally = Tally()
    for name, content in subject.files.items():
        (folder / name).write_bytes(content)
    read_dataset(folder / subject.target, limits=LIMITS, keep_missing=True)  # valid before it is broken
    names = st.sampled_from(sorted(subject.files))
    phases = (Phase.generate, Phase.shrink) if strict else (Phase.generate,)

    @settings(
        max_examples=examples,
        derandomize=not fresh,
        database=None,
        phases=phases,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(names, RANDOM_BYTES, STEPS, st.booleans(), st.integers(0, 7))
    def run(name, random_bytes, steps, inside, member):
        if kind == "bytes":
            content = gzip.compress(random_bytes, mtime=0) if inside and name.endswith(".gz") else random_bytes
        else:
            content = broken(subject.files[name], lambda data: mutated(data, steps), inside, member)
        read_broken(folder, subject, name, content, tally, strict=strict)

    before = peak_megabytes()
    run()
    assert peak_megabytes() - before < MEGABYTES
    return tally


SUBJECTS = subjects()
KINDS = ("bytes", "mutations")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {name: tmp_path_factory.mktemp("fuzz") for name in SUBJECTS}


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_only_our_errors_escape(folders, name, kind):
    tally = fuzz(folders[name], SUBJECTS[name], kind, EVERYDAY_EXAMPLES, strict=True)
    assert tally.refused > EVERYDAY_EXAMPLES / 10  # the input was broken indeed


@pytest.mark.slow
@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_only_our_errors_escape_in_many_examples(folders, name, kind):
    fuzz(folders[name], SUBJECTS[name], kind, SLOW_EXAMPLES, strict=True, fresh=True)


HUGE = b"9" * 400
MARKED = b'{"metadata":{"edhnn":{"name":"x",%s}},"nodes":[{"node":1,"attrs":%s}],"incidences":[]}'


@pytest.mark.parametrize(
    "text",
    [
        b'{"incidences":[{"edge":1,"node":1,"weight":%s}]}' % HUGE,
        b'{"nodes":[{"node":1,"weight":%s}],"incidences":[]}' % HUGE,
        MARKED % (b'"num_features":1', b'{"features":[%s]}' % HUGE),
        MARKED % (b'"num_features":1,"sparse":true', b'{"features":{"0":%s}}' % HUGE),
        MARKED % (b'"task":"regression"', b'{"label":%s}' % HUGE),
        MARKED % (b'"task":"regression","label_width":1', b'{"label":[%s]}' % HUGE),
        MARKED % (b'"task":"classification"', b'{"label":99999999999999999999}'),
    ],
    ids=["weight", "node weight", "features", "sparse features", "label", "labels", "class"],
)
def test_numbers_beyond_all_floats_are_read_or_refused(tmp_path, text):
    """Found by 5,000 mutations, where the everyday number does not find them."""
    (tmp_path / "x.hif.json").write_bytes(text)
    try:
        read_dataset(tmp_path / "x.hif.json")
    except EdhnnError:
        return


def main(examples: int, chosen: list[str]) -> int:
    warnings.simplefilter("error")
    out = sys.stdout.write
    out(f"{'reader':<20}{'random bytes':>14}{'mutations':>11}{'accepted':>10}{'refused':>9}{'tracebacks':>12}\n")
    found: Counter[str] = Counter()
    for name in chosen or SUBJECTS:
        folder = Path(tempfile.mkdtemp())
        try:
            tallies = [fuzz(folder, SUBJECTS[name], kind, examples, strict=False, fresh=True) for kind in KINDS]
        finally:
            shutil.rmtree(folder)
        accepted, refused = (sum(getattr(tally, what) for tally in tallies) for what in ("accepted", "refused"))
        bad = sum((tally.tracebacks for tally in tallies), Counter())
        out(f"{name:<20}{tallies[0].tried:>14,}{tallies[1].tried:>11,}{accepted:>10,}{refused:>9,}{bad.total():>12,}\n")
        sys.stdout.flush()
        found.update(bad)
    for problem, count in found.most_common():
        out(f"{count:>6} x {problem}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, sys.argv[2:]))
