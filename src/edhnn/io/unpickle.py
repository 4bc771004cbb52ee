"""Unpickle standard input and write its content to standard output: a line of JSON, then the bytes of the arrays.

`edhnn.io.legacy_pickle` runs this file in a separate process. A pickle is a program: it names classes and functions,
calls them, and sets the state of the results. `find_class` resolves only the names in `ALLOWED`. Each is a plain
container or a stand-in of this module that checks its arguments, so no function of numpy or scipy receives arguments
from the pickle. The operating system bounds the memory and the time of the process (see ADR 0015).

The file imports only the standard library, so that the process starts fast.
"""

from __future__ import annotations

import array
import collections
import io
import json
import math
import pickle
import re
import struct
import sys
from typing import Any

try:
    import resource
except ImportError:  # Windows has no such limits; there the parent process bounds the time
    resource = None  # type: ignore[assignment]

_STRUCT = dict(zip("b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split(), "?bhiqBHIQefd", strict=True))  # noqa: SIM905
_TEXT = re.compile(r"[SU][1-9][0-9]{0,5}")
_MAX_LENGTH = 2**31 - 1
_REMEDY = (
    "Pickles run code, so only plain containers, numpy arrays and scipy CSR, CSC or COO matrices are read. "
    "If you trust the file, load it with the program that wrote it and save it as text or .npz."
)
Result = tuple[dict[str, Any], "dict[str, Array]"]
"""A description in JSON, and arrays."""


class RefusedError(Exception):
    """The pickle is refused. ``facts`` are the arguments of the `DataError` that the parent process raises."""

    def __init__(
        self, problem: str, *, where: str | None = None, remedy: str | None = None, kind: str = "data"
    ) -> None:
        super().__init__(problem)
        self.facts = {"error": kind, "problem": problem, "where": where, "remedy": remedy}


def main(memory: int, seconds: int) -> None:
    """Read one pickle within the limits and write the result or the error."""
    data = sys.stdin.buffer.read()
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    facts, arrays = read(data)
    facts["arrays"] = [(name, values.dtype.name, values.shape, values.column_major) for name, values in arrays.items()]
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n")
    for values in arrays.values():
        sys.stdout.buffer.write(values.raw)


def read(data: bytes) -> Result:
    """Unpickle and describe an object, or describe the error."""
    try:
        return describe(Unpickler(io.BytesIO(data), encoding="latin-1").load(), len(data))
    except RefusedError as error:
        return error.facts, {}
    except MemoryError:
        problem = "Reading the pickle needs more memory than a file of its size is allowed."
        return RefusedError(problem, remedy="Save the data as text or .npz instead.", kind="limit").facts, {}
    except Exception as error:  # a broken pickle can raise any exception
        cause = ascii(str(error)[:200])[1:-1] or type(error).__name__
        problem = f"The file must be an intact pickle of plain data. Cause: {cause}."
        return RefusedError(problem, remedy="Copy or download it again.").facts, {}


class Unpickler(pickle.Unpickler):
    """An unpickler that resolves only the names in `ALLOWED`."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for an allowed name."""
        if (module, name) not in ALLOWED:
            shown = ascii(f"{module}.{name}")[1:-1][:80]
            raise RefusedError(f"The pickle refers to '{shown}', which is not allowed.", remedy=_REMEDY)
        return ALLOWED[module, name]


class Dtype:
    """Stand-in for `numpy.dtype`: booleans, integers, floats and strings of fixed length."""

    def __init__(self, code: Any, *_: object) -> None:
        self.code, self.order = code, ""

    def __setstate__(self, state: Any) -> None:
        plain = isinstance(state, tuple) and 5 <= len(state) <= 9 and all(part is None for part in state[2:5])
        self.order = state[1] if plain and state[1] in ("<", ">", "|", "=") else ""

    @property
    def name(self) -> str:
        """The type as numpy writes it, such as ``<f8``."""
        known = isinstance(self.code, str) and (self.code in _STRUCT or _TEXT.fullmatch(self.code))
        if not known or not self.order:
            raise RefusedError(
                f"Arrays must contain booleans, integers, floats or strings. Got type {ascii(self.code)[:40]}.",
                remedy="Convert them with the program that wrote the file.",
            )
        return f"{self.order}{self.code}"

    @property
    def itemsize(self) -> int:
        """Bytes per entry."""
        return int(self.name[2:]) * (4 if self.code[0] == "U" else 1)

    def unpack(self, raw: bytes) -> list[Any]:
        """Return the numbers in some bytes."""
        order = "=" if self.order == "|" else self.order
        return list(struct.unpack(f"{order}{len(raw) // self.itemsize}{_STRUCT[self.code]}", raw))


class Array:
    """Stand-in for `numpy.ndarray`. The number of bytes must match its shape and type."""

    shape: tuple[int, ...] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, column_major, raw = state
        self.fill(raw, dtype, shape, column_major=column_major is True)

    def fill(self, raw: Any, dtype: Any, shape: Any, *, column_major: bool = False) -> Array:
        """Check and set the content."""
        self.dtype, self.raw, self.column_major = *checked_content(dtype, raw), column_major
        shape = checked_shape(shape)
        needed = math.prod(shape) * self.dtype.itemsize
        if len(shape) > 2 or needed != len(self.raw):
            raise RefusedError(
                "An array must have at most 2 dimensions and as many bytes as its shape and type require. "
                f"Got shape {shape} of {self.dtype.name}, which requires {needed} bytes, and {len(self.raw)} bytes."
            )
        self.shape = shape
        return self

    @property
    def is_vector(self) -> bool:
        """Whether it has one dimension."""
        return self.shape is not None and len(self.shape) == 1


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Check that a shape is a tuple of lengths, each within bounds, and return it."""
    plain = isinstance(shape, tuple) and len(shape) < 8
    if not plain or not all(type(length) is int and 0 <= length <= _MAX_LENGTH for length in shape):
        raise RefusedError(f"A shape must be a tuple of integers between 0 and {_MAX_LENGTH}.")
    checked: tuple[int, ...] = shape
    return checked


def checked_content(dtype: Any, raw: Any) -> tuple[Dtype, bytes]:
    """Check a type and its bytes, which Python 2 stored as text, and return them."""
    content = raw.encode("latin-1") if isinstance(raw, str) else raw
    if not isinstance(dtype, Dtype) or not (dtype.name and isinstance(content, bytes | bytearray)):
        raise RefusedError("An array must be stored as shape, numpy type, order and bytes.")
    return dtype, bytes(content)


def start_array(*_: object) -> Array:
    """Replace numpy's `_reconstruct`; the content follows as state."""
    return Array()


def array_from_buffer(raw: Any, dtype: Any, shape: Any, order: Any) -> Array:
    """Replace numpy's `_frombuffer`."""
    return Array().fill(raw, dtype, shape, column_major={"C": False, "F": True}[order])


def scalar(dtype: Any, raw: Any) -> Any:
    """Replace numpy's `scalar`, and return a plain Python value."""
    kind, content = checked_content(dtype, raw)
    if len(content) != kind.itemsize:
        raise RefusedError(f"A scalar of {kind.name} must have {kind.itemsize} bytes. Got {len(content)}.")
    if kind.code[0] == "U":
        return content.decode("utf-32-be" if kind.order == ">" else "utf-32-le").rstrip("\0")
    return content.rstrip(b"\0").decode("latin-1") if kind.code[0] == "S" else kind.unpack(content)[0]


class Csr:
    """Stand-in for a CSR matrix of scipy; unpickling sets its attributes."""

    form = "csr"


class Csc(Csr):
    """Stand-in for a CSC matrix."""

    form = "csc"


class Coo(Csr):
    """Stand-in for a COO matrix."""

    form = "coo"


def start_object(kind: Any, *_: object) -> Csr:
    """Replace `copyreg._reconstructor`, which protocols 0 and 1 call to create a sparse matrix."""
    if kind not in (Csr, Csc, Coo):
        raise RefusedError("The pickle must not create objects of other classes.", remedy=_REMEDY)
    matrix: Csr = kind()
    return matrix


def encode(text: str, encoding: str) -> bytes:
    """Replace `_codecs.encode`, which protocols before 3 call to store bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise RefusedError("Bytes must be stored as latin-1 text.")
    return text.encode("latin-1")


def empty_bytes() -> bytes:
    """Replace `bytes`, which protocols before 3 call to store empty bytes."""
    return b""


def _allowed() -> dict[tuple[str, str], Any]:
    names: dict[tuple[str, str], Any] = {
        ("numpy", "ndarray"): "numpy.ndarray",
        ("numpy", "dtype"): Dtype,
        ("_codecs", "encode"): encode,
        ("collections", "OrderedDict"): collections.OrderedDict,
        ("collections", "defaultdict"): collections.defaultdict,
    }
    for builtins, copyreg in (("builtins", "copyreg"), ("__builtin__", "copy_reg")):  # Python 3, Python 2
        names |= {(builtins, kind.__name__): kind for kind in (set, frozenset, list, dict)}
        names |= {(builtins, "bytes"): empty_bytes, (builtins, "object"): "object"}
        names[copyreg, "_reconstructor"] = start_object
    for core in ("numpy.core", "numpy._core"):
        names[f"{core}.multiarray", "_reconstruct"] = start_array
        names[f"{core}.multiarray", "scalar"] = scalar
        names[f"{core}.numeric", "_frombuffer"] = array_from_buffer
    for matrix in (Csr, Csc, Coo):
        for module in (f"scipy.sparse.{matrix.form}", f"scipy.sparse._{matrix.form}"):
            names[module, f"{matrix.form}_matrix"] = names[module, f"{matrix.form}_array"] = matrix
    return names


ALLOWED = _allowed()
"""The names that a pickle may refer to, as (module, name) in every release of numpy, scipy and Python."""


def describe(value: Any, size: int) -> Result:
    """Return the form and the arrays of an unpickled object.

    Args:
        value: The object.
        size: The size of the pickle. A member of a hyperedge takes at least a byte, so more members than bytes mean
            that the pickle refers to one list many times.
    """
    if isinstance(value, dict):
        return describe_hyperedges(value, size)
    if isinstance(value, Csr):
        return describe_matrix(value)
    if isinstance(value, Array) and value.shape is not None:
        return {"form": "array"}, {"values": value}
    if isinstance(value, list | tuple):
        return {"form": "array"}, {"values": integer_array(integers(value, None, size))}
    return {"form": f"a value of type {type(value).__name__}"}, {}


def describe_hyperedges(value: dict[Any, Any], size: int) -> Result:
    """Return the keys (``None`` for one that is neither text nor an integer) and the members of the hyperedges."""
    keys: list[str | int | None] = []
    flat: list[int] = []
    sizes: list[int] = []
    for key, members in dict.items(value):
        named = isinstance(key, str | int) and not isinstance(key, bool)
        where = f"hyperedge {ascii(key)[:60]}" if named else f"hyperedge number {len(keys)}"
        if isinstance(key, str) and re.search("[\ud800-\udfff]", key):
            problem = "The key of a hyperedge must be valid Unicode text. It contains half a surrogate pair."
            raise RefusedError(problem, where=where)
        numbers = integers(members, where, size - len(flat))
        keys.append(key if named else None)
        flat += numbers
        sizes.append(len(numbers))
    return {"form": "dict", "keys": keys}, {"members": integer_array(flat), "sizes": integer_array(sizes)}


def describe_matrix(value: Csr) -> Result:
    """Return the shape and the vectors of a sparse matrix."""
    state = vars(value)
    if isinstance(state.get("coords"), tuple) and len(state["coords"]) == 2:
        state = {**state, "row": state["coords"][0], "col": state["coords"][1]}
    parts = ("data", "row", "col") if value.form == "coo" else ("data", "indices", "indptr")
    for name in parts:
        part, kinds = state.get(name), "biuf" if name == "data" else "iu"
        if not isinstance(part, Array) or not part.is_vector or part.dtype.code[0] not in kinds:
            raise RefusedError(
                f"'{name}' of a sparse matrix must be a vector of {'numbers' if name == 'data' else 'integers'}."
            )
    shape = checked_shape(state.get("_shape", state.get("shape")))
    return {"form": value.form, "shape": shape}, {name: state[name] for name in parts}


def integers(value: Any, where: str | None, room: int) -> list[int]:
    """Return a list, a set or a vector of integers as a list."""
    if isinstance(value, Array) and value.is_vector and value.dtype.code[0] in "iu":
        count = len(value.raw) // value.dtype.itemsize
    elif isinstance(value, list | tuple | set | frozenset):
        count = len(value)
    else:
        of = f" of {value.dtype.name}, shape {value.shape}" if isinstance(value, Array) and value.shape else ""
        problem = "The nodes of a hyperedge must be a list, a set or an array of integers."
        raise RefusedError(f"{problem} Got a value of type {type(value).__name__}{of}.", where=where)
    if count > room:
        raise RefusedError(
            "The hyperedges must not have more members in total than the pickle has bytes.",
            where=where,
            remedy="The pickle refers to the same list many times. Save the data as text instead.",
            kind="limit",
        )
    numbers = value.dtype.unpack(value.raw) if isinstance(value, Array) else list(value)
    for index, number in enumerate(numbers):
        if type(number) is not int or not -(2**63) <= number < 2**63:
            got = f"a value of type {type(number).__name__} at index {index}"
            raise RefusedError(f"Every node number and every label must be a 64-bit integer. Got {got}.", where=where)
    return numbers


def integer_array(numbers: list[int]) -> Array:
    """Return 64-bit integers as a vector."""
    dtype = Dtype("i8")
    dtype.order = "="
    return Array().fill(array.array("q", numbers).tobytes(), dtype, (len(numbers),))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
