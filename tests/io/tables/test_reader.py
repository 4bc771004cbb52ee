"""Incidence tables: columns named or guessed, tables beside them, and errors at the right line."""

import csv
import gzip
import io
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import (
    DataError,
    Hypergraph,
    LimitError,
    Limits,
    NodeDataset,
    UsageError,
    read_dataset,
    write_dataset,
)
from edhnn.interop.frames import to_pandas
from edhnn.io import TableRequest
from edhnn.io.tables import arrow as arrow_tables
from tests.strategies import examples

MEMBERSHIPS = [("milk", "1"), ("bread", "1"), ("milk", "2")]


def write(folder, **files):
    """`csv="..."` is t.csv, `nodes="..."` t.nodes.csv, `hyperedges="..."` t.hyperedges.csv; dicts are Parquet."""
    for kind, content in files.items():
        if isinstance(content, dict):
            name = "t.parquet" if kind == "parquet" else f"t.{kind}.parquet"
            pa.parquet.write_table(pa.table(content), folder / name)
        else:
            name = f"t.{kind}" if kind in ("csv", "tsv") else f"t.{kind}.csv"
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / ("t.parquet" if "parquet" in files else "t.tsv" if "tsv" in files else "t.csv")


def read(folder, *, options=None, **files):
    return read_dataset(write(folder, **files), **(options or {}))


def memberships(dataset):
    hypergraph = dataset.hypergraph
    nodes, edges = hypergraph.node_index.numpy(), hypergraph.edge_index.numpy()
    return set(zip(dataset.node_ids.take(nodes), dataset.edge_ids.take(edges), strict=True))


BASKETS = "item,basket\nmilk,a\nbread,a\nmilk,b\n"


@pytest.mark.parametrize(
    "files",
    [
        dict(csv=BASKETS),
        dict(csv=BASKETS.replace("\n", "\r\n")),
        dict(csv=BASKETS.rstrip("\n")),
        dict(csv="\ufeff" + BASKETS),
        dict(csv=BASKETS.replace(",", ";")),
        dict(csv=BASKETS.replace(",", "|")),
        dict(csv=BASKETS.replace(",", "\t")),
        dict(csv='"item","basket"\n"milk","a"\n"bread","a"\n\n"milk",b\n\n'),
        dict(csv=gzip.compress(BASKETS.encode())),
        dict(tsv=BASKETS.replace(",", "\t")),
        dict(tsv=gzip.compress(BASKETS.replace(",", "\t").encode())),
        dict(parquet={"item": ["milk", "bread", "milk"], "basket": ["a", "a", "b"]}),
    ],
)
def test_the_same_table_in_every_notation(tmp_path, files):
    dataset = read(tmp_path, **files)
    assert dataset.name == "t"
    assert dataset.node_ids.to_list() == ["milk", "bread"]
    assert dataset.edge_ids.to_list() == ["a", "b"]
    assert list(dataset.hypergraph.hyperedges()) == [[0, 1], [0]]
    notes = dataset.provenance.notes
    assert notes[-2:] == ("node column guessed: 'item'", "hyperedge column guessed: 'basket'")
    assert (dataset.x, dataset.y, dataset.hypergraph.incidence_weight) == (None, None, None)


def test_another_delimiter_is_reported(tmp_path):
    notes = read(tmp_path, csv=BASKETS.replace(",", ";")).provenance.notes
    assert notes[0] == "columns are separated by ';'"


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv.gz", "T.CSV"])
def test_compressed_names_and_their_neighbours(tmp_path, name):
    tab = "\t" if "tsv" in name else ","
    head, dot, rest = name.partition(".")
    for file, text in ((name, BASKETS), (f"{head}.nodes{dot}{rest}", "id,size\nmilk,1\nbread,2\nsalt,3\n")):
        content = text.replace(",", tab).encode()
        (tmp_path / file).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    dataset = read_dataset(tmp_path / name)
    assert dataset.name == head
    assert dataset.node_ids.to_list() == ["milk", "bread", "salt"]
    assert dataset.x is not None
    assert dataset.x.tolist() == [[1.0], [2.0], [3.0]]


@pytest.mark.parametrize(
    ("header", "guessed"),
    [
        ("node,hyperedge", ("node", "hyperedge", None)),
        ("hyperedge,node", ("node", "hyperedge", None)),
        ("Edge,Vertex,W", ("Vertex", "Edge", "W")),
        ("weight,e,v", ("v", "e", "weight")),
        ("a,b", ("a", "b", None)),
        ("a,paper", ("a", "paper", None)),
        ("author,a", ("author", "a", None)),
    ],
)
def test_guesses_are_reported(tmp_path, header, guessed):
    dataset = read(tmp_path, csv=f"{header}\n1,1,1\n" if header.count(",") == 2 else f"{header}\n1,1\n")
    kinds = [name for name in zip(("node", "hyperedge", "weight"), guessed, strict=True) if name[1]]
    expected = [f"{kind} column guessed: '{name}'" for kind, name in kinds]
    assert list(dataset.provenance.notes)[: len(expected)] == expected
    unsure = header in ("a,b", "author,a")
    assert ["uncertain" in note for note in dataset.provenance.notes[len(expected) :]] == [True] * unsure


