"""Identifiers as their owner wrote them.

Files name nodes and hyperedges by strings or integers; a `Hypergraph` numbers them from 0. `Ids` keeps the names in
order, `IdColumn` collects a file's column of them chunk by chunk, and `edhnn.data.encode` numbers two columns jointly.
Integers and strings never meet: ``1`` and ``"1"`` are two ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edhnn.errors import DataError
from edhnn.typing import IndexArray, IntArray, NodeOrEdgeId


class Ids(Sequence[NodeOrEdgeId]):
    """The distinct ids of nodes or hyperedges, in the order of their numbers.

    Args:
        values: ``range(n)`` when the ids are the numbers themselves, an integer array, or strings and integers.

    Raises:
        DataError: if an id is neither a string nor an integer.
    """

    __slots__ = ("_distinct", "_positions", "values")

    def __init__(self, values: range | IntArray | Sequence[NodeOrEdgeId]) -> None:
        self.values = values if isinstance(values, range) else _plain_ids(values)
        self._positions: dict[NodeOrEdgeId, int] | None = None
        self._distinct = isinstance(values, range)  # or not known yet

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> NodeOrEdgeId: ...
    @overload
    def __getitem__(self, index: slice) -> list[NodeOrEdgeId]: ...
    def __getitem__(self, index: int | slice) -> NodeOrEdgeId | list[NodeOrEdgeId]:
        found: Any = self.values[index]
        if isinstance(index, slice):
            return list(found.tolist() if isinstance(found, np.ndarray) else found)
        return found if isinstance(found, str) else int(found)

    def __iter__(self) -> Iterator[NodeOrEdgeId]:
        return iter(self.to_list())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids) or len(self) != len(other):
            return False
        if isinstance(self.values, range) and isinstance(other.values, range):
            return self.values == other.values
        return self.to_list() == other.to_list()

    __hash__ = None  # type: ignore[assignment]  # compared by content, so not a dictionary key

    def __repr__(self) -> str:
        shown = ", ".join(repr(value) for value in self[:3])
        return f"Ids([{shown}{', ...' if len(self) > 3 else ''}], length {len(self)})"

    @property
    def are_numbers(self) -> bool:
        """Whether the ids are just 0, 1, ..., n - 1."""
        return isinstance(self.values, range) and self.values == range(len(self.values))

    def to_list(self) -> list[NodeOrEdgeId]:
        """All ids as Python strings and integers."""
        return self[:]

    def position(self, name: NodeOrEdgeId) -> int | None:
        """The number of an id, or ``None`` if it is not here."""
        if self._positions is None:
            self._positions = {value: place for place, value in enumerate(self.to_list())}
        return self._positions.get(name)

    def repeated(self) -> NodeOrEdgeId | None:
        """An id that occurs twice; ``None`` if all are distinct, which is looked at once."""
        values, twice = self.values, None
        if isinstance(values, np.ndarray) and not (self._distinct or (values[1:] > values[:-1]).all()):
            found, counts = np.unique(values, return_counts=True)
            twice = next(iter(found[counts > 1].tolist()), None)
        elif isinstance(values, list) and not self._distinct and len(set(values)) < len(values):
            twice = Counter(values).most_common(1)[0][0]
        self._distinct = twice is None
        return twice

    def take(self, positions: IndexArray) -> list[NodeOrEdgeId]:
        """The ids at the given numbers."""
        if isinstance(self.values, range):
            return [self.values[place] for place in positions.tolist()]
        if isinstance(self.values, np.ndarray):
            return list(self.values[positions].tolist())
        return [self.values[place] for place in positions.tolist()]


def _plain_ids(values: IntArray | Sequence[NodeOrEdgeId]) -> IntArray | list[NodeOrEdgeId]:
    """Integer arrays as they are, everything else as a list of strings and integers."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise DataError(f"Ids must be a vector. Got an array of shape {list(values.shape)}.")
        if values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64):
            return values
    names: list[Any] = values if isinstance(values, list) else [*values]
    if not set(map(type, names)) <= {int, str}:
        names = [name.item() if isinstance(name, np.generic) else name for name in names]
        for place, name in enumerate(names):
            if not isinstance(name, int | str) or isinstance(name, bool):
                raise DataError(
                    f"Every id must be a string or an integer. Got {name!r} at place {place}.",
                    remedy="Convert the ids, for example with str().",
                )
    return names


class IdColumn:
    """A column of ids read chunk by chunk, held in Arrow memory; integers, strings or both."""

    def __init__(self) -> None:
        self.chunks: list[pa.Array | list[NodeOrEdgeId]] = []
        self.length = 0

    def append(self, values: list[NodeOrEdgeId]) -> None:
        """Add a chunk of Python ids."""
        kinds = set(map(type, values))
        chunk: pa.Array | list[NodeOrEdgeId] = values
        if kinds == {int}:
            with suppress(OverflowError):  # integers beyond 64 bits stay Python's
                chunk = _arrow_integers(np.array(values, dtype=np.int64))
        elif kinds == {str}:
            chunk = pa.array(values, type=pa.string())
        self.append_arrow(chunk)

    def append_arrow(self, chunk: pa.Array | list[NodeOrEdgeId]) -> None:
        """Add a chunk that is an Arrow array already (int64 or string)."""
        if len(chunk):
            self.chunks.append(chunk)
            self.length += len(chunk)


def integer_view(chunk: pa.Array) -> npt.NDArray[np.signedinteger[Any]]:
    """The integers of an Arrow array without nulls, in place; ``to_numpy`` would import pandas where it is there."""
    view: npt.NDArray[np.signedinteger[Any]] = np.frombuffer(
        chunk.buffers()[1] or b"", dtype=np.int32 if chunk.type == pa.int32() else np.int64
    )
    return view[chunk.offset : chunk.offset + len(chunk)]


def _arrow_integers(numbers: IntArray) -> pa.Array:
    """An Arrow array in Arrow's own memory, with 32 bits where they suffice: columns of millions are held a while."""
    view = pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
    narrow = numbers.min(initial=0) >= -(2**31) and numbers.max(initial=0) < 2**31
    return pc.cast(view, pa.int32() if narrow else pa.int64())
