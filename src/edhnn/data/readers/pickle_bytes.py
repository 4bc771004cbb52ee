"""The bytes of a pickle, taken from the front: fixed-width numbers, counted bytes and lines, never past the end.

A claimed length beyond the end of the file is an error before anything is allocated. Broken bytes raise `IndexError`,
`ValueError` or `struct.error`, for whoever runs the pickle to say where it began (`edhnn.data.readers.inert_pickle`).
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

from edhnn.errors import DataError

MAX_WORD = 64
_WHOLE_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}L?")
_REMEDY = (
    "Pickles run code, so only plain containers, numpy arrays and scipy CSR, CSC or COO matrices are read from one. "
    "If you trust the file, load it where it was made and save it as text or .npz instead."
)


class PickleBytes:
    """The bytes and how far they were read.

    Args:
        data: The whole pickle.
        path: The file, for messages.
    """

    def __init__(self, data: bytes, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0

    def error(self, problem: str, byte: int | None = None, remedy: str = _REMEDY) -> DataError:
        """An error at a byte, by default where reading stands."""
        return DataError(problem, path=self.path, where=f"byte {self.at if byte is None else byte}", remedy=remedy)

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        end = self.at + count
        if end > len(self.data) or count < 0:
            raise IndexError
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def number(self, form: str) -> Any:
        """The next number, in a format of `struct`."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def counted(self, form: str) -> bytes:
        """Bytes after their count, which is a number of that format."""
        return self.take(self.number(form))

    def line(self, longest: int = MAX_WORD) -> bytes:
        """The bytes up to the end of the line, which is passed over."""
        end = self.data.index(b"\n", self.at)
        if end - self.at > longest:
            raise ValueError
        piece = self.take(end - self.at)
        self.at += 1
        return piece

    def whole_line(self) -> int:
        """A line that is a whole number of at most 64 bits, as protocol 0 writes them."""
        line = self.line()
        if not _WHOLE_NUMBER.fullmatch(line):
            raise ValueError
        found = int(line.rstrip(b"L"))
        if not -(2**63) <= found < 2**63:
            raise self.error(f"Integers must fit into 64 bits. Got {found}.")
        return found
