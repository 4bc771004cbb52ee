"""Original ids of nodes and hyperedges, and their dense numbers.

Files name nodes and hyperedges by strings or integers; a `Hypergraph` numbers them from 0. `Ids` keeps the names in
order, `IdColumn` collects a column of a file chunk by chunk, and `encode_ids` numbers two columns jointly. ``1`` and
``"1"`` are different ids. Text files have no types, so `integers_if_all_canonical` decides whether ids are integers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
        self._distinct = isinstance(values, range)  # False if not checked yet

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> NodeOrEdgeId: ...
    @overload
    def __getitem__(self, index: slice) -> list[NodeOrEdgeId]: ...
    def __getitem__(self, index: int | slice) -> NodeOrEdgeId | list[NodeOrEdgeId]:
        selected: Any = self.values[index]
        if isinstance(index, slice):
            return list(selected.tolist() if isinstance(selected, np.ndarray) else selected)
        return selected if isinstance(selected, str) else int(selected)

    def __iter__(self) -> Iterator[NodeOrEdgeId]:
        return iter(self.to_list())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids) or len(self) != len(other):
            return False
        if isinstance(self.values, range) and isinstance(other.values, range):
            return self.values == other.values
        return self.to_list() == other.to_list()

    __hash__ = None  # type: ignore[assignment]  # equality compares the content of mutable values

    def __repr__(self) -> str:
        shown = ", ".join(repr(value) for value in self[:3])
        return f"Ids([{shown}{', ...' if len(self) > 3 else ''}], length {len(self)})"

    @property
    def are_numbers(self) -> bool:
        """Whether the ids are 0, 1, ..., n - 1."""
        return isinstance(self.values, range) and self.values == range(len(self.values))

    def to_list(self) -> list[NodeOrEdgeId]:
        """Return all ids as Python strings and integers."""
        return self[:]

    def position(self, name: NodeOrEdgeId) -> int | None:
        """Return the number of an id, or ``None`` if there is no such id."""
        if self._positions is None:
            self._positions = {value: position for position, value in enumerate(self.to_list())}
        return self._positions.get(name)

    def repeated(self) -> NodeOrEdgeId | None:
        """Return an id that occurs twice, or ``None``; the result is cached."""
        values, twice = self.values, None
        if isinstance(values, np.ndarray) and not (self._distinct or (values[1:] > values[:-1]).all()):
            distinct, counts = np.unique(values, return_counts=True)
            twice = next(iter(distinct[counts > 1].tolist()), None)
        elif isinstance(values, list) and not self._distinct and len(set(values)) < len(values):
            twice = Counter(values).most_common(1)[0][0]
        self._distinct = twice is None
        return twice

    def take(self, positions: IndexArray) -> list[NodeOrEdgeId]:
        """Return the ids at the given numbers."""
        if isinstance(self.values, np.ndarray):
            return list(self.values[positions].tolist())
        return [self.values[position] for position in positions.tolist()]


def _plain_ids(values: IntArray | Sequence[NodeOrEdgeId]) -> IntArray | list[NodeOrEdgeId]:
    """Keep integer arrays; convert everything else to a list of strings and integers."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise DataError(f"Ids must be a vector. Got an array of shape {list(values.shape)}.")
        if values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64):
            return values
    names: list[Any] = values if isinstance(values, list) else [*values]
    if not set(map(type, names)) <= {int, str}:
        names = [name.item() if isinstance(name, np.generic) else name for name in names]
        for position, name in enumerate(names):
            if not isinstance(name, int | str) or isinstance(name, bool):
                raise DataError(
                    f"Every id must be a string or an integer. Got {name!r} at position {position}.",
                    remedy="Convert the ids, for example with str().",
                )
    return names


class IdColumn:
    """A column of ids that is read chunk by chunk and held in Arrow memory: integers, strings or both."""

    def __init__(self, chunks: Iterable[pa.Array] = ()) -> None:
        self.chunks: list[pa.Array | list[NodeOrEdgeId]] = []
        self.length = 0
        for chunk in chunks:
            self.append_arrow(chunk)

    def append(self, values: list[NodeOrEdgeId]) -> None:
        """Add a chunk of Python ids."""
        kinds = set(map(type, values))
        chunk: pa.Array | list[NodeOrEdgeId] = values
        if kinds == {int}:
            with suppress(OverflowError):  # integers beyond 64 bits stay Python integers
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
    """View the integers of an Arrow array without nulls; ``to_numpy`` would import pandas where it is installed."""
    view: npt.NDArray[np.signedinteger[Any]] = np.frombuffer(
        chunk.buffers()[1] or b"", dtype=np.int32 if chunk.type == pa.int32() else np.int64
    )
    return view[chunk.offset : chunk.offset + len(chunk)]


