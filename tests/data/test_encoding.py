"""Columns of every kind as features: what is found, that it is repeated exactly, and what has changed since."""

import json
import math

import msgspec
import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edhnn import DataError
from edhnn.data.columns import ColumnRequest, sort_columns
from edhnn.data.encoding import MAX_CATEGORIES, MAX_WORDS, encoding_from_json, fit_encoding
from tests.strategies import examples

WORDS = ["red", "green", "blue", "large", "small", "garden", "kitchen", "lamp", "table", "chair"]


def column(values):
    return pa.chunked_array([pa.array(values)])


def locate(row):
    return f"line {row + 2}"


def fit(values, **options):
    notes = []
    fitted = fit_encoding({"c": column(values)}, locate, notes, **options)
    return fitted, notes


def features(values, again=None, notes=None):
    """Fit one column, write the encoding as JSON, and apply it to the same or to other values."""
    encoding = encoding_from_json(json.loads(json.dumps(fit(values)[0].encoding.to_json())))
    other = values if again is None else again
    x = encoding.apply({"c": column(other)}, len(other), locate, [] if notes is None else notes)
    return encoding.feature_names, x.to_dense().double().numpy()


@pytest.mark.parametrize(
    ("values", "numbers", "notation"),
    [
        (["1.234,50", "0,5", "12"], [1234.5, 0.5, 12], "1.234,5"),
        (["1,234.50", "0.5", "12"], [1234.5, 0.5, 12], "1,234.5"),
        (["1,234,567", "999", "-1,000"], [1234567, 999, -1000], "1,234.5"),
        (["1 234,5", "1\u00a0234", "+7"], [1234.5, 1234, 7], "1 234,5"),
        (["1'234.5", "2", "3"], [1234.5, 2, 3], "1 234.5"),
        (["0,125", "0,250", "1,500"], [0.125, 0.25, 1.5], "1.234,5"),
        (["1.5", "?", "NA", " 2 "], [1.5, math.nan, math.nan, 2], "1234.5"),
    ],
)
def test_numbers_in_every_notation(values, numbers, notation):
    fitted, notes = fit(values)
    assert fitted.encoding.columns[0].notation == notation
    known = np.array(numbers)
    expected = np.where(np.isnan(known), np.nanmedian(known), known)
    names, x = features(values)
    np.testing.assert_allclose(x[:, 0], expected)
    assert names == ("c", "c is missing")[: x.shape[1]]
    assert x.shape[1] == 1 + bool(np.isnan(known).any())
    assert bool(notes) == (notation != "1234.5" or "?" in values)


def test_a_doubtful_comma_is_noted():
    assert "uncertain: the comma could be a decimal comma" in fit(["1,234", "2,500"])[1][0].replace("This is ", "")
    assert "uncertain" not in fit(["1,234", "2,500,000"])[1][0]


@pytest.mark.parametrize("values", [["007", "008", "007", "008"] * 3, ["1-2", "2-3"] * 6, ["A", "B", "B", "A"] * 3])
def test_codes_with_leading_zeros_and_other_text_are_categories(values):
    (encoding, _), _ = fit(values)
    assert encoding.columns[0].values == sorted(set(values))
    names, x = features(values)  # one column for two values
    assert names == (f"c={sorted(set(values))[1]}",)
    assert x[:, 0].tolist() == [float(value == sorted(set(values))[1]) for value in values]


def test_categories_missing_ones_and_unknown_ones():
    values = ["red"] * 5 + ["green"] * 4 + ["blue"] * 3 + [None] * 2
    names, x = features(values)
    assert names == ("c=blue", "c=green", "c=red", "c is missing")
    assert (x.sum(axis=1) == 1).all()
    notes = []
    _, x = features(values, ["mauve", "red", None], notes)
    assert x.tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert notes == ["1 values of 'c' did not occur in the training, so their features are 0. First: 'mauve' at line 2"]


