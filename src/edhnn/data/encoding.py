"""Encode columns of every kind as features: numbers, categories, dates and free text.

`fit_encoding` finds the kind of each column of a node table, without labels, and returns an `Encoding`: a plain value
that JSON can store. `Encoding.apply` makes the features from it. A model stores the encoding of its training data, so
that other data are encoded in the same way. scikit-learn finds the categories, medians and words; nothing is pickled.

    number      itself; a missing one becomes the median, and a second column marks it
    category    a column of 0 and 1 for each value (one column for two values), one for all rare values together,
                one for missing ones
    date        years since 2000, and the position in the year and in the week (and in the day) on a circle
    text        TF-IDF weights of its most frequent words

Features are sparse if there is text or if there are many columns of 0 and 1. Sparse features cannot be scaled later, so
their numbers and dates are standardised here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import select_columns, sparse_features
from edhnn.data.values import Column, as_list, first_other, is_rounded, mostly_numbers, numbers_in
from edhnn.errors import DataError, UsageError
from edhnn.typing import FloatArray, JsonObject

MAX_CATEGORIES: Final = 40
"""The largest number of columns for the values of one category; the rarest values share the last."""
MAX_WORDS: Final = 500
"""The largest number of words of one column of text."""
_RARE: Final = 2  # a value in fewer rows is rare
_DENSE: Final = 256  # more columns of 0 and 1 than this are sparse
_ROUNDING: Final = 1e-12
_LISTED: Final = 20  # columns named in one note
_EXAMPLES: Final = 3
_BLANK: Final = r"^\s*$"
_NO_VALUE: Final = r"(?i)^\s*(na|n/a|#n/a|nan|null|none|missing|\?|-|--|\.)?\s*$"

Notation = Literal["1234.5", "1,234.5", "1.234,5", "1 234.5", "1 234,5"]
"""How numbers are written. A space may be any kind of space, or an apostrophe."""
_SPACE: Final = "[ '\u00a0\u2009\u202f\u2019]"
_NOTATIONS: Final[dict[Notation, tuple[str, str]]] = {
    "1,234.5": (",", r"\."),
    "1.234,5": (r"\.", ","),
    "1 234.5": (_SPACE, r"\."),
    "1 234,5": (_SPACE, ","),
}
_PLAIN: Final = r"(?i)^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?$"

DateOrder = Literal["year-month-day", "day-month-year", "month-day-year"]
_TIME: Final = (
    r"(?:[ T](?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?"
    r"\s*(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?$"
)
_YEAR_FIRST: Final = r"^(?P<a>[0-9]{4})[-/.](?P<b>[0-9]{1,2})[-/.](?P<c>[0-9]{1,2})" + _TIME
_YEAR_LAST: Final = r"^(?P<a>[0-9]{1,2})[-/.](?P<b>[0-9]{1,2})[-/.](?P<c>[0-9]{4})" + _TIME
_ORDERS: Final[dict[DateOrder, tuple[str, str]]] = {
    "year-month-day": (_YEAR_FIRST, "abc"),
    "day-month-year": (_YEAR_LAST, "cba"),
    "month-day-year": (_YEAR_LAST, "cab"),
}
_YEAR_SECONDS: Final = 365.2425 * 86400
_DAY_SECONDS: Final = 86400
_FIRST_MONDAY: Final = 4 * _DAY_SECONDS  # 1970-01-05

Finite = Annotated[float, msgspec.Meta(ge=-3.5e38, le=3.5e38)]
Deviation = Annotated[float, msgspec.Meta(gt=0, le=3.5e38)]
Block: TypeAlias = "FloatArray | sp.csr_array"
Locate = Callable[[int], str]


class Standard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Mean and deviation of numbers that are standardised."""

    mean: Finite = 0.0
    scale: Deviation = 1.0

    @classmethod
    def of(cls, numbers: FloatArray) -> Standard:
        """Measure numbers; the deviation of a constant counts as 1."""
        mean, scale = float(numbers.mean()), float(numbers.std())
        return cls(mean, scale if scale > _ROUNDING * abs(mean) else 1.0)


class NumberColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="number", tag_field="kind"):
    """A column of numbers.

    Attributes:
        name: The column.
        fill: The median, in place of missing values.
        marks_missing: Whether a second column marks missing values.
        notation: How the numbers are written, if they are text.
        standard: Mean and deviation, if the number is standardised.
    """

    name: str
    fill: Finite
    marks_missing: bool = False
    notation: Notation = "1234.5"
    standard: Standard | None = None
    title: ClassVar[str] = "numbers as text"

    @property
    def is_text(self) -> bool:
        """Whether the column must be read as text."""
        return self.notation != "1234.5"

    @property
    def features(self) -> list[str]:
        """The names of its features."""
        return [self.name, _missing_name(self.name)][: 1 + self.marks_missing]

    def encode(self, column: Column, locate: Locate, notes: list[str]) -> Block:
        """Return the numbers, and the marks of missing ones."""
        numbers = _numbers_of(column, self.notation)
        if numbers is None and len(column) and _present(column).any():
            row, value = _first_odd(column)
            raise _changed(self.name, "numbers", value, locate(row))
        numbers = np.full(len(column), np.nan) if numbers is None else numbers
        need_finite(self.name, numbers, locate)
        missing = np.isnan(numbers)
        if missing.any() and not self.marks_missing:
            notes.append(
                f"missing values of '{self.name}' became {self.fill:g}, the median of the training, at "
                f"{int(missing.sum())} nodes; none were missing in the training. First: {locate(int(missing.argmax()))}"
            )
        numbers = np.where(missing, self.fill, numbers)
        if self.standard is not None:
            numbers = (numbers - self.standard.mean) / self.standard.scale
        return np.stack([numbers, missing.astype(np.float64)][: 1 + self.marks_missing], axis=1)


class CategoryColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="category", tag_field="kind"):
    """A column of categories.

    Attributes:
        name: The column.
        values: The values with a column of their own, in order. Of two values without others the second has one.
        has_others: Whether rare and unknown values have a column together.
        marks_missing: Whether a column marks missing values.
    """

    name: str
    values: Annotated[list[str], msgspec.Meta(min_length=1, max_length=10**4)]
    has_others: bool = False
    marks_missing: bool = False
    is_text: ClassVar[bool] = True
    title: ClassVar[str] = "categories"

    @property
    def _skips_first(self) -> bool:
        return len(self.values) == 2 and not self.has_others

    @property
    def features(self) -> list[str]:
        """The names of its features."""
        names = [f"{self.name}={value}" for value in self.values[self._skips_first :]]
        names += [f"{self.name}=(other)"] if self.has_others else []
        return names + ([_missing_name(self.name)] if self.marks_missing else [])

    def encode(self, column: Column, locate: Locate, notes: list[str]) -> Block:
        """Return the columns of 0 and 1."""
        from sklearn.preprocessing import OneHotEncoder

        texts = _need_texts(self.name, column, "categories", self.values, locate)
        missing = ~_present(texts)
        rows = np.array([[text] for text in pc.fill_null(texts, "").to_pylist()], dtype=object).reshape(-1, 1)
        encoder = OneHotEncoder(categories=[np.array(self.values, dtype=object)], handle_unknown="ignore")
        encoder.fit(np.array(self.values, dtype=object)[:, None])
        known = sp.csr_array(encoder.transform(rows)) if len(rows) else sp.csr_array((0, len(self.values)))
        others = ~missing & (np.asarray(known.sum(axis=1)).ravel() == 0)
        parts = [known[:, int(self._skips_first) :]]
        if self.has_others:
            parts.append(_column(others))
        elif others.any():
            first = int(others.argmax())
            notes.append(
                f"{int(others.sum())} values of '{self.name}' did not occur in the training, so their features are 0. "
                f"First: '{rows[first][0]}' at {locate(first)}"
            )
        if self.marks_missing:
            parts.append(_column(missing))
        return sp.csr_array(sp.hstack(parts, format="csr"))


class DateColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="date", tag_field="kind"):
    """A column of dates, or of dates with times.

    Attributes:
        name: The column.
        order: The order of day, month and year.
        fill: The median, in years since 2000, in place of missing dates.
        has_time: Whether the time of day is a feature.
        marks_missing: Whether a column marks missing dates.
        standard: Mean and deviation, if the years are standardised.
    """

    name: str
    order: DateOrder
    fill: Finite
    has_time: bool = False
    marks_missing: bool = False
    standard: Standard | None = None
    is_text: ClassVar[bool] = True
    title: ClassVar[str] = "dates"

    @property
    def features(self) -> list[str]:
        """The names of its features."""
        circles = ["year", "week", *(["day"] if self.has_time else [])]
        names = [f"{self.name} (years)"]
        names += [f"{self.name} ({part} of the {circle})" for circle in circles for part in ("sine", "cosine")]
        return names + ([_missing_name(self.name)] if self.marks_missing else [])

    def encode(self, column: Column, locate: Locate, notes: list[str]) -> Block:
        """Return the years, and the positions in year, week and day."""
        texts = _texts(column)
        seconds = None if texts is None else _seconds(texts, self.order)
        if seconds is None and len(column) and _present(column).any():
            row, value = _first_odd_date(column, self.order)
            raise _changed(self.name, f"dates ({self.order})", value, locate(row))
        seconds = np.full(len(column), np.nan) if seconds is None else seconds
        missing = np.isnan(seconds)
        if missing.any() and not self.marks_missing:
            notes.append(
                f"{int(missing.sum())} missing dates of '{self.name}' became the median of the training; none were "
                f"missing in the training. First: {locate(int(missing.argmax()))}"
            )
        years = np.where(missing, self.fill, _years(seconds))
        if self.standard is not None:
            years = (years - self.standard.mean) / self.standard.scale
        parts = [years]
        periods = ((seconds, _YEAR_SECONDS), (seconds - _FIRST_MONDAY, 7 * _DAY_SECONDS), (seconds, _DAY_SECONDS))
        for moments, period in periods[: 2 + self.has_time]:
            angle = 2 * math.pi * np.mod(moments, period) / period
            parts += [np.where(missing, 0.0, np.sin(angle)), np.where(missing, 0.0, np.cos(angle))]
        parts += [missing.astype(np.float64)] if self.marks_missing else []
        return np.stack(parts, axis=1)


class TextColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="text", tag_field="kind"):
    """A column of free text.

    Attributes:
        name: The column.
        words: The words with a column of their own.
        weights: The inverse document frequency of each word.
    """

    name: str
    words: Annotated[list[str], msgspec.Meta(min_length=1, max_length=10**5)]
    weights: list[Finite]
    is_text: ClassVar[bool] = True
    title: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        if len(self.words) != len(self.weights):
            raise ValueError(f"'weights' must have {len(self.words)} entries, one per word")
        if len(set(self.words)) < len(self.words):
            raise ValueError("'words' must be different")

    @property
    def features(self) -> list[str]:
        """The names of its features."""
        return [f"{self.name}: {word}" for word in self.words]

    def encode(self, column: Column, locate: Locate, notes: list[str]) -> Block:
        """Return the TF-IDF weights; rows of missing text are 0."""
        del notes
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = _need_texts(self.name, column, "text", self.words, locate)
        if not len(texts):
            return sp.csr_array((0, len(self.words)))
        vectorizer = TfidfVectorizer(vocabulary=self.words)
        vectorizer.idf_ = np.array(self.weights)
        return sp.csr_array(vectorizer.transform(pc.fill_null(texts, "").to_pylist()))


AnyColumn = NumberColumn | CategoryColumn | DateColumn | TextColumn
_TITLES: Final[dict[type, str]] = {
    CategoryColumn: "categories, a column of 0 and 1 for each value",
    DateColumn: "dates, as years and positions in year and week",
    TextColumn: "text, as weights of its words",
}