def test_columns_in_the_request_are_not_guessed(tmp_path):
    request = TableRequest(node="b", edge="a", weight="node")
    dataset = read(tmp_path, csv="node,a,b,weight\n0.5,x,1,9\n2,x,3,9\n", options=dict(table=request))
    assert dataset.node_ids.to_list() == [1, 3]
    assert dataset.edge_ids.to_list() == ["x"]
    assert dataset.hypergraph.incidence_weight.tolist() == [0.5, 2.0]
    assert dataset.provenance.notes == (
        "columns of the incidence table left out: weight (too few nodes have two rows)",
    )


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (TableRequest(node="itm"), "node column of 't.csv' must be one of item, basket. Got 'itm'.*mean 'item'"),
        (TableRequest(edge="x"), "hyperedge column of 't.csv' must be one of"),
        (TableRequest(weight="x"), "weight column of 't.csv' must be one of"),
        (
            TableRequest(node="item", edge="item"),
            "different columns of 't.csv'. Got 'item' for the node, 'item' for",
        ),
        (TableRequest(node="item", weight="basket"), "Got 'item' for the node, 'basket' for the weight.$"),
    ],
)
def test_invalid_columns_are_refused(tmp_path, request_, message):
    with pytest.raises(UsageError, match=message):
        read(tmp_path, csv=BASKETS, options=dict(table=request_))


def test_text_ids_are_integers_only_if_all_of_them_are(tmp_path):
    assert read(tmp_path, csv="node,edge\n10,7\n9,7\n").node_ids.to_list() == [9, 10]
    assert read(tmp_path, csv="node,edge\n10,7\n09,7\n").node_ids.to_list() == ["10", "09"]
    assert read(tmp_path, csv="node,edge\n10,x\n9,7\n").edge_ids.to_list() == ["x", "7"]
    assert read(tmp_path, csv='node,edge\n"10",7\n 9,7\n').node_ids.to_list() == ["10", " 9"]
    assert read(tmp_path, csv="node,edge\n0x1a2b3c4d5e,7\n").node_ids.to_list() == ["0x1a2b3c4d5e"]


def test_parquet_has_types_and_keeps_them(tmp_path):
    table = {"node": ["2", "1"], "edge": [5, 5]}
    dataset = read(tmp_path, parquet=table, nodes={"id": ["1", "2"], "size": [1, 2]})
    assert dataset.node_ids.to_list() == ["1", "2"]
    assert dataset.edge_ids.to_list() == [5]


@pytest.mark.parametrize("ids", [["1", "2"], [1, 2]])
def test_a_text_table_beside_parquet_follows_its_types(tmp_path, ids):
    path = write(tmp_path, parquet={"node": ids, "edge": [5, 5]}, nodes="id,size\n2,20\n1,10\n")
    dataset = read_dataset(path, table=TableRequest(nodes=tmp_path / "t.nodes.csv"))
    assert dataset.node_ids.to_list() == ids[::-1]
    other = write(tmp_path, csv="node,edge\n1,5\n2,5\n")
    pa.parquet.write_table(pa.table({"id": ids, "size": [1, 2]}), tmp_path / "n.parquet")
    assert read_dataset(other, table=TableRequest(nodes=tmp_path / "n.parquet")).node_ids.to_list() == ids


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "b"], pa.large_string()),
        pa.array(["a", "b"], pa.string_view()),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array([1, 2], pa.int8()),
        pa.array([1, 2], pa.uint64()),
        pa.array([1, 2]).dictionary_encode(),
    ],
)
def test_parquet_ids_of_every_text_and_integer_type(tmp_path, column):
    dataset = read(tmp_path, parquet={"node": column, "edge": ["x", "x"]})
    assert dataset.node_ids.to_list() == column.to_pylist()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, 2.0]), "ids in the column 'node' must be text or 64-bit integers. Got double"),
        (pa.array([True, False]), "Got bool"),
        (pa.array([b"a", b"b"]), "Got binary"),
        (pa.array([[1], [2]]), "Got list"),
        (pa.array([2**63, 1], pa.uint64()), "64-bit integers. Integer value 9223372036854775808 not in range"),
        (pa.array(["a", None]), "t.parquet, row 2: Every row must have an id in the column 'node'"),
        (pa.array([None, None]), "t.parquet, row 1: Every row must have an id"),
    ],
)
def test_parquet_ids_of_other_types_are_refused(tmp_path, column, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, parquet={"node": column, "edge": ["x", "x"]})


