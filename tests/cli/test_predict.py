"""`edhnn evaluate` on the files that `edhnn data convert` writes: the same labels with the same names."""

import json
import shutil

import pytest

from tests.cli.test_data import here  # noqa: F401  (fixture)
from tests.cli.test_train import TINY, write_people

TARGETS = {
    "regression": {"low": lambda v: v / 20, "high": lambda v: 10 + v % 7 + 0.5},
    "multilabel": {"odd": lambda v: v % 2, "third": lambda v: int(v % 3 == 0)},
}


@pytest.mark.parametrize("task", TARGETS)
def test_several_labels_keep_their_names_through_every_format(tmp_path, here, task):  # noqa: F811
    names = list(TARGETS[task])
    write_people(tmp_path, "people", {"x": lambda v: v / 20, "size": lambda v: -v % 5, **TARGETS[task]})
    write_people(
        tmp_path, "turned", {**dict(reversed(TARGETS[task].items())), "x": lambda v: v / 20, "size": lambda v: -v % 5}
    )
    label = [word for name in names for word in ("--label", name)]
    code, _, errors = here("train", "people.csv", *label, "--out", "run", *TINY, folder=tmp_path)
    assert code == 0, errors
    turned = [word for name in reversed(names) for word in ("--label", name)]
    scores = {}
    for target in ("people.csv", "t.hif.json", "folder", "t.csv", "t.parquet"):
        if target != "people.csv":
            code, _, errors = here("data", "convert", "turned.csv", target, *turned, folder=tmp_path)
            assert code == 0, errors
        code, output, errors = here("evaluate", "run", target, "--json", folder=tmp_path)
        assert code == 0, errors
        scores[target] = json.loads(output)["mean"]
    assert all(found == pytest.approx(scores["people.csv"]) for found in scores.values()), scores


def test_no_prediction_is_written_that_is_not_finite_and_far_features_are_noted(tmp_path, here):  # noqa: F811
    columns = {"x": lambda v: v / 20, "size": lambda v: -v % 5, "kind": lambda v: "ab"[v % 2]}
    write_people(tmp_path, "people", columns)
    write_people(tmp_path, "far", columns | {"size": lambda v: 1000 if v == 7 else -v % 5})
    huge = {"x": lambda v: 3.4e38 if v == 7 else v / 20, "size": lambda v: 1.5e38 if v == 7 else -v % 5}
    write_people(tmp_path, "huge", columns | huge)
    code, _, errors = here(
        "train",
        "people.csv",
        "--label",
        "kind",
        "--out",
        "run",
        *TINY,
        "--set",
        "feature_scaling=none",
        folder=tmp_path,
    )
    assert code == 0, errors
    verbs = (("predict", ["--out", "p.csv", "--force"]), ("evaluate", []))
    for verb, options in verbs:
        code, _, errors = here(verb, "run", "people.csv", *options, folder=tmp_path)
        assert (code, "outside the range" in errors) == (0, False)
        code, _, errors = here(verb, "run", "far.csv", *options, folder=tmp_path)
        assert code == 0
        assert "note: 1 of 20 nodes of 'far' have features far outside" in errors
        assert "column 'size', with the value 1000 (training: 0 to 4)" in errors
    (tmp_path / "p.csv").unlink()
    for verb, options in verbs:
        code, output, errors = here(verb, "run", "huge.csv", *options, folder=tmp_path)
        assert (code, output) == (1, "")
        assert "The likely cause is column 'x', with the value 3.4e+38" in errors
        assert "at node 'n7'" in errors
    assert not (tmp_path / "p.csv").exists()


def write_things(folder, name, count, *, odd=False):
    """Write orders of things with columns of every kind; `odd` ones are new, and their order differs."""
    rows, nodes = [], []
    for v in range(count):
        colour = "mauve" if odd and v == 3 else ("red", "green", "blue")[v % 3]
        price = "" if v % 7 == 1 else f"{1000 + v}.{v:03d},50"[-8:] if v % 2 else f"{v},25"
        text = f"{('rye', 'milk')[v % 2]} {('big', 'small', 'fresh')[v % 3]} no {v}"
        kind = "" if odd or v % 5 == 4 else ("bread", "drink")[v % 2]
        cells = {
            "sku": f"{v:03d}",
            "kind": kind,
            "colour": colour,
            "price": price,
            "since": f"{v % 28 + 1:02d}.03.2026",
        }
        cells |= {"name": text, "zip": f"0{v % 4}"}
        nodes.append(cells)
        rows += [f"{v // 3};{v:03d};{v}", f"{(v + 7) % count // 3 + 100};{v:03d};{v}"]
    heads = list(nodes[0])[:: -1 if odd else 1]
    lines = [";".join(heads), *(";".join(cells[head] for head in heads) for cells in nodes)]
    (folder / f"{name}.nodes.csv").write_text("\n".join(lines) + "\n")
    (folder / f"{name}.csv").write_text("\n".join(["order_no;sku;line", *rows]) + "\n")


