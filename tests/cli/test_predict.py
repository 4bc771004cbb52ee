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