def test_tables_of_nodes_and_hyperedges_are_found(tmp_path):
    dataset = read(
        tmp_path,
        csv=BASKETS,
        nodes="id,label,price,name\nbread,food,1.5,Brot\nsoap,other,2,Seife\nmilk,food,0.5,\n",
        hyperedges="basket,weight,day\nnone,2,Mon\nb,3,Tue\na,0.5,\n",
    )
    assert dataset.node_ids.to_list() == ["bread", "soap", "milk"]
    assert dataset.edge_ids.to_list() == ["none", "b", "a"]
    assert list(dataset.hypergraph.hyperedges()) == [[], [2], [0, 2]]
    assert dataset.hypergraph.edge_weight.tolist() == [2.0, 3.0, 0.5]
    assert (dataset.y.tolist(), dataset.class_names) == ([0, 1, 0], ("food", "other"))
    assert (dataset.x.tolist(), dataset.feature_names) == ([[1.5], [2.0], [0.5]], ("price",))
    assert dataset.node_attributes == {"name": ["Brot", "Seife", None]}
    assert dataset.edge_attributes == {"day": ["Mon", "Tue", None]}
    assert dataset.provenance.notes[2:] == (
        "table of nodes found beside it: 't.nodes.csv'",
        "id column of 't.nodes.csv' guessed: 'id'",
        "table of hyperedges found beside it: 't.hyperedges.csv'",
        "id column of 't.hyperedges.csv' guessed: 'basket'",
        "label column guessed: 'label'",
        "feature columns guessed (all other columns of numbers): price",
        "not used as a feature, as nearly every value is different, as in ids (2 of 2, first 'Brot'): name",
    )


@pytest.mark.parametrize(
    ("table", "nodes"),
    [("t.csv.gz", "t.nodes.csv"), ("t.tsv", "t.nodes.csv"), ("t.CSV", "t.nodes.csv"), ("t.csv", "t.nodes.tsv.gz")],
)
def test_a_neighbour_with_another_ending_is_found(tmp_path, table, nodes):
    (tmp_path / table).write_text("item,basket\nmilk,1\n")
    (tmp_path / nodes).write_text("id,price\nmilk,1\nsalt,2\n")
    dataset = read_dataset(tmp_path / table)
    assert dataset.feature_names == ("price",)
    assert f"table of nodes found beside it: '{nodes}'" in dataset.provenance.notes


