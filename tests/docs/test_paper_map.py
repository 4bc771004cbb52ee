"""docs/paper.md maps the paper to the code: objects carry their labels, tests and experiments exist."""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

from edhnn.experiments import experiment_names

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| ([^|]+?) \| [^|]+ \| `([\w.]+):([\w.]+)` \| `([\w./]+)` \| ([^|]+) \|$",
    (ROOT / "docs/paper.md").read_text(),
    re.M,
)


def test_every_row_of_the_map_is_read():
    lines = (ROOT / "docs/paper.md").read_text().splitlines()
    assert len(ROWS) == sum(line.startswith("| ") for line in lines) - 1 >= 40


@pytest.mark.parametrize(("label", "module", "name", "tests", "experiments"), ROWS)
def test_each_row_names_an_object_that_carries_its_label(label, module, name, tests, experiments):
    value = reduce(getattr, name.split("."), importlib.import_module(module))
    assert label in re.sub(r"\s+", " ", value.__doc__ or "")
    assert (ROOT / tests).exists()
    assert set(re.findall(r"`([^`]+)`", experiments)) <= set(experiment_names())


def test_theorem_1_is_proved():
    assert any(
        label.startswith("Theorem 1") and tests == "tests/theory/test_theorem_1.py" for label, _, _, tests, _ in ROWS
    )
