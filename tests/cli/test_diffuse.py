"""`edhnn diffuse` through the real entry point: what it prints and writes, and its exit codes."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from edhnn import ADMM, HypergraphLabelSpreading, diffuse, pagerank_problem, read_dataset, solve, sweep_cut
from tests.cli.test_data import here, refuse, succeed  # noqa: F401  (fixtures)

FIELDS = {"objective", "gap", "residual", "steps", "outcome", "certified_by", "seconds", "scores", "picture"}
FIELDS |= {"top", "clusters", "classes"}


@pytest.fixture
def shop(tmp_path):
    rows = ["item,basket", "milk,1", "bread,1", "salt,1", "salt,2", "tea,2", "tea,3", "jam,3", "bread,3"]
    (tmp_path / "shop.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "seeds.csv").write_text("node,value\nmilk,1\njam,-0.5\n")
    return tmp_path


def scores_in(path):
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["node", "score"]
    return {node: float(score) for node, score in rows[1:]}


def in_python(folder, seeds, **options):
    dataset = read_dataset(folder / "shop.csv")
    names = dataset.node_ids.to_list()
    x = torch.tensor([[seeds.get(name, 0.0)] for name in names], dtype=torch.float64)
    solution = diffuse(dataset.hypergraph, x, **options)
    return solution, dict(zip(names, solution.value[:, 0].tolist(), strict=True))


def test_it_reports_and_writes(shop, succeed):  # noqa: F811
    done = succeed("diffuse", "shop.csv", "--seeds", "seeds.csv", "--out", "scores.csv", "--json", folder=shop)
    report = json.loads(done.stdout)
    assert set(report) == FIELDS
    assert (report["outcome"], report["certified_by"], report["scores"]) == ("converged", "gap", "scores.csv")
    assert report["gap"] <= 1e-8
    assert report["seconds"] >= 0
    solution, expected = in_python(shop, {"milk": 1.0, "jam": -0.5})
    assert report["objective"] == pytest.approx(solution.last.objective, rel=1e-12)
    assert report["steps"] == solution.steps
    assert scores_in(shop / "scores.csv") == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (["--potential", "ce"], dict(potential="ce")),
        (["--potential", "lec", "--power", "1", "--strength", "0.3"], dict(potential="lec", power=1, strength=0.3)),
        (["--potential", "divergence", "--power", "3"], dict(potential="divergence", power=3)),
        (["--solver", "admm", "--step-size", "0.2"], dict(solver="admm", step_size=0.2)),
        (["--strength", "0"], dict(strength=0.0)),
        (["--scaling", "none"], dict(scaling="none")),
        (["--potential", "ce", "--scaling", "degree"], dict(potential="ce", scaling="degree")),
        (["--tolerance", "1e-3"], dict(tolerance=1e-3)),
    ],
)
def test_options_are_those_of_diffuse(shop, here, flags, options):  # noqa: F811
    code, output, errors = here(
        "diffuse", "shop.csv", "--seeds", "seeds.csv", "--out", "s.csv", "--json", *flags, folder=shop
    )
    assert code == 0, errors
    solution, expected = in_python(shop, {"milk": 1.0, "jam": -0.5}, **options)
    assert json.loads(output)["steps"] == solution.steps
    assert scores_in(shop / "s.csv") == pytest.approx(expected, abs=1e-14)


def test_text_for_people(shop, here):  # noqa: F811
    code, output, _ = here("diffuse", "shop.csv", "--seeds", "seeds.csv", folder=shop)
    assert code == 0
    assert "objective" in output
    assert "converged" in output


def test_integer_ids_come_back_as_they_were(shop, here):  # noqa: F811
    (shop / "numbers.csv").write_text("node,edge\n70,1\n7,1\n7,2\n900,2\n")
    (shop / "seeds.tsv").write_text("node\tvalue\n900\t2\n")
    code, _, errors = here(
        "diffuse", "numbers.csv", "--seeds", "seeds.tsv", "--out", "s.parquet", "--json", folder=shop
    )
    assert code == 0, errors
    table = pq.read_table(shop / "s.parquet")
    assert table.column_names == ["node", "score"]
    assert sorted(table["node"].to_pylist()) == [7, 70, 900]
    assert table["score"].type == pa.float64()


@pytest.mark.parametrize(
    ("ids", "written"),
    [
        ([1, "a"], {"1", "a"}),
        ([1, "a", "1"], {"1", '"a"', '"1"'}),
        ([10**30, 2], {str(10**30), "2"}),
    ],
)
def test_ids_of_every_type_are_distinguished_in_the_scores(shop, here, ids, written):  # noqa: F811
    (shop / "any.hif.json").write_text(json.dumps({"incidences": [{"node": name, "edge": "e"} for name in ids]}))
    (shop / "seeds.csv").write_text(f"node,value\n{ids[1]},1\n")
    code, _, errors = here("diffuse", "any.hif.json", "--seeds", "seeds.csv", "--out", "s.csv", "--json", folder=shop)
    assert code == 0, errors
    assert set(scores_in(shop / "s.csv")) == written


def test_parquet_seeds(shop, here):  # noqa: F811
    pq.write_table(pa.table({"value": [1.0, -0.5], "node": ["milk", "jam"], "note": ["a", "b"]}), shop / "s.parquet")
    outputs = []
    for seeds in ("seeds.csv", "s.parquet"):
        code, output, errors = here("diffuse", "shop.csv", "--seeds", seeds, "--json", folder=shop)
        assert code == 0, errors
        outputs.append(json.loads(output)["objective"])
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("node,value\nmilk,1\nbeer,2\n", "seeds.csv, line 3: Every seed must be a node of the hypergraph. Got 'beer'"),
        ("node,value\nmilk,1\njam,2\nmilk,1\n", "seeds.csv, line 4: Each node must occur once. Got 'milk'"),
        ("node,value\nmilk,1\njam,nan\n", "seeds.csv, line 3: Every value must be a finite number"),
        ("node,value\nmilk,inf\njam,1\n", "seeds.csv, line 2: Every value must be a finite number"),
        ("node,value\nmilk,1\njam,\n", "seeds.csv, line 3: Every value must be a finite number"),
        ("node,value\nmilk,1\njam,much\n", "seeds.csv, line 3: Every value must be a finite number"),
        ("node,value\n\nmilk,1\n\n,2\n", "seeds.csv, line 5: Every seed must be a node of the hypergraph"),
        (f"node,value\nmilk,1\n{'1' * 5000},2\n", "seeds.csv, line 3: Every seed must be a node"),
        ("name,value\nmilk,1\n", "must have the columns 'node' and 'value'. Got name, value"),
        ("node\nmilk\n", "must have the columns 'node' and 'value'. Got node"),
        ("", "seeds.csv"),
    ],
    ids=[
        "unknown",
        "twice",
        "nan",
        "inf",
        "empty",
        "text",
        "no-node",
        "digits",
        "no-node-column",
        "one-column",
        "void",
    ],
)
def test_invalid_seeds_name_the_position(shop, refuse, content, message):  # noqa: F811
    (shop / "seeds.csv").write_text(content)
    errors = refuse(1, "diffuse", "shop.csv", "--seeds", "seeds.csv", "--out", "s.csv", "--json", folder=shop)
    assert message in errors
    assert "Traceback" not in errors
    assert not (shop / "s.csv").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--potential", "tvs"], "tvs"),
        (["--solver", "newton"], "newton"),
        (["--power", "3"], "must be 1 or 2. Got 3"),
        (["--potential", "ce", "--power", "1"], "must be 2. Got 1"),
        (["--step-size", "0"], "must be positive"),
        (["--strength", "-1"], "--strength"),
        (["--strength", "inf"], "finite and 0 or more. Got inf"),
    ],
)
def test_invalid_requests_exit_with_2(shop, refuse, flags, message):  # noqa: F811
    errors = refuse(2, "diffuse", "shop.csv", "--seeds", "seeds.csv", *flags, folder=shop)
    assert message in errors


def test_seeds_must_be_an_existing_table(shop, refuse):  # noqa: F811
    (shop / "seeds.txt").write_text("node,value\nmilk,1\n")
    for seeds in ("seeds.txt", "absent.csv"):
        assert seeds in refuse(2, "diffuse", "shop.csv", "--seeds", seeds, folder=shop)


def test_an_existing_file_is_replaced_only_with_force(shop, here):  # noqa: F811
    (shop / "s.csv").write_text("mine")
    command = ["diffuse", "shop.csv", "--seeds", "seeds.csv", "--out", "s.csv", "--json"]
    code, output, errors = here(*command, folder=shop)
    assert (code, output) == (2, "")
    assert "s.csv" in errors
    assert (shop / "s.csv").read_text() == "mine"
    code, _, errors = here(*command, "--force", folder=shop)
    assert code == 0, errors
    assert len(scores_in(shop / "s.csv")) == 5


@pytest.mark.parametrize("steps", [0, 1])
def test_not_converged_exits_with_1_and_is_reported_in_json(shop, here, steps):  # noqa: F811
    code, output, errors = here(
        "diffuse", "shop.csv", "--seeds", "seeds.csv", "--max-steps", steps, "--json", folder=shop
    )
    report = json.loads(output)
    assert (code, report["outcome"], report["steps"]) == (1, "max_steps", steps)
    assert "not reached within the allowed steps" in errors


def test_divergence_exits_with_1_and_prints_valid_json(shop, here):  # noqa: F811
    code, output, errors = here(
        "diffuse", "shop.csv", "--seeds", "seeds.csv", "--potential", "ce", "--solver", "gradient",
        "--step-size", "1e30", "--json", folder=shop,
    )  # fmt: skip
    report = json.loads(output, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (code, report["outcome"]) == (1, "diverged")
    assert report["objective"] is None or np.isfinite(report["objective"])
    assert "no longer finite" in errors


def test_a_picture_shows_the_solve(shop, refuse, succeed):  # noqa: F811
    done = succeed(
        "diffuse", "shop.csv", "--seeds", "seeds.csv", "--picture", "solve.png", "--json", folder=shop
    )  # fmt: skip
    assert json.loads(done.stdout)["picture"] == "solve.png"
    assert (shop / "solve.png").read_bytes().startswith(b"\x89PNG")
    assert "exists already" in refuse(
        2, "diffuse", "shop.csv", "--seeds", "seeds.csv", "--picture", "solve.png", folder=shop
    )
    assert sorted(path.name for path in shop.iterdir() if path.is_file()) == ["seeds.csv", "shop.csv", "solve.png"]


def test_every_guess_is_reported(shop, here):  # noqa: F811
    _, _, errors = here("diffuse", "shop.csv", "--seeds", "seeds.csv", "--json", folder=shop)
    assert "note: node column guessed: 'item'" in errors


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--out", "s.txt"], "must end in .csv, .tsv or .parquet"),
        (["--out", "nowhere/s.csv"], "The folder 'nowhere' must exist before 's.csv'"),
        (["--out", "folder.csv", "--force"], "'folder.csv' must be a file. It is a folder"),
        (["--out", "s.csv", "--picture", "s.csv"], "A picture must end in .png. Got 's.csv'"),
        (["--picture", "nowhere/p.png"], "The folder 'nowhere' must exist before 'p.png'"),
    ],
)
def test_targets_are_checked_before_the_solve(shop, refuse, monkeypatch, flags, message):  # noqa: F811
    (shop / "folder.csv").mkdir()
    monkeypatch.setattr("edhnn.cli.diffuse.diffuse", lambda *_, **__: pytest.fail("the solver started"))
    assert message in refuse(2, "diffuse", "shop.csv", "--seeds", "seeds.csv", *flags, folder=shop)
    assert not (shop / "s.csv").exists()


def test_weights_of_memberships_are_refused_or_ignored_on_request(shop, refuse, succeed):  # noqa: F811
    rows = (shop / "shop.csv").read_text().splitlines()
    weighted = [rows[0] + ",weight", *(f"{row},{2 + k}" for k, row in enumerate(rows[1:]))]
    (shop / "weighted.csv").write_text("\n".join(weighted) + "\n")
    assert "--ignore-weights" in refuse(2, "diffuse", "weighted.csv", "--seeds", "seeds.csv", folder=shop)
    done = succeed("diffuse", "weighted.csv", "--seeds", "seeds.csv", "--ignore-weights", "--json", folder=shop)
    plain = succeed("diffuse", "shop.csv", "--seeds", "seeds.csv", "--json", folder=shop)
    assert json.loads(done.stdout)["objective"] == json.loads(plain.stdout)["objective"]


def report_of(succeed, folder, *words):  # noqa: F811
    return json.loads(succeed("diffuse", "shop.csv", *words, "--json", folder=folder).stdout)


def test_several_seed_columns_are_diffused_side_by_side(shop, succeed):  # noqa: F811
    (shop / "two.csv").write_text("node,a,b,note\nmilk,1,0,x\njam,-0.5,2,y\n")
    words = ["--seeds", "two.csv", "--seed-column", "b", "--seed-column", "a", "--out", "s.csv", "--top", "2"]
    report = report_of(succeed, shop, *words)
    with (shop / "s.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["node", "b", "a"]
    for name, seeds in (("a", {"milk": 1.0, "jam": -0.5}), ("b", {"jam": 2.0})):
        _, expected = in_python(shop, seeds)
        assert {row["node"]: float(row[name]) for row in rows} == pytest.approx(expected, abs=1e-7)
        best = sorted(expected, key=expected.get, reverse=True)[:2]
        assert [row["node"] for row in report["top"] if row["column"] == name] == best


def test_pagerank_and_its_cluster_are_those_of_python(shop, succeed):  # noqa: F811
    (shop / "start.csv").write_text("node,value\nmilk,3\nsalt,1\n")
    report = report_of(
        succeed, shop, "--method", "pagerank", "--seeds", "start.csv", "--restart", "0.3", "--cluster", "--out", "s.csv"
    )
    hypergraph = (dataset := read_dataset(shop / "shop.csv")).hypergraph
    names = dataset.node_ids.to_list()
    x = torch.tensor([[{"milk": 0.75, "salt": 0.25}.get(name, 0.0)] for name in names], dtype=torch.float64)
    h = solve(pagerank_problem(hypergraph, x, restart=0.3), ADMM(adaptive=True)).value[:, 0]
    scores = hypergraph.degree.double() * h
    assert sum(row["score"] for row in report["top"]) == pytest.approx(1, abs=1e-6)
    assert {row["node"]: row["score"] for row in report["top"]} == pytest.approx(
        dict(zip(names, scores.tolist(), strict=True)), abs=1e-9
    )
    cut, (found,) = sweep_cut(hypergraph, h), report["clusters"]
    assert found["conductance"] == pytest.approx(cut.conductance)
    assert found["members"] == [names[v] for v in cut.members] and found["size"] == len(cut.members)
    with (shop / "s.csv").open(newline="") as stream:
        inside = {row["node"] for row in csv.DictReader(stream) if row["cluster"] == "1"}
    assert inside == set(found["members"])
    report = report_of(succeed, shop, "--seeds", "start.csv", "--cluster", "--max-cluster", "1")
    assert report["clusters"][0]["size"] == 1


@pytest.mark.parametrize("potential", ["ce", "tv", "lec", "divergence"])
def test_classes_of_a_column_or_of_seeds_are_spread_as_by_the_estimator(shop, succeed, potential):  # noqa: F811
    (shop / "shop.nodes.csv").write_text("item,kind\nmilk,cold\nbread,\nsalt,\ntea,\njam,sweet\n")
    (shop / "known.csv").write_text("node,class\njam,sweet\nmilk,cold\n")
    words = ["--method", "labels", "--potential", potential]
    by_column = report_of(succeed, shop, *words, "--label", "kind", "--out", "s.csv")
    by_seeds = report_of(succeed, shop, *words, "--seeds", "known.csv")
    assert by_column["top"] == by_seeds["top"] and by_column["classes"] == by_seeds["classes"]
    dataset = read_dataset(shop / "shop.csv", label=["kind"])
    model = HypergraphLabelSpreading(potential).fit(dataset, dataset.y.numpy())
    sure = model.label_distributions_.max(axis=1)
    names = dataset.node_ids.to_list()
    with (shop / "s.csv").open(newline="") as stream:
        rows = {row["node"]: row for row in csv.DictReader(stream)}
    for name, number, probability in zip(names, model.transduction_, sure, strict=True):
        assert rows[name]["class"] == dataset.class_names[number]
        assert float(rows[name]["probability"]) == pytest.approx(probability, abs=1e-12)
        assert rows[name]["known"] == str(int(name in ("milk", "jam")))
    assert {row["node"] for row in by_column["top"]} == {"bread", "salt", "tea"}
    assert sum(row["found"] for row in by_column["classes"]) == 3
    assert [row["known"] for row in by_column["classes"]] == [1, 1]


def test_the_answer_is_shown_to_people(shop, here):  # noqa: F811
    (shop / "known.csv").write_text("node,class\njam,sweet\nmilk,cold\n")
    words = ["--seeds", "seeds.csv", "--top", "1", "--cluster"]
    code, output, errors = here("diffuse", "shop.csv", *words, folder=shop)
    assert code == 0, errors
    assert "highest scores" in output and "milk" in output and "conductance" in output
    code, output, errors = here("diffuse", "shop.csv", "--method", "labels", "--seeds", "known.csv", folder=shop)
    assert code == 0, errors
    assert all(word in output for word in ("surest new answers", "bread", "sweet", "probability"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "needs --seeds: a table with columns node and value"),
        (["--seeds", "seeds.csv", "--top", "6"], "--top must be at most the number of nodes, 5. Got 6"),
        (["--seeds", "seeds.csv", "--restart", "0.2"], "--restart is for --method pagerank only"),
        (["--seeds", "seeds.csv", "--max-cluster", "2"], "--max-cluster needs --cluster"),
        (["--seeds", "seeds.csv", "--seed-column", "value", "--seed-column", "value"], "must name each column once"),
        (["--seeds", "seeds.csv", "--method", "pagerank", "--strength", "2"], "PageRank has --restart in place of"),
        (["--seeds", "start.csv", "--method", "pagerank", "--restart", "1"], "must lie between 0 and 1. Got 1.0"),
        (["--method", "labels"], "needs classes: name their column with --label"),
        (["--method", "labels", "--seeds", "known.csv", "--cluster"], "--cluster cannot be used with --method labels"),
        (["--seed-column", "value", "--method", "labels"], "--seed-column is a column of --seeds"),
    ],
)
def test_options_that_do_not_belong_together_exit_with_2(shop, refuse, flags, message):  # noqa: F811
    (shop / "start.csv").write_text("node,value\nmilk,3\n")
    (shop / "known.csv").write_text("node,class\njam,sweet\n")
    assert message in refuse(2, "diffuse", "shop.csv", *flags, folder=shop)


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        ("node,value\nmilk,cold\n", [], "Got 'cold' in the column 'value'. If the column holds classes, use --method"),
        ("node,value\nmilk,1\n", ["--seed-column", "b"], "must have the columns 'node' and 'b'. Got node, value"),
        ("node,value\nmilk,-1\n", ["--method", "pagerank"], "The seeds of PageRank must be 0 or more"),
        ("node,value\nmilk,0\n", ["--method", "pagerank"], "one must be positive. The column 'value' is not so"),
        ("node,value\nmilk,-1\n", ["--cluster"], "The cluster of 'value' is empty: no node has a positive score"),
        ("node,class\nbeer,a\n", ["--method", "labels"], "line 2: Every seed must be a node of the hypergraph"),
        ("node,class\nmilk,\n", ["--method", "labels"], "line 2: Every seed must have a class"),
        ("node,class\n", ["--method", "labels"], "No node has a class"),
    ],
)
def test_seeds_that_do_not_suit_the_method_exit_with_1(shop, refuse, content, flags, message):  # noqa: F811
    (shop / "seeds.csv").write_text(content)
    words = ["--seeds", "seeds.csv", *flags, "--out", "s.csv"]
    errors = refuse(1, "diffuse", "shop.csv", *words, folder=shop)
    assert message in errors and "Traceback" not in errors
    assert not (shop / "s.csv").exists()


def test_classes_that_are_all_known_leave_nothing_to_do(shop, refuse):  # noqa: F811
    (shop / "shop.nodes.csv").write_text("item,kind\nmilk,a\nbread,a\nsalt,b\ntea,b\njam,b\n")
    assert "Every node has a class already" in refuse(
        1, "diffuse", "shop.csv", "--method", "labels", "--label", "kind", folder=shop
    )
