"""The paper's numbers: all of them readable, and mistakes named."""

import pytest

from edhnn import DataError, UsageError
from edhnn.experiments.spec import NOTHING, parse_published, published_names, read_published


@pytest.mark.parametrize("name", published_names())
def test_every_table_that_comes_with_the_package_is_read(name):
    found = read_published(name)
    assert found.numbers
    assert all(number.std is None or number.std >= 0 for number in found.numbers.values())


def test_numbers_are_the_printed_ones():
    found = read_published("table2")
    assert found.numbers["ED-HNN", "Cora"].mean == 80.31
    assert found.numbers["ED-HNN", "Cora"].std == 1.35
    assert found.rows()[0] == "HGNN"
    assert found.unit == ""
    assert "A6000" in read_published("table8").unit
    assert read_published("") == NOTHING


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[row", "must be TOML"),
        ("unit = 3", "unit must be a text"),
        ("[row]\ncolumn = { men = 1.0 }", r"\[row\].*men"),
        ("[row]\ncolumn = 3", r"\[row\]"),
        ('[row]\ncolumn = { mean = "3" }', "Expected `float`"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(DataError, match=f"(?s)mine.toml.*{message}"):
        parse_published(text, "mine.toml")


def test_an_unknown_table_is_named():
    with pytest.raises(UsageError, match="Did you mean 'table2'"):
        read_published("tabel2")
