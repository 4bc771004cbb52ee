"""Arrays, scalars and sparse matrices built from the inert records of a pickle, after every claim has been checked.

Of numpy's types only booleans, integers, floats and fixed-length strings are known; an array's bytes must be exactly
as many as its shape and type need; the indices of a sparse matrix must lie inside its shape. Only then is numpy or
scipy given anything, and what it is given are plain bytes.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from edhnn.data.readers.inert import Inert
from edhnn.errors import DataError
from edhnn.typing import IntArray

_TYPE = re.compile(r"b1|[iu][1248]|f[248]|[SU][1-9][0-9]{0,5}")
_MAX_DIMENSIONS, _MAX_LENGTH = 2, 2**31 - 1


class ArrayRecord(NamedTuple):
    """A checked description of an array that has not been built."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    raw: bytes
    column_major: bool

    def build(self) -> npt.NDArray[Any]:
        """The array; a view of the file's bytes where that is possible."""
        if self.dtype.kind == "b":  # any byte other than 0 is True; numpy itself would trust it to be 1
            flat: npt.NDArray[Any] = np.frombuffer(self.raw, dtype=np.uint8) != 0
        else:
            flat = np.frombuffer(self.raw, dtype=self.dtype)
        return flat.reshape(self.shape, order="F" if self.column_major else "C")


def as_array_record(value: Any) -> ArrayRecord | None:
    """The array that a record describes, checked but not built; ``None`` if it describes something else.

    Raises:
        DataError: if it describes an array that cannot be.
    """
    if not isinstance(value, Inert) or value.maker not in ("array", "buffer"):
        return None
    parts: Any
    if value.maker == "array":  # state: version, shape, type, whether column-major, bytes
        parts = value.state[1:] if isinstance(value.state, tuple) and len(value.state) == 5 else None
    else:
        parts = value.arguments
        orders = {"C": False, "F": True}
        if len(parts) == 4 and isinstance(parts[3], str) and parts[3] in orders:
            parts = (parts[2], parts[1], orders[parts[3]], parts[0])
        else:
            parts = None
    if parts is None:
        raise DataError("An array must be stored as shape, type, order and bytes.")
    shape, dtype, raw = as_shape(parts[0]), _as_dtype(parts[1]), _as_bytes(parts[3])
    needed = math.prod(shape) * dtype.itemsize
    if len(shape) > _MAX_DIMENSIONS or needed != len(raw):
        raise DataError(
            f"An array must have at most {_MAX_DIMENSIONS} dimensions and as many bytes as its shape and type need. "
            f"Got shape {shape} of {dtype}, which needs {needed} bytes, and {len(raw)} bytes."
        )
    return ArrayRecord(shape, dtype, raw, parts[2] is True)


def as_scalar(value: Any) -> str | int | float | None:
    """A Python or numpy scalar: text, an integer or a float; ``None`` for anything else, booleans included."""
    if isinstance(value, Inert) and value.maker == "scalar" and len(value.arguments) == 2:
        dtype, raw = _as_dtype(value.arguments[0]), _as_bytes(value.arguments[1])
        if len(raw) != dtype.itemsize:
            raise DataError(f"A scalar of {dtype} must have {dtype.itemsize} bytes. Got {len(raw)}.")
        if dtype.kind == "U":
            try:
                return raw.decode("utf-32-be" if dtype.byteorder == ">" else "utf-32-le").rstrip("\0")
            except UnicodeDecodeError as error:
                raise DataError(f"A text scalar must be valid UTF-32. Decoding it said: {error.reason}.") from error
        if dtype.kind == "S":
            return raw.rstrip(b"\0").decode("latin-1")
        found: int | float = np.frombuffer(raw, dtype=dtype)[0].item()
        return None if dtype.kind == "b" else found
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def as_shape(value: Any) -> tuple[int, ...]:
    """A tuple of lengths, each within bounds."""
    lengths = tuple(as_scalar(part) for part in value) if isinstance(value, tuple) and len(value) < 8 else (None,)
    checked = tuple(length for length in lengths if isinstance(length, int) and 0 <= length <= _MAX_LENGTH)
    if len(checked) != len(lengths):
        raise DataError(f"A shape must be a tuple of integers between 0 and {_MAX_LENGTH}.")
    return checked


