"""Benson's simplices, the files of AllSet and workbooks: what is read from them, and how broken ones are refused."""

import datetime
import io
import sys
import zipfile

import pytest

from edhnn import DataError, LimitError, Limits, UsageError, read_dataset
from edhnn.errors import MissingDependencyError
from edhnn.io import TableRequest
from tests.contract.test_formats import only_read, workbook


def write(folder, files):
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_bensons_files(tmp_path):
    (path, _), _ = only_read(tmp_path, "benson")
    dataset = read_dataset(path)
    assert [list(members) for members in dataset.hypergraph.hyperedges()] == [[0, 1, 2], [1, 3], [3]]
    assert dataset.node_ids.to_list() == [1, 2, 3, 4, 7]
    assert list(dataset.edge_attributes["time"]) == [10, 15, 21]
    assert list(dataset.node_attributes["name"]) == ["Ann", "Bob", "Cid", "Dan", "Eve"]
    assert read_dataset(tmp_path).hypergraph.same_as(dataset.hypergraph)  # the folder
    assert read_dataset(path, label="name").class_names == ("Ann", "Bob", "Cid", "Dan", "Eve")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t-nverts.txt": b"3\n2\n2\n"}, "add up to 7, and there are 6"),
        ({"t-nverts.txt": b"3\n2 1\n"}, "t-nverts.txt, line 2: Every line must have one number"),
        ({"t-times.txt": b"10\n"}, "a time for each of 3 hyperedges. Got 1"),
        ({"t-node-labels.txt": b"1 Ann\nBob\n"}, "t-node-labels.txt, line 2: .*'Bob'"),
        ({"t-node-labels.txt": b"1 Ann\n1 Bob\n"}, "line 2: Each node must occur once. Got 1 twice"),
        ({"t-node-labels.txt": b"1 K\xe4\n"}, "must be UTF-8"),
    ],
)
def test_bensons_files_that_disagree_are_refused(tmp_path, change, message):
    (path, _), _ = only_read(tmp_path, "benson")
    write(tmp_path, change)
    with pytest.raises(DataError, match=message):
        read_dataset(path)


def test_a_missing_file_is_named(tmp_path):
    write(tmp_path, {"t-nverts.txt": b"1\n", "u.content": b"1 0\n"})
    with pytest.raises(UsageError, match="'t-simplices.txt'"):
        read_dataset(tmp_path / "t-nverts.txt")
    with pytest.raises(UsageError, match="'u.edges'"):
        read_dataset(tmp_path / "u.content")


def test_the_files_of_allset(tmp_path):
    (path, _), _ = only_read(tmp_path, "allset")
    dataset = read_dataset(path)
    assert dataset.node_ids.to_list() == [10, 11, 12] and dataset.edge_ids.to_list() == [20, 21]
    assert dataset.x.tolist() == [[0.5], [2], [3]]
    assert dataset.y.tolist() == [0, 1, 1] and dataset.task == "classification"
    assert [list(members) for members in dataset.hypergraph.hyperedges()] == [[0, 1], [1]]
    assert "2 line(s) of hyperedges in 't.content' left out" in dataset.provenance.notes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t.edges": b"10 20\n\n99 20\n"}, "t.edges, line 3: .*'99' is not in 't.content'"),
        ({"t.edges": b"10 20\n20 21\n"}, "line 2: .*'20' is a node and a hyperedge"),
        ({"t.edges": b"10 20\n11\n"}, "line 2: Every line must have 2 fields"),
        ({"t.content": b"10 1 0\n10 1 0\n11 1 1\n"}, "line 2: Each node must occur once. Got '10' twice"),
        ({"t.content": b"10 1 0\n11 x 1\n"}, "Column 1 is not"),
        ({"t.content": b""}, "It is empty"),
        ({"t.content": b"10 1 \xe4\n11 1 b\n"}, "must be UTF-8"),
    ],
)
def test_files_of_allset_that_disagree_are_refused(tmp_path, change, message):
    (path, _), _ = only_read(tmp_path, "allset")
    write(tmp_path, change)
    with pytest.raises(DataError, match=message):
        read_dataset(path)


def test_the_cells_of_a_workbook_are_read_as_those_of_csv(tmp_path):
    day = datetime.datetime(2026, 1, 5)
    rows = [["sku", "order", "weight", "day"], ["007", 1, 0.5, day], ["12", 1.0, 2, day], [None] * 4, ["12", 2, 1, day]]
    (tmp_path / "t.xlsx").write_bytes(workbook(("Orders", rows), ("Notes", [["ignored"]])))
    dataset = read_dataset(tmp_path / "t.xlsx", table=TableRequest(node="sku", edge="order", weight="weight"))
    assert dataset.node_ids.to_list() == ["007", "12"] and dataset.edge_ids.to_list() == [1, 2]
    assert dataset.hypergraph.incidence_weight.tolist() == [0.5, 2, 1]
    assert "sheet 'Orders' read, 1 other sheet(s) left out" in dataset.provenance.notes


def test_errors_in_a_workbook_name_the_row(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(workbook(("a", [["node", "edge"], ["a", 1], [None, None], [None, 2]])))
    with pytest.raises(DataError, match="row 4 of the sheet: Every row must have an id in the column 'node'"):
        read_dataset(tmp_path / "t.xlsx")


def with_entry(name, content):
    stream = io.BytesIO(workbook(("a", [["node", "edge"], ["a", 1]])))
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def test_dangerous_workbooks_are_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(with_entry("xl/bomb.xml", b"0" * 100 * 2**20))
    with pytest.raises(LimitError, match="`max_bytes=`"):
        read_dataset(path)
    path.write_bytes(with_entry("xl/x.xml", b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'))
    with pytest.raises(DataError, match="declares entities"):
        read_dataset(path)
    path.write_bytes(b"PK no zip")
    with pytest.raises(DataError, match="intact .xlsx workbook"):
        read_dataset(path, limits=Limits())


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    (tmp_path / "t.xlsx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    monkeypatch.delitem(sys.modules, "edhnn.io.tables.excel", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'edhnn\[excel\]'"):
        read_dataset(tmp_path / "t.xlsx")
