"""`edhnn data` through the real command: its output, its messages and its exit codes."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from edhnn import catalog
from edhnn.cli.main import main

COMMAND = Path(sys.executable).with_name("edhnn")


def edhnn(*arguments, folder=None, data=None):
    """Run the command as a user would, with an empty cache and no datasets unless given."""
    environment = {key: value for key, value in os.environ.items() if key != "EDHNN_DATA"}
    if data is not None:
        environment["EDHNN_DATA"] = str(data)
    with tempfile.TemporaryDirectory() as cache:
        environment |= {"XDG_CACHE_HOME": cache if folder is None else str(folder), "COLUMNS": "120"}
        return subprocess.run(
            [COMMAND, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )


def really_succeed(*arguments, **options):
    done = edhnn(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def here(monkeypatch, capsys):
    """Return a function that runs the entry point in this process and returns exit code, output and errors."""

    def run(*arguments, folder, data=None):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
        monkeypatch.setenv("EDHNN_DATA", str(data)) if data else monkeypatch.delenv("EDHNN_DATA", raising=False)
        monkeypatch.setattr(sys, "argv", ["edhnn", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        return int(caught.value.code or 0), *capsys.readouterr()

    return run


@pytest.fixture
def succeed(here):
    def run(*arguments, folder):
        code, output, errors = here(*arguments, folder=folder)
        assert code == 0, errors
        return SimpleNamespace(stdout=output, stderr=errors)

    return run


@pytest.fixture
def refuse(here):
    def run(expected, *arguments, folder):
        code, output, errors = here(*arguments, folder=folder)
        assert code == expected, (output, errors)
        assert output == ""
        return errors

    return run


@pytest.fixture
def baskets(tmp_path):
    (tmp_path / "baskets.csv").write_text("item,basket,weight\nmilk,1,2\nbread,1,1\nmilk,2,1\nbread,2,1\nmilk,1,2\n")
    (tmp_path / "baskets.nodes.csv").write_text("id,kind,price\nmilk,drink,1.5\nbread,food,2\nsalt,food,0.5\n")
    return tmp_path


INFO_FIELDS = {
    "name", "num_nodes", "num_hyperedges", "num_hyperedges_without_singletons", "num_incidences", "num_features",
    "num_classes", "mean_degree", "mean_hyperedge_size", "clique_homophily", "isolated_nodes", "singleton_hyperedges",
    "repeated_hyperedges", "merged_memberships",
}  # fmt: skip


def test_info_of_a_table_reports_its_guesses(baskets, succeed):
    found = json.loads(succeed("data", "info", "baskets.csv", "--json", folder=baskets).stdout)
    assert set(found) >= INFO_FIELDS
    assert (found["num_nodes"], found["num_hyperedges"], found["num_incidences"]) == (3, 2, 4)
    assert (found["isolated_nodes"], found["repeated_hyperedges"], found["merged_memberships"]) == (1, 1, 1)
    assert (found["num_classes"], found["num_features"]) == (2, 1)
    notes = found["provenance"]["notes"]
    assert "node column guessed: 'item'" in notes
    assert "hyperedge column guessed: 'basket'" in notes
    assert "label column guessed: 'kind'" in notes


def test_info_as_text_prints_notes_on_standard_error(baskets, succeed):
    done = succeed("data", "info", "baskets.csv", folder=baskets)
    assert "num_hyperedges" in done.stdout
    assert "note: node column guessed" in done.stderr


def test_every_published_dataset_has_the_papers_statistics(real_data, tmp_path, here):
    listed = json.loads(here("data", "list", "--json", folder=tmp_path, data=real_data)[1])
    published = [row["name"] for row in listed if row["origin"] == "published"]
    assert len(published) == 9
    for name in published:
        found = json.loads(here("data", "info", name, "--json", folder=tmp_path, data=real_data)[1])
        paper = catalog()[name].paper
        assert found["num_nodes"] == paper.nodes
        assert found["num_hyperedges_without_singletons"] == paper.hyperedges
        assert found["num_features"] == paper.features
        assert found["num_classes"] == paper.classes
        degree = 1.043 if name == "citeseer" else paper.mean_degree  # the table's 1.044 does not follow from its data
        assert found["mean_degree"] == pytest.approx(degree, abs=5.01e-4)
        assert found["mean_hyperedge_size"] == pytest.approx(paper.mean_hyperedge_size, abs=1.1e-3)
        assert found["clique_homophily"] == pytest.approx(paper.clique_homophily, abs=5.01e-4)


def test_list_distinguishes_embedded_from_published_datasets(tmp_path, succeed):
    rows = {row["name"]: row for row in json.loads(succeed("data", "list", "--json", folder=tmp_path).stdout)}
    assert len(rows) == 24
    assert rows["csbm-4"]["available"]
    assert rows["digits"]["available"]
    assert not rows["cora"]["available"]
    assert "csbm-7" in succeed("data", "list", folder=tmp_path).stdout


def test_doctor_reports_findings_forecast_and_picture(baskets, succeed):
    done = succeed("data", "doctor", "baskets.csv", "--json", "--picture", "p.png", "--hidden", "8", folder=baskets)
    found = json.loads(done.stdout)
    codes = {finding["code"] for finding in found["findings"]}
    assert {"isolated-nodes", "repeated-hyperedges"} <= codes
    assert found["forecast"]["parameters"] > 0
    assert (baskets / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "Findings" in succeed("data", "doctor", "baskets.csv", folder=baskets).stdout


def test_doctor_strict_exits_with_1_on_an_error(baskets, here):
    (baskets / "baskets.nodes.csv").write_text("id,kind,price\nmilk,drink,2\nbread,drink,2\nsalt,drink,0.5\n")
    assert here("data", "doctor", "baskets.csv", "--strict", folder=baskets)[0] == 1
    assert here("data", "doctor", "baskets.csv", folder=baskets)[0] == 0


def test_doctor_describes_the_features_that_training_has(baskets, here):
    (baskets / "baskets.nodes.csv").write_text("id,kind,price\nmilk,drink,\nbread,food,2\nsalt,food,1\n")
    found = json.loads(here("data", "doctor", "baskets.csv", "--json", folder=baskets)[1])
    assert found["facts"]["num_features"] == found["forecast"]["counts"]["features"] == 2  # the price, and its mark
    assert not {finding["code"] for finding in found["findings"]} & {"features-not-finite", "no-features"}


def test_conversion_to_hif_and_back_keeps_the_data(baskets, here, succeed):
    succeed("data", "convert", "baskets.csv", "b.hif.json.gz", folder=baskets)
    assert here("data", "convert", "b.hif.json.gz", "again.csv", folder=baskets)[0] == 0
    before = json.loads(here("data", "info", "baskets.csv", "--json", folder=baskets)[1])
    after = json.loads(here("data", "info", "again.csv", "--json", folder=baskets)[1])
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {"name", "merged_memberships", "provenance"}


def test_convert_reports_what_it_drops(baskets, succeed):
    done = succeed("data", "convert", "baskets.csv", "b.hgr", "--json", folder=baskets)
    assert set(json.loads(done.stdout)["left_behind"]) >= {"the features", "the labels", "the incidence weights"}


def test_hif_to_hif_loses_nothing(tmp_path, succeed):
    document = {
        "network-type": "directed",
        "metadata": {"a": [1, {"b": None}]},
        "incidences": [
            {"edge": 1, "node": "1", "direction": "head", "weight": -2, "attrs": {"x": 1}},
            {"edge": "1", "node": 1},
            {"edge": "1", "node": 1},
        ],
        "nodes": [{"node": "isolated", "weight": 1.5}],
        "edges": [{"edge": "empty", "attrs": {}}],
    }
    (tmp_path / "a.hif.json").write_text(json.dumps(document))
    succeed("data", "convert", "a.hif.json", "b.hif.json", folder=tmp_path)
    assert json.loads((tmp_path / "b.hif.json").read_text()) == document


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.hif.json", "b.hif.json", "--node-column", "foo", "--noise", "3"), "--node-column, --noise cannot be used"),
        (("a.hif.json", "b.hif.json", "--hyperedge-column", "foo"), "--hyperedge-column cannot be used with the HIF"),
        (("a.hif.json", "b.hif.json", "--feature-seed", "0"), "--feature-seed cannot be used"),
        (("pickles", "b.csv", "--legacy-pickle", "--label", "x", "--task", "regression"), "--label, --task cannot be"),
        (("pickles", "b.csv", "--legacy-pickle", "--features", "x", "--format", "hif"), "--format, --features cannot"),
    ],
)
def test_convert_refuses_options_that_it_does_not_use(tmp_path, refuse, arguments, message):
    (tmp_path / "a.hif.json").write_text('{"incidences": []}')
    (tmp_path / "pickles").mkdir()
    (tmp_path / "pickles" / "hypergraph.pickle").write_bytes(pickle.dumps({"a": [0, 1]}))
    (tmp_path / "pickles" / "labels.pickle").write_bytes(pickle.dumps([0, 1]))
    assert message in " ".join(refuse(2, "data", "convert", *arguments, folder=tmp_path).split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.hif.json", "pickles"]


def test_convert_with_limits_only_is_a_copy(tmp_path, here):
    (tmp_path / "a.hif.json").write_text('{"incidences": []}')
    arguments = ("a.hif.json", "b.hif.json", "--format", "hif", "--max-nodes", "5", "--max-bytes", "1000")
    assert here("data", "convert", *arguments, folder=tmp_path)[0] == 0


def test_convert_reports_merged_records_and_unused_columns(baskets, here):
    (baskets / "more.csv").write_text("item,basket,quantity\nmilk,1,2\nmilk,1,3\n")
    found = json.loads(here("data", "convert", "more.csv", "more.hif.json", "--json", folder=baskets)[1])
    assert found["left_behind"] == []
    assert found["notes"][2:] == [
        "columns of the incidence table left out: quantity (node 'milk' has 2 and 3)",
        "1 memberships given more than once were merged",
    ]
    records = [{"node": 1, "attrs": {"a": 1}}, {"node": 1, "attrs": {"b": 2}}]
    (baskets / "r.hif.json").write_text(json.dumps({"incidences": [{"edge": 1, "node": 1}] * 2, "nodes": records}))
    found = json.loads(here("data", "convert", "r.hif.json", "r.csv", "--json", folder=baskets)[1])
    assert found["left_behind"][:2] == [
        "1 duplicate records of incidences (merged; the largest weight is kept)",
        "1 duplicate records of nodes (merged; the last value of an attribute is kept)",
    ]


def test_missing_features_are_converted_and_features_can_be_omitted(baskets, here):
    (baskets / "baskets.nodes.csv").write_text("id,kind,price\nmilk,drink,\nbread,food,2\nsalt,food,0.5\n")
    for target in ("b.hif.json", "b", "b.csv", "b.parquet", "b.hgr"):
        assert here("data", "convert", "baskets.csv", target, folder=baskets)[0] == 0
    for source in ("b.hif.json", "b", "b.csv", "b.parquet"):
        found = json.loads(here("data", "doctor", source, "--json", folder=baskets)[1])
        refused = source in ("b.hif.json", "b")  # written by edhnn, so read as they are; tables are encoded
        assert ("features-not-finite" in {finding["code"] for finding in found["findings"]}) == refused, source
    for source in ("baskets.csv", "b.hif.json"):
        code, output, errors = here("data", "info", source, "--features", "", "--json", folder=baskets)
        assert code == 0, errors
        assert json.loads(output)["num_features"] == 0
    target = "none.hif.json"
    assert here("data", "convert", "b.hif.json", target, "--features", "", folder=baskets)[0] == 0
    assert json.loads(here("data", "info", target, "--json", folder=baskets)[1])["num_features"] == 0


def test_existing_files_are_replaced_only_with_force(baskets, refuse, succeed):
    succeed("data", "convert", "baskets.csv", "out.hif.json", folder=baskets)
    assert "exists already" in refuse(2, "data", "convert", "baskets.csv", "out.hif.json", folder=baskets)
    succeed("data", "convert", "baskets.csv", "out.hif.json", "--force", folder=baskets)
    assert "exists already" in refuse(2, "data", "convert", "csbm-1", "baskets.csv", folder=baskets)


def test_convert_names_the_neighbours_it_removes(baskets, here):
    (baskets / "plain.csv").write_text("item,basket\nmilk,1\n")
    for arguments in ((), ("--json",)):
        (baskets / "mine.nodes.csv").write_text("id,price\nmilk,1\n")
        code, output, errors = here("data", "convert", "plain.csv", "mine.csv", "--force", *arguments, folder=baskets)
        assert code == 0
        assert not (baskets / "mine.nodes.csv").exists()
        if arguments:
            assert json.loads(output)["removed"] == ["mine.nodes.csv"]
        else:
            assert "removed, because it would be read with 'mine.csv': mine.nodes.csv" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("info", "cara"), "Did you mean 'cora'?"),
        (("info", "no/such.csv"), "File or folder not found: 'no/such.csv'"),
        (("info", "cora"), "edhnn data fetch cora"),
        (("info", "baskets.csv", "--node-column", "itm"), "Did you mean 'item'?"),
        (("info", "baskets.csv", "--label", "knd"), "Did you mean 'kind'?"),
        (("info", "baskets.csv", "--noise", "2"), "--noise cannot be used"),
        (("info", "baskets.csv", "--noise", "0"), "--noise cannot be used"),
        (("info", "baskets.csv", "--feature-seed", "0"), "--feature-seed cannot be used"),
        (("info", "digits", "--feature-seed", "0"), "which has its own features"),
        (("info", "csbm-1", "--feature-seed", "5000000000"), "--feature-seed"),
        (("info", "baskets.csv", "--weight-column", "basket", "--hyperedge-column", "basket"), "different columns"),
        (("info", "baskets.csv", "--label", "kind", "--features", "kind,price"), "'kind' is named as both"),
        (("info", "baskets.csv", "--features", "price,price"), "'price' is named twice"),
        (("info", "alone.csv", "--id-column", "foo"), "'alone.csv' has no table of nodes"),
        (("info", "alone.csv", "--label", "kind"), "Create the file 'alone.nodes.csv' with the columns id,kind,..."),
        (("info", "bask"), "format of 'bask' cannot be determined from its name"),
        (("convert", "baskets.csv", "out.v1"), "cannot be determined from its name"),
        (("convert", "baskets.csv", "out.pkl"), "Pickles are not written, because reading one can run code"),
        (("convert", "baskets.csv", "out.txt", "--to", "table"), "The name of a table must end in .csv"),
        (("fetch", "cora", "--data-dir", "notes.txt"), "'notes.txt' must be a folder"),
        (("fetch", "cora", "--data-dir", "notes.txt/sub"), "'notes.txt' must be a folder, to hold 'sub'"),
        (("doctor", "baskets.csv", "--picture", "baskets.csv"), "A picture must end in .png. Got 'baskets.csv'"),
        (("doctor", "baskets.csv", "--picture", "p.jpg"), "A picture must end in .png. Got 'p.jpg'"),
        (("doctor", "baskets.csv", "--picture", "no/p.png"), "The folder 'no' must exist"),
        (("doctor", "baskets.csv", "--picture", "notes.png"), "'notes.png' exists and is not a PNG file"),
        (("info", "csbm-1", "--label", "x"), "--label cannot be used"),
        (("info", "digits", "--noise", "2.0"), "which has its own features"),
        (("info", "notes.txt"), "format of 'notes.txt' cannot be determined"),
        (("info", "graph.pickle"), "reading one can run code"),
        (("convert", "baskets.csv", "no/where.hif.json"), "folder 'no' must exist"),
        (("fetch", "cara"), "Did you mean 'cora'?"),
        (("info", "baskets.csv", "--max-bytes", "0"), "--max-bytes"),
        (("info",), "NAME_OR_FILE"),
        (("inf",), "inf"),
    ],
)
def test_invalid_requests_exit_with_2(baskets, refuse, arguments, message):
    for name in ("notes.txt", "notes.png"):
        (baskets / name).write_text("x")
    (baskets / "graph.pickle").write_bytes(b"x")
    for name in ("alone.csv", "bask"):
        (baskets / name).write_text("item,basket\nmilk,1\n")
    before = {path: path.read_bytes() for path in baskets.iterdir()}
    assert message in " ".join(refuse(2, "data", *arguments, folder=baskets).split())
    assert {path: path.read_bytes() for path in baskets.iterdir()} == before


def test_an_existing_picture_is_replaced(baskets, here):
    (baskets / "p.png").write_bytes(b"\x89PNG\r\n\x1a\nold")
    assert here("data", "doctor", "baskets.csv", "--picture", "p.png", folder=baskets)[0] == 0
    assert (baskets / "p.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "node,hyperedge\n1,2\n1\n", "a.csv, line 3: Every line must have 2 fields"),
        ("a.csv", "node,hyperedge\n1,2\n,2\n", "a.csv, line 3: Every row must have an id"),
        ("a.csv", "node,hyperedge,weight\n1,2,-1\n", "a.csv, line 2: Every weight must be finite and 0 or more"),
        ("a.csv", "1,2\n3,4\n", "first line must name the columns"),
        ("a.csv", "", "first line must name the columns"),
        ("a.hif.json", '{"incidences": [{"edge": 1, "node": 1.5}]}', "a.hif.json, incidences[0].node"),
        ("a.hif.json", '{"incidences": [', "a.hif.json, byte"),
        ("a.hgr", "2 2\n1 2\n", "a.hgr: The header declares"),
        ("hyperedges-a.txt", "1,2\n1,x\n", "hyperedges-a.txt, line 2"),
        ("hyperedges-a.txt", "0,1\n", "must start at 1. Got 0"),
    ],
)
def test_invalid_files_exit_with_1_and_name_the_position(tmp_path, refuse, name, content, message):
    (tmp_path / name).write_text(content)
    assert message in " ".join(refuse(1, "data", "info", name, folder=tmp_path).split())
    assert refuse(1, "data", "convert", name, "out.hif.json", folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_an_invalid_file_gives_no_traceback_in_the_real_command(tmp_path):
    (tmp_path / "a.csv").write_text("node,hyperedge\n1,2\n1\n")
    done = edhnn("data", "info", "a.csv", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: a.csv, line 3:")
    assert "Traceback" not in done.stderr


def test_version_and_help(here, tmp_path):
    shown = really_succeed("--version").stdout
    assert shown.startswith("edhnn 0.")
    assert subprocess.run([sys.executable, "-m", "edhnn", "--version"], capture_output=True, text=True).stdout == shown
    for arguments in ((), ("data",)):
        assert here(*arguments, folder=tmp_path)[0] == 2  # no verb: help, and the exit code of an invalid request
    assert "doctor" in here("data", "--help", folder=tmp_path)[1]
