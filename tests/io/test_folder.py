"""The dataset folder: each file alone, files that disagree, and broken archives."""

import gzip
import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from edhnn import DataError, LimitError, Limits, UsageError, read_dataset


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def csr(matrix, save=sp.save_npz):
    stream = io.BytesIO()
    save(stream, matrix)
    return stream.getvalue()


def write(folder, files, **more):
    target = folder / "set"
    target.mkdir(exist_ok=True)
    for name, content in {"hyperedges.txt.gz": b"0,1\n\n1,2\n", **files, **more}.items():
        if isinstance(content, dict | list):
            content = json.dumps(content).encode()
        (target / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return target


def read(folder, limits=None, **files):
    """Read a folder of files with the short names labels, features, source, ids, weights, attributes."""
    names = dict(
        hyperedges="hyperedges.txt.gz",
        labels="labels.txt.gz",
        features="features.npz",
        source="source.json",
        ids="ids.json.gz",
        weights="weights.npz",
        attributes="attributes.json.gz",
    )
    return read_dataset(write(folder, {names[name]: content for name, content in files.items()}), limits=limits)


def test_hyperedges_alone(tmp_path):
    dataset = read(tmp_path)
    assert dataset.name == "set"
    assert list(dataset.hypergraph.hyperedges()) == [[0, 1], [], [1, 2]]
    assert dataset.node_ids.are_numbers
    assert (dataset.x, dataset.y, dataset.task, dataset.hypergraph.edge_weight) == (None, None, None, None)


def test_all_files_together(tmp_path):
    dataset = read(
        tmp_path,
        labels=b"1\n0\n-1\n2\n",
        features=csr(sp.csr_matrix(np.diag([1.0, 2, 0, 4]))),
        source={"name": "birds", "class_names": ["a", "b", 7], "counts": {"nodes": 4}, "licence": "free"},
        ids={"nodes": ["w", 5, "y", 2**70], "hyperedges": [3, 2, 1]},
        weights=npz(edge_weight=np.array([1, 2, 3]), incidence_weight=np.array([0.5, 1, 1, 2])),
        attributes={"nodes": {"size": [1, None, 2.5, "x"]}, "hyperedges": {"year": [1, 2, 3]}},
    )
    assert dataset.name == "birds"
    assert dataset.y is not None and dataset.x is not None
    assert (dataset.y.tolist(), dataset.task, dataset.class_names) == ([1, 0, -1, 2], "classification", ("a", "b", 7))
    assert dataset.x.layout == torch.sparse_csr
    assert dataset.x.to_dense().tolist() == np.diag([1.0, 2, 0, 4]).tolist()
    assert dataset.node_ids.to_list() == ["w", 5, "y", 2**70]
    assert dataset.edge_ids.to_list() == [3, 2, 1]
    assert dataset.hypergraph.edge_weight.tolist() == [1.0, 2.0, 3.0]
    assert dataset.hypergraph.incidence_weight.tolist() == [0.5, 1.0, 1.0, 2.0]
    assert dataset.node_attributes == {"size": [1, None, 2.5, "x"]}
    assert dataset.edge_attributes == {"year": [1, 2, 3]}
    assert dataset.provenance.details["source"]["licence"] == "free"


def test_incidence_weights_follow_the_order_of_the_lines(tmp_path):
    weights = npz(incidence_weight=np.array([5.0, 1.0, 7.0]))
    hypergraph = read(tmp_path, hyperedges=b"2,0\n1\n", weights=weights).hypergraph
    assert hypergraph.node_index.tolist() == [0, 2, 1]
    assert hypergraph.incidence_weight.tolist() == [1.0, 5.0, 7.0]


@pytest.mark.parametrize(
    ("labels", "source", "y", "task"),
    [
        (b"0\n1\n2\n", {}, [0, 1, 2], "classification"),
        (b"0\n1\n2", {}, [0, 1, 2], "classification"),
        (b"0\r\n1\r\n2\r\n", {}, [0, 1, 2], "classification"),
        (b"0.5\n1\nnan\n", {}, [0.5, 1, np.nan], "regression"),
        (b"0\n1\nnan\n", {"task": "regression"}, [0, 1, np.nan], "regression"),
        (b"0,1\n1,1\nnan,0\n", {}, [[0, 1], [1, 1], [np.nan, 0]], "multilabel"),
        (b"0\n1\n0\n", {"task": "multilabel"}, [[0], [1], [0]], "multilabel"),
        (b"0.5,1\n1,1\n2,0\n", {"task": "regression"}, [[0.5, 1], [1, 1], [2, 0]], "regression"),
        (b"0.5\n1\n2\n", {"task": "regression", "label_width": 1}, [[0.5], [1], [2]], "regression"),
    ],
)
def test_labels_of_every_kind(tmp_path, labels, source, y, task):
    dataset = read(tmp_path, labels=labels, source=source)
    np.testing.assert_array_equal(dataset.y.numpy(), y)
    assert dataset.task == task


def test_label_names_is_an_old_key_for_class_names(tmp_path):
    assert read(tmp_path, labels=b"0\n1\n0\n", source={"label_names": ["a", "b"]}).class_names == ("a", "b")


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int8, np.uint64, np.bool_, ">f4"])
def test_dense_features_of_any_number_type(tmp_path, kind):
    dataset = read(tmp_path, features=npz(x=np.array([[0, 1], [1, 0], [1, 1]]).astype(kind)))
    assert dataset.x.dtype == torch.float32
    assert dataset.x.tolist() == [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]


