"""Columns of text tables that a guess of their type would change, kept as they were written.

Text files carry no types, and Arrow guesses one for each column. The guess stands where it changes nothing: ``7`` is
the integer 7, ``1.50`` the number 1.5. Where the text says more than the value, the column is text:

    integers           one that is not in its plain spelling (``007``, ``0x10``) or is beyond 64 bits
    truth values       in several spellings (``1`` beside ``true``); and every label, as its classes have names
    labels             whole numbers in several spellings, or with an exponent: ``1e1`` beside ``10``
    dates and times    always
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edhnn.data.files import Limits
from edhnn.data.plain_integers import canonical_integers
from edhnn.data.readers.arrow_tables import Header, read_columns
from edhnn.data.table_names import TableKind

_DIGITS = r"^[+-]?[0-9]+$"
_PLAIN_WHOLE = r"^-?(0|[1-9][0-9]*)(\.0*)?$"
_NAN = r"(?i)^[+-]?nan$"


def read_as_written(
    path: Path,
    kind: TableKind,
    header: Header,
    limits: Limits,
    *,
    id_column: str,
    labels: Collection[str],
    numbers: Collection[str],
) -> pa.Table:
    """All columns of a node or hyperedge table, with types inferred where that changes nothing.

    Args:
        path: The file.
        kind: CSV, TSV or Parquet; Parquet has types of its own.
        header: What `read_header` returned.
        limits: Size limits.
        id_column: The column of ids, which is text.
        labels: The columns that are labels.
        numbers: Columns that the reader was told are numbers, however they are spelled.

    Returns:
        The Arrow table.
    """
    table = read_columns(path, kind, header, limits, columns=header.columns, text_columns=[id_column])
    doubtful = [
        name
        for name in header.columns
        if name != id_column and kind != "parquet" and _doubtful(table[name], told=name in numbers)
    ]
    if doubtful:
        known = header._replace(closed=True)  # the first reading has looked
        texts = read_columns(path, kind, known, limits, columns=doubtful, text_columns=doubtful)
        for name in doubtful:
            if kept_as_text(texts[name], table[name].type, label=name in labels):
                table = table.set_column(table.column_names.index(name), name, texts[name])
    return table


def kept_as_text(texts: pa.ChunkedArray, guess: pa.DataType, *, label: bool) -> bool:
    """Whether a column stays text although its type was guessed to be another.

    Args:
        texts: The column as it is written, null where it is empty.
        guess: The type that was guessed; not that of real numbers with fractions, which are no other text.
        label: Whether the column is a label.

    Returns:
        Whether the values of that type would say less than the texts.
    """
    if pa.types.is_temporal(guess):
        return True
    known = pc.ascii_trim_whitespace(texts.drop_null())
    if pa.types.is_integer(guess):
        return not _plain_integers(known)
    if pa.types.is_boolean(guess):
        return label or pc.count_distinct(known).as_py() > pc.count_distinct(pc.cast(known, pa.bool_())).as_py()
    known = known.filter(pc.invert(pc.match_substring_regex(known, _NAN)))
    if not pa.types.is_floating(guess) or not len(known):
        return False
    if pc.all(pc.match_substring_regex(known, _DIGITS)).as_py():
        return not _plain_integers(known)
    plain = pc.all(pc.match_substring_regex(known, _PLAIN_WHOLE)).as_py()
    return label and not (plain and pc.count_distinct(known) == pc.count_distinct(pc.cast(known, pa.float64())))


def _plain_integers(texts: pa.ChunkedArray) -> bool:
    return all(canonical_integers(chunk) is not None for chunk in texts.chunks)


def may_say_less(column: pa.ChunkedArray) -> bool:
    """Whether values of an inferred type may be less than their texts: all but text and real numbers with fractions."""
    kind = column.type
    if pa.types.is_floating(kind):
        values = column.drop_null().to_numpy()
        return bool(((values == np.trunc(values)) | np.isnan(values)).all())
    return bool(pa.types.is_temporal(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _doubtful(column: pa.ChunkedArray, *, told: bool) -> bool:
    return may_say_less(column) and (not told or bool(pa.types.is_temporal(column.type)))
