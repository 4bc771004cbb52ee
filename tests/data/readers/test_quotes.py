"""Quotes of text tables, judged by Python's strict csv reader, and refused at the line where one opens."""

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edhnn import DataError, Limits, read_dataset
from edhnn.data.readers.quotes import need_closed_quotes

HEAD = "item,basket\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("quotes") / "t.csv"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('milk,1\nmilk,"2\nbread,1\nmilk,3\n', "t.csv, line 3: .*must end with one. It is not closed before the file"),
        ('"milk\n', "line 2: .*not closed"),
        ('"a\nb","c\nd,1\n', "line 3: .*not closed"),
        ('milk,1\n"bread"x,"1"2\n', "line 3: .*'x' follows its closing quote"),
        ('milk,1\n"bread","1"2\n', "line 3: .*'2' follows its closing quote"),
        ('milk,1\n"two\nlines" ,1\n', "line 3: .*' ' follows its closing quote"),
    ],
)
def test_a_broken_quote_is_named_where_it_opens(path, body, message):
    path.write_text(HEAD + body)
    with pytest.raises(DataError, match=message):
        read_dataset(path)


def test_a_quote_far_down_is_found(path):
    path.write_text(HEAD + "milk,1\n" * 200_000 + 'bread,"1\n' + "milk,2\n" * 200_000)
    with pytest.raises(DataError, match="line 200002: .*not closed"):
        read_dataset(path)


def test_right_quotes_are_read(path):
    path.write_text(HEAD + '"two\nlines",1\n"with ""quotes""","1"\nin"side,"3, 4"\n')
    dataset = read_dataset(path)
    assert list(dataset.node_ids) == ["two\nlines", 'with "quotes"', 'in"side']
    assert list(dataset.edge_ids) == ["1", "3, 4"]


def test_tables_without_quotes_are_not_read_again(path, monkeypatch):
    monkeypatch.setattr("edhnn.data.readers.arrow_tables.need_closed_quotes", lambda *_: pytest.fail("read again"))
    path.write_text(HEAD + "milk,1\n")
    assert read_dataset(path).hypergraph.num_nodes == 1


@settings(max_examples=500)
@given(st.text(alphabet='a",\n\r', max_size=12))
@example('a,"a"""\n')
def test_what_is_refused_is_what_the_strict_csv_reader_refuses(path, text):
    path.write_text(text, newline="")
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        with pytest.raises(DataError, match="must end with one"):
            need_closed_quotes(path, ",", Limits())
    else:
        need_closed_quotes(path, ",", Limits())