class Encoding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the columns of a node table become features.

    Attributes:
        columns: The columns, in the order of their features.
        sparse: Whether the features are sparse.
    """

    columns: list[AnyColumn]
    sparse: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def number_columns(self) -> list[str]:
        """The columns of numbers."""
        return [column.name for column in self.columns if isinstance(column, NumberColumn)]

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that a reader must not convert to numbers."""
        return tuple(column.name for column in self.columns if column.is_text)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(name for column in self.columns for name in column.features)

    def apply(self, columns: Mapping[str, Column], count: int, locate: Locate, notes: list[str]) -> Tensor:
        """Make the features of the columns.

        Args:
            columns: The columns by name.
            count: Number of nodes.
            locate: Returns where a node is in the file, for messages.
            notes: Receives notes about missing and unknown values.

        Raises:
            DataError: if a column is missing, is of another kind, or holds an infinite number.
        """
        lacking = [name for name in self.names if name not in columns]
        if lacking:
            raise DataError(
                f"The model needs the {len(self.columns)} feature columns of its training. Missing: "
                f"{_listed([repr(name) for name in lacking])}.",
                remedy="Add the columns under the same names.",
            )
        blocks = [column.encode(columns[column.name], locate, notes) for column in self.columns]
        if self.sparse:
            return sparse_features(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))
        x = np.empty((count, len(self.feature_names)), dtype=np.float32)
        start = 0
        for block in blocks:
            stop = start + block.shape[1]
            x[:, start:stop] = block.toarray() if isinstance(block, sp.csr_array) else block
            start = stop
        return torch.from_numpy(x)

    def to_json(self) -> JsonObject:
        """Return the encoding as JSON."""
        record: JsonObject = msgspec.to_builtins(self)
        return record


def encoding_from_json(record: object) -> Encoding:
    """Read an encoding that `Encoding.to_json` returned.

    Raises:
        msgspec.ValidationError: if it is not valid.
    """
    encoding = msgspec.convert(record, Encoding)
    names = encoding.feature_names
    if len(set(names)) < len(names):
        raise msgspec.ValidationError("two features have the same name")
    return encoding


class Fitted(NamedTuple):
    """The result of `fit_encoding`.

    Attributes:
        encoding: The encoding; its columns may be none.
        left_out: The reason for each column that is not a feature.
    """

    encoding: Encoding
    left_out: dict[str, str]


class _Unusable(Exception):  # noqa: N818  # no error: the reason why a column is left out
    """The reason why a column cannot be guessed as a feature."""


def fit_encoding(
    columns: Mapping[str, Column],
    locate: Locate,
    notes: list[str],
    *,
    requested: Collection[str] = (),
    of_text: bool = True,
) -> Fitted:
    """Find the kind of each column, and what is needed to encode it.

    Args:
        columns: The columns that may become features.
        locate: Returns where a node is in the file, for messages.
        notes: Receives notes about the notation of numbers and dates.
        requested: The columns that the user names. An error names the first value of one that cannot be encoded.
        of_text: Whether to find the words of text. Without them, the encoding of text has a placeholder.
    """
    found: list[AnyColumn] = []
    left_out = {}
    for name, column in columns.items():
        try:
            found.append(_fit_column(name, column, locate, notes, asked=name in requested, of_text=of_text))
        except _Unusable as reason:
            left_out[name] = str(reason)
    width = sum(len(column.features) for column in found if isinstance(column, CategoryColumn))
    sparse = width > _DENSE or any(isinstance(column, TextColumn) for column in found)
    if sparse:
        found = [_standardised(column, columns[column.name]) for column in found]
    encoding = Encoding(found, sparse)
    names = encoding.feature_names
    if len(set(names)) < len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise DataError(f"Features must have different names. Two columns give '{twice}'.", remedy="Rename one.")
    return Fitted(encoding, left_out)


def describe_encoding(encoding: Encoding) -> Iterator[str]:
    """Describe the columns that are not plain numbers, for notes."""
    for kind, title in _TITLES.items():
        found = [f"{column.name} ({len(column.features)})" for column in encoding.columns if isinstance(column, kind)]
        if found:
            yield f"{title}: {_listed(found)}"
    marked = [column.name for column in encoding.columns if isinstance(column, NumberColumn) and column.marks_missing]
    if marked:
        yield f"missing numbers, as the median with a second column that marks them: {_listed(marked)}"


