"""Parquet through Arrow, with its errors turned into ours, and within limits."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from edhnn.data.files import Limits, open_existing, size_in_words
from edhnn.errors import DataError, LimitError


def _parquet(path: Path) -> pa.parquet.ParquetFile:
    open_existing(path).close()
    try:
        return pa.parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"The file must be Parquet. {arrow_said(error)}.", path=path) from error


def parquet_columns(path: Path) -> list[str]:
    """The names of the columns."""
    try:
        return list(_parquet(path).schema_arrow.names)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"The file must be Parquet. {arrow_said(error)}.", path=path) from error


def read_parquet(path: Path, limits: Limits, columns: list[str]) -> pa.Table:
    """Some columns, read in batches: what repeats is stored once and can be far larger in memory than the file says."""
    file = _parquet(path)
    too_large = LimitError(
        f"The content must be at most {size_in_words(limits.max_bytes)} after decompression.",
        path=path,
        remedy="If you trust the file, raise the limit with --max-bytes.",
    )
    try:
        groups = [file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups)]
        if max(sum(groups), file.metadata.num_rows) > limits.max_bytes or min(groups, default=0) < 0:
            raise too_large
        rows = min(max(limits.max_bytes // max([1, *groups]), 2**10), 2**17)
        size, batches = 0, []
        for batch in file.iter_batches(rows, columns=columns):
            size += batch.nbytes
            if size > limits.max_bytes:
                raise too_large
            batches.append(batch)
        fields = [file.schema_arrow.field(name) for name in columns]
        table = pa.Table.from_batches(batches, batches[0].schema if batches else pa.schema(fields))
        table.validate(full=True)  # text may not be UTF-8
        return table
    except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
        raise DataError(f"The Parquet data must be intact. {arrow_said(error)}.", path=path) from error


def arrow_said(error: BaseException) -> str:
    """What Arrow said, as far as a person needs it."""
    return f"Arrow said: {str(error).splitlines()[0][:200].rstrip('. ')}" if str(error) else type(error).__name__