LABELS = b"0\n1\n0\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (dict(hyperedges=b"0,1\n1,-2\n"), "hyperedges.txt.gz, line 2: .*Got '1,-2'"),
        (dict(labels=b"0\n1\n"), "hyperedges.txt.gz: Node numbers must be less than 2.*labels.txt.gz. Got 2"),
        (dict(labels=b"0\nx\n2\n"), "labels.txt.gz, line 2: Labels must be integers, -1 for an unknown class. Got 'x'"),
        (dict(labels=b"0\n1 2\n2\n"), "labels.txt.gz, line 2: .*Got '1 2'"),
        (dict(labels=b"0\n\n2\n"), "labels.txt.gz, line 2: .*Got ''"),
        (dict(labels=b"0.5\n1\nten\n"), "labels.txt.gz, line 3: Labels must be numbers. Got 'ten'"),
        (dict(labels=b"0.5\n1e300\n1\n"), "labels.txt.gz, line 2: .*Got '1e300'"),
        (dict(labels=b"0,1\n1,1\n1\n"), r"labels.txt.gz, line 3: .*2 label\(s\), as the first line does. Got '1'"),
        (dict(labels=b"0\n9999999999999999999\n0\n"), "labels.txt.gz, line 2"),
        (dict(labels=b"0\n-2\n0\n"), r"set: Class labels must be -1 \(unlabelled\) or more. Got -2..0"),
        (dict(labels=LABELS, source={"class_names": ["a"]}), "set: .*less than 1, the number of class names"),
        (dict(labels=LABELS, features=npz(x=np.ones((4, 1)))), "agree on the number of nodes. Got labels.txt.gz 3, f"),
        (dict(labels=LABELS, source={"counts": {"nodes": 5}}), "agree.*labels.txt.gz 3, source.json 5"),
        (dict(source={"counts": {"nodes": 2}}), "must be less than 2, the number of nodes in source.json. Got 2"),
        (dict(source={"counts": {"nodes": -1}}), "must be less than -1"),
        (dict(source=b"{"), "source.json: The JSON does not have the form of this file"),
        (dict(source=[]), "source.json: .*Expected `object`"),
        (dict(source={"task": "ranking"}), "source.json: .*Invalid enum value 'ranking'"),
        (dict(source=b'{"zz": "\xff"}'), "source.json: "),
        (dict(source=b'{"zz": NaN}'), "source.json: "),
        (dict(source=b'{"zz": ' + b"[" * 10**5), "source.json: "),
        (dict(ids={"nodes": ["a", "b"]}), "set: 'node_ids' must hold 3 ids. Got 2"),
        (dict(ids={"nodes": ["a", "b", "a"]}), r"ids.json.gz, nodes\[2\]: Ids must be unique. Got 'a' twice"),
        (dict(ids={"nodes": ["a", 1.5, "b"]}), "ids.json.gz: .*nodes"),
        (dict(ids={"other": []}), "ids.json.gz: .*unknown field"),
        (dict(attributes={"nodes": {"size": [1]}}), "set: The node attribute 'size' must have 3 entries. Got 1"),
        (dict(attributes={"nodes": {"size": 1}}), "attributes.json.gz: .*Expected `array`"),
        (dict(weights=npz(edge_weight=np.array([1.0]))), "set: 'edge_weight' must be 3 floating-point numbers"),
        (dict(weights=npz(edge_weight=np.array([1, -1, 1]))), "set: .*finite and 0 or more. Got -1.0 at 1"),
        (dict(weights=npz(incidence_weight=np.array([1, np.nan, 1, 1]))), "set: .*Got nan at 1"),
        (dict(weights=npz(edge_weight=np.array(["a", "b", "c"]))), "weights.npz: Weights must be vectors of numbers"),
        (dict(features=npz(x=np.ones(3))), r"set: Features must be .*shape \[3, D\].*Got torch.float32 of shape \[3\]"),
        (dict(features=npz(x=np.array([["1"]] * 3))), "features.npz: .*must contain numbers, not <U1"),
        (dict(features=npz(x=np.full((3, 1), 1e300))), "features.npz: .*overflow"),
        (
            dict(features=npz(x=np.full((3, 1), 1e30)), source={"features_type": "float16"}),
            "features.npz: .*beyond float16",
        ),
        (
            dict(features=csr(sp.csr_matrix(np.eye(3) * 1e30)), source={"features_type": "float16"}),
            "features.npz: .*beyond float16",
        ),
        (dict(labels=b"0.5\n1e400\n1\n", source={"label_type": "float64"}), "labels.txt.gz, line 2: .*Got '1e400'"),
        (dict(labels=b"0.5\n-1e9\n1\n", source={"label_type": "float16"}), "labels.txt.gz, line 2: .*Got '-1e9'"),
        (dict(features=npz(x=np.ones((3, 1), complex))), "features.npz: .*plain arrays.*complex128"),
        (dict(features=npz(x=np.ones((3, 1), "M8[s]"))), "features.npz: .*plain arrays.*datetime64"),
        (dict(features=npz(y=np.ones((3, 1)))), "features.npz: .*CSR matrix or an array named 'x'"),
        (dict(features=csr(sp.csc_matrix(np.eye(3)))), "features.npz: .*stored as b'csc'"),
        (dict(features=csr(sp.coo_matrix(np.eye(3)))), "features.npz: .*stored as b'coo'"),
        (dict(features=b"not a zip"), "features.npz: .*not a zip file"),
        (dict(features=b""), "features.npz: .*not a zip file"),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path, files, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, **files)