def describe_left_out(left_out: Mapping[str, str]) -> Iterator[str]:
    """Describe the columns that are not features, a sentence for each reason."""
    for reason in dict.fromkeys(left_out.values()):
        names = [name for name, why in left_out.items() if why == reason]
        yield f"not used as {'a feature' if len(names) == 1 else 'features'}, as {reason}: {_listed(names)}"


def decoded_numbers(encoding: Encoding, x: Tensor) -> FloatArray:
    """Return the columns of numbers behind encoded features, NaN where a number was missing.

    Args:
        encoding: The encoding.
        x: Its features.
    """
    names = encoding.feature_names
    wanted = [column for column in encoding.columns if isinstance(column, NumberColumn)]
    features = [name for column in wanted for name in column.features]
    table = select_columns(x, [names.index(name) for name in features]).to_dense().double().numpy()
    result = np.empty((len(x), len(wanted)))
    for place, column in enumerate(wanted):
        standard = column.standard or Standard()
        result[:, place] = table[:, features.index(column.name)] * standard.scale + standard.mean
        if column.marks_missing:
            result[table[:, features.index(_missing_name(column.name))] > 0, place] = np.nan
    return result


def _fit_column(
    name: str, column: Column, locate: Locate, notes: list[str], *, asked: bool, of_text: bool
) -> AnyColumn:
    numbers = numbers_in(column)
    notation: Notation = "1234.5"
    texts = None if numbers is not None else _texts(column)
    if texts is not None and (numbers := _numbers_of(texts, None)) is not None:
        notation = _notation(texts, None) or notation
        _note_number_text(name, texts, notation, notes)
    if numbers is not None and not np.isnan(numbers).all():
        return _fit_numbers(name, column, numbers, notation, locate, notes, asked=asked)
    if numbers is not None or not _present(column).any():
        if asked and not len(column):
            return NumberColumn(name, 0.0)
        if asked:
            raise DataError(
                f"The feature column '{name}' must have values. Got nothing; {len(column)} such in all.",
                where=locate(0) if len(column) else None,
                remedy="Fill in values, or name only the other columns with `features=` (empty for none).",
            )
        raise _Unusable("all values are missing")
    if texts is None:
        row, value = first_other(column) if mostly_numbers(column) else _first_object(column)
        raise _wrong_value(
            name, value, "a number" if mostly_numbers(column) else "a number or text", locate(row), asked
        )
    return _fit_texts(name, texts, locate, notes, asked=asked, of_text=of_text)


def _wrong_value(name: str, value: object, rule: str, where: str, asked: bool) -> Exception:
    """Return the error for a value of a requested column, or the reason to leave out a column that is not."""
    if not asked:
        return _Unusable(f"{value!r:.60} is not {rule} ({where})")
    return DataError(
        f"Every value of the feature column '{name}' must be {rule}. Got {value!r:.60}.",
        where=where,
        remedy="Correct the value, or name only the other columns with `features=` (empty for none).",
    )


def _fit_numbers(
    name: str, column: Column, numbers: FloatArray, notation: Notation, locate: Locate, notes: list[str], *, asked: bool
) -> NumberColumn:
    plain = column if numbers_in(column) is not None else numbers.tolist()
    if is_rounded(plain, numbers):
        if not asked:
            raise _Unusable("32 bits would round their whole numbers")
        notes.append(f"the whole numbers of the feature '{name}' were rounded to 32 bits")
    need_finite(name, numbers, locate)
    return NumberColumn(name, float(np.nanmedian(numbers)), bool(np.isnan(numbers).any()), notation)


