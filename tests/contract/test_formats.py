"""The rules of every file format, tested for each entry of `FORMATS`.

* Round trip: all parts that the format does not report as dropped are restored, and a refused write leaves no file.
* Fuzz: random bytes, and valid files with bytes flipped, slices cut out, repeated or moved, and tokens inserted that
  often break parsers, raise only `EdhnnError`, in bounded time and memory. Compressed files are broken outside and
  inside their compression.
* Targets: existing files are replaced only with `overwrite`, and the same dataset gives the same bytes.
"""

import gzip
import io
import os
import re
import resource
import signal
import time
import zipfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import openpyxl
import pytest
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from edhnn import (
    DataError,
    EdhnnError,
    Hypergraph,
    Ids,
    LimitError,
    Limits,
    NodeDataset,
    UsageError,
    read_dataset,
    write_dataset,
)
from edhnn.data.dataset import sparse_features
from edhnn.io.formats import FORMATS, detect_format, format_by_name
from tests.interop.cases import assert_same, build, cases, without_empty_weights

EVERYDAY_EXAMPLES = int(os.environ.get("EDHNN_FUZZ_EXAMPLES", "100"))
SLOW_EXAMPLES = 5000
SECONDS = 10
MEGABYTES = 400
LIMITS = Limits(max_bytes=2**20, max_record_bytes=2**16, max_nodes=10**5)


def targets(name: str) -> list[str]:
    """Return file names of a format, with and without compression."""
    entry = FORMATS[name]
    plain = ["t" + pattern if pattern.startswith(".") else pattern.replace("NAME", "t") for pattern in entry.patterns]
    if entry.is_folder:
        return [target.rstrip("/") for target in plain]
    return plain + [f"{target}.gz" for target in plain if not target.endswith(".parquet")]


WRITTEN = [name for name, entry in FORMATS.items() if entry.write is not None]
TARGETS = [(name, target) for name in WRITTEN for target in targets(name)]