@pytest.mark.parametrize(
    "parts",
    [
        dict(indices=np.array([0, 5, 2])),
        dict(indices=np.array([0, -1, 2])),
        dict(indices=np.array([0.0, 1.0, 2.0])),
        dict(indptr=np.array([0, 2, 1, 3])),
        dict(indptr=np.array([0, 1, 2])),
        dict(indptr=np.array([0, 1, 2, 9])),
        dict(shape=np.array([3])),
        dict(shape=np.array(3)),
        dict(shape=np.array([-3, 3])),
        dict(shape=np.array([3, 2**62])),
        dict(shape=np.array([2**62, 2**62])),
        dict(data=np.array(["a", "b", "c"])),
        dict(data=np.ones((3, 1))),
        dict(format=np.array(["csr", "csr"])),
    ],
)
def test_broken_csr_matrices_are_refused(tmp_path, parts):
    whole = dict(
        data=np.ones(3), indices=np.arange(3), indptr=np.arange(4), shape=np.array([3, 3]), format=np.array(b"csr")
    )
    assert read(tmp_path, features=npz(**whole)).num_features == 3
    with pytest.raises(DataError, match="features.npz|agree|less than"):
        read(tmp_path, features=npz(**{**whole, **parts}))


def header_only(descr, shape, body):
    """Return an archive with one array whose header does not match its body."""
    stream, header = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x.npy", header.getvalue() + body)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("descr", "shape", "body"),
    [
        ("<f4", (10**12, 10**6), b""),
        ("<f4", (3, 1), b"123"),
        ("<f4", (-3, 1), b""),
        ("|O", (1,), b"cos\nsystem\n(S'false'\ntR."),
        ("|S0", (10**15,), b""),
        ("|V8", (3,), bytes(24)),
    ],
)
def test_an_array_header_larger_than_its_file_is_refused(tmp_path, descr, shape, body):
    with pytest.raises(DataError, match="features.npz: .*archive of plain arrays"):
        read(tmp_path, features=header_only(descr, shape, body))


