"""A small file stays small in memory: the default limits relate what a file claims to what it contains."""

import gzip
import io
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from edhnn import LimitError, Limits, read_dataset

PAIR = gzip.compress(b"0,1\n")


def npz(**arrays):
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def constant_parquet(rows):
    stream, ones = io.BytesIO(), pa.array(np.ones(rows, np.int64))
    pa.parquet.write_table(pa.table({"node": ones, "hyperedge": ones}), stream)
    return stream.getvalue()


def hif(**content):
    return json.dumps({"incidences": [{"edge": 1, "node": 1}], **content}).encode()


def write(folder, files):
    """Write files and return the path to read: the only file, or the folder."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder / name if len(files) == 1 else folder


COUNTS = {
    "hmetis nodes": ({"a.hgr": b"1 99999999\n1 2\n"}, "1000000 nodes in a file of 4 entries. Got 99999999"),
    "cornell nodes": ({"hyperedges-a.txt": b"1,99999999\n"}, "1000000 nodes in a file of 2 entries. Got 99999999"),
    "cornell hyperedges": ({"hyperedges-a.txt": b"1\n" + b"\n" * 10**6}, "1000000 hyperedges in a file of 1 entries"),
    "folder nodes": (
        {"hyperedges.txt.gz": PAIR, "source.json": b'{"counts": {"nodes": 99999999}}'},
        "1000000 nodes in a file of 2 entries. Got 99999999",
    ),
    "folder rows": (
        {"hyperedges.txt.gz": PAIR, "features.npz": npz(x=np.zeros((99999999, 0), np.float32))},
        "1000000 nodes in a file of 2 entries. Got 99999999",
    ),
    "folder classes": (
        {"hyperedges.txt.gz": PAIR, "labels.txt.gz": gzip.compress(b"0\n99999999\n")},
        "1000000 classes in a file of 2 entries. Got 100000000",
    ),
    "hif columns": (
        {"a.hif.json": hif(metadata={"edhnn": {"name": "a", "num_features": 99999999, "sparse": True}})},
        "1000000 feature columns in a file of 0 entries. Got 99999999",
    ),
}


@pytest.mark.parametrize(("files", "message"), COUNTS.values(), ids=COUNTS)
def test_a_count_that_the_entries_do_not_support_is_refused(tmp_path, files, message):
    with pytest.raises(LimitError, match=f"at most {message}.*`max_nodes=`"):
        read_dataset(write(tmp_path, files))


def test_a_file_may_declare_isolated_nodes(tmp_path):
    """A million nodes are always allowed, ten for each entry beyond that, and more if the user allows them."""
    assert read_dataset(write(tmp_path, {"a.hgr": b"1 1000000\n1 2\n"})).hypergraph.num_nodes == 10**6
    path = write(tmp_path, {"a.hgr": b"1 1000001\n1 2\n"})
    with pytest.raises(LimitError, match="Got 1000001"):
        read_dataset(path)
    assert read_dataset(path, limits=Limits(max_nodes=1000001)).hypergraph.num_nodes == 1000001
    Limits().check_nodes(10**7, path, entries=10**6)


def test_a_user_may_allow_more_empty_hyperedges_but_need_not_allow_hyperedges(tmp_path):
    path = write(tmp_path, {"hyperedges-a.txt": b"1\n" + b"\n" * 10**6})
    assert read_dataset(path, limits=Limits(max_nodes=10**6 + 1)).hypergraph.num_edges == 10**6 + 1
    few_nodes = write(tmp_path, {"hyperedges-b.txt": b"1\n1\n1\n"})
    assert read_dataset(few_nodes, limits=Limits(max_nodes=1)).hypergraph.num_edges == 3


MEBIBYTE = 2**20
BOMBS = {
    "cornell": lambda: {"hyperedges-a.txt.gz": gzip.compress(b"1,1\n" * 3 * MEBIBYTE)},
    "folder": lambda: {"hyperedges.txt.gz": PAIR, "labels.txt.gz": gzip.compress(b"10\n" * 3 * MEBIBYTE)},
    "csv": lambda: {"a.csv.gz": gzip.compress(b"node,hyperedge\n" + b"1,1\n" * 3 * MEBIBYTE)},
    "hif": lambda: {"a.hif.json.gz": gzip.compress(hif() + b" " * 9 * MEBIBYTE)},
    "parquet": lambda: {"a.parquet": constant_parquet(5 * MEBIBYTE)},
    "npz": lambda: {"hyperedges.txt.gz": PAIR, "features.npz": npz(x=np.zeros((2, 40 * MEBIBYTE), np.int8))},
    "csr": lambda: {
        "hyperedges.txt.gz": PAIR,
        "features.npz": npz(
            data=np.zeros(14 * MEBIBYTE, np.int8),
            indices=np.zeros(14 * MEBIBYTE, np.int32),
            indptr=np.array([0, 14 * MEBIBYTE, 14 * MEBIBYTE]),
            shape=np.array([2, 1]),
        ),
    },
}


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_content_far_larger_than_its_file_is_refused(tmp_path, make):
    with pytest.raises(LimitError, match="after decompression, because the file has .*`max_bytes=`"):
        read_dataset(write(tmp_path, make()))


def test_the_user_may_allow_content_far_larger_than_its_file(tmp_path):
    path = write(tmp_path, {"a.hif.json.gz": gzip.compress(hif() + b" " * 9 * MEBIBYTE)})
    assert read_dataset(path, limits=Limits(max_bytes=10 * MEBIBYTE)).hypergraph.num_edges == 1


def test_the_ratio_counts_only_beyond_the_allowance():
    limits = Limits()
    assert limits.most_bytes(10) == 8 * 2**20
    assert limits.most_bytes(2**20) == 50 * 2**20
    assert limits.most_bytes(2**40) == 16 * 2**30
    assert Limits(max_bytes=5).most_bytes(2**40) == 5


def test_large_metadata_must_be_allowed(tmp_path):
    path = write(tmp_path, {"a.hif.json": hif(metadata={"a": " " * 21 * 2**20})})
    with pytest.raises(LimitError, match="'metadata': A record must be at most 16.0 MiB.*`max_bytes=`"):
        read_dataset(path)
    assert read_dataset(path, limits=Limits(max_bytes=2**30)).hypergraph.num_edges == 1


@pytest.mark.parametrize("place", ["metadata", "nodes"])
def test_text_of_little_else_than_brackets_must_be_allowed(tmp_path, place):
    """A list of two bytes takes about 90 in memory, so 15 MB of metadata would take more than a gigabyte."""
    lists = [[[]] * 1000] * 1100
    content = {"metadata": {"a": lists}, "nodes": [{"node": 1, "attrs": {"a": lists}}]}
    path = write(tmp_path, {"a.hif.json": hif(**{place: content[place]})})
    with pytest.raises(LimitError, match=r"at most one list or object for every 8 bytes, or 1000000\..*`max_bytes=`"):
        read_dataset(path)
    assert read_dataset(path, limits=Limits(max_bytes=2**30)).hypergraph.num_edges == 1


def test_a_different_attribute_of_every_node_must_be_allowed(tmp_path):
    nodes = [{"node": number, "attrs": {f"k{number}": 1}} for number in range(6000)]
    with pytest.raises(LimitError, match=r"must take at most 256.0 MiB as columns. Got 6000 keys.*`max_bytes=`"):
        read_dataset(write(tmp_path, {"a.hif.json": hif(nodes=nodes)}))


def test_declared_labels_must_be_allowed(tmp_path):
    manifest = {"name": "a", "task": "regression", "label_width": 10**6}
    nodes = [{"node": number} for number in range(30)]
    with pytest.raises(LimitError, match="labels must take at most 256.0 MiB. Got 1000000 columns for 30 nodes"):
        read_dataset(write(tmp_path, {"a.hif.json": hif(nodes=nodes, metadata={"edhnn": manifest})}))


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak memory depends on the system")
def test_the_statistics_of_small_files_take_less_than_a_gigabyte(tmp_path):
    """Files of a few bytes to a few kilobytes that just keep to the limits, in a process of their own."""
    files = {
        "a.hgr": b"1 1000000\n1 2\n",
        "hyperedges-a.txt.gz": gzip.compress(b"1\n" * 4 * 2**20),
    }
    write(tmp_path, files)
    code = (
        "import sys; from pathlib import Path; import edhnn; from edhnn.doctor.summary import facts\n"
        "for path in sys.argv[1:]: facts(edhnn.read_dataset(Path(path)))\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"  # ru_maxrss includes the parent's
    )
    command = [sys.executable, "-c", code, *(str(tmp_path / name) for name in files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert int(done.stdout) < 2**20  # kibibytes