def workbook(*sheets):
    """Return the bytes of a workbook: name and rows of each sheet."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


ONLY_READ = {  # files, of which each name that the format has can be read, and the number of nodes
    "xlsx": (
        {
            "t.xlsx": workbook(("first", [["item", "basket"], ["a", 1], ["b", 1], ["b", 2]])),
            "t.nodes.xlsx": workbook(("nodes", [["id", "label", "x"], ["a", "p", 1.5], ["b", "q", 2], ["c", None, 3]])),
        },
        ["t.xlsx"],
        3,
    ),
    "benson": (
        {
            "t-nverts.txt": b"3\n2\n1\n",
            "t-simplices.txt": b"1\n2\n3\n2\n4\n4\n",
            "t-times.txt": b"10\n15\n21\n",
            "t-node-labels.txt": b"1 Ann\n2 Bob\n3 Cid\n4 Dan\n7 Eve\n",
        },
        ["t-nverts.txt", "t-simplices.txt"],
        5,
    ),
    "allset": (
        {
            "t.content": b"10 0.5 0\n11 2 1\n12\t 3  1\n20 0 0\n21 0 0\n",
            "t.edges": b"10 20\n11 20\n11\t21\n",
        },
        ["t.content", "t.edges"],
        3,
    ),
}


def only_read(folder, name):
    files, names, count = ONLY_READ[name]
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return [folder / file for file in names], count


def test_every_format_is_written_or_has_an_example():
    assert set(ONLY_READ) == set(FORMATS) - set(WRITTEN)


@pytest.mark.parametrize("name", ONLY_READ)
def test_formats_that_are_only_read(tmp_path, name):
    paths, count = only_read(tmp_path, name)
    for path in paths:
        assert detect_format(path) == name == format_by_name(path)
        dataset = read_dataset(path)
        assert dataset.provenance.format == name and dataset.hypergraph.num_nodes == count
        assert read_dataset(path, limits=Limits(max_nodes=count)).hypergraph.num_nodes == count
        with pytest.raises(LimitError, match="`max_nodes=`"):
            read_dataset(path, limits=Limits(max_nodes=count - 1))
        with pytest.raises(LimitError, match="`max_bytes=`"):
            read_dataset(path, limits=Limits(max_bytes=4))
        before = files_in(tmp_path)
        with pytest.raises(UsageError, match="read and not written"):
            write_dataset(dataset, path, overwrite=True)
        assert files_in(tmp_path) == before


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def plain():
    return NodeDataset(name="x", hypergraph=Hypergraph.from_hyperedges([[0, 1], [1, 2]]))


def labelled(**parts):
    return NodeDataset(
        name="x",
        hypergraph=Hypergraph.from_hyperedges([[0, 1], [1, 2]]),
        y=torch.tensor([0, 1, 0]),
        task="classification",
        class_names=("a", "b"),
        **parts,
    )


@pytest.mark.parametrize(("name", "target"), TARGETS)
def test_names_determine_the_format(tmp_path, name, target):
    assert format_by_name(Path(target)) == name
    assert format_by_name(Path(target.upper()), writing=True) == name
    write_dataset(plain(), tmp_path / target)
    assert detect_format(tmp_path / target) == name
    assert read_dataset(tmp_path / target).provenance.format in (name, "csv", "tsv", "parquet")


def table_options(dataset):
    """Return the options that name the labels and features of a table."""
    label, features = (), ()
    if dataset.y is not None and dataset.y.dim() == 2:
        label = dataset.class_names or tuple(f"label{number}" for number in range(dataset.y.shape[1]))
    elif dataset.y is not None:
        label = ("label",)
    if dataset.x is not None:
        features = dataset.feature_names or tuple(f"x{number}" for number in range(dataset.num_features))
    task = None if dataset.task == "classification" else dataset.task
    return dict(label=label, features=features, task=task, keep_missing=True)


def through(dataset, path, **options):
    """Write and read a dataset; return the result and what was dropped."""
    written = write_dataset(dataset, path, overwrite=True)
    assert all(path.exists() for path in written.paths)
    return read_dataset(path, **options), written.dropped


PREVENTED_BY_OPTIONS = (
    "that the labels are real values (read with `task='regression'`)",
    "which columns are labels (read with `label=['label0', 'label1']` `task='multilabel'`)",
    "which columns are labels (read with `label=['label0', 'label1']` `task='regression'`)",
)
READ_AS_A_FEATURE = r"that '(size|train_mask)' is an attribute \(a reader uses it as a feature\)"


def after_losing(dataset, dropped):
    """Return the dataset without the parts that were dropped."""
    hypergraph = dataset.hypergraph
    edge_weight, incidence_weight = hypergraph.edge_weight, hypergraph.incidence_weight
    parts = {}
    for loss in dropped:
        if loss == "the sparsity of the features (written as full columns)":
            parts["x"] = parts.get("x", dataset.x).to_dense()
        elif loss == "that the features are float64 (a reader uses float32)":
            parts["x"] = parts.get("x", dataset.x).to(torch.float32)
        elif loss == "that the labels are float64 (a reader uses float32)":
            parts["y"] = dataset.y.to(torch.float32)
        elif loss in PREVENTED_BY_OPTIONS or re.fullmatch(READ_AS_A_FEATURE, loss):
            continue  # `table_options` prevents these losses
        elif loss == "the numbers of the classes (a reader sorts the names in use)":
            names = dataset.class_names or range(dataset.num_classes)
            labels = [names[number] if number >= 0 else None for number in dataset.y.tolist()]
            used = sorted({label for label in labels if label is not None})
            numbers = [-1 if label is None else used.index(label) for label in labels]
            parts["y"] = torch.tensor(numbers, dtype=torch.int64)
            parts["class_names"] = tuple(used)
        elif loss == "that class names are numbers (written as text)":
            parts["class_names"] = tuple(str(name) for name in dataset.class_names)
        elif match := re.fullmatch(r"that the (node|hyperedge) ids are text \(they look like integers\)", loss):
            key = "node_ids" if match[1] == "node" else "edge_ids"
            parts[key] = Ids([int(name) for name in getattr(dataset, key)])
        elif match := re.fullmatch(r"the (node|hyperedge) ids \(numbered from 1 instead\)", loss):
            key = "node_ids" if match[1] == "node" else "edge_ids"
            parts[key] = Ids(list(range(1, len(getattr(dataset, key)) + 1)))
        elif match := re.fullmatch(r"the (node|hyperedge) attribute '(.*)'", loss):
            key = "node_attributes" if match[1] == "node" else "edge_attributes"
            columns = parts.get(key, getattr(dataset, key))
            parts[key] = {name: column for name, column in columns.items() if name != match[2]}
        elif loss == "the features":
            parts |= dict(x=None, feature_names=None)
        elif loss == "the labels":
            parts |= dict(y=None, task=None, class_names=None)
        elif loss == "the hyperedge weights":
            edge_weight = None
        elif loss == "the incidence weights":
            incidence_weight = None
        else:
            pytest.fail(f"an unknown loss: {loss}")
    counts = (hypergraph.num_nodes, hypergraph.num_edges)
    left = Hypergraph(hypergraph.node_index, hypergraph.edge_index, *counts, edge_weight, incidence_weight)
    return without_empty_weights(replace(dataset, hypergraph=left, **parts))


def with_variants(dataset, variant):
    """Replace ids by text that looks like integers, and class names by numbers."""
    if variant and dataset.node_ids.values.__class__ is np.ndarray:
        dataset = replace(dataset, node_ids=Ids([str(name) for name in dataset.node_ids]))
    if variant and dataset.task == "classification" and dataset.class_names is not None:
        dataset = replace(dataset, class_names=(30, 10, 20))
    return dataset


@pytest.mark.parametrize("name", WRITTEN)
@settings(max_examples=EVERYDAY_EXAMPLES)
@given(case=cases(), number=st.integers(0, 9), variant=st.booleans())
def test_round_trip(folder, name, case, number, variant):
    dataset = with_variants(build(case), variant)
    target = folder / targets(name)[number % len(targets(name))]
    tables = FORMATS[name].options == "tables"
    before = files_in(folder)
    try:
        back, dropped = through(dataset, target, **(table_options(dataset) if tables else {}))
    except DataError:
        assert files_in(folder) == before
        return
    expected = after_losing(dataset, dropped)
    if expected.y is not None and back.y is None and not dataset.hypergraph.num_nodes:
        expected = replace(expected, y=None, task=None, class_names=None)  # an empty dataset has no file of labels
    if tables and expected.x is not None and expected.feature_names is None:  # every column of a table has a name
        expected = replace(expected, feature_names=back.feature_names)
    if tables and expected.class_names is None and expected.num_classes is not None:
        names = [f"label{number}" for number in range(2)] if expected.y.dim() == 2 else range(expected.num_classes)
        expected = replace(expected, class_names=tuple(names))
    assert_same(without_empty_weights(back), expected)


@pytest.mark.parametrize(("name", "target"), TARGETS)
def test_the_same_dataset_gives_the_same_bytes(tmp_path, name, target):
    assert name in FORMATS
    x = sparse_features(sp.csr_array(np.eye(3)))
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        write_dataset(labelled(x=x, node_attributes={"a": [1, 2, 3]}), folder / target)
    assert files_in(one) == files_in(two)


@pytest.mark.parametrize(("name", "target"), TARGETS)
def test_existing_targets_are_replaced_only_with_overwrite(tmp_path, name, target):
    write_dataset(labelled(), tmp_path / target)
    before = files_in(tmp_path)
    with pytest.raises(UsageError, match=r"exists already. Choose another name, or replace it with `overwrite=True`"):
        write_dataset(plain(), tmp_path / target)
    assert files_in(tmp_path) == before
    written = write_dataset(plain(), tmp_path / target, overwrite=True)
    assert {file.parts[0] for file in map(Path, files_in(tmp_path))} == {path.name for path in written.paths}
    back = read_dataset(tmp_path / target)
    assert back.y is None
    assert FORMATS[name].is_folder == (tmp_path / target).is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="must exist before"):
        write_dataset(plain(), tmp_path / "nowhere" / target)


@pytest.mark.parametrize(("name", "target"), TARGETS)
@pytest.mark.parametrize("hyperedges", [[[0, 1], [1, 2]], [[1, 2], [2, 3]]])
def test_every_format_applies_the_limit_of_nodes(tmp_path, name, target, hyperedges):
    write_dataset(NodeDataset(name=name, hypergraph=Hypergraph.from_hyperedges(hyperedges)), tmp_path / target)
    count = read_dataset(tmp_path / target).hypergraph.num_nodes
    assert read_dataset(tmp_path / target, limits=Limits(max_nodes=count)).hypergraph.num_nodes == count
    with pytest.raises(LimitError, match=f"There must be at most {count - 1} nodes. Got {count}.*`max_nodes=`"):
        read_dataset(tmp_path / target, limits=Limits(max_nodes=count - 1))


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


def zoo() -> NodeDataset:
    """Return a small dataset with all parts."""
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


def simple_zoo() -> NodeDataset:
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


def dense_features() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, x=np.arange(10.0).reshape(5, 2))
    return stream.getvalue()


def written(folder: Path, dataset: NodeDataset, target: str) -> dict[str, bytes]:
    folder.mkdir()
    write_dataset(dataset, folder / target)
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@dataclass(frozen=True)
class Subject:
    """Valid input files of a reader, of which one at a time is broken.

    Attributes:
        files: Name and content of each file.
        target: What is read: a file, or "" for the folder itself.
    """

    files: dict[str, bytes]
    target: str


def subject(folder: Path, name: str, target: str) -> Subject:
    """Return the files of a format for the richest dataset that it can store, or files written by hand."""
    by_hand = {"foreign.json": FOREIGN_HIF, "baskets.csv": BASKETS}
    if target in by_hand:
        return Subject({target: by_hand[target]}, target)
    if name in ONLY_READ:
        return Subject(ONLY_READ[name][0], target)
    files = {}
    for number, dataset in enumerate((zoo(), simple_zoo(), plain())):
        try:
            files = written(folder / str(number), dataset, target)
            break
        except DataError:
            continue
    if name == "cornell" and not target.endswith(".gz"):
        files["node-names-t.txt"] = b"a\nb\nc\nd\ne\n"
    return Subject(files, "" if FORMATS[name].is_folder else target)


def inside_gzip(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    return gzip.compress(change(gzip.decompress(data)), mtime=0)


def inside_zip(data: bytes, change: Callable[[bytes], bytes], member: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        for number, name in enumerate(old.namelist()):
            content = old.read(name)
            new.writestr(name, change(content) if number == member % len(old.namelist()) else content)
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
POSITIONS = st.integers(0, 2**16)
STEPS = st.lists(
    st.tuples(OPERATIONS, POSITIONS, st.integers(0, 40), st.sampled_from(TOKENS), POSITIONS), min_size=1, max_size=4
)
RANDOM_BYTES = st.binary(max_size=600) | st.lists(st.sampled_from(TOKENS), max_size=12).map(b"".join)


def mutated(data: bytes, steps: list[tuple[str, int, int, bytes, int]]) -> bytes:
    for operation, position, length, token, other in steps:
        at = position % (len(data) + 1)
        if operation == "word" and (words := list(WORD.finditer(data))):  # keeps the grammar and changes a value
            word = words[position % len(words)]
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


@contextmanager
def time_limit():
    """Raise a `TimeoutError` in a reader that does not finish."""

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


def read_broken(folder: Path, subject: Subject, name: str, content: bytes) -> bool:
    """Replace one valid file by a broken one, read, and restore it; return whether the file was refused."""
    (folder / name).write_bytes(content)
    started = time.monotonic()
    try:
        with time_limit():
            dataset = read_dataset(folder / subject.target, limits=LIMITS, keep_missing=True)
        assert isinstance(dataset, NodeDataset)
        return False
    except EdhnnError as error:
        assert str(error)
        return True
    finally:
        (folder / name).write_bytes(subject.files[name])
        assert time.monotonic() - started < SECONDS
        assert {path.name for path in folder.rglob("*")} == set(subject.files)


def fuzz(folder: Path, subject: Subject, kind: str, examples: int, *, fresh: bool = False) -> int:
    """Run examples of one kind ("bytes" or "mutations") and return how many were refused."""
    for name, content in subject.files.items():
        (folder / name).write_bytes(content)
    read_dataset(
        folder / subject.target, limits=LIMITS, keep_missing=True
    )  # the files are valid before they are broken
    names = st.sampled_from(sorted(subject.files))
    refused = 0

    @settings(
        max_examples=examples,
        derandomize=not fresh,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(names, RANDOM_BYTES, STEPS, st.booleans(), st.integers(0, 7))
    def run(name, random_bytes, steps, inside, member):
        nonlocal refused
        if kind == "bytes":
            content = gzip.compress(random_bytes, mtime=0) if inside and name.endswith(".gz") else random_bytes
        else:
            content = broken(subject.files[name], lambda data: mutated(data, steps), inside, member)
        refused += read_broken(folder, subject, name, content)

    before = peak_megabytes()
    run()
    assert peak_megabytes() - before < MEGABYTES
    return refused


KINDS = ("bytes", "mutations")
SUBJECTS = [
    *TARGETS,
    *((name, names[0]) for name, (_, names, _) in ONLY_READ.items()),
    ("hif", "foreign.json"),
    ("table", "baskets.csv"),
]


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "target"), SUBJECTS)
def test_broken_files_raise_only_edhnn_errors(tmp_path, name, target, kind):
    files = subject(tmp_path, name, target)
    (tmp_path / "fuzz").mkdir()
    refused = fuzz(tmp_path / "fuzz", files, kind, EVERYDAY_EXAMPLES)
    assert refused > EVERYDAY_EXAMPLES / 10  # the input was really broken


def test_a_broken_folder_with_dense_features_raises_only_edhnn_errors(tmp_path):
    files = Subject({**written(tmp_path / "valid", simple_zoo(), "t"), "features.npz": dense_features()}, "")
    (tmp_path / "fuzz").mkdir()
    assert fuzz(tmp_path / "fuzz", files, "mutations", EVERYDAY_EXAMPLES) > EVERYDAY_EXAMPLES / 10


@pytest.mark.slow
@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "target"), SUBJECTS)
def test_many_broken_files_raise_only_edhnn_errors(tmp_path, name, target, kind):
    files = subject(tmp_path, name, target)
    (tmp_path / "fuzz").mkdir()
    fuzz(tmp_path / "fuzz", files, kind, SLOW_EXAMPLES, fresh=True)
