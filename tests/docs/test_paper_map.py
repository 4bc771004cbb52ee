"""docs/paper.md maps parts of the paper to objects; each object exists and its docstring has the label."""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

ROWS = re.findall(
    r"^\| ([^|]+?) \| [^|]+ \| `([\w.]+):([\w.]+)` \|$", (Path(__file__).parents[2] / "docs/paper.md").read_text(), re.M
)


def test_the_map_has_rows():
    assert len(ROWS) >= 6


@pytest.mark.parametrize(("label", "module", "name"), ROWS)
def test_each_row_names_an_object_with_its_label_in_the_docstring(label, module, name):
    value = reduce(getattr, name.split("."), importlib.import_module(module))
    assert label in re.sub(r"\s+", " ", value.__doc__ or "")
