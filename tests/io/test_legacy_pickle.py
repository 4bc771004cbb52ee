"""Release folders of pickles: read at every protocol, and refused if they contain more than data."""

import collections
import io
import os
import pickle
import random
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from edhnn import Hypergraph
from edhnn.data.dataset import features_to_scipy
from edhnn.data.limits import Limits
from edhnn.errors import DataError, EdhnnError, LimitError, UsageError
from edhnn.io import legacy_pickle, unpickle
from edhnn.io.legacy_pickle import read_legacy_pickle

LIMITS = Limits(max_bytes=2**26)
HYPEREDGES = {"paper a": [0, 2, 3], "paper é": [3, 1], 7: [4], "none": []}
LABELS = [0, 1, 2, 1, 0]
MATRIX = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3], [0, 0, 1], [1, 1, 1]], dtype=np.float32)


def write(folder: Path, hypergraph=HYPEREDGES, labels=LABELS, features=None, protocol=4) -> Path:
    """Write a release folder; bytes are written unchanged."""
    folder.mkdir(exist_ok=True)
    contents = {"hypergraph": hypergraph, "labels": labels, "features": features}
    for name, content in contents.items():
        file = folder / f"{name}.pickle"
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
    return folder


def old_modules(data: bytes) -> bytes:
    """Replace module names in a pickle of protocol 3 or less by those of ten years ago."""
    for new, old in ((b"numpy._core", b"numpy.core"), (b"scipy.sparse._cs", b"scipy.sparse.cs")):
        data = data.replace(b"c" + new, b"c" + old)
    return data


