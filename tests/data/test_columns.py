"""Columns become labels, features and attributes: notes report guesses, and errors name missing columns."""

import math

import numpy as np
import pyarrow as pa
import pytest
import torch

from edhnn import DataError, UsageError
from edhnn.data.columns import LABEL_GUESSES, ColumnRequest, sort_columns
from edhnn.data.values import first_other, numbers_in

NAN = math.nan


def sort(columns, count=2, **request):
    return sort_columns(columns, ColumnRequest(**request), count, lambda row: f"line {row + 2} (node {row})")


def arrow(**columns):
    return {name: pa.chunked_array([pa.array(values)]) for name, values in columns.items()}


@pytest.mark.parametrize("name", [*LABEL_GUESSES, "Label", "CLASS"])
def test_a_label_is_guessed_from_its_name_and_noted(name):
    result = sort({"size": [1, 2], name: ["a", "b"]})
    assert result.labels is not None
    assert result.labels.class_names == ("a", "b")
    assert f"label column guessed: '{name}'" in result.notes


def test_among_several_possible_labels_the_first_guess_wins_and_then_the_first_column():
    assert sort({"y": ["a", "b"], "Label": ["c", "d"], "label": ["e", "f"]}).labels.class_names == ("c", "d")
    assert sort({"target": ["a", "b"], "class": ["c", "d"]}).labels.class_names == ("c", "d")


def test_every_other_column_of_numbers_is_a_feature_and_noted():
    columns = {f"f{number}": [number, 0.5] for number in range(7)} | {"name": ["a", "b"], "label": [0, 1]}
    result = sort(columns)
    assert result.feature_names == tuple(f"f{number}" for number in range(7))
    assert result.x.tolist() == [[0, 1, 2, 3, 4, 5, 6], [0.5] * 7]
    assert result.x.dtype == torch.float32
    assert result.attributes == {"name": ["a", "b"]}
    assert result.notes == [
        "label column guessed: 'label'",
        "feature columns guessed (all other columns of numbers): f0, f1, f2, f3, f4, ... (7 in all)",
        "not used as a feature, as nearly every value is different, as in ids (2 of 2, first 'a'): name",
    ]


def test_requested_columns_are_not_noted_and_other_columns_stay_attributes():
    result = sort({"a": [1, 2], "b": [3, 4], "label": ["x", "y"], "c": [5, 6]}, label=("c",), features=("b",))
    assert result.notes == []
    assert result.labels.class_names == (5, 6)
    assert (result.feature_names, result.x.tolist()) == (("b",), [[3.0], [4.0]])
    assert result.attributes == {"a": [1, 2], "label": ["x", "y"]}


def test_a_requested_feature_is_not_guessed_to_be_the_label():
    result = sort({"y": [1, 2], "x": [3, 4]}, features=("x", "y"))
    assert result.labels is None
    assert result.x.tolist() == [[3.0, 1.0], [4.0, 2.0]]


def test_an_empty_request_gives_no_features():
    result = sort({"a": [1, 2]}, features=())
    assert (result.x, result.feature_names, result.attributes) == (None, None, {"a": [1, 2]})


def test_no_columns_give_no_labels_features_or_notes():
    result = sort({}, count=0)
    assert (result.x, result.labels, result.attributes, result.notes) == (None, None, {}, [])


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (
            dict(label=("colr",)),
            UsageError,
            "The `label=` column must be one of a, color. Got 'colr'.*Did you mean 'color'",
        ),
        (dict(features=("a", "zz")), UsageError, "The `features=` column must be one of a, color. Got 'zz' instead"),
        (dict(label=("a",), features=("color", "a")), UsageError, "must be named once.*'a' is named as both"),
        (dict(features=("a", "a")), UsageError, "'a' is named twice"),
        (dict(label=("a", "a")), UsageError, "'a' is named twice"),
        (dict(label=("a", "color")), DataError, "must hold numbers. 'color' does not"),
        (dict(label=("color",), task="regression"), DataError, "must be numbers. Got 'red'"),
        (dict(label=("color",), task="multilabel"), DataError, "must hold numbers. 'color' does not"),
    ],
)
def test_invalid_requests_raise(request_, error, message):
    with pytest.raises(error, match=message):
        sort({"a": [1, 2], "color": ["red", "blue"]}, **request_)


