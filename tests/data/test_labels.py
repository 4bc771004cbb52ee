"""Labels: their kind, the numbers of classes, unknown labels, and errors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edhnn import DataError
from edhnn.data.columns import labels_from_columns, labels_from_values

NAN = math.nan


@pytest.mark.parametrize(
    ("values", "y", "names"),
    [
        (["b", "a", "b"], [1, 0, 1], ("a", "b")),
        (["10", "9", None], [0, 1, -1], ("10", "9")),  # text sorts as text
        ([10, 9, None], [1, 0, -1], (9, 10)),  # numbers as numbers
        ([2.0, 1.0, NAN], [1, 0, -1], (1, 2)),  # whole numbers of any type
        ([2, 1.0, 2], [1, 0, 1], (1, 2)),
        (["a", "", None], [0, -1, -1], ("a",)),
        ([-5, 7, -5], [0, 1, 0], (-5, 7)),
        ([None, NAN, ""], [-1, -1, -1], ()),
        ([], [], ()),
        ([2**70, 1, 2**70], [1, 0, 1], (1, 2**70)),
        (["é", "Z", "a"], [2, 0, 1], ("Z", "a", "é")),
    ],
)
def test_text_and_whole_numbers_are_classes_numbered_in_order(values, y, names):
    labels = labels_from_values(values)
    assert (labels.y.tolist(), labels.task, labels.class_names) == (y, "classification", names)
    assert labels.y.dtype == torch.int64


@pytest.mark.parametrize(
    ("values", "task", "y"),
    [
        ([0.5, 1.0, None], None, [0.5, 1.0, NAN]),
        ([0.5, 1, NAN], None, [0.5, 1.0, NAN]),
        ([1, 2, None], "regression", [1.0, 2.0, NAN]),
        ([None, None], "regression", [NAN, NAN]),
        ([], "regression", []),
    ],
)
def test_real_values_are_targets(values, task, y):
    labels = labels_from_values(values, task)
    assert (labels.task, labels.class_names, labels.y.dtype) == ("regression", None, torch.float32)
    assert repr(labels.y.tolist()) == repr(y)


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["a", 1], None, "all text or all numbers. Got both: 'a'"),
        ([1.5, "a", None], None, "Got both: 'a'"),
        (["a", "b"], "regression", "must be numbers. Got 'a'"),
        ([0.5, 1.0], "classification", "text or whole numbers. Got real values. Set `task=` to 'regression'"),
        ([math.inf, 0.5], None, "finite numbers.*Got inf"),
        ([1e39, 0.5], None, "finite numbers.*Got 1e\\+39"),
        ([-(10**400), 0.5], None, "finite numbers.*Got -inf"),
        ([math.inf, 1.0], "classification", "whole numbers"),
    ],
)
def test_invalid_labels_raise(values, task, message):
    with pytest.raises(DataError, match=message):
        labels_from_values(values, task)


@given(st.lists(st.none() | st.sampled_from(["a", "b", "c", "10", "9"]) | st.just(NAN)))
def test_class_numbers_index_the_class_names(values):
    labels = labels_from_values(values)
    back = [None if number < 0 else labels.class_names[number] for number in labels.y.tolist()]
    assert back == [value if isinstance(value, str) else None for value in values]
    assert list(labels.class_names) == sorted({value for value in values if isinstance(value, str)})


def test_columns_of_zero_and_one_are_multi_label():
    labels = labels_from_columns([[0.0, 1.0, 1.0], [1.0, NAN, 0.0]], ["red", "round"])
    assert (labels.task, labels.class_names) == ("multilabel", ("red", "round"))
    assert repr(labels.y.tolist()) == repr([[0.0, 1.0], [1.0, NAN], [1.0, 0.0]])


def test_other_columns_are_several_targets():
    labels = labels_from_columns([[0.0, 1.0], [2.5, 1.0]], ["a", "b"])
    assert (labels.task, labels.class_names) == ("regression", None)
    assert labels.y.tolist() == [[0.0, 2.5], [1.0, 1.0]]
    regression = labels_from_columns([[0.0, 1.0], [1.0, 1.0]], ["a", "b"], "regression")
    assert (regression.task, regression.y.tolist()) == ("regression", [[0.0, 1.0], [1.0, 1.0]])


def test_one_column_may_be_multi_label():
    labels = labels_from_columns([[0.0, 1.0, NAN]], ["red"], "multilabel")
    assert (labels.task, tuple(labels.y.shape), labels.class_names) == ("multilabel", (3, 1), ("red",))


@pytest.mark.parametrize(
    ("columns", "task", "message"),
    [
        ([[0.0, 2.0], [1.0, 1.0]], "multilabel", "0 and 1 only. Got other values in a, b"),
        ([[0.0, 1.0], [1.0, 1.0]], "classification", "Class labels must be in one column. Got a, b"),
        ([[0.5, 1.0], [1.0, 1e300]], None, "finite numbers.*Got 1e\\+300"),
        ([[0.5, -math.inf], [1.0, 1.0]], None, "Got -inf"),
    ],
)
def test_invalid_label_columns_raise(columns, task, message):
    with pytest.raises(DataError, match=message):
        labels_from_columns(columns, ["a", "b"], task)
