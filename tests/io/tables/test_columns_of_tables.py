"""Which column is the node if names do not decide, columns of nodes among the memberships, and reading like before."""

import contextlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from edhnn import DataError, UsageError, read_dataset, write_dataset
from edhnn.io import TableRequest

ROWS = [("milk", 1), ("bread", 1), ("milk", 2), ("salt", 2), ("bread", 3), ("milk", 3), ("salt", 3)]
KIND = {"milk": "dairy", "bread": "bakery", "salt": ""}
PRICE = {"milk": "1,19", "bread": "1.002,50", "salt": ""}


def table(folder, header="item;basket", nodes=None, more=lambda item, basket, row: ""):
    lines = [f"{item};{basket}{more(item, basket, row)}" for row, (item, basket) in enumerate(ROWS)]
    (folder / "t.csv").write_text("\n".join([header, *lines]) + "\n")
    if nodes is not None:
        (folder / "t.nodes.csv").write_text(nodes)
    return folder / "t.csv"


def roles(dataset):
    return (dataset.reading["columns"]["node"], dataset.reading["columns"]["hyperedge"])


def test_the_ids_of_the_table_of_nodes_decide(tmp_path):
    nodes = "id;size\nmilk;1\nbread;2\nsalt;3\n"
    for header in ("a;b", "word;doc", "basket;item"):  # unknown, uncertain, and certain but wrong
        dataset = read_dataset(table(tmp_path, header, nodes))
        assert roles(dataset) == tuple(header.split(";"))
        assert not any("uncertain" in note for note in dataset.provenance.notes)
        turned = "id;size\n1;1\n2;2\n3;3\n"
        dataset = read_dataset(table(tmp_path, header, turned))
        assert roles(dataset) == tuple(header.split(";"))[::-1]
        assert any("'t.nodes.csv'" in note and "swapped" in note for note in dataset.provenance.notes) == (
            header != "basket;item"
        )


def test_the_name_of_the_id_column_decides(tmp_path):
    dataset = read_dataset(table(tmp_path, "group;basket", "basket;size\n1;1\n2;2\n3;3\n"))
    assert roles(dataset) == ("basket", "group")


def test_named_columns_that_are_swapped_are_an_error_with_the_remedy(tmp_path):
    path = table(tmp_path, nodes="id;size\nmilk;1\nbread;2\nsalt;3\n")
    with pytest.raises(
        DataError, match=r"None of the column 'basket' is, first '1', but 100% of 'item' are. Are the col"
    ):
        read_dataset(path, table=TableRequest(node="basket", edge="item"))


@pytest.mark.parametrize("swapped", [False, True])
def test_the_column_with_one_label_each_is_the_node(tmp_path, swapped):
    path = table(tmp_path, "a;b;kind", more=lambda item, basket, row: f";{'xyz'[basket - 1] if swapped else item}")
    dataset = read_dataset(path, label="kind")
    assert roles(dataset) == (("b", "a") if swapped else ("a", "b"))
    assert dataset.num_classes == 3


def test_an_uncertain_guess_has_the_first_row_and_the_remedy(tmp_path):
    notes = read_dataset(table(tmp_path, "movie;tag")).provenance.notes
    assert notes[-1] == (
        "uncertain: the node could also be 'tag'. First row: movie = 'milk', tag = '1'. To swap the columns, use "
        "`node='tag'` `edge='movie'`"
    )


def test_unknown_names_are_guessed_only_if_two_columns_can_be_ids(tmp_path):
    path = table(tmp_path, "x1;x2;x3;x4", more=lambda item, basket, row: f";{row / 8};{row}")
    dataset = read_dataset(path)  # x3 has fractions, every value of x4 is different
    assert roles(dataset) == ("x1", "x2")
    assert any("uncertain" in note for note in dataset.provenance.notes)
    path = table(tmp_path, "x1;x2;x3", more=lambda item, basket, row: f";{row // 2}")
    with pytest.raises(
        DataError, match=r"3 columns are possible.*First row: x1 = 'milk', x2 = '1', x3 = '0'.*`node='x1'`"
    ):
        read_dataset(path)
    assert roles(read_dataset(path, table=TableRequest(node="x3", edge="x1"))) == ("x3", "x1")


@pytest.mark.parametrize("kind", ["list", "dictionary", "binary", "date", "null"])
def test_columns_of_unusual_types_are_no_crash(tmp_path, kind):
    odd = {
        "list": pa.array([[1], [2], [1], [2]]),
        "dictionary": pa.array(["a", "b", "a", "b"]).dictionary_encode(),
        "binary": pa.array([b"\xff", b"b", b"\xff", b"b"]),
        "date": pa.array([1, 2, 1, 2], pa.date32()),
        "null": pa.nulls(4),
    }[kind]
    plain = pa.array(["u", "v", "v", "w"])
    pa.parquet.write_table(pa.table({"id": ["u", "v", "w"]}), tmp_path / "t.nodes.parquet")
    for columns in ({"x1": plain, "x2": odd}, {"x1": odd, "x2": plain, "x3": plain}, {"movie": odd, "tag": odd}):
        pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
        for options in ({}, {"label": "x3"}):
            with contextlib.suppress(DataError, UsageError):
                read_dataset(tmp_path / "t.parquet", **options)


def test_tables_without_rows(tmp_path):
    for header in ("a,b", "node,hyperedge", "item,basket,x"):
        (tmp_path / "t.csv").write_text(header + "\n")
        assert read_dataset(tmp_path / "t.csv").hypergraph.num_nodes == 0
    (tmp_path / "t.csv").write_text("x,y,z\n")
    with pytest.raises(DataError, match="3 columns are possible, and their names do not tell. First row: none"):
        read_dataset(tmp_path / "t.csv")