def test_the_neighbour_with_the_same_ending_wins(tmp_path):
    (tmp_path / "t.csv").write_text("item,basket\nmilk,1\n")
    for name in ("t.nodes.tsv", "t.nodes.csv.gz"):
        (tmp_path / name).write_text("id,price\nmilk,1\n")
    with pytest.raises(
        UsageError,
        match=r"'t.nodes.csv.gz' and 't.nodes.tsv'. Name one with `nodes=`, or rename it to 't.nodes.csv'",
    ):
        read_dataset(tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_text("item,basket\nmilk,1\n")  # now one of them is another table's
    note = "table of nodes ignored, because it belongs to another table: 't.nodes.csv.gz'"
    assert note in read_dataset(tmp_path / "t.csv").provenance.notes
    (tmp_path / "t.nodes.csv").write_text("id,size\nmilk,1\n")
    assert read_dataset(tmp_path / "t.csv").feature_names == ("size",)


def test_a_neighbour_with_another_ending_is_neither_read_nor_removed(tmp_path):
    (tmp_path / "t.nodes.tsv").write_text("id\tprice\n0\t1\n")
    dataset = NodeDataset(name="t", hypergraph=Hypergraph.from_hyperedges([[0, 1]]))
    written = write_dataset(dataset, tmp_path / "t.csv")
    assert [path.name for path in written.paths] == ["t.csv", "t.nodes.csv"]
    assert (read_dataset(tmp_path / "t.csv").x, written.removed) == (None, [])
    assert (tmp_path / "t.nodes.tsv").exists()


def test_a_string_is_the_name_of_one_column(tmp_path):
    dataset = read(tmp_path, csv=BASKETS, nodes="id,ab,a,b\nmilk,1,2,3\nbread,1,2,3\n", options=dict(features="ab"))
    assert (dataset.feature_names, list(dataset.node_attributes)) == (("ab",), ["a", "b"])


def test_tables_of_nodes_and_hyperedges_may_be_given(tmp_path):
    (tmp_path / "people.tsv").write_text("size\twho\n3\tmilk\n4\tbread\n")
    (tmp_path / "groups.csv").write_text("id\nb\na\n")
    request = TableRequest(nodes=tmp_path / "people.tsv", hyperedges=tmp_path / "groups.csv", id="who")
    dataset = read(tmp_path, csv=BASKETS, options=dict(table=request))
    assert dataset.node_ids.to_list() == ["milk", "bread"]
    assert dataset.edge_ids.to_list() == ["b", "a"]
    assert dataset.x.tolist() == [[3.0], [4.0]]
    with pytest.raises(UsageError, match="File not found"):
        read(tmp_path, csv=BASKETS, options=dict(table=TableRequest(nodes=tmp_path / "absent.csv")))
    with pytest.raises(UsageError, match="id column of 'people.tsv' must be one of size, who. Got 'whom'"):
        request = TableRequest(nodes=tmp_path / "people.tsv", id="whom")
        read(tmp_path, csv=BASKETS, options=dict(table=request))
    (tmp_path / "people.tsv").rename(tmp_path / "people.txt")
    request = TableRequest(nodes=tmp_path / "people.txt", id="who")
    assert read(tmp_path, csv=BASKETS, options=dict(table=request)).x.tolist() == [[3.0], [4.0]]


def test_the_id_column_is_the_first_with_that_name(tmp_path):
    dataset = read(tmp_path, csv=BASKETS, nodes="ID,id,size\nmilk,x,1\nbread,y,2\n")
    assert dataset.node_ids.to_list() == ["milk", "bread"]
    assert dataset.node_attributes == {"id": ["x", "y"]}


@pytest.mark.parametrize(
    ("label", "task", "values", "y", "expected_task", "names"),
    [
        (None, None, ["b", "a", ""], [1, 0, -1], "classification", ("a", "b")),
        (None, None, ["10", "9", ""], [1, 0, -1], "classification", (9, 10)),
        (None, None, ["true", "false", "true"], [1, 0, 1], "classification", ("false", "true")),
        (None, None, ["0.5", "1", ""], [0.5, 1, np.nan], "regression", None),
        (None, "regression", ["2", "1", ""], [2, 1, np.nan], "regression", None),
        (("label", "other"), None, ["1", "0", ""], [[1, 0], [0, 1], [np.nan, 1]], "multilabel", ("label", "other")),
        (("other", "label"), None, ["5", "0", ""], [[0, 5], [1, 0], [1, np.nan]], "regression", None),
    ],
)
def test_labels_of_each_kind(tmp_path, label, task, values, y, expected_task, names):
    rows = "".join(f"{node},{value},{other}\n" for node, value, other in zip("abc", values, [0, 1, 1], strict=True))
    options = dict(label=label, task=task)
    dataset = read(tmp_path, csv="node,edge\na,1\nb,1\n", nodes=f"id,label,other\n{rows}", options=options)
    np.testing.assert_array_equal(dataset.y.numpy(), y)
    assert (dataset.task, dataset.class_names) == (expected_task, names)


def test_missing_features_are_marked_or_kept(tmp_path):
    files = dict(csv="node,edge\na,1\nb,1\n", nodes='id,size,name\n\n"a",1,"two\nlines"\n\nb,,x\nc,,y\n')
    filled = read(tmp_path, **files)
    assert (filled.x.tolist(), filled.feature_names) == ([[1, 0], [1, 1], [1, 1]], ("size", "size is missing"))
    for missing in ("nan", "NaN", "n/a", "?", " "):
        again = read(tmp_path, csv=files["csv"], nodes=f"id,size\na,1\nb,{missing}\n")
        assert again.x.tolist() == [[1, 0], [1, 1]]
    with pytest.raises(DataError, match=r"line 3 \(node 'b'\): .*Got inf"):
        read(tmp_path, csv=files["csv"], nodes="id,size\na,1\nb,inf\n")
    gaps = read(tmp_path, **files, options=dict(keep_missing=True))
    np.testing.assert_array_equal(gaps.x.numpy(), [[1], [np.nan], [np.nan]])
    left_out = read(tmp_path, **files, options=dict(features=()))
    assert left_out.node_attributes["size"] == [1, None, None]
    with pytest.raises(DataError, match=r"t.nodes.parquet, row 1 \(node 'a'\): .*Got nothing"):
        options = dict(features="size")
        read(tmp_path, parquet={"node": ["a"], "edge": [1]}, nodes={"id": ["a"], "size": [None]}, options=options)


def test_large_integers_are_features_only_on_request(tmp_path):
    files = dict(csv="node,edge\na,1\n", nodes=f"id,big,flag\na,{2**53 + 1},true\nb,-1,false\n")
    dataset = read(tmp_path, **files, options=dict(features=("big", "flag")))
    assert dataset.x.tolist() == [[float(2**53), 1.0], [-1.0, 0.0]]
    assert dataset.provenance.notes[-1] == "the whole numbers of the feature 'big' were rounded to 32 bits"
    guessed = read(tmp_path, **files)
    assert (guessed.feature_names, guessed.x.tolist()) == (("flag",), [[1.0], [0.0]])
    assert guessed.node_attributes == {"big": [2**53 + 1, -1]}


def column_as_read(folder, texts, *, name="code", options=None):
    """Read a dataset whose nodes and hyperedges both have this column."""
    rows = "".join(f"{number},{text}\n" for number, text in enumerate(texts))
    lines = "".join(f"{number},{number}\n" for number in range(len(texts)))
    files = dict(csv=f"node,edge\n{lines}", nodes=f"id,{name}\n{rows}", hyperedges=f"id,{name}\n{rows}")
    return read(folder, **files, options=options)


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["01", "1", "001"], ("001", "01", "1")),
        (["0x10", "16"], ("0x10", "16")),
        (["1e1", "10"], ("10", "1e1")),
        (["1e1", "20"], ("1e1", "20")),
        (["1", "1.0"], ("1", "1.0")),
        (["18446744073709551615", "18446744073709551614"], ("18446744073709551614", "18446744073709551615")),
        (["true", "false"], ("false", "true")),
        (["True", "1", "true"], ("1", "True", "true")),
        (["+1", "-1"], ("+1", "-1")),
        (["-0", "0"], ("-0", "0")),
        (["7", "-3", ""], (-3, 7)),
        ([" 7", "7 ", "8"], (7, 8)),
        (["1.0", "2.0", ""], (1, 2)),
        (["3", "nan", "4"], (3, 4)),
    ],
)
def test_different_spellings_are_different_classes(tmp_path, texts, names):
    dataset = column_as_read(tmp_path, texts, name="label")
    assert dataset.class_names == names
    known = [text.strip() for text in texts if text not in ("", "nan")]
    assert len({int(number) for number in dataset.y if number >= 0}) == len(set(known))


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["02139", "10001", "00001"], ["02139", "10001", "00001"]),
        (["007", ""], ["007", None]),
        (["0x10", "16"], ["0x10", "16"]),
        (["18446744073709551615", "1"], ["18446744073709551615", "1"]),
        (["+491701234567", "1"], ["+491701234567", "1"]),
        (["1", "true", "0"], ["1", "true", "0"]),
        (["true", "false", ""], [True, False, None]),
        (["1.50", "1.5"], [1.5, 1.5]),
        (["1e3", "10"], [1000.0, 10.0]),
        (["7", "-3", ""], [7, -3, None]),
        ([" 7", "8"], [7, 8]),
        (["2020-01-01", "007"], ["2020-01-01", "007"]),
    ],
)
def test_attributes_stay_text_if_a_number_would_lose_information(tmp_path, texts, values):
    dataset = column_as_read(tmp_path, texts, options=dict(features=()))
    assert dataset.node_attributes == {"code": values}
    assert dataset.edge_attributes == {"code": values}
    target = tmp_path / "again.csv"
    write_dataset(dataset, target, overwrite=True)
    again = read_dataset(target, features=())
    assert (again.node_attributes, again.edge_attributes) == (dataset.node_attributes, dataset.edge_attributes)


