"""Identifiers as their owner wrote them, and their translation to dense numbers.

Files name nodes and hyperedges by strings or integers; a `Hypergraph` numbers them from 0. `Ids` keeps the names in
order, `IdColumn` collects a file's column of them chunk by chunk, and `encode_ids` numbers several columns jointly,
in order of first mention. Integers and strings never meet: ``1`` and ``"1"`` are two ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edhnn.typing import IntArray, NodeOrEdgeId

_CANONICAL_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"


class Ids(Sequence[NodeOrEdgeId]):
    """The distinct ids of nodes or hyperedges, in the order of their numbers.

    Args:
        values: ``range(n)`` when the ids are the numbers themselves, an integer array, or a list.
    """

    __slots__ = ("_positions", "values")

    def __init__(self, values: range | IntArray | list[NodeOrEdgeId] | list[str] | list[int]) -> None:
        self.values = values
        self._positions: dict[NodeOrEdgeId, int] | None = None

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

    def take(self, positions: IntArray) -> list[NodeOrEdgeId]:
        """The ids at the given numbers."""
        if isinstance(self.values, range):
            return [self.values[place] for place in positions.tolist()]
        if isinstance(self.values, np.ndarray):
            return list(self.values[positions].tolist())
        return [self.values[place] for place in positions.tolist()]


class IdColumn:
    """A column of ids read chunk by chunk, held in Arrow memory; integers, strings or both."""

    def __init__(self) -> None:
        self.chunks: list[pa.Array | list[NodeOrEdgeId]] = []
        self.length = 0

    def append(self, values: list[NodeOrEdgeId]) -> None:
        """Add a chunk of Python ids."""
        chunk: pa.Array | list[NodeOrEdgeId]
        try:
            chunk = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # mixed kinds, or beyond 64 bits
            chunk = values
        self.append_arrow(chunk)

    def append_arrow(self, chunk: pa.Array | list[NodeOrEdgeId]) -> None:
        """Add a chunk that is an Arrow array already (int64 or string)."""
        if len(chunk):
            self.chunks.append(chunk)
            self.length += len(chunk)


def encode_ids(columns: Sequence[IdColumn]) -> tuple[Ids, list[IntArray]]:
    """Number the ids of several columns jointly, in order of first mention.

    Args:
        columns: The columns, in the order in which their ids shall be numbered.

    Returns:
        The distinct ids, and for each column the numbers of its entries.
    """
    chunks = [chunk for column in columns for chunk in column.chunks]
    kinds = {chunk.type if isinstance(chunk, pa.Array) else None for chunk in chunks}
    if not chunks:
        ids, numbers = Ids(range(0)), np.zeros(0, dtype=np.int64)
    elif len(kinds) == 1 and None not in kinds:
        ids, numbers = _encode_arrow(pa.chunked_array(chunks))
    else:
        ids, numbers = _encode_python(chunks)
    bounds = np.cumsum([0, *(column.length for column in columns)])
    return ids, [numbers[start:stop] for start, stop in pairwise(bounds)]


def integers_if_all_canonical(columns: Sequence[IdColumn]) -> None:
    """Turn text columns into integers where every entry is an integer in its plain spelling.

    Text files carry no types. ``7`` becomes the integer 7; one ``007``, ``7.0`` or ``n7`` anywhere keeps all of
    the columns text.
    """
    chunks = [chunk for column in columns for chunk in column.chunks]
    if all(pc.all(pc.match_substring_regex(chunk, _CANONICAL_INTEGER)).as_py() for chunk in chunks):
        for column in columns:
            column.chunks = [pc.cast(chunk, pa.int64()) for chunk in column.chunks]


def _encode_arrow(column: pa.ChunkedArray) -> tuple[Ids, IntArray]:
    encoded = pc.dictionary_encode(column)
    names = encoded.chunk(encoded.num_chunks - 1).dictionary
    numbers = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
    if pa.types.is_integer(names.type):
        values = names.to_numpy().astype(np.int64)
        plain = bool((values == np.arange(len(values))).all())
        return Ids(range(len(values)) if plain else values), numbers.astype(np.int64)
    return Ids(names.to_pylist()), numbers.astype(np.int64)


def _encode_python(chunks: Sequence[pa.Array | list[NodeOrEdgeId]]) -> tuple[Ids, IntArray]:
    positions: dict[NodeOrEdgeId, int] = {}
    numbers = [
        positions.setdefault(name, len(positions))
        for chunk in chunks
        for name in (chunk.to_pylist() if isinstance(chunk, pa.Array) else chunk)
    ]
    return Ids(list(positions)), np.array(numbers, dtype=np.int64)