def test_columns_of_every_kind_from_training_to_prediction(tmp_path, here):  # noqa: F811
    write_things(tmp_path, "things", 40)
    write_things(tmp_path, "new", 12, odd=True)
    code, _, errors = here("train", "things.csv", "--label", "kind", "--out", "run", *TINY, folder=tmp_path)
    assert code == 0, errors
    for words in (
        "numbers of 'price' are written as 1.234,5",
        "categories, a column of 0 and 1 for each value: colour (3), zip (4)",
        "dates, as years and positions in year and week: since (5)",
        "text, as weights of its words: name (6)",
        "columns of the incidence table left out: line",
    ):
        assert words in errors
    code, _, errors = here("evaluate", "run", "things.csv", "--json", folder=tmp_path)
    assert code == 0, errors
    assert "guessed" not in errors
    code, output, errors = here("predict", "run", "new.csv", "--out", "p.csv", "--json", folder=tmp_path)
    assert (code, json.loads(output)["num_nodes"]) == (0, 12), errors
    assert "1 values of 'colour' did not occur in the training" in errors
    assert "First: 'mauve' at line 5 (node '003')" in errors
    record = json.loads((tmp_path / "run/splits/00/model/config.json").read_text())["reading"]
    assert record["columns"] == {"node": "sku", "hyperedge": "order_no", "weight": None, "id": "sku"}
    assert [column["kind"] for column in record["encoding"]["columns"]] == [
        "category", "number", "date", "text", "category"
    ]  # fmt: skip

    names = (tmp_path / "new.nodes.csv").read_text()
    (tmp_path / "new.nodes.csv").write_text(names.replace("02.03.2026", "soon"))
    code, output, errors = here("predict", "run", "new.csv", "--out", "q.csv", folder=tmp_path)
    assert (code, output) == (1, "")
    assert "line 3 (node '001'): The feature column 'since' held dates (day-month-year) in the training. Got" in errors
    assert not (tmp_path / "q.csv").exists()


def test_a_run_that_recorded_no_encoding_predicts_from_its_columns(tmp_path, here):  # noqa: F811
    columns = {"x": lambda v: v / 20, "size": lambda v: -v % 5, "kind": lambda v: "ab"[v % 2]}
    write_people(tmp_path, "people", columns)
    code, _, errors = here("train", "people.csv", "--label", "kind", "--out", "run", *TINY, folder=tmp_path)
    assert code == 0, errors
    model = tmp_path / "run/splits/00/model"
    copied = tmp_path / "model"
    shutil.copytree(model, copied)
    record = json.loads((copied / "config.json").read_text())
    del record["reading"]["encoding"], record["reading"]["columns"]
    (copied / "config.json").write_text(json.dumps(record))
    answers = []
    for folder in (model, copied):
        code, _, errors = here("predict", folder, "people.csv", "--out", "p.csv", "--force", folder=tmp_path)
        assert code == 0, errors
        answers.append((tmp_path / "p.csv").read_text())
    assert answers[0] == answers[1]


def test_data_without_features_are_trained_on_and_predicted_with_a_note(tmp_path, here):  # noqa: F811
    pairs = [(f"n{v}", f"e{v % 5}") for v in range(20)] + [(f"n{v}", f"f{v % 2}") for v in range(0, 20, 3)]
    for name, prefix in (("plain", "n"), ("other", "m")):
        lines = [f"{node.replace('n', prefix)},{edge}" for node, edge in pairs]
        (tmp_path / f"{name}.csv").write_text("node,hyperedge\n" + "\n".join(lines) + "\n")
        labels = [f"{prefix}{v},{'ab'[v % 2]},{v}" for v in range(20)]
        (tmp_path / f"{name}.nodes.csv").write_text("id,kind,price\n" + "\n".join(labels) + "\n")
    arguments = ("train", "plain.csv", "--label", "kind", "--features", "", "--out", "run", *TINY)
    code, output, errors = here(*arguments, folder=tmp_path)
    assert code == 0, errors
    assert "features alone skipped: the data have none of their own" in output
    assert "note: no features: 198 columns are made from the hypergraph" in errors
    code, _, errors = here("predict", "run", "plain.csv", "--out", "p.csv", folder=tmp_path)
    assert (code, "None of" in errors, "feature columns guessed" in errors) == (0, False, False)
    code, _, errors = here("predict", "run", "other.csv", "--out", "o.csv", folder=tmp_path)
    assert code == 0
    assert "note: The model's features are made from the hypergraph" in errors
