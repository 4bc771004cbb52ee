"""Quotes of text tables: the error for an unclosed quote names the line where it opens."""

import pytest

from edhnn import DataError, read_dataset

HEAD = "item,basket\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("quotes") / "t.csv"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('milk,1\nmilk,"2\nbread,1\nmilk,3\n', "t.csv, line 3: .*must end with one. Cause: unexpected end"),
        ('"milk\n', "line 2: .*unexpected end"),
        ('"a\nb","c\nd,1\n', "line 2: .*unexpected end"),
        ('milk,1\n"bread"x,"1"2\n', "line 3: .*',' expected after"),
        ('milk,1\n"bread","1"2\n', "line 3: .*',' expected after"),
        ('milk,1\n"two\nlines" ,1\n', "line 3: .*',' expected after"),
    ],
)
def test_an_unclosed_quote_is_reported_at_its_first_line(path, body, message):
    path.write_text(HEAD + body)
    with pytest.raises(DataError, match=message):
        read_dataset(path)


def test_a_quote_far_down_is_found(path):
    path.write_text(HEAD + "milk,1\n" * 200_000 + 'bread,"1\n' + "milk,2\n")
    with pytest.raises(DataError, match="line 200002: .*unexpected end"):
        read_dataset(path)


def test_correct_quotes_are_read(path):
    path.write_text(HEAD + '"two\nlines",1\n"with ""quotes""","1"\nin"side,"3, 4"\n')
    dataset = read_dataset(path)
    assert list(dataset.node_ids) == ["two\nlines", 'with "quotes"', 'in"side']
    assert list(dataset.edge_ids) == ["1", "3, 4"]


def test_tables_without_quotes_are_not_read_again(path, monkeypatch):
    monkeypatch.setattr("edhnn.io.tables.arrow.need_closed_quotes", lambda *_: pytest.fail("read again"))
    path.write_text(HEAD + "milk,1\n")
    assert read_dataset(path).hypergraph.num_nodes == 1
