"""Lines of integers: the vectorised parser agrees with a naive one at any block size."""

import io
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edhnn import DataError, LimitError, Limits
from edhnn.io import integer_lines
from edhnn.io.integer_lines import IntegerLines
from tests.strategies import examples

NUMBER = rb"[0-9]{1,18}"
WITH_COMMAS = re.compile(rb" *(%s *(, *%s *)*)?" % (NUMBER, NUMBER))
WITH_BLANKS = re.compile(rb"[ \t]*(%s([ \t]+%s)*[ \t]*)?" % (NUMBER, NUMBER))


def naive(text, *, commas, comment):
    """Return values and sizes, or the number of the first invalid line."""
    values, sizes = [], []
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, 1):
        line = line.removesuffix(b"\r")
        if comment is not None and line.startswith(comment):
            continue
        if not (WITH_COMMAS if commas else WITH_BLANKS).fullmatch(line):
            return number
        numbers = [int(word) for word in re.findall(NUMBER, line)]
        values += numbers
        sizes.append(len(numbers))
    return values, sizes


def parse(text, *, commas=True, comment=None, limits=None, block=None):
    with pytest.MonkeyPatch.context() as patch:
        if block is not None:
            patch.setattr(integer_lines, "_BLOCK_BYTES", block)
        lines = IntegerLines(io.BytesIO(text), Path("x.txt"), limits or Limits(), commas=commas, comment=comment)
        values, sizes = lines.read_all()
    return values.tolist(), sizes.tolist()


PIECES = st.sampled_from(
    [
        *(
            b"0",
            b"1",
            b"7",
            b"42",
            b"007",
            b"123456789012345678",
            b"1234567890123456789",
            b" ",
            b"  ",
            b",",
            b",",
            b"\t",
        ),
        *(b"\n", b"\n", b"\r\n", b"\r", b"%", b"% 1 2", b"-", b"a", b".", b"\x00", b"\xff", b"\xc2\xb2"),
    ]
)
MOSTLY_GOOD = st.lists(
    st.lists(st.integers(0, 10**18 - 1).map(str), max_size=4).map(",".join)
    | st.lists(st.integers(0, 99).map(str), max_size=4).map(" , ".join)
    | st.lists(st.integers(0, 99).map(str), max_size=4).map(" ".join)
    | st.sampled_from(["%", "% 7,8", " ", "", "1,", ",1", "1,,2", "1 2,3", ","]),
    max_size=6,
)
ENDS = st.sampled_from(["\n", "\r\n"])
TEXTS = st.lists(PIECES, max_size=24).map(b"".join) | st.builds(
    lambda lines, end, last: (end.join(lines) + (end if last else "")).encode(), MOSTLY_GOOD, ENDS, st.booleans()
)


@settings(max_examples=examples(1000))
@given(TEXTS, st.booleans(), st.sampled_from([None, b"%"]), st.sampled_from([1, 2, 3, 7, 16, 8 * 2**20]))
@example(b"1\r", True, None, 1)
@example(b"1\r\r\n", True, None, 2)
@example(b"\n,\n", True, None, 8)
@example(b"1\n,\n2", True, None, 8)
@example(b"1,\n,2", True, None, 8)
@example(b"1,2,\n3\n", True, None, 8)
@example(b",\n1 2\n", True, None, 8)
@example(b"%\n%\n1\n%\nx", False, b"%", 3)
@example(b"1%\n", False, b"%", 8)
@example(b"000000000000000001,000000000000000000\n", True, None, 8)
def test_the_fast_parser_and_the_naive_one_agree(text, commas, comment, block):
    expected = naive(text, commas=commas, comment=comment)
    try:
        result = parse(text, commas=commas, comment=comment, block=block)
    except DataError as error:
        result = int(re.fullmatch(r"line (\d+)", error.where)[1])
    if isinstance(expected, int) and isinstance(result, int):  # the error may name any of several invalid lines
        named = text.split(b"\n")[result - 1].removesuffix(b"\r")
        assert not (WITH_COMMAS if commas else WITH_BLANKS).fullmatch(named)
    else:
        assert result == expected


@settings(max_examples=examples(300))
@given(st.lists(st.lists(st.integers(0, 10**18 - 1), max_size=5), max_size=8), st.integers(1, 40), st.integers(0, 5))
def test_one_wrong_line_among_valid_ones_is_named(lines, block, index):
    texts = [",".join(map(str, line)) for line in lines]
    texts.insert(min(index, len(texts)), "1,x")
    with pytest.raises(DataError, match=rf"x.txt, line {min(index, len(lines)) + 1}: .*commas. Got '1,x'"):
        parse("\n".join(texts).encode(), block=block)


@pytest.mark.parametrize(
    ("text", "commas", "message"),
    [
        (b"1,2\n3,-4\n", True, "line 2: .*non-negative integers of at most 18 digits separated by commas. Got '3,-4'"),
        (b"1 2\n3,4\n", False, "line 2: .*separated by blanks. Got '3,4'"),
        (b"1\n2\n" + b"9" * 19, True, "line 3: .*Got '9999999999999999999'"),
        (b"1\n" + b"1," * 100, True, rf"line 2: .*Got '{'1,' * 30}\.\.\.'"),
        (b"\xff\xfe\n", True, "line 1: .*Got '��'"),
        (b"1\n\n2.5", False, r"line 3: .*Got '2\.5'"),
    ],
)
def test_errors_name_the_line_and_show_it(text, commas, message):
    with pytest.raises(DataError, match=message):
        parse(text, commas=commas)


def test_a_long_line_exceeds_the_limit_of_a_record():
    endless = b"1\n" + b"7," * 10_000
    with pytest.raises(LimitError, match="line 2: A line must be at most 1.0 KiB"):
        parse(endless, limits=Limits(max_record_bytes=1024), block=512)


def test_empty_text_and_blank_lines():
    assert parse(b"") == ([], [])
    assert parse(b"\n") == ([], [0])
    assert parse(b"\n\n  \n1") == ([1], [0, 0, 0, 1])
    assert parse(b"% only\n%comments", commas=False, comment=b"%") == ([], [])