def _fit_texts(
    name: str,
    texts: pa.ChunkedArray,
    locate: Locate,
    notes: list[str],
    *,
    asked: bool,
    of_text: bool,
) -> AnyColumn:
    order = _date_order(texts)
    if order is not None:
        return _fit_dates(name, texts, order, notes)
    known = texts.filter(pa.array(_present(texts)))
    total, missing = len(known), len(known) < len(texts)
    distinct = pc.count_distinct(known).as_py()
    if distinct == 1 and not missing and not asked:
        raise _Unusable("all their values are the same")
    repeats = distinct <= total / 2
    if mostly_numbers(texts) and not (repeats and distinct <= MAX_CATEGORIES):
        row, value = first_other(texts)
        raise _wrong_value(name, value, "a number", locate(row), asked)
    if not (repeats and distinct <= MAX_CATEGORIES):
        text = _fit_words(name, known) if _has_phrases(known) and of_text else None
        if not of_text and _has_phrases(known):
            return TextColumn(name, ["word"], [1.0])
        if text is not None:
            return text
        if not repeats and not asked:
            first = known[0].as_py()
            raise _Unusable(f"nearly every value is different, as in ids ({distinct} of {total}, first {first!r:.40})")
    return _fit_categories(name, known, marks_missing=missing)


def _fit_dates(name: str, texts: pa.ChunkedArray, order: DateOrder, notes: list[str]) -> DateColumn:
    seconds = _seconds(texts, order)
    assert seconds is not None
    known = seconds[~np.isnan(seconds)]
    if len(np.unique(known)) == 1 and len(known) == len(seconds):
        raise _Unusable("all their values are the same")
    if order == "day-month-year" and _seconds(texts, "month-day-year") is not None:
        example = texts.filter(pa.array(_present(texts)))[0].as_py()
        if "." not in example:
            notes.append(f"uncertain: '{name}' is read as day/month/year, e.g. '{example}'. It could be month/day/year")
    has_time = bool((np.mod(known, _DAY_SECONDS) != 0).any())
    return DateColumn(name, order, float(np.median(_years(known))), has_time, len(known) < len(seconds))


def _fit_categories(name: str, known: pa.ChunkedArray, *, marks_missing: bool) -> CategoryColumn:
    from sklearn.preprocessing import OneHotEncoder

    rows = np.array([[text] for text in known.to_pylist()], dtype=object)
    encoder = OneHotEncoder(
        max_categories=MAX_CATEGORIES, min_frequency=_RARE, handle_unknown="infrequent_if_exist"
    ).fit(rows)
    rare = encoder.infrequent_categories_[0]
    others = set() if rare is None else set(rare.tolist())
    values = [value for value in encoder.categories_[0].tolist() if value not in others]
    if not values:  # every value occurs once
        values, others = sorted(others)[:MAX_CATEGORIES], set(sorted(others)[MAX_CATEGORIES:])
    return CategoryColumn(name, values, bool(others), marks_missing)


def _fit_words(name: str, known: pa.ChunkedArray) -> TextColumn | None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(max_features=MAX_WORDS, min_df=2)
    try:
        vectorizer.fit(known.to_pylist())
    except ValueError:  # no word occurs twice
        return None
    return TextColumn(name, vectorizer.get_feature_names_out().tolist(), vectorizer.idf_.tolist())


def _has_phrases(known: pa.ChunkedArray) -> bool:
    """Return whether most values have two words or more."""
    return float(pc.mean(pc.match_substring_regex(known, r"\w\w+\W+\w\w+").cast(pa.float64())).as_py()) > 0.5


def _standardised(column: AnyColumn, values: Column) -> AnyColumn:
    if not isinstance(column, NumberColumn | DateColumn):
        return column
    block = column.encode(values, str, [])
    return msgspec.structs.replace(column, standard=Standard.of(np.asarray(block)[:, 0]))


