"""Cornell text: 1-based lines, its neighbours, and errors that name the line."""

import gzip

import pytest

from edhnn import DataError, LimitError, Limits, UsageError, read_dataset
from edhnn.data.readers.cornell import find_cornell, read_cornell


def write(folder, **files):
    """`hyperedges="..."` becomes hyperedges-x.txt and so on."""
    for name, text in files.items():
        (folder / f"{name.replace('_', '-')}-x.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / "hyperedges-x.txt"


def test_hyperedges_labels_and_names(tmp_path):
    path = write(
        tmp_path,
        hyperedges="1,3\n2,2,1\n\n4\n",
        node_labels="2\n1\n2\n2\n5\n",
        label_names="cat\n\ndog\n\u2028line\nlast\n",
        node_names="a\nb b\r\nc\nd\n\n",
    )
    dataset = read_dataset(path)
    assert dataset.name == "x"
    assert list(dataset.hypergraph.hyperedges()) == [[0, 2], [0, 1], [], [3]]
    assert dataset.hypergraph.num_nodes == 5
    assert dataset.hypergraph.merged_memberships == 1
    assert dataset.y is not None
    assert (dataset.y.tolist(), dataset.task) == ([1, 0, 1, 1, 4], "classification")
    assert dataset.class_names == ("cat", "", "dog", "\u2028line", "last")
    assert dataset.node_attributes == {"name": ["a", "b b", "c", "d", ""]}
    assert dataset.node_ids.to_list() == [1, 2, 3, 4, 5]
    assert dataset.edge_ids.to_list() == [1, 2, 3, 4]
    assert dataset.provenance.format == "cornell"
    assert dataset.provenance.notes == ()


def test_without_neighbours_nodes_are_those_up_to_the_largest_number(tmp_path):
    dataset = read_dataset(write(tmp_path, hyperedges="7\n2,3"))
    assert dataset.hypergraph.num_nodes == 7
    assert (dataset.y, dataset.task, dataset.class_names) == (None, None, None)


def test_an_empty_file_is_an_empty_hypergraph(tmp_path):
    hypergraph = read_dataset(write(tmp_path, hyperedges="")).hypergraph
    assert (hypergraph.num_nodes, hypergraph.num_edges) == (0, 0)


def test_compressed_files_have_compressed_neighbours(tmp_path):
    (tmp_path / "hyperedges-big.txt.gz").write_bytes(gzip.compress(b"1,2\n"))
    (tmp_path / "node-labels-big.txt.gz").write_bytes(gzip.compress(b"1\n1\n3\n"))
    dataset = read_dataset(tmp_path / "hyperedges-big.txt.gz")
    assert dataset.name == "big"
    assert dataset.y is not None
    assert dataset.y.tolist() == [0, 0, 2]


def test_labels_may_be_given(tmp_path):
    path = write(tmp_path, hyperedges="1,2\n", node_labels="1\n1\n")
    (tmp_path / "other.txt").write_text("2\n1\n1\n")
    dataset = read_cornell(path, tmp_path / "other.txt", Limits())
    assert dataset.y is not None
    assert dataset.y.tolist() == [1, 0, 0]


def test_node_names_that_do_not_fit_are_passed_over_and_said(tmp_path):
    dataset = read_dataset(write(tmp_path, hyperedges="1,2\n", node_names="a\nb\nc\n"))
    assert dataset.node_attributes == {}
    assert dataset.provenance.notes == ("node names passed over: there are 3, for 2 nodes",)


def test_a_folder_means_its_only_hyperedges_file(tmp_path):
    assert find_cornell(tmp_path) is None
    path = write(tmp_path, hyperedges="1\n")
    assert find_cornell(tmp_path) == path
    assert read_dataset(tmp_path).hypergraph.num_edges == 1
    (tmp_path / "hyperedges-y.txt").write_text("1\n")
    with pytest.raises(UsageError, match=r"hyperedges-x.txt, hyperedges-y.txt: name one of them"):
        read_dataset(tmp_path)
    assert find_cornell(tmp_path / "hyperedges-y.txt") == tmp_path / "hyperedges-y.txt"
    (tmp_path / "notes.txt").write_text("")
    assert find_cornell(tmp_path / "notes.txt") is None


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (dict(hyperedges="1\n\n2,0\n"), "hyperedges-x.txt, line 3: Node numbers must start at 1. Got 0"),
        (dict(hyperedges="1\n2;3\n"), "hyperedges-x.txt, line 2: .*separated by commas. Got '2;3'"),
        (dict(hyperedges="1 2\n"), "line 1: .*commas. Got '1 2'"),
        (dict(hyperedges="1\n2,4,3\n", node_labels="1\n1\n1\n"), "line 2: .*at most 3, the number of labels.*Got 4"),
        (dict(hyperedges="1\n", node_labels="1\n0\n"), "node-labels-x.txt, line 2: Labels must start at 1. Got 0"),
        (dict(hyperedges="1\n", node_labels="1\n\n2\n"), "node-labels-x.txt, line 2: .*one label. Got 0"),
        (dict(hyperedges="1\n", node_labels="1\n2,3\n"), "node-labels-x.txt, line 2: .*one label. Got 2"),
        (dict(hyperedges="1\n", node_labels="red\n"), "node-labels-x.txt, line 1: .*Got 'red'"),
        (
            dict(hyperedges="1\n", node_labels="1\n3\n2\n", label_names="a\nb\n"),
            "node-labels-x.txt, line 2: Labels must be at most 2, the number of label names. Got 3",
        ),
        (dict(hyperedges=gzip.compress(b"1,2\n")[:-3]), "hyperedges-x.txt, after .*gzip"),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path, files, message):
    with pytest.raises(DataError, match=message):
        read_dataset(write(tmp_path, **files))


def test_a_short_file_cannot_claim_many_nodes(tmp_path):
    with pytest.raises(LimitError, match="at most 1000 nodes. Got 999999999999999999"):
        read_dataset(write(tmp_path, hyperedges="999999999999999999\n"), limits=Limits(max_nodes=1000))
    with pytest.raises(LimitError, match="--max-bytes"):
        path = write(tmp_path, hyperedges="1\n", node_labels="1\n" * 1000)
        read_dataset(path, limits=Limits(max_bytes=1000))


def test_column_options_do_not_apply(tmp_path):
    path = write(tmp_path, hyperedges="1\n")
    with pytest.raises(UsageError, match="do not apply to 'hyperedges-x.txt', which is read as cornell"):
        read_dataset(path, label="a")
