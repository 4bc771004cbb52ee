"""The names of tables, for readers and writers."""

from pathlib import Path

import pytest

from edhnn import Hypergraph, NodeDataset, UsageError, read_dataset, write_dataset
from edhnn.io.tables.names import TableName, table_name


@pytest.mark.parametrize(
    ("name", "parts", "nodes"),
    [
        ("a.csv", TableName("a", ".csv", "csv"), "a.nodes.csv"),
        ("a.b.tsv.gz", TableName("a.b", ".tsv.gz", "tsv"), "a.b.nodes.tsv.gz"),
        ("X.CSV.GZ", TableName("X", ".CSV.GZ", "csv"), "X.nodes.CSV.GZ"),
        ("a.csv.parquet", TableName("a.csv", ".parquet", "parquet"), "a.csv.nodes.parquet"),
    ],
)
def test_stem_kind_and_neighbours(name, parts, nodes):
    assert table_name(Path(name)) == parts
    assert parts.neighbour("nodes") == nodes


def test_names_with_other_endings_are_refused():
    with pytest.raises(UsageError, match=r"must end in .csv, .tsv or .parquet \(or .csv.gz, .tsv.gz\). Got 'csv'"):
        table_name(Path("csv"))


def trios():
    hypergraph = Hypergraph.from_hyperedges([[0, 1, 2], [1, 2, 3]], num_nodes=5)
    return NodeDataset(name="trios", hypergraph=hypergraph)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.txt", "The name of a table must end in .csv"),
        ("out", "The name of a table must end in .csv"),
        ("out.parquet.gz", "Parquet files have their own compression.*Got 'out.parquet.gz'"),
    ],
)
def test_tables_are_written_only_under_names_that_are_read(tmp_path, name, message):
    with pytest.raises(UsageError, match=message):
        write_dataset(trios(), tmp_path / name, format="table")
    assert not list(tmp_path.iterdir())


def test_compressed_parquet_is_refused_when_read(tmp_path):
    write_dataset(trios(), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").rename(tmp_path / "a.parquet.gz")
    with pytest.raises(UsageError, match="Parquet files have their own compression"):
        read_dataset(tmp_path / "a.parquet.gz")


def test_upper_case_endings_are_recognised(tmp_path):
    written = write_dataset(trios(), tmp_path / "X.CSV.GZ")
    assert [path.name for path in written.paths] == ["X.CSV.GZ", "X.nodes.CSV.GZ"]
    assert all(path.read_bytes().startswith(b"\x1f\x8b") for path in written.paths)
    back = read_dataset(tmp_path / "X.CSV.GZ")
    assert back.name == "X"
    assert back.hypergraph.same_as(trios().hypergraph)