def _texts(column: Column) -> pa.ChunkedArray | None:
    """Return a column as text: booleans and integers as they are written; ``None`` if it holds other types."""
    if isinstance(column, pa.ChunkedArray):
        kind = column.type
        if pa.types.is_null(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
            return column.cast(pa.string())
        return column.cast(pa.string()) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None
    values = as_list(column)
    if not all(value is None or isinstance(value, str | int) for value in values):
        return None
    words = [str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
             for value in values]  # fmt: skip
    return pa.chunked_array([pa.array(words, pa.string())])


def _need_texts(name: str, column: Column, kind: str, known: Sequence[str], locate: Locate) -> pa.ChunkedArray:
    """Return a column as text; raise `DataError` if it holds other types, or only numbers where none are known."""
    texts = _texts(column)
    if texts is None:
        row, value = _first_object(column)
        raise _changed(name, kind, value, locate(row))
    if _notation(texts, None) is not None and not any(_notation(pa.chunked_array([[each]]), None) for each in known):
        row = int(_present(texts).argmax())
        raise _changed(name, kind, texts[row].as_py(), locate(row))
    return texts


def _present(column: Column) -> npt.NDArray[np.bool_]:
    """Return a mask of the entries that are neither missing nor blank."""
    if not isinstance(column, pa.ChunkedArray):
        return np.array([value is not None and str(value).strip() != "" for value in column], dtype=np.bool_)
    if not pa.types.is_string(column.type):
        return np.asarray(column.is_valid().to_numpy())
    return np.asarray(pc.invert(pc.fill_null(pc.match_substring_regex(column, _BLANK), fill_value=True)).to_numpy())


def _numbers_of(column: Column, notation: Notation | None) -> FloatArray | None:
    """Return a column as numbers, NaN where missing; ``None`` if it holds anything else. Text may have a notation."""
    numbers = numbers_in(column)
    if numbers is not None:
        return numbers
    texts = _texts(column)
    notation = None if texts is None else _notation(texts, notation)
    if texts is None or notation is None:
        return None
    words = pc.utf8_trim_whitespace(texts)
    words = pc.if_else(pc.match_substring_regex(words, _NO_VALUE), None, words)
    if notation != "1234.5":
        group, mark = _NOTATIONS[notation]
        words = pc.replace_substring_regex(words, group, "")
        words = pc.replace_substring_regex(words, mark, ".")
    words = pc.replace_substring_regex(words, r"^\+", "")
    return np.asarray(words.cast(pa.float64()).to_numpy(), dtype=np.float64)


def _notation(texts: pa.ChunkedArray, preferred: Notation | None) -> Notation | None:
    """Return the notation of numbers in a column of text, ``None`` if an entry is no number."""
    words = pc.utf8_trim_whitespace(texts.drop_null())
    words = words.filter(pc.invert(pc.match_substring_regex(words, _NO_VALUE)))
    if not len(words):
        return None
    names: list[Notation] = ["1234.5", *_NOTATIONS]
    for name in sorted(names, key=lambda name: name != preferred):
        if pc.all(pc.match_substring_regex(words, _pattern(name))).as_py():
            return name
    return None


def _pattern(notation: Notation) -> str:
    if notation == "1234.5":
        return _PLAIN
    group, mark = _NOTATIONS[notation]
    return f"^[+-]?((0|[1-9][0-9]*|[1-9][0-9]{{0,2}}({group}[0-9]{{3}})+)({mark}[0-9]*)?|{mark}[0-9]+)$"


def _note_number_text(name: str, texts: pa.ChunkedArray, notation: Notation, notes: list[str]) -> None:
    """Note how text was read as numbers: words for missing values, decimal commas, and doubtful commas."""
    words = pc.utf8_trim_whitespace(texts.drop_null())
    gone = words.filter(pc.match_substring_regex(words, _NO_VALUE))
    gone = [word for word in pc.unique(gone).to_pylist() if word][:_EXAMPLES]
    if gone:
        notes.append(f"read as missing in '{name}': {', '.join(map(repr, gone))}")
    if notation == "1234.5":
        return
    marked = words.filter(pc.match_substring_regex(words, r"[0-9][^0-9]"))
    example = marked[0].as_py() if len(marked) else words[0].as_py()
    value = _numbers_of(pa.chunked_array([[example]]), notation)
    assert value is not None
    doubt = ""
    if notation == "1,234.5" and pc.all(pc.match_substring_regex(words, _pattern("1.234,5"))).as_py():
        doubt = ". This is uncertain: the comma could be a decimal comma"
    notes.append(f"numbers of '{name}' are written as {notation}, e.g. '{example}' is {value[0]:.10g}{doubt}")


def _date_order(texts: pa.ChunkedArray) -> DateOrder | None:
    return next((order for order in _ORDERS if _seconds(texts, order) is not None), None)


def _seconds(texts: pa.ChunkedArray, order: DateOrder) -> FloatArray | None:
    """Return dates as seconds since 1970, NaN where missing; ``None`` if an entry is no date in this order."""
    words = pc.utf8_trim_whitespace(texts)
    words = pc.if_else(pc.match_substring_regex(words, _NO_VALUE), None, words)
    pattern, places = _ORDERS[order]
    absent = np.asarray(words.is_null().to_numpy())
    parts = pc.extract_regex(words, pattern)
    if absent.all() or bool((np.asarray(parts.is_null().to_numpy()) & ~absent).any()):
        return None

    def numbers(part: str, default: int) -> npt.NDArray[np.int64]:
        field = pc.struct_field(parts, part)
        field = pc.if_else(pc.equal(field, ""), None, field).cast(pa.int64())
        return np.asarray(pc.fill_null(field, default).to_numpy(), dtype=np.int64)

    year, month, day = (numbers(place, 1) for place in places)
    hour, minute, second = (numbers(part, 0) for part in ("hour", "minute", "second"))
    if not ((month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second <= 60)).all():
        return None
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    if (days.astype("datetime64[M]") != months).any():  # 31 February
        return None
    seconds = days.astype("datetime64[s]").astype(np.float64) + hour * 3600.0 + minute * 60.0 + second
    return np.where(absent, np.nan, seconds)


def _years(seconds: FloatArray) -> FloatArray:
    """Return seconds since 1970 as years since 2000."""
    return seconds / _YEAR_SECONDS - 30.0


def _first_odd(column: Column) -> tuple[int, Any]:
    """Return row and value of the first entry that is no number in any notation."""
    texts = _texts(column)
    if texts is None:
        return _first_object(column)
    for row, text in enumerate(texts.to_pylist()):
        if text is not None and _notation(pa.chunked_array([[text]]), None) is None and text.strip():
            return row, text
    return first_other(column)


def _first_odd_date(column: Column, order: DateOrder) -> tuple[int, Any]:
    texts = _texts(column)
    if texts is None:
        return _first_object(column)
    for row, text in enumerate(texts.to_pylist()):
        if text is not None and text.strip() and _seconds(pa.chunked_array([[text]]), order) is None:
            return row, text
    return first_other(column)


def _first_object(column: Column) -> tuple[int, Any]:
    """Return row and value of the first entry that is neither text nor an integer."""
    values = as_list(column)
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, str | int):
            return row, value
    return 0, values[0] if values else None