def test_labels_and_features_in_the_incidence_table(tmp_path):
    path = table(
        tmp_path,
        "item;basket;kind;price;day",
        more=lambda item, basket, row: f";{KIND[item] if row else ''};{PRICE[item]};2026-01-0{basket}",
    )
    dataset = read_dataset(path)
    assert (dataset.class_names, dataset.y.tolist()) == (("bakery", "dairy"), [1, 0, -1])
    assert dataset.feature_names == ("price", "price is missing")
    np.testing.assert_allclose(dataset.x, [[1.19, 0], [1002.5, 0], [(1.19 + 1002.5) / 2, 1]])
    assert [note for note in dataset.provenance.notes if "incidence table" in note] == [
        "columns of the incidence table with one value for each node: kind, price",
        "columns of the incidence table left out: day (node 'milk' has '2026-01-01' and '2026-01-02')",
    ]
    with pytest.raises(
        DataError, match=r"t.csv, line 4: .*Node 'milk' has '2026-01-01' and '2026-01-02' in .*'day'; 3"
    ):
        read_dataset(path, label="day")
    with pytest.raises(UsageError, match="names the column 'colour', but 't.csv' has no table of nodes"):
        read_dataset(path, label="colour")
    assert read_dataset(path, keep_missing=True).node_attributes["price"] == ["1,19", "1.002,50", None]


def test_columns_beside_a_table_of_nodes_are_used_on_request(tmp_path):
    path = table(
        tmp_path, "item;basket;kind", "id;size\nmilk;1\nbread;2\nsalt;3\n", more=lambda item, *_: f";{KIND[item]}"
    )
    dataset = read_dataset(path)
    assert (dataset.y, dataset.feature_names) == (None, ("size",))
    assert "columns of the incidence table left out: kind" in dataset.provenance.notes
    assert read_dataset(path, label="kind").class_names == ("bakery", "dairy")


def test_reading_like_before(tmp_path):
    first = tmp_path / "first"
    first.mkdir()
    nodes = "key;kind;colour;zip;day\n" + "".join(
        f"n{n};{'ab'[n % 2]};{'rgb'[n % 3]};0{n % 4};0{n % 9 + 1}.01.2026\n" for n in range(40)
    )
    (first / "t.nodes.csv").write_text(nodes)
    (first / "t.csv").write_text("tag;movie\n" + "".join(f"{n // 4};n{n}\n" for n in range(40)))
    dataset = read_dataset(first / "t.csv", label="kind")
    assert roles(dataset) == ("movie", "tag")
    assert dataset.reading["columns"]["id"] == "key"
    assert dataset.feature_names[:7] == ("colour=b", "colour=g", "colour=r", "zip=00", "zip=01", "zip=02", "zip=03")

    later = tmp_path / "later"
    later.mkdir()  # the ids tell nothing, one colour is new, a date is missing, and other columns come first
    (later / "t.csv").write_text("tag;movie\n1;n1\n1;n5\n")
    (later / "t.nodes.csv").write_text("id;key;size;zip;colour;day\nx;n1;5;01;mauve;02.01.2026\ny;n5;6;1;r;\n")
    again = read_dataset(later / "t.csv", like=dataset.reading)
    assert (roles(again), again.feature_names) == (("movie", "tag"), dataset.feature_names)
    assert again.node_ids.to_list() == ["n1", "n5"]
    assert again.x[:, :7].tolist() == [[0, 0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0, 0]]  # 1 is not 01
    assert sum("did not occur in the training" in note for note in again.provenance.notes) == 2
    assert sum("missing dates of 'day'" in note for note in again.provenance.notes) == 1
    for name in ("t.hif.json", "t.parquet", "folder"):  # written unchanged, read and encoded
        plain = read_dataset(first / "t.csv", label="kind", keep_missing=True)
        write_dataset(plain, tmp_path / name)
        back = read_dataset(tmp_path / name, like=dataset.reading)
        assert back.feature_names == dataset.feature_names
        assert back.x.tolist() == dataset.x.tolist()
    with pytest.raises(UsageError, match="`features=` must name the columns of the training"):
        read_dataset(later / "t.csv", like=dataset.reading, features="size")


def test_tables_hold_the_text_and_not_its_encoding(tmp_path):
    nodes = "id;colour;size;name\n" + "".join(
        f"n{n};{'rgb'[n % 3]};{'' if n == 7 else n / 4};{['red', 'blue'][n % 2]} lamp {n}\n" for n in range(12)
    )
    (tmp_path / "t.nodes.csv").write_text(nodes)
    (tmp_path / "t.csv").write_text("node;edge\n" + "".join(f"n{n};{n // 4}\n" for n in range(12)))
    dataset = read_dataset(tmp_path / "t.csv")
    write_dataset(dataset, tmp_path / "again.csv")
    assert (tmp_path / "again.nodes.csv").read_text().splitlines()[0] == '"id","size","colour","name"'
    again = read_dataset(tmp_path / "again.csv")
    assert again.node_attributes == dataset.node_attributes
    both = [sorted(zip(d.feature_names, d.x.to_dense().T.tolist(), strict=True)) for d in (dataset, again)]
    assert [name for name, _ in both[0]] == [name for name, _ in both[1]]
    np.testing.assert_allclose([c for _, c in both[0]], [c for _, c in both[1]], rtol=1e-5, atol=1e-6)
