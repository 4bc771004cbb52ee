"""The paper's numbers: all packaged tables are valid, and errors name the mistake."""

import pytest

from edhnn import DataError, UsageError
from edhnn.experiments.spec import NO_NUMBERS, parse_published, published_names, read_published


@pytest.mark.parametrize("name", published_names())
def test_every_packaged_table_is_valid(name):
    table = read_published(name)
    assert table.numbers
    assert all(number.std is None or number.std >= 0 for number in table.numbers.values())


def test_numbers_are_the_printed_ones():
    table = read_published("table2")
    assert table.numbers["ED-HNN", "Cora"].mean == 80.31
    assert table.numbers["ED-HNN", "Cora"].std == 1.35
    assert table.rows()[0] == "HGNN"
    assert table.unit == ""
    assert "A6000" in read_published("table8").unit
    assert read_published("") == NO_NUMBERS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[row", "not valid TOML"),
        ("unit = 3", "`unit` must be a string"),
        ("[row]\ncolumn = { men = 1.0 }", r"\[row\].*men"),
        ("[row]\ncolumn = 3", r"\[row\]"),
        ('[row]\ncolumn = { mean = "3" }', "Expected `float`"),
    ],
)
def test_errors_name_the_mistake(text, message):
    with pytest.raises(DataError, match=f"(?s)mine.toml.*{message}"):
        parse_published(text, "mine.toml")


def test_an_unknown_table_gets_a_suggestion():
    with pytest.raises(UsageError, match="Did you mean 'table2'"):
        read_published("tabel2")
