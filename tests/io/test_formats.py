"""Formats by name, and the errors for unknown names."""

import gzip
from pathlib import Path

import pytest

from edhnn import UsageError, read_dataset
from edhnn.io import TableRequest
from edhnn.io.formats import detect_format, format_by_name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.json", "hif"),
        ("a.hif.json", "hif"),
        ("A.HIF.JSON.GZ", "hif"),
        ("a.csv", "table"),
        ("a.tsv.gz", "table"),
        ("a.parquet", "table"),
        ("a.hgr", "hmetis"),
        ("a.hgr.gz", "hmetis"),
        ("hyperedges-a.txt", "cornell"),
        ("hyperedges-a.txt.gz", "cornell"),
        ("hyperedges-a.csv", "table"),
        ("a", "folder"),
    ],
)
def test_names_determine_formats(name, kind):
    assert format_by_name(Path(name)) == kind


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "a.txt",
            r"format of 'a.txt' cannot be determined from its name. Known names: .hif.json, .*NAME/, .hgr.*`format=`",
        ),
        ("a.gz.zip", "cannot be determined from its name"),
        ("a.pickle", "is a pickle. It is not read, because reading one can run code.*read_legacy_pickle"),
        ("a.pkl.gz", "is a pickle"),
    ],
)
def test_unknown_names_are_refused(name, message):
    with pytest.raises(UsageError, match=message):
        format_by_name(Path(name))


def test_unknown_names_and_pickles_are_not_written():
    with pytest.raises(UsageError, match="format of 'out.v1' cannot be determined from its name.*`format=`"):
        format_by_name(Path("out.v1"), writing=True)
    with pytest.raises(UsageError, match="Pickles are not written, because reading one can run code. Got 'out.pkl'"):
        format_by_name(Path("out.pkl"), writing=True)


def test_a_file_without_a_suffix_is_not_a_folder(tmp_path):
    (tmp_path / "bask").write_text("item,basket\n")
    with pytest.raises(UsageError, match="format of 'bask' cannot be determined from its name.*`format=`"):
        read_dataset(tmp_path / "bask")


def test_missing_and_unreadable_paths_are_usage_errors(tmp_path):
    with pytest.raises(UsageError, match="File or folder not found: '.*absent.csv'"):
        read_dataset(tmp_path / "absent.csv")
    with pytest.raises(UsageError, match="File not found"):
        read_dataset(tmp_path / "absent.csv", format="table")
    with pytest.raises(UsageError, match="cannot be read: file name too long"):
        read_dataset(tmp_path / ("x" * 300 + ".csv"))
    with pytest.raises(UsageError, match="File or folder not found"):
        read_dataset("a\x00b.csv")
    with pytest.raises(UsageError, match="must contain hyperedges.txt.gz"):
        detect_format(tmp_path)


def test_the_content_of_a_folder_determines_its_format(tmp_path):
    (tmp_path / "hyperedges-x.txt").write_text("1\n")
    assert detect_format(tmp_path) == "cornell"
    (tmp_path / "hyperedges.txt.gz").write_bytes(gzip.compress(b"0\n"))
    assert detect_format(tmp_path) == "folder"
    assert read_dataset(tmp_path, format="cornell").provenance.format == "cornell"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("hif", '{"incidences": [{"edge": 1, "node": 2}]}'),
        ("hmetis", "1 1\n1\n"),
        ("cornell", "1\n"),
    ],
)
def test_the_format_argument_overrides_the_name(tmp_path, kind, text):
    path = tmp_path / "data.txt"
    path.write_text(text)
    assert read_dataset(path, format=kind).hypergraph.num_edges == 1
    assert read_dataset(str(path), format=kind).hypergraph.num_nodes == 1
    with pytest.raises(UsageError, match="must be a file. It is a folder|no file|cannot be read|must be a"):
        read_dataset(path, format="folder")


@pytest.mark.usefixtures("without_shape_checks")
def test_an_unknown_format_suggests_the_nearest(tmp_path):
    with pytest.raises(UsageError, match="format must be one of hif, .*Got 'hmetic' instead. Did you mean 'hmetis'"):
        read_dataset(tmp_path, format="hmetic")


def test_options_that_do_not_apply_are_refused(tmp_path):
    (tmp_path / "a.hgr").write_text("1 1\n1\n")
    with pytest.raises(UsageError, match="Column and table options apply to CSV, TSV, Excel and Parquet only. 'a.hgr'"):
        read_dataset(tmp_path / "a.hgr", table=TableRequest(node="x"))
    for options in (dict(label="a"), dict(features=["a"]), dict(task="regression")):
        with pytest.raises(UsageError, match="Label, feature and task options do not apply to 'a.hgr'"):
            read_dataset(tmp_path / "a.hgr", **options)
    assert read_dataset(tmp_path / "a.hgr", keep_missing=True).hypergraph.num_edges == 1
