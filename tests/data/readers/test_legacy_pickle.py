"""Release folders of pickles: read at every protocol, refused whenever they want more than data made."""

import collections
import io
import os
import pickle
import pickletools
import resource
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edhnn import Hypergraph
from edhnn.data.dataset import features_to_scipy
from edhnn.data.files import Limits
from edhnn.data.readers.inert_pickle import _OPCODES, read_inert
from edhnn.data.readers.legacy_pickle import read_legacy_pickle
from edhnn.errors import DataError, EdhnnError, LimitError, UsageError

LIMITS = Limits(max_bytes=2**26)
HYPEREDGES = {"paper a": [0, 2, 3], "paper é": [3, 1], 7: [4], "none": []}
LABELS = [0, 1, 2, 1, 0]
MATRIX = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3], [0, 0, 1], [1, 1, 1]], dtype=np.float32)


def write(folder: Path, hypergraph=HYPEREDGES, labels=LABELS, features=None, protocol=4) -> Path:
    """A release folder; what is already bytes is taken as a pickle."""
    folder.mkdir(exist_ok=True)
    contents = {"hypergraph": hypergraph, "labels": labels, "features": features}
    for name, content in contents.items():
        file = folder / f"{name}.pickle"
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
    return folder


def old_modules(data: bytes) -> bytes:
    """The same pickle (protocol 3 or less, where names stand on lines) with the module names of ten years ago."""
    for new, old in ((b"numpy._core", b"numpy.core"), (b"scipy.sparse._cs", b"scipy.sparse.cs")):
        data = data.replace(b"c" + new, b"c" + old)
    return data


