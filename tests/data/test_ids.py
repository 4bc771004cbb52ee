"""Ids: their numbers against a naive implementation, and text that is, or only looks like, integers."""

from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edhnn import DataError, Ids
from edhnn.data.ids import IdColumn, encode_ids, integers_if_all_canonical
from tests.strategies import examples

SMALL = st.integers(-5, 5)
WIDE = st.integers(-(2**63), 2**63 - 1)
BEYOND = st.integers(-(2**70), 2**70)
TEXT = st.sampled_from(["", "1", "-5", "a", "é", "two\nlines", "a ", "A"])
KINDS = [SMALL, SMALL | WIDE, SMALL | BEYOND, TEXT, SMALL | TEXT, SMALL | BEYOND | TEXT]


@st.composite
def columns(draw):
    """Two columns in chunks, of one kind each or of all kinds together."""
    one, other = draw(st.sampled_from(KINDS)), draw(st.sampled_from(KINDS))
    chunks = [st.lists(st.lists(ids, max_size=6), max_size=3) for ids in (one, other)]
    return draw(chunks[0]), draw(chunks[1])


def column_of(chunks):
    column = IdColumn()
    for chunk in chunks:
        column.append(chunk)
    return column


def naive_numbers(listed, mentioned):
    """Define the order: listed ids in their order; then integers ascending, or anything else by first mention."""
    order = []
    for name in listed:
        if name not in order:
            order.append(name)
    others = []
    for name in mentioned:
        if name not in order and name not in others:
            others.append(name)
    if all(isinstance(name, int) for name in order + others):
        others = sorted(others)
    return order + others


@settings(max_examples=examples(400))
@given(columns())
@example(([[5, 3]], [[2**63 - 1, -(2**63)]]))
@example(([], [[2**62, 0, 2**62, -(2**62)]]))
@example(([[7, 7, 7]], [[7]]))
@example(([["1"]], [[1]]))
@example(([[]], [[]]))
def test_numbers_equal_the_naive_ones(drawn):
    listing, mentions = drawn
    listed, mentioned = list(chain(*listing)), list(chain(*mentions))
    expected = naive_numbers(listed, mentioned)
    ids, in_listing, in_mentions = encode_ids(column_of(listing), column_of(mentions))
    assert ids.to_list() == expected
    assert [type(name) for name in ids] == [type(name) for name in expected]
    assert in_listing.tolist() == [expected.index(name) for name in listed]
    assert in_mentions.tolist() == [expected.index(name) for name in mentioned]


@pytest.mark.parametrize("top", [2**20 + 39, 2**20 + 40, 2**20 + 41, 2**40])
def test_table_and_sorting_give_integers_the_same_numbers(top):
    """The limit between table and sorting, 4 x 10 entries + 2**20, lies among these."""
    listing, mentions = [top, 3], [0, 9, 3, 1, 9, top, 2, 5]
    ids, in_listing, in_mentions = encode_ids(column_of([listing]), column_of([mentions]))
    assert ids.to_list() == [top, 3, 0, 1, 2, 5, 9]
    assert in_listing.tolist() == [0, 1]
    assert in_mentions.tolist() == [2, 6, 1, 3, 6, 0, 4, 5]


def test_numbers_from_0_are_stored_as_a_range():
    ids, _, numbers = encode_ids(IdColumn(), column_of([[2, 0], [1, 2]]))
    assert ids.are_numbers
    assert isinstance(ids.values, range)
    assert numbers.tolist() == [2, 0, 1, 2]
    assert not encode_ids(IdColumn(), column_of([[2, 1]]))[0].are_numbers
    assert not encode_ids(column_of([[1, 0]]), IdColumn())[0].are_numbers


def test_thousands_of_chunks_of_text_are_numbered_jointly():
    names = [f"n{(number * 7919) % 1000}" for number in range(20_000)]
    ids, _, numbers = encode_ids(IdColumn(), column_of([names[at : at + 13] for at in range(0, len(names), 13)]))
    assert ids.to_list() == list(dict.fromkeys(names))
    assert [ids[number] for number in numbers.tolist()] == names


def as_read(texts):
    column = IdColumn()
    column.append_arrow(pa.array(texts, pa.string()))
    integers_if_all_canonical([column])
    return [name for chunk in column.chunks for name in chunk.to_pylist()]


@pytest.mark.parametrize("text", ["7", "0", "-7", "10", "9223372036854775807", "-9223372036854775808", "1000000000"])
def test_plainly_spelled_integers_become_integers(text):
    assert as_read(["5", text]) == [5, int(text)]


@pytest.mark.parametrize(
    "text",
    [
        *("007", "+7", " 7", "7 ", "-0", "-07", "7.0", "1e3", "", "-", "n7", "0x7", "1_000", "٣", "９", "\t7", "7\n"),
        *("9223372036854775808", "-9223372036854775809", "123456789012345678901234567890"),
    ],
)
def test_one_other_spelling_keeps_all_ids_text(text):
    assert as_read(["5", text]) == ["5", text]
    assert as_read([text, "5"]) == [text, "5"]


