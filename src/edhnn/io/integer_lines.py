"""Lines of non-negative integers, parsed without a Python loop over the numbers.

Cornell text, the dataset folder and hMETIS consist of lines of node numbers. A block of whole lines is an array of
bytes, in which runs of digits are the tokens. Their values are built digit by digit for all tokens at once, so the
Python loop has at most 18 iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from edhnn.data.limits import Limits
from edhnn.errors import DataError
from edhnn.io.files import ByteReader, line_too_long, open_limited
from edhnn.typing import IndexArray, IntArray

_BLOCK_BYTES = 2**20  # parsing a block takes about 40 times its memory
_MAX_DIGITS = 18
_NEWLINE, _COMMA = ord("\n"), ord(",")


def read_integer_lines(
    path: Path, limits: Limits, *, commas: bool, comment: bytes | None = None
) -> tuple[IntArray, IntArray]:
    """Read a plain or compressed file of integers.

    Args:
        path: The file.
        limits: Size limits.
        commas: Whether commas separate the numbers; otherwise blanks do.
        comment: Lines that start with this byte are skipped (hMETIS: ``%``).

    Returns:
        All numbers, and the count of numbers on each line (0 for an empty line).
    """
    with open_limited(path, limits) as stream:
        return IntegerLines(stream, path, limits, commas=commas, comment=comment).read_all()


def edge_of_each(sizes: IntArray) -> IndexArray:
    """Return the hyperedge of each membership, from the sizes of the hyperedges; with 32 bits if these suffice."""
    return np.repeat(np.arange(len(sizes), dtype=np.int32 if len(sizes) < 2**31 else np.int64), sizes)


@final
class IntegerLines:
    """A parser of lines of integers in a binary stream.

    Args:
        stream: The text, as bytes.
        path: The file, for error messages.
        limits: Size limits, here the length of a line.
        commas: Whether commas separate the numbers; otherwise blanks do.
        comment: Lines that start with this byte are skipped (hMETIS: ``%``).
    """

    def __init__(
        self, stream: ByteReader, path: Path, limits: Limits, *, commas: bool, comment: bytes | None = None
    ) -> None:
        self._stream, self._path, self._limits = stream, path, limits
        self._commas, self._comment = commas, comment
        self.line = 0
        self._line_numbers: Sequence[int] = ()

    def read_all(self) -> tuple[IntArray, IntArray]:
        """Return all numbers, and the count of numbers on each line (0 for an empty line)."""
        values: list[npt.NDArray[np.signedinteger[Any]]] = [np.zeros(0, np.int64)]
        sizes = values.copy()
        for block in self._blocks():
            block_values, block_sizes = self._parse(block)
            values.append(_narrow(block_values))
            sizes.append(_narrow(block_sizes))
        return np.concatenate(values, dtype=np.int64), np.concatenate(sizes, dtype=np.int64)

    def _blocks(self) -> Iterator[bytes]:
        """Yield blocks of whole lines with LF line ends and without comments."""
        rest = b""
        while chunk := self._stream.read(_BLOCK_BYTES):
            rest += chunk
            cut = rest.rfind(b"\n") + 1
            if cut:
                yield self._without_comments(rest[:cut])
                rest = rest[cut:]
            if len(rest) > self._limits.max_record_bytes:
                raise line_too_long(self._path, self._limits, self.line + 1)
        if rest:
            yield self._without_comments(rest + b"\n")

    def _without_comments(self, block: bytes) -> bytes:
        block = block.replace(b"\r\n", b"\n")
        if self._comment is None or self._comment not in block:
            self._line_numbers = range(self.line + 1, self.line + 1 + block.count(b"\n"))
            return block
        lines = block.split(b"\n")[:-1]
        content = [index for index, line in enumerate(lines) if not line.startswith(self._comment)]
        self._line_numbers = [self.line + 1 + index for index in content]
        self.line += len(lines) - len(content)
        return b"".join(lines[index] + b"\n" for index in content)

    def _parse(self, block: bytes) -> tuple[IntArray, IntArray]:
        text = np.frombuffer(block, dtype=np.uint8)
        digit = (text - ord("0")) < 10  # unsigned, so everything below "0" wraps to large values
        allowed = digit | (text == _NEWLINE) | (text == ord(" ")) | (text == (_COMMA if self._commas else ord("\t")))
        if not allowed.all():
            raise self._error(block, int(np.argmin(allowed)))
        step = np.diff(digit.astype(np.int8), prepend=0, append=0)
        starts, stops = np.flatnonzero(step == 1), np.flatnonzero(step == -1)
        line_ends = np.flatnonzero(text == _NEWLINE)
        line_of = np.searchsorted(line_ends, starts)
        sizes = np.bincount(line_of, minlength=len(line_ends))
        too_long = np.flatnonzero(stops - starts > _MAX_DIGITS)
        if len(too_long):
            raise self._error(block, int(starts[too_long[0]]))
        if self._commas:
            self._check_commas(text, starts, line_of, line_ends, sizes, block)
        self.line += len(line_ends)
        return _values(text, starts, stops), sizes

    def _check_commas(
        self,
        text: npt.NDArray[np.uint8],
        starts: IntArray,
        line_of: IntArray,
        line_ends: IntArray,
        sizes: IntArray,
        block: bytes,
    ) -> None:
        """Check that a line of n numbers has n - 1 commas (none if n is 0), and k commas before number k, from 0."""
        commas = np.flatnonzero(text == _COMMA)
        on_line = np.bincount(np.searchsorted(line_ends, commas), minlength=len(line_ends))
        wrong = on_line != np.maximum(sizes - 1, 0)
        commas_before, numbers_before = np.cumsum(on_line) - on_line, np.cumsum(sizes) - sizes
        position = np.arange(len(starts)) - numbers_before[line_of]
        wrong[line_of[np.searchsorted(commas, starts) - commas_before[line_of] != position]] = True
        if wrong.any():
            raise self._error(block, int(line_ends[np.argmax(wrong)]))

    def _error(self, block: bytes, offset: int) -> DataError:
        begin = block.rfind(b"\n", 0, offset) + 1
        line = block[begin : block.find(b"\n", offset)].decode("utf-8", "replace")
        number = self._line_numbers[block.count(b"\n", 0, offset)]
        separator = "commas" if self._commas else "blanks"
        return DataError(
            f"The line must contain non-negative integers of at most {_MAX_DIGITS} digits separated by {separator}. "
            f"Got '{line[:60]}{'...' if len(line) > 60 else ''}'.",
            path=self._path,
            where=f"line {number}",
        )


def _narrow(numbers: IntArray) -> npt.NDArray[np.signedinteger[Any]]:
    """Return the numbers with 32 bits if these suffice; all blocks and their concatenation exist at once."""
    return numbers.astype(np.int32) if numbers.max(initial=0) < 2**31 else numbers


def _values(text: npt.NDArray[np.uint8], starts: IntArray, stops: IntArray) -> IntArray:
    lengths = stops - starts
    values = np.zeros(len(starts), dtype=np.int64)
    for digit in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > digit)
        values[longer] = values[longer] * 10 + (text[starts[longer] + digit] - ord("0"))
    return values