class Python2Pickler(pickle._Pickler):
    """Writes bytes and ASCII text as Python 2 wrote its strings."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_old_string(self, text):
        raw = text if isinstance(text, bytes) else text.encode("ascii")
        if self.proto == 0:
            known = {**{code: f"\\x{code:02x}" for code in [*range(32), *range(127, 256)]}, 92: "\\\\", 39: "\\'"}
            known |= {9: "\\t", 10: "\\n", 13: "\\r"}
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
    assert dataset.y.tolist() == LABELS
    assert dataset.class_names is None
    assert features_to_scipy(dataset.x).toarray().tolist() == MATRIX.tolist()


@contextmanager
def memory_guard(room: int = 2**29):
    """Fail with MemoryError, which is none of our errors, when more than ``room`` is asked for."""
    if sys.platform != "linux":
        yield
        return
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "features",
    [
        pytest.param(sp.csr_matrix(MATRIX), id="csr"),
        pytest.param(sp.csr_array(MATRIX), id="csr_array"),
        pytest.param(sp.csc_matrix(MATRIX), id="csc"),
        pytest.param(sp.coo_matrix(MATRIX), id="coo"),
        pytest.param(MATRIX, id="dense"),
        pytest.param(np.asfortranarray(MATRIX), id="column-major"),
        pytest.param(MATRIX.astype(">f8"), id="big-endian"),
        pytest.param(MATRIX.astype(np.float16), id="half"),
        pytest.param(np.repeat(MATRIX, 2, axis=1)[:, ::2], id="strided"),
    ],
)
def test_real_pickles_at_every_protocol(tmp_path, protocol, features):
    check(write(tmp_path / "data", features=features, protocol=protocol))


@pytest.mark.parametrize("protocol", range(4))
def test_pickles_with_the_module_names_of_old_releases(tmp_path, protocol):
    data = old_modules(pickle.dumps(sp.csr_matrix(MATRIX), protocol))
    assert b"scipy.sparse.csr" in data
    assert b"numpy.core.multiarray" in data
    check(write(tmp_path / "data", features=data, protocol=protocol))


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
def test_members_in_any_container(tmp_path, protocol, members):
    hypergraph = {np.int64(3): members([2, 0]), np.str_("é"): members([1])}
    dataset = read_legacy_pickle(write(tmp_path / "d", hypergraph, protocol=protocol), LIMITS)
    assert list(dataset.hypergraph.hyperedges()) == [[0, 2], [1]]
    assert dataset.edge_ids.to_list() == [3, "é"]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", [collections.OrderedDict, lambda d: collections.defaultdict(list, d)])
def test_other_dictionaries(tmp_path, protocol, kind):
    check(write(tmp_path / "data", hypergraph=kind(HYPEREDGES), features=MATRIX, protocol=protocol))


def test_an_ordered_dictionary_of_python_2(tmp_path):
    data = b"ccollections\nOrderedDict\n((l(lS'x'\na(lI2\naaa(lS'a'\na(lI1\naI0\naaatR."
    dataset = read_legacy_pickle(write(tmp_path / "d", hypergraph=data), LIMITS)
    assert dataset.edge_ids.to_list() == ["x", "a"]
    assert list(dataset.hypergraph.hyperedges()) == [[2], [0, 1]]


@pytest.mark.parametrize(
    ("labels", "expected", "names"),
    [
        (np.array(LABELS), LABELS, None),
        (np.array(LABELS, dtype=np.uint8)[:, None], LABELS, None),
        (np.array(LABELS, dtype=float), LABELS, None),
        (np.eye(3)[LABELS], LABELS, None),
        (np.eye(3, dtype=bool)[LABELS], LABELS, None),
        (np.eye(4)[[0, 1, 2, 1, 0]] * np.array([[1], [1], [1], [1], [0]]), [0, 1, 2, 1, -1], None),
        ([1, 2, 3, 2, 1], LABELS, (1, 2, 3)),
        ([5, -1, 10**15, 5, -1], [0, -1, 1, 0, -1], (5, 10**15)),
        ([np.int32(label) for label in LABELS], LABELS, None),
    ],
)
def test_labels_in_any_form(tmp_path, labels, expected, names):
    dataset = read_legacy_pickle(write(tmp_path / "data", labels=labels), LIMITS)
    assert dataset.y.tolist() == expected
    assert dataset.class_names == names
    assert dataset.x is None


def test_duplicates_are_merged_and_a_file_stands_for_its_folder(tmp_path):
    folder = write(tmp_path / "cora", hypergraph={0: [1, 1, 0], 1: [0, 2]})
    dataset = read_legacy_pickle(folder / "labels.pickle", LIMITS)
    assert dataset.name == "cora"
    assert dataset.hypergraph.merged_memberships == 1
    assert dataset.edge_ids.are_numbers
    assert dataset.provenance.format == "legacy-pickle"


def test_keys_that_are_no_ids_become_numbers_and_that_is_said(tmp_path):
    dataset = read_legacy_pickle(write(tmp_path / "data", hypergraph={(1, 2): [0], None: [1]}), LIMITS)
    assert dataset.edge_ids.are_numbers
    assert "neither text nor integers" in dataset.provenance.notes[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"hypergraph": {"a": [0], "b\x1b": [0, 5]}},
            r"hypergraph\.pickle, hyperedge 'b\\x1b': .* less than 5, .* Got 5",
        ),
        ({"hypergraph": {"a": [0], "b\ud800": [0]}}, r"hyperedge 'b\\ud800': .*Unicode text.*half a surrogate pair"),
        ({"hypergraph": {"a": [0, -1]}}, "hyperedge 'a': .*Got -1"),
        ({"hypergraph": {"a": ["x"]}}, "Every node number must be an integer. Got a value of type str at place 0"),
        ({"hypergraph": {"a": [True]}}, "of type bool"),
        ({"hypergraph": {"a": 3}}, "must be a list, a set or an array of integers. Got a value of type int"),
        ({"hypergraph": {"a": np.ones(2)}}, "Got an array of float64, shape \\(2,\\)"),
        ({"hypergraph": {"a": np.zeros((1, 1), int)}}, "shape \\(1, 1\\)"),
        ({"hypergraph": {"a": np.array([2**63], "u8")}}, "Got -9223372036854775808"),
        ({"hypergraph": [[0, 1]]}, "must be a dictionary from hyperedge to its nodes. Got a value of type list"),
        ({"hypergraph": b"}(K\x01](K\x00eK\x01](K\x00eu."}, "hyperedge 1: Every hyperedge must be there once"),
        ({"labels": {"a": 1}}, "labels.pickle: Labels must be a list or an array of integers. Got a pickled 'dict'"),
        ({"labels": [0, 1, 2, 1, 0.5]}, "Every label must be an integer. Got a value of type float at place 4"),
        ({"labels": [0, 1, 2, -2, 0]}, "labels.pickle, label 3: .*Got -2"),
        ({"labels": np.array([0, 0.5])}, "Labels must be integers"),
        ({"labels": np.array([0, np.nan])}, "Labels must be integers"),
        ({"labels": np.array([0, 1e300])}, "Labels must be integers"),
        ({"labels": np.array([1, 2**64 - 1], "u8")}, "Labels must be integers"),
        ({"labels": np.array(["a"])}, "Got an array of <U1"),
        ({"labels": np.ones((5, 2))}, "row 0: Every row of one-hot labels"),
        ({"labels": np.ones((5, 0))}, "shape \\(5, 0\\)"),
        ({"labels": np.array(3)}, "shape \\(\\)"),
        (
            {"features": MATRIX[:4]},
            "features.pickle: Features must have a row for each of 5 labels. Got shape \\(4, 3\\)",
        ),
        ({"features": sp.csr_matrix(MATRIX[:4])}, "a row for each of 5 nodes. Got shape \\(4, 3\\)"),
        ({"features": MATRIX * np.nan}, "Features must be finite .* Got nan"),
        ({"features": np.full((5, 1), 1e300)}, "fit into 32 bits. Got 1e\\+300"),
        ({"features": sp.csr_matrix(np.diag([np.inf] * 5))}, "Got inf"),
        ({"features": MATRIX.astype(complex)}, "Got type 'c16'"),
        ({"features": MATRIX.astype(object)}, "Got type 'O8'"),
        ({"features": np.zeros((5, 2), dtype=[("a", "f4")])}, "Got type 'V4'"),
        ({"features": np.zeros((5, 1, 1))}, "at most 2 dimensions"),
        ({"features": "text"}, "Features must be a scipy matrix or a two-dimensional array of numbers. Got a value"),
        ({"features": sp.lil_matrix(MATRIX)}, "the global 'scipy.sparse._lil.lil_matrix'"),
    ],
)
def test_wrong_content_is_named(tmp_path, change, words):
    with pytest.raises(DataError, match=words):
        read_legacy_pickle(write(tmp_path / "data", **change), LIMITS)


def test_missing_files_and_large_files(tmp_path):
    with pytest.raises(UsageError, match=r"no file .*hypergraph.pickle"):
        read_legacy_pickle(tmp_path, LIMITS)
    folder = write(tmp_path / "data")
    with pytest.raises(LimitError, match="at most 10 bytes"):
        read_legacy_pickle(folder, Limits(max_bytes=10))
    (folder / "labels.pickle").unlink()
    with pytest.raises(UsageError, match=r"no file .*labels.pickle"):
        read_legacy_pickle(folder, LIMITS)


@pytest.mark.parametrize("cut", range(0, 300, 7))
def test_a_truncated_pickle_is_an_error(tmp_path, cut):
    data = pickle.dumps(sp.csr_matrix(MATRIX), 4)
    with pytest.raises(DataError, match=r"features.pickle, byte .*intact pickle"):
        read_legacy_pickle(write(tmp_path / "data", features=data[:cut]), LIMITS)


class Calls:
    """Pickles as a call of ``function``."""

    def __init__(self, function, *arguments, state=None):
        self.parts = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.parts


def refused(tmp_path, value, protocols=range(6)) -> str:
    """The message with which each file of a folder refuses ``value``; also when it hides inside good content."""
    message = ""
    for protocol in protocols:
        for name, content in (
            ("hypergraph", value),
            ("hypergraph", {"a": [0], "b": value}),
            ("labels", [0, value]),
            ("features", value),
        ):
            folder = write(tmp_path / "evil", **{name: content}, protocol=protocol)
            with pytest.raises(DataError) as caught:
                read_legacy_pickle(folder, LIMITS)
            message = str(caught.value)
    return message


def test_code_is_refused_and_not_run(tmp_path):
    marker = tmp_path / "marker"
    touch = f"open({str(marker)!r}, 'w').close()"
    assert "posix.system'. Pickles run code" in refused(tmp_path, Calls(os.system, f"touch {marker}"))
    assert "eval" in refused(tmp_path, Calls(eval, touch))
    assert "exec" in refused(tmp_path, Calls(exec, touch))
    assert "numpy.load" in refused(tmp_path, Calls(np.load, str(marker)))
    assert "getattr" in refused(tmp_path, Calls(getattr, np.ndarray, "tofile"))
    assert "__import__" in refused(tmp_path, Calls(__import__, "os"))
    assert "fromfile" in refused(tmp_path, Calls(np.fromfile, str(marker)))
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
        b"cnumpy\nndarray\n(N}S'__setstate__'\ncos\nsystem\nstb.",  # poison a class of ours
        b"cnumpy\nndarray\n(N}S'__setstate__'\ncnumpy\ndtype\nstb.",
        b"cnumpy\nndarray.tofile\n(S'MARKER'\ntR.",
        b"cnumpy.core.multiarray\nfromfile\n(S'MARKER'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
        b"\x80\x04\x8c\x05numpyK\x01\x93.",
        b"Pos.system\n.",
        b"S'os.system'\nQ.",
        b"\x82\x01.",
        b"\x80\x05\x97.",
        b"\x80\x05C\x01a\x98.",
        b"\x80\x04cbuiltins\nset\n)}\x92.",
        b"\x80\x09N.",
        b"(lR.",
        b"(I1\ntS'text'\n\x81.",
        b"]cos\nsystem\na.",
    ],
)
def test_hostile_programs_are_refused(tmp_path, monkeypatch, program):
    monkeypatch.chdir(tmp_path)
    for name in ("hypergraph", "labels", "features"):
        with pytest.raises(DataError):
            read_legacy_pickle(write(tmp_path / "evil", **{name: program}), LIMITS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil"]


def test_a_refused_name_cannot_write_to_the_terminal(tmp_path):
    with pytest.raises(DataError) as caught:
        read_legacy_pickle(write(tmp_path / "evil", labels=b"c\x1b[2Jos\nsystem" + b"m" * 200 + b"\n."), LIMITS)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 800


def array_claim(shape, dtype="f8", raw=b"", protocol=4) -> bytes:
    """A pickle of an array that claims more than it holds."""
    kind = Calls(np.dtype, dtype, False, True, state=(3, "<", None, None, None, -1, -1, 0))
    make = np._core.multiarray._reconstruct
    return pickle.dumps(Calls(make, np.ndarray, (0,), b"b", state=(1, shape, kind, False, raw)), protocol)


BOMBS = {
    "bytes of 8 EiB": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "bytes of 64 GiB": b"\x80\x04\x8e\x00\x00\x00\x00\x10\x00\x00\x00.",
    "text of 4 GiB": b"X\xff\xff\xff\xffa.",
    "long of 2 GiB": b"\x8b\xff\xff\xff\x7f.",
    "long of negative length": b"\x8b\xff\xff\xff\xff.",
    "string of negative length": b"T\xff\xff\xff\xff.",
    "long written out": b"L" + b"9" * 10**6 + b"L\n.",
    "integer beyond 64 bits": b"I9999999999999999999\n.",
    "frame of 8 EiB": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.",
    "memo at 4 billion": b"Nr\xff\xff\xff\xff.",
    "array of 8 EB": array_claim((10**18,)),
    "array of a huge shape": array_claim((2**31 - 1, 2**31 - 1)),
    "array of many dimensions": array_claim((1,) * 70, raw=b"a" * 8),
    "array of rows of no width": array_claim((2**31 - 1, 0)),
    "array of no bytes per item": array_claim((10**12,), "S0"),
    "array of a negative shape": array_claim((-1, -8), raw=b"a" * 8),
    "a huge allocation asked for": pickle.dumps(Calls(bytearray, 10**12)),
    "ndarray made large": pickle.dumps(Calls(np.ndarray, (10**12,))),
    "key of nested shared tuples": b"}K\x01\x85" + b"2\x86" * 200 + b"]s.",
    "set of nested shared tuples": b"\x80\x04\x8f(K\x01\x85" + b"2\x86" * 200 + b"\x90.",
    "nested shared lists": b"]K\x01a" + b"(22l" * 100 + b".",
    "deep tuples as a key": b"}K\x01" + b"\x85" * 50_000 + b"]s.",
    "deep lists": b"]" * 50_000 + b"a" * 49_999 + b".",
    "deep dictionaries": b"}" + b"K\x00}" * 10**4 + b"s" * 10**4 + b".",
    "deep objects": b"cbuiltins\nset\nq\x00(" + b"h\x00(" * 10**4 + b"tR" * 10**4 + b".",
    "marks": b"(" * 10**5,
    "a list in itself": b"]q\x00h\x00a.",
    "a dictionary in itself": b"}q\x00K\x01h\x00s.",
    "an object as its own state": b"cscipy.sparse.csr\ncsr_matrix\n)\x81q\x00h\x00b.",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("place", ["hypergraph", "labels", "features"])
def test_bombs_are_refused_in_little_memory_and_time(tmp_path, name, place):
    folder = write(tmp_path / "bomb", **{place: BOMBS[name]})
    begun = time.monotonic()
    with memory_guard():
        try:
            dataset = read_legacy_pickle(folder, LIMITS)
        except DataError:
            pass
        else:  # a key that is no id is a nameless hyperedge, and nobody looks into it
            assert name in ("key of nested shared tuples", "deep tuples as a key")
            assert dataset.hypergraph.num_edges == 1
    assert time.monotonic() - begun < 30


def test_one_list_shared_by_many_hyperedges_is_not_expanded(tmp_path):
    members = [0] * 10_000
    with memory_guard(), pytest.raises(LimitError, match="more members in all than the pickle has bytes"):
        read_legacy_pickle(write(tmp_path / "bomb", hypergraph=dict.fromkeys(range(8_000), members)), LIMITS)
    array = np.zeros(10_000, dtype=np.int8)
    with memory_guard(), pytest.raises(LimitError, match=r"hyperedge .*more members in all than the pickle has bytes"):
        read_legacy_pickle(write(tmp_path / "bomb", hypergraph=dict.fromkeys(range(8_000), array)), LIMITS)


def test_one_long_text_shared_by_many_places_is_not_repeated(tmp_path):
    text = pickle.dumps(np.str_("a" * 900_000), 4)[:-1]  # 3.6 MB each time it is decoded; the last byte is STOP
    again = b"j" + memo_of_last(text)
    keys = text + b"\x940}(" + (again + b"]") * 2000 + b"u."
    with memory_guard(), pytest.raises(DataError, match="Every hyperedge must be there once"):
        read_legacy_pickle(write(tmp_path / "bomb", hypergraph=keys), LIMITS)
    labels = text + b"\x940](" + again * 2000 + b"e."
    with memory_guard(), pytest.raises(DataError, match="Every label must be an integer. Got a pickled 'scalar'"):
        read_legacy_pickle(write(tmp_path / "bomb", labels=labels), LIMITS)


def memo_of_last(program: bytes) -> bytes:
    """The memo position that the next MEMOIZE after this program takes."""
    steps = [name.name for name, _, _ in pickletools.genops(program + b".")]
    return steps.count("MEMOIZE").to_bytes(4, "little")


@pytest.mark.parametrize(
    "break_it",
    [
        lambda m: m.indices.__setitem__(0, 5),
        lambda m: m.indices.__setitem__(0, -1),
        lambda m: m.indptr.__setitem__(1, 99),
        lambda m: m.indptr.__setitem__(1, -1),
        lambda m: m.indptr.__setitem__(0, 1),
        lambda m: m.indptr.__setitem__(2, 0),
        lambda m: setattr(m, "indptr", m.indptr[:-1]),
        lambda m: setattr(m, "data", m.data[:-1]),
        lambda m: setattr(m, "data", "text"),
        lambda m: setattr(m, "indices", m.data),
        lambda m: setattr(m, "indices", m.indices[None]),
        lambda m: delattr(m, "indptr"),
        lambda m: setattr(m, "_shape", (5, 2**40)),
        lambda m: setattr(m, "_shape", (5,)),
        lambda m: setattr(m, "_shape", (5, -3)),
        lambda m: setattr(m, "_shape", None),
    ],
)
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
def test_sparse_matrices_that_cannot_be(tmp_path, break_it, kind):
    matrix = kind(MATRIX)
    break_it(matrix)
    with pytest.raises(DataError, match=r"features\.pickle"):
        read_legacy_pickle(write(tmp_path / "data", features=matrix), LIMITS)


@pytest.fixture(scope="module")
def fuzz_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "data"


PLACES = st.sampled_from(["hypergraph", "labels", "features"])
GOOD = [
    (place, pickle.dumps(value, protocol))
    for protocol in range(6)
    for place, value in (
        ("hypergraph", HYPEREDGES),
        ("hypergraph", {"a": {0, 1}, "b": np.array([1, 2]), "c": [np.int64(1)], "d": frozenset([3])}),
        ("labels", LABELS),
        ("labels", np.array(LABELS)),
        ("labels", np.eye(3)[LABELS]),
        ("features", sp.csr_matrix(MATRIX)),
        ("features", sp.csc_matrix(MATRIX)),
        ("features", sp.coo_matrix(MATRIX)),
        ("features", MATRIX),
    )
] + [("features", python_2_dumps(sp.csr_matrix(MATRIX), protocol)) for protocol in range(3)]
FRAGMENTS = [
    *_OPCODES,
    *(b"K\x00", b"K\x05", b"J\xff\xff\xff\xff", b"I1\n", b"I01\n", b"L7L\n", b"F1.5\n", b"\x8a\x01\x05", b"\x94"),
    *(b"S'a'\n", b"U\x01a", b"Vlatin1\n", b"\x8c\x06_shape", b"\x8c\x04data", b"\x8c\x07indices", b"\x8c\x06indptr"),
    *(b"C\x08abcdefgh", b"\x8c\x02i8", b"\x8c\x02f4", b"\x8c\x01<", b"q\x00", b"h\x00", b"q\x01", b"h\x01"),
    *(b"cnumpy\ndtype\n", b"cnumpy\nndarray\n", b"cnumpy.core.multiarray\n_reconstruct\n", b"c_codecs\nencode\n"),
    *(b"cnumpy.core.multiarray\nscalar\n", b"cnumpy.core.numeric\n_frombuffer\n", b"cbuiltins\nset\n", b"tR", b"t\x81"),
    *(
        b"ccollections\nOrderedDict\n",
        b"cscipy.sparse.csr\ncsr_matrix\n",
        b"ccopyreg\n_reconstructor\n",
        b"cbuiltins\nbytes\n",
    ),
    *(
        b"cnumpy\ndtype\n(Vi8\nI00\nI01\ntR(I3\nV<\nNNNI-1\nI-1\nI0\ntb",
        b"(K\x01(K\x01t",
        b"(",
        b"(",
        b"(",
        b"tb",
        b"s",
        b"u",
    ),
]


def only_our_errors(folder: Path, place: str, data: bytes) -> None:
    write(folder, **{place: data})
    with memory_guard():
        with suppress(EdhnnError):
            read_legacy_pickle(folder, LIMITS)
        with suppress(EdhnnError):
            read_inert(folder / f"{place}.pickle", LIMITS)


@settings(max_examples=600)
@given(place=PLACES, data=st.binary(max_size=200))
@example(place="labels", data=b"")
def test_random_bytes(fuzz_folder, place, data):
    only_our_errors(fuzz_folder, place, data)


@settings(max_examples=1000)
@given(place=PLACES, parts=st.lists(st.sampled_from(FRAGMENTS), max_size=40), start=st.sampled_from([b"", b"}(", b"("]))
def test_random_programs(fuzz_folder, place, parts, start):
    only_our_errors(fuzz_folder, place, start + b"".join(parts) + b".")


@st.composite
def mutated(draw):
    """A good pickle with one to three places overwritten, cut out or filled in."""
    place, data = draw(st.sampled_from(GOOD))
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(changed)))
        piece = draw(st.binary(min_size=1, max_size=2) | st.sampled_from(FRAGMENTS) | st.just(b""))
        changed[at : at + draw(st.sampled_from([len(piece), len(piece), 0, 3]))] = piece
    return place, bytes(changed)


@settings(max_examples=1000)
@given(placed=mutated())
def test_mutated_pickles(fuzz_folder, placed):
    only_our_errors(fuzz_folder, *placed)


def test_memberships_given_twice_are_said_and_widths_bounded(tmp_path):
    dataset = read_legacy_pickle(write(tmp_path, hypergraph={"a": [0, 1, 0]}, labels=[0, 1]), LIMITS)
    assert dataset.provenance.notes == ("1 memberships given more than once were merged",)
    wide = sp.csr_matrix(([1.0], [0], [0, 1, 1]), shape=(2, 10**9))
    folder = write(tmp_path, hypergraph={"a": [0, 1]}, labels=[0, 1], features=wide)
    with pytest.raises(LimitError, match="features.pickle: .*at most 100000000 feature columns. Got 1000000000"):
        read_legacy_pickle(folder, LIMITS)
