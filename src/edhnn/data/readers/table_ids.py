"""The id columns of tables: read, checked, and numbered jointly over a table and its listing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pyarrow as pa

from edhnn.data.column_values import Column
from edhnn.data.encode import encode_ids
from edhnn.data.files import Limits
from edhnn.data.ids import IdColumn, Ids
from edhnn.data.plain_integers import integers_if_all_canonical
from edhnn.data.readers.arrow_tables import place_of_row
from edhnn.data.table_names import table_to_read
from edhnn.errors import DataError
from edhnn.typing import IndexArray


@final
@dataclass(slots=True)
class Listing:
    """A node or hyperedge table: its ids and its other columns."""

    path: Path
    ids: IdColumn
    columns: dict[str, Column]


def as_ids(path: Path, column: pa.ChunkedArray, name: str, limits: Limits) -> IdColumn:
    """A column of a table as ids: text or 64-bit integers, none missing."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(
            f"Every row must have an id in the column '{name}'. It is empty.",
            path=path,
            where=place_of_row(path, row, limits),
        )
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    try:
        if pa.types.is_integer(kind):
            column = column.cast(pa.int64())
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            column = column.cast(pa.string())
        elif len(column):
            raise pa.ArrowInvalid(f"Got {kind}")
    except pa.ArrowException as error:
        raise DataError(
            f"The ids in the column '{name}' must be text or 64-bit integers. {error}.", path=path
        ) from error
    ids = IdColumn()
    for chunk in column.chunks:
        ids.append_arrow(chunk)
    return ids


def number_ids(
    path: Path, kind: str, listing: Listing | None, mentions: IdColumn, limits: Limits
) -> tuple[Ids, IndexArray]:
    """Number the ids; with a table of them, each must be listed there once."""
    listed = listing.ids if listing else IdColumn()
    columns = [(mentions, path), *([(listed, listing.path)] if listing else [])]
    typed = [table_to_read(file).kind == "parquet" for _, file in columns]
    untyped = [column for (column, _), known in zip(columns, typed, strict=True) if not known]
    text = [column for (column, _), known in zip(columns, typed, strict=True) if known and _is_text(column)]
    if untyped and not text:
        integers_if_all_canonical(untyped)
    ids, in_listing, in_mentions = encode_ids(listed, mentions)
    if listing is not None:
        first = np.unique(in_listing, return_index=True)[1]
        if len(first) < len(in_listing):
            row = int(np.setdiff1d(np.arange(len(in_listing)), first)[0])
            raise DataError(
                f"Each {kind} must stand once in its table. Got {ids[int(in_listing[row])]!r} again.",
                path=listing.path,
                where=place_of_row(listing.path, row, limits),
            )
        unknown = np.flatnonzero(in_mentions >= len(in_listing))
        if len(unknown):
            raise DataError(
                f"Every {kind} must be listed in '{listing.path.name}'. Got {ids[int(in_mentions[unknown[0]])]!r}.",
                path=path,
                where=place_of_row(path, int(unknown[0]), limits),
                remedy=f"Add it there, or leave that table out of it; {len(unknown)} row(s) are concerned.",
            )
    return ids, in_mentions


def _is_text(column: IdColumn) -> bool:
    return any(isinstance(chunk, pa.Array) and pa.types.is_string(chunk.type) for chunk in column.chunks)