def test_rare_categories_share_a_column_with_unknown_ones():
    values = [f"city{min(number, number % 60)}" for number in range(600)] + ["once"]
    names, x = features(values, [*values, "never"])
    assert len(names) == MAX_CATEGORIES
    assert names[-1] == "c=(other)"
    assert x[-2:, -1].tolist() == [1, 1]
    assert (x.sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("values", "order", "noted"),
    [
        (["2026-01-05", "2026-07-06", "2025-12-31"], "year-month-day", False),
        (["2026-01-05T10:30:00Z", "2026-07-06 23:59", None], "year-month-day", False),
        (["05.01.2026", "31.12.2025", "06.07.2026"], "day-month-year", False),
        (["5/1/2026", "31/12/2025"], "day-month-year", False),
        (["12/31/2025", "1/5/2026"], "month-day-year", False),
        (["1/5/2026", "2/5/2026"], "day-month-year", True),
    ],
)
def test_dates(values, order, noted):
    fitted, notes = fit(values)
    found = fitted.encoding.columns[0]
    assert found.order == order
    assert bool(notes) == noted
    names, x = features(values)
    assert names[0] == "c (years)"
    known = [row for row, value in enumerate(values) if value]
    assert (np.abs(x[known, 0] - 26) < 1).all()
    np.testing.assert_allclose((x[known, 1:3] ** 2).sum(axis=1), 1, rtol=1e-6)
    assert found.has_time == ("T" in str(values[0]))
    assert names[-1] == ("c is missing" if None in values else names[-1])


def test_31_february_and_mixed_orders_are_no_dates():
    for values in (["2026-02-31", "2026-02-01"] * 4, ["31/12/2025", "12/31/2025"] * 4):
        assert fit(values)[0].encoding.columns[0].title == "categories"


def test_free_text_is_sparse_and_its_numbers_are_standardised():
    rng = np.random.default_rng(0)
    text = [" ".join(rng.choice(WORDS, 3)) + f" no {number}" for number in range(100)]
    price = rng.normal(1000, 50, 100).tolist()
    columns = {"text": column(text), "price": column(price)}
    encoding = fit_encoding(columns, locate, []).encoding
    x = encoding.apply(columns, 100, locate, [])
    assert x.layout == torch.sparse_csr
    assert set(encoding.feature_names) == {f"text: {word}" for word in [*WORDS, "no"]} | {"price"}
    dense = x.to_dense().double().numpy()
    place = encoding.feature_names.index("price")
    np.testing.assert_allclose([dense[:, place].mean(), dense[:, place].std()], [0, 1], atol=1e-5)
    norms = np.sqrt((np.delete(dense, place, axis=1) ** 2).sum(axis=1))
    np.testing.assert_allclose(norms, 1, rtol=1e-5)
    new = encoding.apply({"text": column(["unheard-of words", None]), "price": column([1000.0, None])}, 2, locate, [])
    assert new.to_dense()[:, [n for n in range(len(encoding.feature_names)) if n != place]].abs().sum() == 0


def test_the_most_frequent_words_are_kept():
    text = [f"word{number % 700:03d} word{number % 650:03d} here{number}" for number in range(2000)]
    assert len(fit(text)[0].encoding.columns[0].words) == MAX_WORDS


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([f"x{number}" for number in range(50)], "nearly every value is different, as in ids (50 of 50, first 'x0')"),
        (["same"] * 9, "all their values are the same"),
        (["2026-01-01"] * 9, "all their values are the same"),
        ([None] * 9, "all values are missing"),
        ([5551234567 + number for number in range(9)], "32 bits would round their whole numbers"),
        (["1.5"] * 8 + ["1.5x"], "'1.5x' is not a number (line 10)"),
        ([[1, 2]] * 9, "[1, 2] is not a number or text (line 2)"),
    ],
)
def test_every_column_left_out_has_its_reason(values, reason):
    values = [f"{number}.5" for number in range(8)] + ["1.5x"] if "1.5x" in values else values
    fitted, _ = fit(values)
    assert fitted.encoding.columns == []
    assert fitted.left_out == {"c": reason}
    notes = sort_columns({"c": column(values)}, ColumnRequest(), len(values), locate).notes
    assert f"not used as a feature, as {reason}: c" in notes


