"""Cornell text: 1-based lines, neighbouring files, and errors that name the line."""

import gzip

import pytest

from edhnn import DataError, LimitError, Limits, UsageError, read_dataset
from edhnn.io.cornell import find_cornell, read_cornell


def write(folder, **files):
    """Write `hyperedges="..."` to hyperedges-x.txt and so on."""
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
    assert dataset.provenance.notes == ("1 memberships given more than once were merged",)


def test_without_labels_the_largest_number_is_the_number_of_nodes(tmp_path):
    dataset = read_dataset(write(tmp_path, hyperedges="7\n2,3"))
    assert dataset.hypergraph.num_nodes == 7
    assert (dataset.y, dataset.task, dataset.class_names) == (None, None, None)


def test_an_empty_file_is_an_empty_hypergraph(tmp_path):
    hypergraph = read_dataset(write(tmp_path, hyperedges="")).hypergraph
    assert (hypergraph.num_nodes, hypergraph.num_edges) == (0, 0)


@pytest.mark.parametrize("compressed", [True, False])
def test_neighbours_may_differ_in_compression_unless_they_belong_to_another_file(tmp_path, compressed):
    names = ("hyperedges-g.txt.gz", "node-labels-g.txt") if compressed else ("hyperedges-g.txt", "node-labels-g.txt.gz")
    for name, content in zip(names, (b"1,2\n", b"1\n1\n2\n"), strict=True):
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    dataset = read_dataset(tmp_path / names[0])
    assert (dataset.hypergraph.num_nodes, dataset.y.tolist()) == (3, [0, 0, 1])
    (tmp_path / names[1].replace("node-labels", "hyperedges")).write_bytes(b"1,2,3\n")
    assert read_dataset(tmp_path / names[0]).y is None


@pytest.mark.parametrize("what", ["label_names", "node_names"])
def test_names_that_are_not_utf_8_are_refused(tmp_path, what):
    path = write(tmp_path, hyperedges="1,2\n", node_labels="1\n2\n", **{what: "caf\n\xe9l\xe8ve\n".encode("latin-1")})
    with pytest.raises(DataError, match=rf"{what.replace('_', '-')}-x.txt, line 2: Names must be UTF-8.*byte 0xe9"):
        read_dataset(path)


def test_a_large_label_exceeds_the_limit_of_classes(tmp_path):
    path = write(tmp_path, hyperedges="1,2\n", node_labels="1\n1000000000000000\n")
    with pytest.raises(
        LimitError,
        match="node-labels-x.txt, line 2: .*at most 1000000 classes in a file of 2 entries. Got 1000000000000000",
    ):
        read_dataset(path)
    write(tmp_path, node_labels="1\n7\n")
    assert read_dataset(path, limits=Limits(max_nodes=7)).num_classes == 7


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


def test_node_names_of_the_wrong_number_are_ignored_with_a_note(tmp_path):
    dataset = read_dataset(write(tmp_path, hyperedges="1,2\n", node_names="a\nb\nc\n"))
    assert dataset.node_attributes == {}
    assert dataset.provenance.notes == ("node names ignored: 3 names for 2 nodes",)


def test_a_folder_is_read_from_its_only_hyperedges_file(tmp_path):
    assert find_cornell(tmp_path) is None
    path = write(tmp_path, hyperedges="1\n")
    assert find_cornell(tmp_path) == path
    assert read_dataset(tmp_path).hypergraph.num_edges == 1
    (tmp_path / "hyperedges-y.txt").write_text("1\n")
    with pytest.raises(UsageError, match=r"hyperedges-x.txt, hyperedges-y.txt. Read one of these files"):
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


def test_a_short_file_with_a_large_node_number_exceeds_the_limit(tmp_path):
    with pytest.raises(LimitError, match="at most 1000 nodes. Got 999999999999999999"):
        read_dataset(write(tmp_path, hyperedges="999999999999999999\n"), limits=Limits(max_nodes=1000))
    with pytest.raises(LimitError, match="`max_bytes=`"):
        path = write(tmp_path, hyperedges="1\n", node_labels="1\n" * 1000)
        read_dataset(path, limits=Limits(max_bytes=1000))


def test_column_options_do_not_apply(tmp_path):
    path = write(tmp_path, hyperedges="1\n")
    with pytest.raises(UsageError, match="do not apply to 'hyperedges-x.txt', which is read as cornell"):
        read_dataset(path, label="a")


def test_duplicate_class_names_are_refused(tmp_path):
    (tmp_path / "hyperedges-a.txt").write_text("1,2\n")
    (tmp_path / "node-labels-a.txt").write_text("1\n2\n")
    (tmp_path / "label-names-a.txt").write_text("red\nblue\nred\n")
    with pytest.raises(DataError, match="label-names-a.txt, line 3: Class names must be unique. Got 'red' twice"):
        read_dataset(tmp_path / "hyperedges-a.txt")
