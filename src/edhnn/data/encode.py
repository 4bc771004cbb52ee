"""Ids to dense numbers: the columns of a listing and of its mentions numbered jointly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edhnn.data.ids import IdColumn, Ids, integer_view
from edhnn.typing import IndexArray, IntArray, NodeOrEdgeId


def encode_ids(listing: IdColumn, mentions: IdColumn) -> tuple[Ids, IndexArray, IndexArray]:
    """Number the ids of a listing (a node table, say) and of a column that mentions them, jointly.

    Listed ids come first, in the order of the listing. Ids only mentioned follow: integers in ascending order,
    strings (and mixtures) by first mention. Both columns are consumed.

    Args:
        listing: A column whose order counts.
        mentions: A column of memberships.

    Returns:
        The distinct ids, and the numbers of both columns' entries.
    """
    chunks = [*listing.chunks, *mentions.chunks]
    kinds = {chunk.type if isinstance(chunk, pa.Array) else None for chunk in chunks}
    if kinds <= {pa.int32(), pa.int64()} and chunks:
        return _encode_integers(listing, mentions)
    if not chunks:
        return Ids(range(0)), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if len(kinds) > 1 or None in kinds:
        return _encode_python(listing, mentions)
    ids, numbers = _encode_strings(pa.chunked_array(chunks))
    return ids, numbers[: listing.length], numbers[listing.length :]


def _encode_integers(listing: IdColumn, mentions: IdColumn) -> tuple[Ids, IndexArray, IndexArray]:
    """Integers through a table over their range where that is small, through their sorted values where not."""
    columns = [[integer_view(chunk) for chunk in column.chunks] for column in (listing, mentions)]
    low, high = (int(end([end(view) for views in columns for view in views])) for end in (np.min, np.max))
    listed = _first_mentions(np.concatenate([np.zeros(0, dtype=np.int64), *columns[0]]))
    small = 4 * (listing.length + mentions.length) + 2**20
    low = 0 if low >= 0 and high < small else low  # then the integers are places in the table as they are
    if high - low >= small:
        values = np.unique(np.concatenate([view for views in columns for view in views]).astype(np.int64))
        rank = _ranks(np.searchsorted(values, listed), np.ones(len(values), dtype=np.bool_))
        numbers = [_gathered(views, lambda view: rank[np.searchsorted(values, view)]) for views in columns]
    else:
        present = np.zeros(high - low + 1, dtype=np.bool_)
        for view in (view for views in columns for view in views):
            present[_places(view, low)] = True
        rank = _ranks(_places(listed, low), present)
        numbers = [_gathered(views, lambda view: rank[_places(view, low)]) for views in columns]
        found = np.flatnonzero(present)
        rank, values = rank[found], found + low
    del columns
    listing.chunks.clear()
    mentions.chunks.clear()
    pa.default_memory_pool().release_unused()
    ids = np.empty(len(values), dtype=np.int64)
    ids[rank] = values
    plain = bool((ids == np.arange(len(ids))).all())
    return _distinct(range(len(ids)) if plain else ids), numbers[0], numbers[1]


def _distinct(values: range | IntArray | list[NodeOrEdgeId]) -> Ids:
    """Ids that are known to be distinct."""
    ids = Ids(values)
    ids._distinct = True
    return ids


def _places(view: npt.NDArray[np.signedinteger[Any]], low: int) -> npt.NDArray[np.signedinteger[Any]]:
    return view.astype(np.int64) - low if low else view


def _gathered(
    views: Sequence[npt.NDArray[np.signedinteger[Any]]],
    look_up: Callable[[npt.NDArray[np.signedinteger[Any]]], IndexArray],
) -> IndexArray:
    """The numbers of a column, looked up view by view, which stays in the processor's cache."""
    length = sum(map(len, views))
    numbers: IndexArray = np.empty(length, dtype=np.int32 if length < 2**31 else np.int64)
    place = 0
    for view in views:
        numbers[place : place + len(view)] = look_up(view)
        place += len(view)
    return numbers


def _first_mentions(numbers: IntArray) -> IntArray:
    values, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)] if len(values) < len(numbers) else numbers


def _ranks(listed: IntArray, present: npt.NDArray[np.bool_]) -> IndexArray:
    """The number of each present entry of a table: listed ones first, the others in ascending order."""
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
    """Mixtures, and integers beyond 64 bits."""
    listed, mentioned = (
        [name for chunk in column.chunks for name in (chunk.to_pylist() if isinstance(chunk, pa.Array) else chunk)]
        for column in (listing, mentions)
    )
    positions: dict[NodeOrEdgeId, int] = {name: place for place, name in enumerate(dict.fromkeys(listed))}
    others = [name for name in dict.fromkeys(mentioned) if name not in positions]
    if all(isinstance(name, int) for name in (*positions, *others)):
        others.sort()
    positions |= {name: place for place, name in enumerate(others, len(positions))}
    in_listing, in_mentions = (
        np.array([positions[name] for name in names], dtype=np.int64) for names in (listed, mentioned)
    )
    return _distinct(list(positions)), in_listing, in_mentions