@pytest.mark.parametrize(
    "texts",
    [["0x1a2b3c4d5e"], ["0XFFFFFFFFF"], ["0x7FFFFFFFFFFFFFFF", "07"], ["0xDE0B6B3A7640000", "5", "012"]],
)
def test_hexadecimal_text_stays_text_even_if_as_short_as_the_decimal_number(texts):
    assert as_read(texts) == texts


@settings(max_examples=examples(300))
@given(st.lists(st.integers(-(2**65), 2**65).map(str) | st.from_regex(r"[-+0 ]?[0-9a-fx.]{1,12}", fullmatch=True)))
def test_text_is_read_as_integers_exactly_if_they_are_written_as_the_same_text(texts):
    def is_plain(text):
        try:
            return str(int(text)) == text and -(2**63) <= int(text) < 2**63
        except ValueError:
            return False

    expected = [int(text) for text in texts] if all(map(is_plain, texts)) else texts
    assert as_read(texts) == expected


def test_all_columns_are_converted_or_none():
    one, other = IdColumn(), IdColumn()
    one.append_arrow(pa.array(["1", "2"]))
    other.append_arrow(pa.array(["3"]))
    other.append_arrow(pa.array(["x"]))
    integers_if_all_canonical([one, other])
    assert {chunk.type for column in (one, other) for chunk in column.chunks} == {pa.string()}
    third = IdColumn()
    third.append_arrow(pa.array(["-4"]))
    integers_if_all_canonical([one, third])
    assert encode_ids(one, third)[0].to_list() == [1, 2, -4]


@pytest.mark.parametrize(
    "values", [range(4), np.array([5, -3, 2**40, 0]), ["a", "", "b", "1"], [1, "1", 2**70, "x"], [3, 1, 2, 0]]
)
def test_ids_behave_like_a_list_of_python_values(values):
    ids, plain = Ids(values), [value if isinstance(value, str) else int(value) for value in values]
    assert len(ids) == 4
    assert list(ids) == ids.to_list() == ids[:] == plain
    assert [type(name) for name in ids] == [type(name) for name in plain]
    assert (ids[1], ids[-1], ids[1:3]) == (plain[1], plain[-1], plain[1:3])
    assert type(ids[1]) is type(plain[1])
    assert ids.take(np.array([3, 0, 0])) == [plain[3], plain[0], plain[0]]
    assert [ids.position(name) for name in plain] == [0, 1, 2, 3]
    assert ids.position("not here") is None
    assert ids.position(12345) is None
    assert ids == Ids(list(plain))
    assert ids != Ids(list(plain[:3]))
    assert ids != plain
    assert plain[0] in ids
    assert ids.are_numbers == isinstance(values, range)
    with pytest.raises(IndexError):
        ids[4]
    with pytest.raises(TypeError):
        hash(ids)


def test_integer_and_text_ids_differ():
    assert Ids([1, 2]) != Ids(["1", "2"])
    assert Ids([1, "1"]).position("1") == 1
    assert Ids(range(2)) == Ids(np.array([0, 1]))
    assert not Ids(range(1, 3)).are_numbers
    assert repr(Ids(["a", 1, "b", "c"])) == "Ids(['a', 1, 'b', ...], length 4)"
    assert repr(Ids([])) == "Ids([], length 0)"


@given(st.lists(SMALL | TEXT, max_size=8), st.lists(SMALL, max_size=8))
def test_repeated_returns_an_id_that_occurs_twice(mixed, integers):
    for names, ids in ((mixed, Ids(mixed)), (integers, Ids(np.array(integers, dtype=np.int64)))):
        twice = ids.repeated()
        assert (twice is None) == (len(set(names)) == len(names))
        assert twice is None or names.count(twice) > 1
        assert ids.repeated() == twice
    assert Ids(range(10**12)).repeated() is None


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (np.array([1.5, 1.7]), r"1\.5 at position 0"),
        ([1, 1.5], r"1\.5 at position 1"),
        (["a", True], "True at position 1"),
        (np.array([True]), "True at position 0"),
        (["a", None], "None at position 1"),
        (["a", b"b"], "b'b' at position 1"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_ids_of_other_types_raise(values, wrong):
    with pytest.raises(DataError, match=f"Every id must be a string or an integer. Got {wrong}"):
        Ids(values)


@pytest.mark.usefixtures("without_shape_checks")
def test_ids_keep_their_values_and_types():
    assert Ids(np.array(["1", "2"])).to_list() == ["1", "2"]
    assert Ids([np.int64(1), np.str_("b")]).to_list() == [1, "b"]
    assert {type(name) for name in Ids([np.int64(1), np.str_("b")]).values} == {int, str}
    assert Ids(np.array([2**64 - 1], dtype=np.uint64)).to_list() == [2**64 - 1]
    assert Ids(("a", "a", "b")).repeated() == "a"
    numbers = np.arange(3, dtype=np.int32)
    assert Ids(numbers).values is numbers
    with pytest.raises(DataError, match=r"Ids must be a vector. Got an array of shape \[1, 2\]"):
        Ids(np.array([[1, 2]]))