class Python2Pickler(pickle._Pickler):
    """A pickler that writes bytes and ASCII text like strings of Python 2."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_old_string(self, text):
        raw = text if isinstance(text, bytes) else text.encode("ascii")
        if self.proto == 0:
            known = {**{code: f"\\x{code:02x}" for code in [*range(32), *range(127, 256)]}, 92: "\\\\", 39: "\\'"}
            self.write(b"S'" + "".join(known.get(code, chr(code)) for code in raw).encode() + b"'\n")
        elif len(raw) < 256:
            self.write(b"U" + bytes([len(raw)]) + raw)
        else:
            self.write(b"T" + len(raw).to_bytes(4, "little") + raw)
        self.memoize(text)

    dispatch[bytes] = dispatch[str] = save_old_string


def python_2_dumps(value, protocol: int) -> bytes:
    stream = io.BytesIO()
    Python2Pickler(stream, protocol).dump(value)
    return old_modules(stream.getvalue())


def check(folder: Path) -> None:
    dataset = read_legacy_pickle(folder, LIMITS)
    assert dataset.hypergraph.same_as(Hypergraph.from_hyperedges([[0, 2, 3], [1, 3], [4], []], num_nodes=5))
    assert (dataset.y.tolist(), dataset.class_names) == (LABELS, None)
    assert features_to_scipy(dataset.x).toarray().tolist() == MATRIX.tolist()
    assert dataset.edge_ids.to_list() == list(HYPEREDGES)


@pytest.mark.parametrize("protocol", range(6))
def test_the_published_layout_at_every_protocol(tmp_path, protocol):
    check(write(tmp_path / "data", features=sp.csr_matrix(MATRIX), protocol=protocol))


@pytest.mark.parametrize(
    "features",
    [
        pytest.param(sp.csr_array(MATRIX), id="csr_array"),
        pytest.param(sp.csc_matrix(MATRIX), id="csc"),
        pytest.param(sp.coo_matrix(MATRIX), id="coo"),
        pytest.param(MATRIX, id="dense"),
        pytest.param(np.asfortranarray(MATRIX), id="column-major"),
        pytest.param(MATRIX.astype(">f8"), id="big-endian"),
        pytest.param(MATRIX.astype(np.float16), id="half"),
        pytest.param(np.repeat(MATRIX, 2, axis=1)[:, ::2], id="strided"),
        pytest.param(old_modules(pickle.dumps(sp.csr_matrix(MATRIX), 2)), id="old module names"),
    ],
)
def test_features_in_any_form(tmp_path, features):
    check(write(tmp_path / "data", hypergraph=collections.OrderedDict(HYPEREDGES), features=features))
    if not isinstance(features, bytes):  # every protocol unpickles to the same bytes
        answers = {str(described(features, protocol)) for protocol in range(6)}
        assert len(answers) == 1


def described(value, protocol: int):
    facts, arrays = unpickle.read(pickle.dumps(value, protocol))
    return facts, {name: (values.raw, values.dtype.name, values.shape) for name, values in arrays.items()}


@pytest.mark.parametrize("protocol", range(3))
def test_pickles_of_python_2(tmp_path, protocol):
    wide = np.arange(512, dtype=np.int64) - 256  # every byte value, in arrays too long for a short string
    folder = write(
        tmp_path / "data",
        hypergraph=python_2_dumps({"plain": [0, 1], "q'\\uote": wide[256:260]}, protocol),
        labels=python_2_dumps(np.arange(512), protocol),
        features=python_2_dumps(sp.csr_matrix(wide[:, None].astype(np.float64)), protocol),
    )
    dataset = read_legacy_pickle(folder, LIMITS)
    assert dataset.x.to_dense()[:, 0].tolist() == wide.tolist()
    assert dataset.edge_ids.to_list() == ["plain", "q'\\uote"]
    assert list(dataset.hypergraph.hyperedges()) == [[0, 1], [0, 1, 2, 3]]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "members",
    [set, frozenset, tuple, np.array, lambda m: np.array(m, "u1"), lambda m: [np.int64(v) for v in m]],
    ids=["set", "frozenset", "tuple", "array", "bytes", "scalars"],
)
def test_members_in_any_container(protocol, members):
    hypergraph = collections.defaultdict(list, {np.int64(3): members([2, 0]), np.str_("é"): members([1])})
    facts, arrays = unpickle.read(pickle.dumps(hypergraph, protocol))
    assert facts == {"form": "dict", "keys": [3, "é"]}
    assert sorted(arrays["members"].dtype.unpack(arrays["members"].raw)) == [0, 1, 2]
    assert arrays["sizes"].dtype.unpack(arrays["sizes"].raw) == [2, 1]


def test_an_ordered_dictionary_of_python_2():
    facts, arrays = unpickle.read(b"ccollections\nOrderedDict\n((l(lS'x'\na(lI2\naaa(lS'a'\na(lI1\naI0\naaatR.")
    assert facts["keys"] == ["x", "a"]
    assert arrays["members"].dtype.unpack(arrays["members"].raw) == [2, 1, 0]


@pytest.mark.parametrize(
    ("labels", "expected", "names"),
    [
        (np.array(LABELS, dtype=np.uint8)[:, None], LABELS, None),
        (np.array(LABELS, dtype=float), LABELS, None),
        (np.eye(3, dtype=bool)[LABELS], LABELS, None),
        (np.eye(4)[[0, 1, 2, 1, 0]] * np.array([[1], [1], [1], [1], [0]]), [0, 1, 2, 1, -1], None),
        ([5, -1, 10**15, 5, -1], [0, -1, 1, 0, -1], (5, 10**15)),
        ([np.int32(label) for label in LABELS], LABELS, None),
    ],
)
def test_labels_in_any_form(tmp_path, labels, expected, names):
    dataset = read_legacy_pickle(write(tmp_path / "data", labels=labels), LIMITS)
    assert (dataset.y.tolist(), dataset.class_names, dataset.x) == (expected, names, None)


def test_duplicate_memberships_and_other_keys_are_reported(tmp_path):
    folder = write(tmp_path / "cora", hypergraph={(1, 2): [1, 1, 0], None: [0, 2]})
    dataset = read_legacy_pickle(folder / "labels.pickle", LIMITS)
    assert (dataset.name, dataset.provenance.format) == ("cora", "legacy-pickle")
    assert dataset.edge_ids.are_numbers
    merged, numbered = dataset.provenance.notes
    assert merged == "1 memberships given more than once were merged"
    assert "neither text nor integers were replaced by numbers" in numbered


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"hypergraph": {"a": [0], "b\x1b": [0, 5]}},
            r"hypergraph\.pickle, hyperedge 'b\\x1b': .* less than 5, .* Got 5",
        ),
        (
            {"hypergraph": {"a": [0], "b\ud800": [0]}},
            r"hyperedge 'b\\ud800': .*valid Unicode text.*half a surrogate pair",
        ),
        ({"hypergraph": {"a": [0, -1]}}, "hyperedge 'a': .*Got -1"),
        ({"hypergraph": {"a": ["x"]}}, "must be a 64-bit integer. Got a value of type str at index 0"),
        ({"hypergraph": {"a": [True]}}, "of type bool"),
        ({"hypergraph": {"a": 3}}, "must be a list, a set or an array of integers. Got a value of type int"),
        ({"hypergraph": {"a": np.ones(2)}}, r"Array of <f8, shape \(2,\)"),
        ({"hypergraph": {"a": np.array([2**63], "u8")}}, "must be a 64-bit integer"),
        ({"hypergraph": [[0, 1]]}, "must be a 64-bit integer. Got a value of type list"),
        ({"hypergraph": np.zeros(3)}, "must be a dictionary from hyperedge to its nodes. Got a list or an array"),
        ({"labels": {"a": [1]}}, "labels.pickle: Labels must be a list or an array of integers. Got dict"),
        ({"labels": [0, 1, 2, 1, 0.5]}, "Got a value of type float at index 4"),
        ({"labels": [0, 1, 2, -2, 0]}, "labels.pickle, label 3: .*Got -2"),
        ({"labels": np.array([0, 0.5])}, "Labels must be integers"),
        ({"labels": np.array([0, np.nan])}, "Labels must be integers"),
        ({"labels": np.array([1, 2**64 - 1], "u8")}, "Labels must be integers"),
        ({"labels": np.array(["a"])}, "Got an array of <U1"),
        ({"labels": np.ones((5, 2))}, "row 0: Every row of one-hot labels"),
        ({"labels": np.array(3)}, r"shape \(\)"),
        ({"features": MATRIX[:4]}, r"features.pickle: .* a row for each of 5 labels. Got shape \(4, 3\)"),
        ({"features": sp.csr_matrix(MATRIX[:4])}, r"a row for each of 5 labels. Got shape \(4, 3\)"),
        ({"features": MATRIX * np.nan}, "Features must be finite .* Got nan"),
        ({"features": sp.csr_matrix(np.diag([1e300] * 5))}, r"fit into 32 bits. Got 1e\+300"),
        ({"features": MATRIX.astype(complex)}, "Got type 'c16'"),
        ({"features": MATRIX.astype(object)}, "Got type 'O8'"),
        ({"features": np.zeros((5, 2), dtype=[("a", "f4")])}, "Got type 'V4'"),
        ({"features": np.zeros((5, 1, 1))}, "at most 2 dimensions"),
        ({"features": "text"}, "Features must be a scipy matrix or a two-dimensional array of numbers. Got a value"),
        ({"features": sp.lil_matrix(MATRIX)}, "refers to 'scipy.sparse._lil.lil_matrix'"),
        ({"features": pickle.dumps(sp.csr_matrix(MATRIX))[:150]}, "features.pickle: .*intact pickle"),
        (
            {"features": sp.csr_matrix(([1.0], [0], [0, 1, 1, 1, 1, 1]), shape=(5, 10**9))},
            "features.pickle: .*at most 1000000 feature columns in a file of 1 entries. Got 1000000000",
        ),
    ],
)
def test_errors_name_the_wrong_content(tmp_path, change, words):
    with pytest.raises(DataError, match=words):
        read_legacy_pickle(write(tmp_path / "data", **change), LIMITS)


def test_missing_files_and_large_files(tmp_path):
    with pytest.raises(UsageError, match=r"File not found: .*hypergraph.pickle"):
        read_legacy_pickle(tmp_path, LIMITS)
    folder = write(tmp_path / "data")
    with pytest.raises(LimitError, match="at most 10 bytes"):
        read_legacy_pickle(folder, Limits(max_bytes=10))
    (folder / "labels.pickle").unlink()
    with pytest.raises(UsageError, match=r"File not found: .*labels.pickle"):
        read_legacy_pickle(folder, LIMITS)


class Calls:
    """An object whose pickle calls ``function``."""

    def __init__(self, function, *arguments, state=None):
        self.parts = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.parts


def refused(data: bytes) -> str:
    facts, arrays = unpickle.read(data)
    assert not arrays
    return facts["problem"] if "error" in facts else facts["form"]


def test_code_is_refused_and_not_run(tmp_path):
    marker = tmp_path / "marker"
    touch = f"open({str(marker)!r}, 'w').close()"
    for name, call in {
        "posix.system": Calls(os.system, f"touch {marker}"),
        "eval": Calls(eval, touch),
        "exec": Calls(exec, touch),
        "numpy.load": Calls(np.load, str(marker)),
        "getattr": Calls(getattr, np.ndarray, "tofile"),
        "__import__": Calls(__import__, "os"),
        "fromfile": Calls(np.fromfile, str(marker)),
    }.items():
        for protocol in range(6):
            for hidden in (call, {"a": [0], "b": call}, [0, call]):
                assert name in refused(pickle.dumps(hidden, protocol))
    with pytest.raises(DataError, match=r"labels.pickle: .*'posix.system', which is not allowed. Pickles run code"):
        read_legacy_pickle(write(tmp_path / "evil", labels=Calls(os.system, f"touch {marker}")), LIMITS)
    assert not marker.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(S'touch MARKER'\ntR.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0ctouch MARKER\x85R.",
        b"(S'touch MARKER'\nios\nsystem\n.",  # INST
        b"(cos\nsystem\nS'touch MARKER'\no.",  # OBJ
        b'c__builtin__\neval\n(S\'open("MARKER","w")\'\ntR.',
        b"cbuiltins\ngetattr\n(cnumpy\nndarray\nS'tofile'\ntR.",
        b"ccopyreg\n_reconstructor\n(cos\nsystem\ncbuiltins\nobject\nNtR.",
        b"ccopyreg\n_reconstructor\n(S'os.system'\ncbuiltins\nobject\nNtR.",
        b"ccopyreg\n__newobj__\n(cnumpy\nndarray\ntR.",
        b"cnumpy\nndarray\n(N}S'__setstate__'\ncos\nsystem\nstb.",
        b"cnumpy\nndarray.tofile\n(S'MARKER'\ntR.",
        b"cnumpy.core.multiarray\nfromfile\n(S'MARKER'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
        b"\x80\x04\x8c\x05numpyK\x01\x93.",
        b"Pos.system\n.",
        b"S'os.system'\nQ.",
        b"\x82\x01.",
        b"\x80\x05\x97.",
        b"\x80\x09N.",
        b"(lR.",
        b"]cos\nsystem\na.",
    ],
)
def test_hostile_programs_are_refused(tmp_path, monkeypatch, program):
    monkeypatch.chdir(tmp_path)
    assert refused(program)
    assert not list(tmp_path.iterdir())


def test_a_refused_name_cannot_write_to_the_terminal():
    problem = refused(b"c\x1b[2Jos\nsystem" + b"m" * 200 + b"\n.")
    assert "\x1b" not in problem
    assert len(problem) < 200


def array_claim(shape, dtype="f8", raw=b"") -> bytes:
    """Return a pickle of an array whose shape does not match its bytes."""
    kind = Calls(np.dtype, dtype, False, True, state=(3, "<", None, None, None, -1, -1, 0))
    make = np._core.multiarray._reconstruct
    return pickle.dumps(Calls(make, np.ndarray, (0,), b"b", state=(1, shape, kind, False, raw)), 4)


BOMBS = {
    "bytes of 8 EiB": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "text of 4 GiB": b"X\xff\xff\xff\xffa.",
    "long of 2 GiB": b"\x8b\xff\xff\xff\x7f.",
    "long written out": b"L" + b"9" * 10**6 + b"L\n.",
    "memo at 4 billion": b"Nr\xff\xff\xff\xff.",
    "array of 8 EB": array_claim((10**9, 10**9)),
    "array of many dimensions": array_claim((1,) * 70, raw=b"a" * 8),
    "array of no bytes per item": array_claim((10**9,), "S0"),
    "array of a negative shape": array_claim((-1, -8), raw=b"a" * 8),
    "a huge allocation asked for": pickle.dumps(Calls(bytes, 10**12)),
    "ndarray made large": pickle.dumps(Calls(np.ndarray, (10**12,))),
    "key of nested shared tuples": b"}K\x01\x85" + b"2\x86" * 200 + b"]s.",
    "set of nested shared tuples": b"\x80\x04\x8f(K\x01\x85" + b"2\x86" * 200 + b"\x90.",
    "deep tuples as a key": b"}K\x01" + b"\x85" * 500_000 + b"]s.",
    "deep lists": b"]" * 50_000 + b"a" * 49_999 + b".",
    "a list in itself": b"]q\x00h\x00a.",
    "an object as its own state": b"cscipy.sparse.csr\ncsr_matrix\n)\x81q\x00h\x00b.",
    "one list in many hyperedges": pickle.dumps(dict.fromkeys(range(8_000), [0] * 10_000)),
    "one array in many hyperedges": pickle.dumps(dict.fromkeys(range(8_000), np.zeros(10_000, np.int8))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_little_memory_and_time(tmp_path, monkeypatch, name):
    monkeypatch.setattr(legacy_pickle, "BASE_SECONDS", 1)
    monkeypatch.setattr(legacy_pickle, "BASE_MEMORY", 2**27)
    start = time.monotonic()
    with pytest.raises(DataError, match=r"hypergraph\.pickle") as caught:
        read_legacy_pickle(write(tmp_path / "bomb", hypergraph=BOMBS[name]), LIMITS)
    assert time.monotonic() - start < 30
    if "shared tuples" in name or "memo" in name or "many hyperedges" in name:
        assert isinstance(caught.value, LimitError)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda m: m.indices.__setitem__(0, 5),
        lambda m: m.indices.__setitem__(0, -1),
        lambda m: m.indptr.__setitem__(1, 99),
        lambda m: m.indptr.__setitem__(0, 1),
        lambda m: setattr(m, "indptr", m.indptr[:-1]),
        lambda m: setattr(m, "data", m.data[:-1]),
        lambda m: setattr(m, "indices", m.data),
        lambda m: delattr(m, "indptr"),
        lambda m: setattr(m, "_shape", (5, 2**40)),
        lambda m: setattr(m, "_shape", None),
    ],
)
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
def test_inconsistent_sparse_matrices_are_refused(tmp_path, break_it, kind):
    matrix = kind(MATRIX)
    break_it(matrix)
    with pytest.raises(DataError, match=r"features\.pickle"):
        read_legacy_pickle(write(tmp_path / "data", features=matrix), LIMITS)


def test_mutated_pickles_raise_only_edhnn_errors(tmp_path):
    choose = random.Random(0)
    good = [("hypergraph", HYPEREDGES), ("labels", np.eye(3)[LABELS]), ("features", sp.csr_matrix(MATRIX))]
    outcomes = collections.Counter()
    for number in range(15):
        name, value = good[number % 3]
        data = bytearray(pickle.dumps(value, choose.randrange(6)))
        for _ in range(choose.randint(1, 3)):
            at = choose.randrange(len(data))
            data[at : at + choose.randrange(3)] = choose.randbytes(choose.randrange(3))
        try:
            read_legacy_pickle(write(tmp_path / "data", **{name: bytes(data)}), LIMITS)
            outcomes["read"] += 1
        except EdhnnError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 7