def as_csr(value: Any, rows: int) -> sp.csr_array | None:
    """The CSR, CSC or COO matrix that a record describes, as CSR; ``None`` if it describes something else.

    Args:
        value: The record.
        rows: How many rows the matrix must have; nothing is built if it claims another number.

    Raises:
        DataError: if its parts do not fit together.
    """
    if not isinstance(value, Inert) or value.maker not in ("csr", "csc", "coo"):
        return None
    state = value.state.items if isinstance(value.state, Inert) and value.state.maker == "dict" else []
    parts = {key: part for key, part in state if isinstance(key, str)}
    shape = as_shape(parts.get("_shape", parts.get("shape")))
    if len(shape) != 2 or shape[0] != rows:
        raise DataError(f"The matrix must have a row for each of {rows} nodes. Got shape {shape}.")
    data = to_float32(_vector("data", parts.get("data"), "biuf"))
    if value.maker == "coo":
        coords = parts.get("coords", (parts.get("row"), parts.get("col")))
        if not isinstance(coords, tuple) or len(coords) != 2:
            raise DataError("A COO matrix must have two index vectors.")
        row, col = (
            _indices(name, part, bound) for name, part, bound in zip(("row", "col"), coords, shape, strict=True)
        )
        if not len(row) == len(col) == len(data):
            raise DataError(f"Rows, columns and data must have one length. Got {len(row)}, {len(col)}, {len(data)}.")
        return sp.coo_array((data, (row, col)), shape=shape).tocsr()
    major, minor = shape if value.maker == "csr" else shape[::-1]
    indices = _indices("indices", parts.get("indices"), minor)
    indptr = _indices("indptr", parts.get("indptr"), len(indices) + 1)
    if len(indptr) != major + 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any() or len(indices) != len(data):
        raise DataError(
            f"'indptr' must be {major + 1} ascending numbers from 0, and 'indices' and 'data' of one length. "
            f"Got {len(indptr)}, {len(indices)} and {len(data)} numbers."
        )
    make = sp.csr_array if value.maker == "csr" else sp.csc_array
    return make((data[: indptr[-1]], indices[: indptr[-1]], indptr), shape=shape).tocsr()


def to_float32(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The values as native float32, which all of them must fit into."""
    with np.errstate(over="ignore"):  # what overflows is found below
        found = values.astype(np.float32)
    if not np.isfinite(found).all():
        wrong = values[~np.isfinite(found)][0]
        raise DataError(f"Features must be finite and fit into 32 bits. Got {wrong}.")
    return found


def _vector(name: str, value: Any, kinds: str) -> npt.NDArray[Any]:
    record = as_array_record(value)
    if record is None or len(record.shape) != 1 or record.dtype.kind not in kinds:
        raise DataError(f"'{name}' of a sparse matrix must be a vector of {' or '.join(_KINDS[k] for k in kinds)}.")
    return record.build()


def _indices(name: str, value: Any, bound: int) -> IntArray:
    found = _vector(name, value, "iu")
    if len(found) and not (found.min() >= 0 and found.max() < bound):
        raise DataError(f"'{name}' of the sparse matrix must lie in 0..{bound - 1}. Got {found.min()}..{found.max()}.")
    return found.astype(np.int64)


def _as_dtype(value: Any) -> np.dtype[Any]:
    if isinstance(value, Inert) and value.maker == "dtype" and value.arguments:
        code, state = value.arguments[0], value.state
        plain = isinstance(state, tuple) and 5 <= len(state) <= 9 and all(part is None for part in state[2:5])
        order = state[1] if plain else None
        known = isinstance(code, str) and _TYPE.fullmatch(code) is not None
        if known and isinstance(order, str) and order in ("<", ">", "|", "="):
            found: np.dtype[Any] = np.dtype(order + code)
            return found
        if isinstance(code, str):
            raise DataError(
                f"Arrays must hold plain booleans, integers, floats or strings. Got type {ascii(code)[:40]}.",
                remedy="Convert them where the file was made.",
            )
    raise DataError("An array must have a numpy type.")


def _as_bytes(value: Any) -> bytes:
    """Bytes however a protocol spells them: as such, as latin-1 text, or as a call of ``_codecs.encode``."""
    if isinstance(value, Inert) and value.maker == "encode" and value.arguments[1:] in (("latin1",), ("latin-1",)):
        value = value.arguments[0]
    elif isinstance(value, Inert) and value.maker == "bytes" and not value.arguments:
        value = b""
    if isinstance(value, str):
        try:
            return value.encode("latin-1")
        except UnicodeEncodeError as error:
            raise DataError("The bytes of an array must be bytes, or text in latin-1.") from error
    if not isinstance(value, bytes):
        raise DataError("The bytes of an array must be bytes.")
    return value


_KINDS = {"b": "booleans", "i": "integers", "u": "unsigned integers", "f": "floats"}
