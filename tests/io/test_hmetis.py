"""hMETIS: every format, comments, weights, and errors that name the line or the hyperedge."""

import gzip

import pytest

from edhnn import DataError, LimitError, Limits, read_dataset


def read(folder, text, **options):
    path = folder / "x.hgr"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_dataset(path, **options)


@pytest.mark.parametrize(
    ("header", "edges", "nodes", "edge_weight", "node_weight"),
    [
        ("2 4", "1 2\n4 2 1\n", "", None, None),
        ("2 4 0", "1 2\n4 2 1\n", "", None, None),
        ("2 4 1", "5 1 2\n0 4 2 1\n", "", [5.0, 0.0], None),
        ("2 4 10", "1 2\n4 2 1\n", "9\n8\n7\n0\n", None, [9, 8, 7, 0]),
        ("2 4 11", "5 1 2\n3 4 2 1\n", "9\n8\n7\n6\n", [5.0, 3.0], [9, 8, 7, 6]),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_every_format(tmp_path, header, edges, nodes, edge_weight, node_weight, ends):
    dataset = read(tmp_path, f"{header}\n{edges}{nodes}".replace("\n", ends))
    hypergraph = dataset.hypergraph
    assert list(hypergraph.hyperedges()) == [[0, 1], [0, 1, 3]]
    assert hypergraph.num_nodes == 4
    assert (None if hypergraph.edge_weight is None else hypergraph.edge_weight.tolist()) == edge_weight
    assert dataset.node_attributes.get("weight") == node_weight
    assert (dataset.node_ids.to_list(), dataset.edge_ids.to_list()) == ([1, 2, 3, 4], [1, 2])
    assert (dataset.name, dataset.provenance.format) == ("x", "hmetis")


def test_comments_blanks_and_tabs(tmp_path):
    text = "% made by hand\n%\n 2\t3 \n%1 2 3\n1  2\n\t3\n% the end\n\n \n"
    assert list(read(tmp_path, text).hypergraph.hyperedges()) == [[0, 1], [2]]


def test_a_duplicate_member_is_merged(tmp_path):
    dataset = read(tmp_path, "1 2\n2 1 2\n")
    assert list(dataset.hypergraph.hyperedges()) == [[0, 1]]
    assert dataset.hypergraph.merged_memberships == 1
    assert dataset.provenance.notes == ("1 memberships given more than once were merged",)


@pytest.mark.parametrize("text", ["0 0\n", "0 0", "0 3\n", "0 3 1\n", "0 0 11\n\n"])
def test_no_hyperedges(tmp_path, text):
    hypergraph = read(tmp_path, text).hypergraph
    assert (hypergraph.num_edges, hypergraph.num_nodes) == (0, int(text.split()[1]))


def test_gzip(tmp_path):
    (tmp_path / "big.hgr.gz").write_bytes(gzip.compress(b"1 2\n1 2\n"))
    assert read_dataset(tmp_path / "big.hgr.gz").name == "big"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header must be 'hyperedges nodes' or .*Got ''"),
        ("% only\n% comments\n", "first line that is not a comment: The header must be .*Got ''"),
        ("\n1 2\n1 2\n", "The header must be .*Got ''"),
        ("5\n", "The header must be .*Got '5'"),
        ("1 2 3 4\n1\n", "The header must be .*Got '1 2 3 4'"),
        ("1 2 2\n1 2\n", "format 1, 10 or 11. Got '1 2 2'"),
        ("1 2 100\n1 2\n", "Got '1 2 100'"),
        ("% c\n1 2\n1 x\n", "line 3: .*blanks. Got '1 x'"),
        ("1 2\n1 -2\n", "line 2: .*Got '1 -2'"),
        ("1 2\n1.0\n", r"line 2: .*Got '1\.0'"),
        ("2 2\n1 2\n", r"declares 3 lines \(2 hyperedges\). Got 2"),
        ("999999999999999999 2\n1 2\n", "declares 999999999999999999 hyperedges. Got 1 lines"),
        ("1 2\n1 2\n1\n", r"declares 2 lines \(1 hyperedges\). Got 3"),
        ("1 2 10\n1 2\n5\n", r"declares 4 lines \(1 hyperedges and 2 node weights\). Got 3"),
        ("1 2 10\n1 2\n5\n5\n5\n", "declares 4 lines.*Got 5"),
        ("1 2 10\n1 2\n5 5\n\n", "Each node weight must be on a separate line"),
        ("3 2\n1\n\n2\n", "hyperedge 2: A hyperedge must have at least one node"),
        ("2 2 1\n5 1\n5\n", "hyperedge 2: A hyperedge must have at least one node"),
        ("2 2\n1 2\n1 3\n", r"hyperedge 2: Node numbers must be from 1 to 2, the number in the header. Got 3"),
        ("2 2\n0 1\n1 2\n", r"hyperedge 1: Node numbers must be from 1 to 2, the number in the header. Got 0"),
        ("2 2 1\n9 1\n9 2 7\n", "hyperedge 2: .*Got 7"),
    ],
)
def test_errors_name_what_is_wrong_and_where(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "x.hgr") in str(caught.value)


def test_a_header_with_many_nodes_exceeds_the_limit(tmp_path):
    with pytest.raises(LimitError, match="at most 100 nodes. Got 101"):
        read(tmp_path, "1 101\n1\n", limits=Limits(max_nodes=100))
    assert read(tmp_path, "1 100\n1\n", limits=Limits(max_nodes=100)).hypergraph.num_nodes == 100