def test_a_request_without_any_columns_raises():
    with pytest.raises(UsageError, match="`label=` names the column 'a', but the nodes have no columns"):
        sort({}, label=("a",))


@pytest.mark.parametrize("columns", [{"size": [1.5, None, 2.0]}, arrow(size=[1.5, None, 2.0])])
def test_a_missing_feature_becomes_the_median_with_a_mark_or_is_kept(columns):
    result = sort(columns, count=3)
    assert (result.x.tolist(), result.feature_names) == ([[1.5, 0], [1.75, 1], [2, 0]], ("size", "size is missing"))
    result = sort(columns, count=3, keep_missing=True)
    assert repr(result.x.tolist()) == repr([[1.5], [NAN], [2.0]])


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e39, 10**39])
@pytest.mark.parametrize("keep_missing", [False, True])
def test_an_infinite_feature_and_one_beyond_32_bits_raise(value, keep_missing):
    with pytest.raises(DataError, match=r"line 2 \(node 0\): .*finite number"):
        sort({"size": [value, 1]}, keep_missing=keep_missing, features=("size",))


@pytest.mark.parametrize("values", [[5551234567, 5551234569], [2**53 + 1, 1], [16777217.0, None], [10**39, 1]])
def test_whole_numbers_that_32_bits_would_round_are_features_only_on_request(values):
    for columns in ({"phone": values}, arrow(phone=values)) if values[0] < 2**63 else ({"phone": values},):
        result = sort(columns)
        assert (result.x, result.attributes) == (None, {"phone": values})
        assert result.notes == ["not used as a feature, as 32 bits would round their whole numbers: phone"]
        if values[0] < 2**63:
            requested = sort(columns, features=("phone",), keep_missing=True)
            assert requested.notes == ["the whole numbers of the feature 'phone' were rounded to 32 bits"]


@pytest.mark.parametrize("values", [[2**24, -(2**60)], [0.1, 16777217.5], [30_000_000, None], [True, False]])
def test_other_numbers_are_features_without_a_rounding_note(values):
    result = sort(arrow(size=values), keep_missing=True)
    assert result.feature_names == ("size",)
    assert result.notes == ["feature columns guessed (all other columns of numbers): size"]


def test_numbers_as_lists_and_as_arrow_columns():
    np.testing.assert_array_equal(numbers_in([1, 2.5, None]), [1, 2.5, NAN])
    assert numbers_in([1, "2"]) is None
    assert numbers_in([True, 1]) is None
    assert numbers_in([10**400]) is None
    assert numbers_in([[1]]) is None
    for values, expected in (
        ([1, None], [1, NAN]),
        ([True, None], [1, NAN]),
        ([0.5, NAN], [0.5, NAN]),
        ([2**53 + 1, 2**63 - 1], [2**53, 2**63]),
    ):
        np.testing.assert_array_equal(numbers_in(pa.chunked_array([pa.array(values)])), expected)
    np.testing.assert_array_equal(
        numbers_in(pa.chunked_array([pa.array([2**64 - 1], pa.uint64())])), np.array([2.0**64])
    )
    for values in (["1"], [None], [[1]]):
        assert numbers_in(pa.chunked_array([pa.array(values)])) is None


@pytest.mark.parametrize(
    ("columns", "label", "task", "y", "names"),
    [
        (dict(k=["b", None, "a"]), ("k",), "classification", [1, -1, 0], ("a", "b")),
        (dict(k=[True, False, None]), ("k",), "classification", [1, 0, -1], (0, 1)),
        (dict(k=[7, None, 5]), ("k",), "classification", [1, -1, 0], (5, 7)),
        (dict(k=[0.5, None, 2.0]), ("k",), "regression", [0.5, NAN, 2.0], None),
        (dict(a=[0, 1, None], b=[1, 1, 0]), ("a", "b"), "multilabel", [[0, 1], [1, 1], [NAN, 0]], ("a", "b")),
        (dict(a=[True, False, None], b=[1, 1, 0]), ("a", "b"), "multilabel", [[1, 1], [0, 1], [NAN, 0]], ("a", "b")),
        (dict(a=[0.5, 1, None], b=[1, 1, 0]), ("b", "a"), "regression", [[1, 0.5], [1, 1], [0, NAN]], None),
    ],
)
def test_labels_of_every_kind_from_arrow_columns(columns, label, task, y, names):
    result = sort(arrow(**columns), count=3, label=label)
    assert (result.labels.task, result.labels.class_names) == (task, names)
    np.testing.assert_array_equal(result.labels.y.numpy(), y)
    assert result.x is None