def _arrow_integers(numbers: IntArray) -> pa.Array:
    """Copy integers to Arrow's memory, with 32 bits if they suffice, because columns can have millions of entries."""
    view = pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
    narrow = numbers.min(initial=0) >= -(2**31) and numbers.max(initial=0) < 2**31
    return pc.cast(view, pa.int32() if narrow else pa.int64())


def encode_ids(listing: IdColumn, mentions: IdColumn) -> tuple[Ids, IndexArray, IndexArray]:
    """Assign numbers to the ids of a listing (for example a node table) and of a column that mentions them, jointly.

    Listed ids come first, in the order of the listing. Ids that are only mentioned follow: integers in ascending order,
    strings (and mixtures) by first mention. Do not use the columns afterwards: their chunks may be released.

    Args:
        listing: The column whose order the numbers follow.
        mentions: The column of memberships.

    Returns:
        The distinct ids, and the number of each entry of both columns.
    """
    chunks = [*listing.chunks, *mentions.chunks]
    kinds = {chunk.type if isinstance(chunk, pa.Array) else None for chunk in chunks}
    if not chunks:
        return Ids(range(0)), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if kinds <= {pa.int32(), pa.int64()}:
        return _encode_integers(listing, mentions)
    if len(kinds) > 1 or None in kinds:
        return _encode_python(listing, mentions)
    ids, numbers = _encode_strings(pa.chunked_array(chunks))
    return ids, numbers[: listing.length], numbers[listing.length :]


def _encode_integers(listing: IdColumn, mentions: IdColumn) -> tuple[Ids, IndexArray, IndexArray]:
    """Encode integers with a table over their range if that is small, else with their sorted values."""
    columns = [[integer_view(chunk) for chunk in column.chunks] for column in (listing, mentions)]
    low, high = (int(end([end(view) for views in columns for view in views])) for end in (np.min, np.max))
    listed = _first_mentions(np.concatenate([np.zeros(0, dtype=np.int64), *columns[0]]))
    small = 4 * (listing.length + mentions.length) + 2**20
    low = 0 if low >= 0 and high < small else low  # with 0, the integers are positions in the table without a copy
    if high - low >= small:
        values = np.unique(np.concatenate([view for views in columns for view in views]).astype(np.int64))
        rank = _ranks(np.searchsorted(values, listed), np.ones(len(values), dtype=np.bool_))
        numbers = [_look_up(views, lambda view: rank[np.searchsorted(values, view)]) for views in columns]
    else:
        present = np.zeros(high - low + 1, dtype=np.bool_)
        for view in (view for views in columns for view in views):
            present[_positions(view, low)] = True
        rank = _ranks(_positions(listed, low), present)
        numbers = [_look_up(views, lambda view: rank[_positions(view, low)]) for views in columns]
        positions = np.flatnonzero(present)
        rank, values = rank[positions], positions + low
    del columns
    listing.chunks.clear()
    mentions.chunks.clear()
    pa.default_memory_pool().release_unused()
    ids = np.empty(len(values), dtype=np.int64)
    ids[rank] = values
    plain = bool((ids == np.arange(len(ids))).all())
    return _distinct(range(len(ids)) if plain else ids), numbers[0], numbers[1]


def _distinct(values: range | IntArray | list[NodeOrEdgeId]) -> Ids:
    """Return `Ids` without checking again that they are distinct."""
    ids = Ids(values)
    ids._distinct = True
    return ids


def _positions(view: npt.NDArray[np.signedinteger[Any]], low: int) -> npt.NDArray[np.signedinteger[Any]]:
    return view.astype(np.int64) - low if low else view


def _look_up(
    views: Sequence[npt.NDArray[np.signedinteger[Any]]],
    number_of: Callable[[npt.NDArray[np.signedinteger[Any]]], IndexArray],
) -> IndexArray:
    """Look up the numbers of a column view by view, so that each view stays in the processor's cache."""
    length = sum(map(len, views))
    numbers: IndexArray = np.empty(length, dtype=np.int32 if length < 2**31 else np.int64)
    start = 0
    for view in views:
        numbers[start : start + len(view)] = number_of(view)
        start += len(view)
    return numbers


