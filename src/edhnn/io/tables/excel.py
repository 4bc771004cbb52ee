"""Excel workbooks (``.xlsx``): the first visible sheet becomes a text table, which is read as CSV files are.

So ids, labels and numbers follow the same rules in both. openpyxl, an optional library, reads the cells. A workbook is
a zip file of XML: its size after decompression is limited, and XML that declares entities is refused.
"""

from __future__ import annotations

import csv
import datetime
import io
import zipfile
from pathlib import Path
from typing import Any

import openpyxl

from edhnn.data.limits import FREE_COLUMNS, Limits
from edhnn.errors import DataError
from edhnn.io.files import need_bytes, open_existing

_ENTITIES = (b"<!DOCTYPE", b"<!ENTITY")


def sheet_as_csv(path: Path, limits: Limits) -> tuple[bytes, str | None]:
    """Return the first visible sheet of a workbook as CSV text in UTF-8, and a note if there are other sheets.

    Formulas have the values that Excel computed last. Dates are written as ``2026-01-05``, whole numbers without
    decimals.

    Raises:
        DataError: if the file is not a workbook.
        LimitError: if its content is too large.
    """
    open_existing(path).close()
    text = io.StringIO(newline="")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            need_bytes(size, path.stat().st_size, path, limits, FREE_COLUMNS)
            for entry in archive.infolist():
                if entry.filename.lower().endswith((".xml", ".rels")):
                    with archive.open(entry) as stream:
                        if any(mark in stream.read(4096) for mark in _ENTITIES):
                            raise zipfile.BadZipFile(f"'{entry.filename}' declares entities")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            if not visible:
                raise DataError("A workbook must have a visible sheet of cells. It has none.", path=path)
            _write_rows(visible[0], text, path, limits)
            others = len(book.worksheets) - 1
            title = visible[0].title
        finally:
            book.close()
    except (DataError, MemoryError):
        raise
    except Exception as error:  # openpyxl has no error class of its own: bad XML raises whatever its parts raise
        cause = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise DataError(f"The file must be an intact .xlsx workbook. Cause: {cause}.", path=path) from error
    note = f"sheet '{title}' read, {others} other sheet(s) left out" if others else None
    return text.getvalue().encode("utf-8", "replace"), note


def _write_rows(sheet: Any, text: io.StringIO, path: Path, limits: Limits) -> None:
    sheet.reset_dimensions()  # the stored size of a sheet is often wrong
    writer = csv.writer(text, lineterminator="\n")
    width = 0
    for row in sheet.iter_rows(values_only=True):
        cells = [_as_text(value) for value in row]
        while cells and not cells[-1] and len(cells) > width:
            cells.pop()
        width = width or len(cells)
        writer.writerow(cells + [""] * (width - len(cells)) if any(cells) else [])
        need_bytes(text.tell(), path.stat().st_size, path, limits, FREE_COLUMNS)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)