def need_finite(name: str, numbers: FloatArray, locate: Locate) -> None:
    """Raise `DataError` if a number is infinite in 32 bits."""
    with np.errstate(over="ignore"):
        wrong = np.flatnonzero(np.isinf(numbers.astype(np.float32)))
    if len(wrong):
        raise DataError(
            f"Every value of the feature '{name}' must be a finite number (of 32 bits). "
            f"Got {numbers[wrong[0]]}; {len(wrong)} such in all.",
            where=locate(int(wrong[0])),
            remedy="Correct the value, or name only the other columns with `features=` (empty for none).",
        )


def _changed(name: str, kind: str, value: object, where: str) -> DataError:
    return DataError(
        f"The feature column '{name}' held {kind} in the training. Got {value!r:.60}.",
        where=where,
        remedy="Correct the value, or train again on such data.",
    )


def need_same_columns(encoding: Encoding, features: Collection[str]) -> None:
    """Raise `UsageError` if the named feature columns are not those of an encoding."""
    if set(features) != set(encoding.names):
        raise UsageError(
            f"`features=` must name the columns of the training, or be left out: {', '.join(encoding.names)}. "
            f"Got {', '.join(features) or 'none'}."
        )


def _column(mask: npt.NDArray[np.bool_]) -> sp.csr_array:
    return sp.csr_array(mask.astype(np.float64)[:, None])


def _missing_name(name: str) -> str:
    return f"{name} is missing"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (f", ... ({len(names)} in all)" if len(names) > _LISTED else "")