def test_columns_declared_as_numbers_are_numbers_in_any_spelling(tmp_path):
    asked = column_as_read(tmp_path, ["007", "0x10"], options=dict(features=("code",)))
    assert asked.x.tolist() == [[7.0], [16.0]]
    real = column_as_read(tmp_path, ["1e1", "007"], name="Label", options=dict(task="regression"))
    assert real.y.tolist() == [10.0, 7.0]
    weights = column_as_read(tmp_path, ["007", "1"], name="weight")
    assert weights.hypergraph.edge_weight.tolist() == [7.0, 1.0]


def test_unused_columns_and_merged_memberships_are_reported(tmp_path):
    text = "node,hyperedge,weight,quantity,label\na,1,2,7,x\nb,1,1,3,y\na,1,5,4,z\n"
    notes = read(tmp_path, csv=text).provenance.notes
    assert notes[3:] == (
        "columns of the incidence table left out: quantity (node 'a' has 7 and 4), label (node 'a' has 'x' and 'z')",
        "1 memberships given more than once were merged; the largest weight is kept",
    )


def test_dates_and_times_stay_text(tmp_path):
    nodes = "id,day,at,when\na,2020-01-01,12:30,2020-01-01 00:00\nb,2020-01-02,01:00,2020-01-01 10:00\n"
    dataset = read(tmp_path, csv="node,edge\na,1\nb,1\n", nodes=nodes)
    assert dataset.node_attributes == {
        "day": ["2020-01-01", "2020-01-02"],
        "at": ["12:30", "01:00"],
        "when": ["2020-01-01 00:00", "2020-01-01 10:00"],
    }