@pytest.mark.parametrize(
    "header", [b"{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 1L), }", b"{'descr': (", b"[", b"\x00" * 20]
)
def test_odd_array_headers_are_refused(tmp_path, header):
    stream = io.BytesIO()
    padded = header.ljust(117) + b"\n"
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + bytes(12))
    with pytest.raises(DataError, match="features.npz: .*archive of plain arrays"):
        read(tmp_path, features=stream.getvalue())


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"labels": b"0\n1000000000000000\n"},
            "labels.txt.gz, line 2: .*at most 1000000 classes in a file of 2 entries",
        ),
        (
            {"features": csr(sp.csr_array(([1.0], [0], [0, 1, 1]), shape=(2, 10**15)))},
            "features.npz: .*at most 1000000 feature columns in a file of . entries. Got 1000000000000000",
        ),
        (
            {"hyperedges": b"", "labels": b"", "source": {"task": "multilabel", "label_width": 10**15}},
            "source.json: .*at most 1000000 label columns",
        ),
    ],
)
def test_a_short_file_that_declares_many_classes_or_columns_is_refused(tmp_path, files, message):
    with pytest.raises(LimitError, match=message):
        read(tmp_path, **{"hyperedges": b"0,1\n", **files})


def test_duplicate_memberships_are_reported(tmp_path):
    dataset = read(tmp_path, hyperedges=b"0,1,0\n1,1\n")
    assert dataset.provenance.notes == ("2 memberships given more than once were merged",)


def test_limits_apply_to_each_file(tmp_path):
    squeezed = io.BytesIO()
    np.savez_compressed(squeezed, x=np.zeros((3, 10**6)))
    assert len(squeezed.getvalue()) < 10**5
    with pytest.raises(LimitError, match=r"features.npz: .*at most 1.0 MiB after decompression.*`max_bytes=`"):
        read(tmp_path, features=squeezed.getvalue(), limits=Limits(max_bytes=2**20))
    with pytest.raises(LimitError, match="source.json: .*`max_bytes=`"):
        read(tmp_path / "", source=b" " * 2000, features=npz(x=np.ones((3, 1))), limits=Limits(max_bytes=1500))
    with pytest.raises(LimitError, match="set: There must be at most 10 nodes. Got 1000000000000"):
        (tmp_path / "set" / "features.npz").unlink()
        read(tmp_path, source={"counts": {"nodes": 10**12}}, limits=Limits(max_nodes=10))


def test_a_truncated_file_is_refused(tmp_path):
    folder = write(tmp_path, {})
    whole = (folder / "hyperedges.txt.gz").read_bytes()
    (folder / "hyperedges.txt.gz").write_bytes(whole[:-4])
    with pytest.raises(DataError, match="hyperedges.txt.gz, after .*gzip data must be complete"):
        read_dataset(folder)


def test_a_folder_without_known_files_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"must contain hyperedges.txt.gz \(a dataset folder\) or hyperedges-NAME.txt"):
        read_dataset(tmp_path)
    (write(tmp_path, {}) / "features.npz").mkdir()
    with pytest.raises(UsageError, match="features.npz' must be a file. It is a folder"):
        read_dataset(tmp_path / "set")