def _first_mentions(numbers: IntArray) -> IntArray:
    values, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)] if len(values) < len(numbers) else numbers


def _ranks(listed: IntArray, present: npt.NDArray[np.bool_]) -> IndexArray:
    """Assign a number to each present entry of a table: listed ones first, the others in ascending order."""
    others = present.copy()
    others[listed] = False
    rank: IndexArray = np.cumsum(others, dtype=np.int32 if len(present) < 2**31 else np.int64)
    rank += len(listed) - 1
    rank[listed] = np.arange(len(listed))
    return rank


def _encode_strings(column: pa.ChunkedArray) -> tuple[Ids, IndexArray]:
    encoded = pc.dictionary_encode(column)
    names = encoded.chunk(encoded.num_chunks - 1).dictionary
    numbers = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
    return _distinct(names.to_pylist()), np.concatenate(numbers)


def _encode_python(listing: IdColumn, mentions: IdColumn) -> tuple[Ids, IndexArray, IndexArray]:
    """Encode mixtures of strings and integers, and integers beyond 64 bits."""
    listed, mentioned = (
        [name for chunk in column.chunks for name in (chunk.to_pylist() if isinstance(chunk, pa.Array) else chunk)]
        for column in (listing, mentions)
    )
    distinct = dict.fromkeys(listed)
    others = [name for name in dict.fromkeys(mentioned) if name not in distinct]
    if all(isinstance(name, int) for name in (*distinct, *others)):
        others.sort()
    ids = _distinct([*distinct, *others])
    number = {name: position for position, name in enumerate(ids)}
    in_listing, in_mentions = (
        np.array([number[name] for name in names], dtype=np.int64) for names in (listed, mentioned)
    )
    return ids, in_listing, in_mentions


_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def plain_integer(text: str) -> int | None:
    """Return the integer of up to 19 digits whose shortest decimal spelling is ``text``; ``None`` for other text."""
    return int(text) if _PLAIN_INTEGER.fullmatch(text) else None


def integers_if_all_canonical(columns: Sequence[IdColumn]) -> None:
    """Convert text columns to integers if every entry is an integer in its plain spelling.

    Text files have no types. ``7`` becomes the integer 7; one ``007``, ``+7``, ``7.0`` or ``n7`` anywhere keeps all of
    the columns text. The plain spelling is the shortest decimal one, so it is enough to compare the total lengths.
    Arrow also reads ``0x1f`` as a number. It can be shorter still for large numbers, so those are searched for an x.
    """
    if any(canonical_integers(column.chunks[0]) is None for column in columns if column.chunks):
        return  # one chunk is enough to decide this, and cheap
    with ThreadPoolExecutor() as pool:
        converted = [list(pool.map(canonical_integers, column.chunks)) for column in columns]
    if all(chunk is not None for chunks in converted for chunk in chunks):
        for column, chunks in zip(columns, converted, strict=True):
            column.chunks = [chunk for chunk in chunks if chunk is not None]


def canonical_integers(texts: pa.Array) -> pa.Array | None:
    """Convert texts to integers; ``None`` if one is not the plain spelling of an integer."""
    try:
        numbers = pc.cast(texts, pa.int64())
    except pa.ArrowInvalid:
        return None
    view = integer_view(numbers)
    if pc.sum(pc.binary_length(texts)).as_py() != _spelled_length(view):
        return None
    could_be_hexadecimal = int(_sizes(view).max(initial=0)) >= 10**9
    if could_be_hexadecimal and pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        return None
    return numbers


def _spelled_length(numbers: npt.NDArray[np.signedinteger[Any]]) -> int:
    """Count the characters of the numbers in plain decimal."""
    size = _sizes(numbers)
    top = int(size.max(initial=0))
    longer = sum(int(np.count_nonzero(size >= 10**digits)) for digits in range(1, len(str(top))))
    return len(numbers) + longer + int(np.count_nonzero(numbers < 0))


def _sizes(numbers: npt.NDArray[np.signedinteger[Any]]) -> npt.NDArray[np.uint64]:
    """Return absolute values as unsigned integers: that of the smallest int64 does not fit in int64."""
    return np.abs(numbers.astype(np.int64, copy=False)).view(np.uint64)