def test_parquet_attributes_of_every_type(tmp_path):
    dates = pa.array([0, 86400], pa.timestamp("s")).cast(pa.date32())
    nodes = {"id": ["a", "b"], "tags": [["x"], []], "box": [{"w": 1}, None], "day": dates, "void": [None, None]}
    dataset = read(tmp_path, parquet={"node": ["a", "b"], "edge": [1, 1]}, nodes=nodes)
    assert dataset.node_attributes == {
        "tags": [["x"], []],
        "box": [{"w": 1}, None],
        "day": ["1970-01-01", "1970-01-02"],
        "void": [None, None],
    }
    for odd in (pa.array([b"\xff", b"a"]), pa.array([b"\xff", b"a"], pa.large_binary()), pa.array([[b"a"], []])):
        with pytest.raises(
            DataError, match="t.nodes.parquet: The column 'odd' must be UTF-8 text, numbers or booleans"
        ):
            read(tmp_path, parquet={"node": ["a", "b"], "edge": [1, 1]}, nodes={"id": ["a", "b"], "odd": odd})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            dict(csv=BASKETS, nodes="id\nmilk\n"),
            r"t.csv, line 3: Every node must be listed in 't.nodes.csv'. Got 'bread'",
        ),
        (dict(csv=BASKETS, hyperedges="id\na\n"), "t.csv, line 4: Every hyperedge must be listed.*Got 'b'"),
        (dict(csv="n,e\n1,1\n3,1\n", nodes="id\n1\n2\n"), "t.csv, line 3: .*Got 3. Add it there.*1 row"),
        (dict(csv=BASKETS, nodes="id,a\nmilk,1\n\nbread,2\nmilk,3\n"), "t.nodes.csv, line 5: .*once.*Got 'milk' twice"),
        (dict(csv=BASKETS, nodes="id\nmilk\nbread\nmilk\n"), "t.nodes.csv, line 4: .*Got 'milk' twice"),
        (
            dict(csv=BASKETS, nodes="id\nmilk\n\nbread\n"),
            "t.nodes.csv, line 3: Every row must have an id in the column",
        ),
        (dict(csv=BASKETS, hyperedges="id\na\nb\na\n"), "t.hyperedges.csv, line 4: Each hyperedge must occur once"),
        (dict(csv='node,edge\n\n"a\n\nb",1\n\n,2\n'), "t.csv, line 7: Every row must have an id in the column 'node'"),
        (dict(csv='node,edge\na,1\nb,""\n'), "t.csv, line 3: Every row must have an id in the column 'edge'"),
        (dict(csv="node,edge\na,1\nb\n"), "t.csv, line 3: Every line must have 2 fields, as line 1 has. Got 1: 'b'"),
        (dict(csv='node,edge\n\n"a\nb",1\n\nx,y,z\nb,1\n'), "t.csv, line 6: .*2 fields.*Got 3: 'x,y,z'"),
        (dict(csv=b"node,edge\na,1\n\xff,2,3\n"), "t.csv, line 3: .*2 fields.*Got 3: '\ufffd,2,3'"),
        (dict(csv=b"node,edge\na,1\n\n\xff,2\n"), "t.csv, line 4: A text table must be UTF-8.*Got the byte 0xff"),
        (
            dict(csv=BASKETS, nodes=b"id,name\nmilk,\xff\nbread,b\n"),
            "t.nodes.csv, line 2: A text table must be UTF-8 text. Got the byte",
        ),
        (
            dict(csv="1,2\n1,3\n"),
            "t.csv, line 1: .*must name the columns. Got numbers: '1,2'.*Insert a first line such as",
        ),
        (dict(csv="1.5,nan\n1,3\n"), "Got numbers"),
        (dict(csv="a,a\n1,3\n"), "line 1: Column names must be unique. Got 'a' twice"),
        (dict(csv=""), "t.csv, line 1: The first line must name the columns. It is empty"),
        (dict(csv="\nnode,edge\n"), "line 1: The first line must name the columns. It is empty"),
        (dict(csv="node\n1\n"), "must have a node column and a hyperedge column. Got node only"),
        (dict(csv='node,"edge\n1,2\n'), "line 1: The first line must name the columns. Cause: "),
        (dict(csv="node,edge\ra,1\r"), "line 1: Lines must end in LF or CR LF. Got CR alone.*tr "),
        (dict(csv="node,edge,weight\na,1,1\nb,1,-0.5\n"), "t.csv, line 3: Every weight must be .*0 or more. Got -0.5"),
        (dict(csv="node,edge,weight\na,1,1\n\nb,1,\n"), "t.csv, line 4: Every weight must be finite.*Got nan"),
        (dict(csv="node,edge,weight\na,1,1\nb,1,inf\n"), "t.csv, line 3: .*Got inf"),
        (
            dict(csv="node,edge,weight\na,1,heavy\n"),
            "t.csv, line 2: The weight column 'weight' must contain numbers. Got 'heavy'",
        ),
        (dict(csv=BASKETS, hyperedges="id,weight\na,1\nb,-1\n"), "t.hyperedges.csv, line 3: .*Got -1.0"),
        (dict(csv=BASKETS, hyperedges="id,weight\na,1\nb,\n"), "t.hyperedges.csv, line 3: .*Got nan"),
        (dict(csv=gzip.compress(BASKETS.encode())[:-5]), "t.csv, after .*gzip data must be complete"),
        (dict(csv=f"node,edge\n{'x' * 200_000},1\n,1\n"), "t.csv, line 3: Every row must have an id"),
        (dict(csv='node,edge\n"a,1\nb,1\n'), "t.csv, line 2: .*must end with one. Cause: unexpected end of data"),
    ],
)
def test_errors_name_file_and_line(tmp_path, files, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, **files)


def test_a_table_without_rows_is_an_empty_hypergraph(tmp_path):
    for text in ("node,edge\n", "node,edge", "node,edge\r\n", "node,edge,weight\n\n"):
        hypergraph = read(tmp_path, csv=text).hypergraph
        assert (hypergraph.num_nodes, hypergraph.num_edges) == (0, 0)
    dataset = read(tmp_path, csv="node,edge", nodes="id,size\na,1\n", hyperedges="id")
    assert (dataset.hypergraph.num_nodes, dataset.hypergraph.num_edges) == (1, 0)


def test_duplicate_memberships_keep_the_largest_weight(tmp_path):
    dataset = read(tmp_path, csv="node,edge,w\na,1,1\na,1,3\nb,1,2\n")
    assert dataset.hypergraph.merged_memberships == 1
    assert dataset.hypergraph.incidence_weight.tolist() == [3.0, 2.0]
    note = "1 memberships given more than once were merged; the largest weight is kept"
    assert note in dataset.provenance.notes
    assert dataset.hypergraph.incidence_weight.dtype == torch.float64