@pytest.mark.parametrize(
    ("values", "later", "message"),
    [
        ([1.5, 2.5, 3.5], ["1.5", "cheap"], "held numbers in the training. Got 'cheap'"),
        (["a", "b", "a", "b"], ["1", "2"], "held categories in the training. Got '1'"),
        (["a", "b", "a", "b"], [0.5, 1.5], "held categories in the training. Got 0.5"),
        (
            ["2026-01-05", "2026-01-06"],
            ["2026-01-05", "soon"],
            r"held dates \(year-month-day\) in the training. Got 's",
        ),
        ([f"{a} {b}" for a in WORDS for b in WORDS], [1, 2], "held text in the training. Got '1'"),
        ([1.5, 2.5], [1.5, 1e39], "must be a finite number"),
    ],
)
def test_a_column_that_changed_its_kind_is_an_error(values, later, message):
    with pytest.raises(DataError, match=message):
        features(values, later)


def test_values_missing_for_the_first_time_are_filled_and_noted():
    notes = []
    _, x = features([1.0, 3.0, 8.0], [None, 2.0], notes)
    assert x.tolist() == [[3], [2]]
    assert len(notes) == 1
    assert notes[0].startswith("missing values of 'c' became 3, the median of the training, at 1 nodes")
    with pytest.raises(DataError, match="feature columns of its training. Missing: 'c'"):
        fit([1.0, 3.0])[0].encoding.apply({"d": column([1.0])}, 1, locate, [])


def test_a_number_written_in_another_way_is_still_the_number():
    assert features(["1.234,5", "2,5"], ["1.5", "3"])[1].tolist() == [[1.5], [3]]
    assert features(["1.234,5", "2,5"], ["1.500", "3"])[1].tolist() == [[1500], [3]]  # as in the training
    assert features([1.5, 2.5], ["1,5", "3"])[1].tolist() == [[1.5], [3]]


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["columns"][0].update(kind="unknown"),
        lambda record: record["columns"][0].update(fill=math.inf),
        lambda record: record["columns"][0].update(fill="1"),
        lambda record: record["columns"][0].update(run="code"),
        lambda record: record["columns"][1].update(values=[]),
        lambda record: record["columns"][1].update(values=["a", "a", "b"]),
        lambda record: record["columns"].append(record["columns"][0]),
        lambda record: record.pop("columns"),
    ],
)
def test_an_edited_encoding_is_refused(change):
    columns = {"n": column([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), "k": column(["a", "b", "c"] * 2)}
    record = fit_encoding(columns, locate, []).encoding.to_json()
    encoding_from_json(record)
    change(record)
    with pytest.raises(msgspec.ValidationError):
        encoding_from_json(record)


def test_a_column_that_copies_the_label_is_noted():
    columns = {"label": ["a", "b"] * 6, "code": ["x", "y"] * 6, "other": ["x", "x", "y", "y"] * 3}
    notes = sort_columns(columns, ColumnRequest(), 12, locate).notes
    assert next(note for note in notes if "the label in other words" in note).startswith("the feature 'code' has one")
    assert sum("in other words" in note for note in notes) == 1


_VALUES = st.one_of(
    st.none(), st.sampled_from(["", " ", "?", "NA", "1,5", "1.234,5", "007", "2026-01-05", "31.12.2025", "yes", "no"]),
    st.text(max_size=12), st.integers(-9, 9999).map(str),
)  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_VALUES, min_size=1, max_size=30), st.lists(_VALUES, max_size=30))
def test_any_text_gives_finite_features_that_are_repeated_bit_for_bit(values, later):
    values, later = (pa.chunked_array([pa.array(side, pa.string())]) for side in (values, later))
    encoding = fit_encoding({"c": values}, locate, []).encoding
    again = encoding_from_json(json.loads(json.dumps(encoding.to_json())))
    if not encoding.columns:
        return
    first, second = (each.apply({"c": values}, len(values), locate, []).to_dense() for each in (encoding, again))
    assert torch.equal(first, second)
    assert first.shape == (len(values), len(encoding.feature_names))
    assert bool(first.isfinite().all())
    try:
        other = again.apply({"c": later}, len(later), locate, [])
    except DataError:
        return
    assert bool(other.to_dense().isfinite().all())
