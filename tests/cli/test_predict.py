"""`edhnn evaluate` on the files that `edhnn data convert` writes: the same labels with the same names."""

import json

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