def test_broken_parquet_is_refused(tmp_path):
    path = write(tmp_path, parquet={"node": ["a", "b"] * 100, "edge": [1, 2] * 100})
    whole = path.read_bytes()
    for broken in (b"", b"PAR1", b"node,edge\n1,2\n", whole[:-1], whole[: len(whole) // 2], b"X" * len(whole)):
        path.write_bytes(broken)
        with pytest.raises(DataError, match="t.parquet: The (file must be Parquet|Parquet data must be intact)"):
            read_dataset(path)
    with pytest.raises(DataError, match="Column names must be unique. Got 'node' twice"):
        twice = pa.Table.from_arrays([pa.array([1])] * 3, names=["node", "edge", "node"])
        pa.parquet.write_table(twice, path)
        read_dataset(path)


def test_a_parquet_table_without_columns_is_refused(tmp_path):
    path = write(tmp_path, parquet={"node": ["a", "b"], "edge": [1, 2]})
    pa.parquet.write_table(pa.table({}), tmp_path / "t.nodes.parquet")
    with pytest.raises(DataError, match="t.nodes.parquet: A table must have columns. It has none"):
        read_dataset(path)


def test_parquet_text_that_is_not_utf_8_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    broken = pa.array([b"\xff\xfe", b"ok"]).view(pa.string())
    pa.parquet.write_table(pa.table({"node": broken, "edge": [1, 1]}), path)
    with pytest.raises(DataError, match="t.parquet: The Parquet data must be intact.*UTF8"):
        read_dataset(path)


def test_limits_apply_to_text_and_parquet(tmp_path):
    limits = Limits(max_bytes=2**16)
    squeezed = gzip.compress(b"node,edge\n" + b"a,1\n" * 10**5)
    with pytest.raises(LimitError, match="t.csv: .*at most 64.0 KiB after decompression.*`max_bytes=`"):
        read(tmp_path, csv=squeezed, options=dict(limits=limits))
    with pytest.raises(LimitError, match="t.parquet: .*at most 64.0 KiB"):
        read(tmp_path, parquet={"node": list(range(10**5)), "edge": [1] * 10**5}, options=dict(limits=limits))


def test_parquet_with_repeated_text_exceeds_the_limit(tmp_path):
    """Parquet stores a repeated text once. In memory, 60,000 rows of this text would take 6 GB."""
    long = "x" * 10**5
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 60_000, pa.int32()), pa.array([long]))
    path, plain = tmp_path / "t.parquet", pa.schema([("node", pa.string()), ("edge", pa.int64())])
    table = pa.table({"node": column, "edge": [1] * 60_000})
    pa.parquet.write_table(table, path, store_schema=False, dictionary_pagesize_limit=2**24)
    assert pa.parquet.read_schema(path) == plain
    assert path.stat().st_size < 10**6
    with pytest.raises(LimitError, match=r"at most 64.0 MiB after decompression"):
        read_dataset(path, limits=Limits(max_bytes=2**26))


FIELDS = st.text(st.sampled_from('ab,"\n\r ;é'), max_size=6).map("n".__add__)
ROWS = st.lists(st.tuples(FIELDS, FIELDS), max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@settings(max_examples=examples(300))
@given(
    ROWS, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans(), st.sampled_from([64, 65, 80, 100, 4 * 2**20])
)
def test_output_of_the_csv_module_is_read_at_any_block_size(folder, rows, end, all_quoted, blanks, block):
    """Fields contain quotes, commas and line ends, and blocks may end inside a field."""
    text = io.StringIO(newline="")
    lone_cr = any("\r" in field for row in rows for field in row)  # the csv module would not quote it
    quoting = csv.QUOTE_ALL if all_quoted or lone_cr else csv.QUOTE_MINIMAL
    writer = csv.writer(text, quoting=quoting, lineterminator=end)
    writer.writerow(["node", "edge"])
    for row in rows:
        writer.writerow(row)
        text.write(end if blanks else "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_tables, "_BLOCK_BYTES", block)
        dataset = read(folder, csv=text.getvalue())
    assert memberships(dataset) == set(rows)
    assert dataset.node_ids.to_list() == list(dict.fromkeys(node for node, _ in rows))


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(FIELDS, st.booleans()), max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_the_line_number_of_an_error_is_right(folder, rows, end, ragged):
    lines = ["node,edge"]
    for field, blank in rows:
        lines.append('"{}",1'.format(field.replace('"', '""')))
        lines += [""] * blank
    text = end.join([*lines, "a,b,c" if ragged else ",1", "z,1", ""])
    number = len(io.StringIO(end.join([*lines, "x"]), newline=None).read().split("\n"))
    with pytest.raises(DataError) as caught:
        read(folder, csv=text)
    assert caught.value.where == f"line {number}"


def test_a_quote_after_the_first_block_is_recognised(tmp_path):
    """The first block has no quote, so the reader first tries the fast parser without quoted line ends."""
    plain = "".join(f"n{number},e{number % 7}\n" for number in range(120_000))
    assert len(plain) > 2**20  # the size of the first block
    text = "node,edge\n" + plain + '"late\n\nnode",e0\n"and, another",e1\n' + plain[:1000]
    dataset = read(tmp_path, csv=text.rpartition("\n")[0])
    assert dataset.hypergraph.num_nodes == 120_002
    assert dataset.node_ids[120_000:] == ["late\n\nnode", "and, another"]


def test_a_long_header_is_read_or_refused(tmp_path):
    many = [f"column_{number:06}" for number in range(100_000)]
    path = write(tmp_path, csv=",".join(["node", "hyperedge", *many]) + "\n" + "a,b" + "," * len(many) + "\n")
    assert arrow_tables.TableFile.open(path, Limits()).header.columns[-1] == many[-1]
    with pytest.raises(LimitError, match="t.csv, line 1: A line must be at most 1.0 MiB"):
        read_dataset(path, limits=Limits(max_record_bytes=2**20))


def test_many_columns_take_linear_time(tmp_path):
    names = tuple(f"x{number}" for number in range(20_000))
    dataset = NodeDataset(
        name="wide",
        hypergraph=Hypergraph.from_hyperedges([[0]]),
        x=torch.ones(1, len(names)),
        feature_names=(*names[:-1], names[-2]),
    )
    start = time.process_time()
    with pytest.raises(DataError, match="Column names must be unique. 'x19998'"):
        write_dataset(dataset, tmp_path / "t.csv")
    with pytest.raises(DataError, match="Column names must be unique. Got 'x19998' twice"):
        read(tmp_path, csv=",".join(dataset.feature_names) + "\n")
    assert len(to_pandas(replace(dataset, feature_names=names)).features) == len(names)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "st\u00fcck,basket\nmilk,1\n".encode("latin1"),
            "t.csv, line 1: .*must be UTF-8 text.*0xfc.*--encoding latin1",
        ),
        (
            "item,basket\nmilk,1".encode("utf-16"),
            "t.csv, line 1: A text table must be UTF-8.*Got UTF-16.*--encoding utf-16",
        ),
        ("item,basket\nmilk,1".encode("utf-16-le"), "line 1: .*Got UTF-16, or zero bytes"),
    ],
)
def test_headers_that_are_not_utf_8_are_refused(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, csv=content)


