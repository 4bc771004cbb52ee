"""Columns of data frames as Arrow arrays, checked: ids, numbers, classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from edhnn.data.column_values import Column
from edhnn.data.dataset import UNLABELLED
from edhnn.data.interop.lazy import wrong_type
from edhnn.data.labels import Labels
from edhnn.errors import DataError, unknown_name
from edhnn.typing import FloatArray


def library_of(frame: Any) -> str:
    """The library of a frame, by the name of its class's module: nothing is imported to find out."""
    kind = type(frame)
    library = kind.__module__.partition(".")[0]
    if (library, kind.__name__) == ("polars", "LazyFrame"):
        raise wrong_type("from_frame", "a polars DataFrame", frame, " Collect it first: frame.collect().")
    if (library, kind.__name__) not in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        raise wrong_type("from_frame", "a pandas or polars DataFrame or an Arrow table", frame)
    return library


def column_names(frame: Any) -> list[str]:
    """The names of a frame's columns."""
    return [str(name) for name in (frame.column_names if library_of(frame) == "pyarrow" else frame.columns)]


def arrow_table(frame: Any, columns: Sequence[str] | None, what: str, needed: Collection[str] = ()) -> pa.Table:
    """A frame, or some of its columns, as an Arrow table.

    Args:
        frame: A pandas or polars data frame, or an Arrow table.
        columns: The columns to take; ``None`` for all.
        what: What the frame is, for errors.
        needed: Columns that must be there if all are taken.

    Returns:
        The table.
    """
    library, names = library_of(frame), column_names(frame)
    if len(set(names)) < len(names):
        raise DataError(f"The columns of the {what} must have distinct names. Got {', '.join(names)}.")
    for name in (*(columns or ()), *needed):
        if name not in names:
            raise unknown_name(f"column of the {what}", name, names)
    try:
        if library == "pandas":
            places = [names.index(name) for name in (names if columns is None else columns)]  # labels may be numbers
            return pa.Table.from_pandas(frame.iloc[:, places], preserve_index=False)
        if library == "polars":
            _refuse_objects(frame, names if columns is None else columns, what)
            return _plain_categoricals((frame if columns is None else frame.select(columns)).to_arrow())
        return frame if columns is None else frame.select(list(columns))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise DataError(
            f"Every column of the {what} must be of one type. {'; '.join(map(str, error.args))}.",
            remedy="Convert the column, for example with .astype(str), or leave it out.",
        ) from error


def id_column(table: pa.Table, name: str, what: str) -> pa.ChunkedArray:
    """A column of ids: int64 or text, none missing."""
    column: pa.ChunkedArray = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if len(column) and pa.types.is_floating(column.type):
        raise DataError(
            f"The ids in column '{name}' of the {what} must be text or integers. Got real numbers.",
            remedy="Where integers have gaps pandas makes them real: fill or drop the gaps, then .astype('int64').",
        )
    if column.null_count:
        row = int(np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False))[0])
        raise DataError(
            f"Every row of the {what} must have an id in column '{name}'. There is none.",
            where=f"row {row}",
            remedy="Fill it, or drop the row.",
        )
    if pa.types.is_integer(column.type):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"The ids in column '{name}' of the {what} must fit 64 bits: {error}.") from error
    if not len(column):
        return pa.chunked_array([], type=pa.large_string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or _is_view(column.type)):
        raise DataError(
            f"The ids in column '{name}' of the {what} must be text or integers. Got {column.type}.",
            remedy="Convert the column to text first.",
        )
    return column.cast(pa.large_string())


def number_column(table: pa.Table, name: str, what: str) -> FloatArray:
    """A column of numbers, none missing."""
    if name not in table.column_names:
        raise unknown_name(f"column of the {what}", name, table.column_names)
    column: pa.ChunkedArray = table[name]
    if len(column) and not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise DataError(f"Column '{name}' of the {what} must hold numbers. Got {column.type}.")
    try:
        numbers: FloatArray = column.cast(pa.float64()).to_numpy().astype(np.float64)
    except pa.ArrowInvalid as error:
        raise DataError(f"Column '{name}' of the {what} must hold numbers that 64 bits can: {error}.") from error
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        row = int(wrong[0])
        given = "nothing" if np.isnan(numbers[row]) else str(numbers[row])
        raise DataError(
            f"Every '{name}' must be a finite number, 0 or more. Got {given}.", where=f"row {row} of the {what}"
        )
    return numbers


def class_column(columns: dict[str, Column], name: str) -> Labels | None:
    """A categorical label column, taken out of ``columns``: its categories are the classes, in their order."""
    column: Any = columns.get(name)
    if column is None or not pa.types.is_dictionary(column.type):
        return None
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) and whole.num_chunks else whole
    if not isinstance(whole, pa.DictionaryArray):
        return None
    names = whole.dictionary.to_pylist()
    if any(isinstance(each, bool) or not isinstance(each, str | int) for each in names):
        raise DataError(f"The categories of the label '{name}' must be text or integers. Got {whole.dictionary.type}.")
    del columns[name]
    y = pc.fill_null(whole.indices.cast(pa.int64()), UNLABELLED).to_numpy()
    return Labels(torch.from_numpy(y.copy()), "classification", tuple(names))


def _refuse_objects(frame: Any, columns: Sequence[str], what: str) -> None:
    schema: Mapping[str, object] = frame.schema
    wrong = next((name for name in columns if str(schema[name]) == "Object"), None)
    if wrong is not None:
        raise DataError(f"Column '{wrong}' of the {what} must be of one type. It holds Python objects.")


def _plain_categoricals(table: pa.Table) -> pa.Table:
    """A polars Categorical is text held compactly, in no order that its owner chose; an Enum has one."""
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_dictionary(kind) and not kind.ordered:
            table = table.set_column(place, table.column_names[place], table[place].cast(kind.value_type))
    return table


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind))