def test_one_column_as_multi_label():
    result = sort(arrow(a=[0, 1]), label=("a",), task="multilabel")
    assert (result.labels.y.tolist(), result.labels.task) == ([[0.0], [1.0]], "multilabel")


@pytest.mark.parametrize("values", [[["a"], ["b"]], [{"a": 1}, {"a": 2}]])
def test_lists_and_objects_as_labels_raise(values):
    with pytest.raises(DataError, match="'label' must hold one text or number per node"):
        sort({"label": values})


def test_attributes_come_back_as_plain_lists():
    result = sort(arrow(name=["a", None], flags=[[1], [2, 3]]))
    assert result.attributes == {"name": ["a", None], "flags": [[1], [2, 3]]}


def test_an_all_empty_column_is_no_feature():
    for columns in ({"a": [None, None], "b": [0, 1]}, arrow(a=[None, None], b=[0, 1])):
        result = sort(columns)
        assert result.feature_names == ("b",)
        assert "not used as a feature, as all values are missing: a" in result.notes
        result = sort(columns, features=("a",), keep_missing=True)
        assert repr(result.x.tolist()) == repr([[NAN], [NAN]])
        assert repr(sort(columns, label=("a", "b")).labels.y.tolist()) == repr([[NAN, 0.0], [NAN, 1.0]])
        with pytest.raises(DataError, match=r"line 2 \(node 0\): .*Got nothing; 2 such"):
            sort(columns, features=("a",))


@pytest.mark.parametrize("of", [dict, lambda **columns: arrow(**{name: map(str, c) for name, c in columns.items()})])
def test_a_note_names_the_entry_that_is_not_a_number(of):
    result = sort(of(price=[1, 2.5, "1.5x"], zip=["007", "008", "009"]), count=3)
    assert result.x is None
    assert result.notes == [
        "not used as a feature, as '1.5x' is not a number (line 4 (node 2)): price",
        "not used as a feature, as nearly every value is different, as in ids (3 of 3, first '007'): zip",
    ]


def test_notes_about_many_columns_count_the_others():
    notes = sort({f"c{number}": [1, 2, "x"] for number in range(27)}, count=3).notes
    assert len(notes) == 1
    assert notes[0].endswith("(line 4 (node 2)): " + ", ".join(f"c{n}" for n in range(20)) + ", ... (27 in all)")


def test_an_error_names_the_first_entry_of_a_requested_feature_that_is_not_a_number():
    with pytest.raises(DataError, match=r"line 4 \(node 2\): .*'price' must be a number. Got 'x'"):
        sort(arrow(price=["1.5", "2", "x"]), features=("price",), count=3)


def test_the_first_entry_that_is_not_a_number_is_found():
    spelled = pa.chunked_array([["1", "nan", "inf", "1.5x", None]])
    assert first_other(spelled) == (3, "1.5x")
    assert first_other([1, None, 10**400, 2]) == (2, 10**400)


def test_an_attribute_is_never_guessed_as_label_or_feature():
    columns = {"y": [1, 2], "class": ["a", "b"], "shop": [3, 4], "size": [5.0, 6.0]}
    result = sort(columns, attributes=("class", "shop"))
    assert (result.label_columns, result.feature_names) == (("y",), ("size",))
    assert result.attributes == {"class": ["a", "b"], "shop": [3, 4]}
    with pytest.raises(UsageError, match="'shop' is a feature, so it cannot also be a column of groups or of splits"):
        sort(columns, features=("shop",), attributes=("shop",))