def test_a_later_line_that_is_not_utf_8_is_named(tmp_path):
    line = "st\u00fcck,1\n".encode("latin1")
    message = "line 3: A text table must be UTF-8 text. Got the byte 0xfc. The command edhnn data doctor.*--encoding"
    with pytest.raises(DataError, match=f"t.csv, {message}"):
        read(tmp_path, csv=b"item,basket\nmilk,1\n" + line)
    with pytest.raises(DataError, match=f"t.nodes.csv, {message}"):  # a column whose type is guessed
        read(tmp_path, csv="item,basket\nmilk,a\n", nodes=b"size,id\n1,milk\n" + line)


def test_a_table_may_have_any_name(tmp_path):
    (tmp_path / "t.txt").write_text("item;basket\nmilk;1\n")
    (tmp_path / "t.nodes.txt").write_text("id,price\nmilk,1\nsalt,2\n")
    dataset = read_dataset(tmp_path / "t.txt", format="table")
    assert (dataset.name, dataset.feature_names, dataset.provenance.format) == ("t", ("price",), "csv")
    (tmp_path / "t.txt").write_text("item;basket\nmilk;1\n;2\n")
    with pytest.raises(DataError, match="t.txt, line 3: Every row must have an id"):
        read_dataset(tmp_path / "t.txt", format="table")
    write(tmp_path, parquet={"item": [2, 1], "basket": [1, 1]}).rename(tmp_path / "u")
    assert read_dataset(tmp_path / "u", format="table").node_ids.to_list() == [1, 2]


@pytest.mark.parametrize("weight", ["item", "basket"])
def test_the_weight_column_must_differ(tmp_path, weight):
    request = TableRequest(node="item", edge="basket", weight=weight)
    with pytest.raises(UsageError, match=f"must be different columns of 't.csv'. Got .*, '{weight}' for the weight"):
        read(tmp_path, csv=BASKETS, options=dict(table=request))


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (dict(label="kind"), "label"),
        (dict(features=["kind"]), "features"),
        (dict(table=TableRequest(id="kind")), "id"),
    ],
)
def test_columns_of_a_missing_node_table_are_refused(tmp_path, options, option):
    columns = "kind" if option == "id" else "id,kind"
    problem = f"`{option}=` names the column 'kind', but 't.csv' has no table of nodes"
    remedy = f"Create the file 't.nodes.csv' with the columns {columns},... or name a table with `nodes=`"
    with pytest.raises(UsageError, match=f"{problem}. {remedy}"):
        read(tmp_path, csv=BASKETS, options=options)


def test_columns_that_are_not_numbers_are_reported(tmp_path):
    nodes = "id;price\nmilk;1.5\nbread;1.5x\njam;2\n"
    dataset = read(tmp_path, csv=BASKETS, nodes=nodes, hyperedges="id,weight\na,1\nb,1.5x\n")
    assert dataset.hypergraph.edge_weight is None
    assert dataset.edge_attributes["weight"] == ["1", "1.5x"]
    assert "hyperedge weights ignored, because '1.5x' is not a number: 't.hyperedges.csv', line 3" in (
        dataset.provenance.notes
    )
    assert "columns are separated by ';' in 't.nodes.csv'" in dataset.provenance.notes
    assert "not used as a feature, as '1.5x' is not a number (line 3 (node 'bread')): price" in dataset.provenance.notes
    with pytest.raises(DataError, match=r"t.nodes.csv, line 3 \(node 'bread'\): .*'price' must be a number.*'1.5x'"):
        read_dataset(tmp_path / "t.csv", features=["price"])
    with pytest.raises(DataError, match="t.csv, line 3: The weight column 'w' must contain numbers. Got '2x'"):
        read(tmp_path, csv="node,hyperedge,w\nmilk,a,1\nmilk,b,2x\n")
