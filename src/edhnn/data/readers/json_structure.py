"""Where values end in JSON text, found without decoding it.

Quotes and brackets are located all at once with numpy, strings are told apart by the parity of their quotes, and depth
is a running sum. Text that is not JSON gives an answer too; decoding it afterwards tells.
"""

from __future__ import annotations

import re

import numpy as np

from edhnn.typing import BoolArray, IntArray

# What a byte means to the search for record ends: quotes toggle strings, brackets change depth.
_MEANING = np.zeros(256, dtype=np.int8)
_MEANING[[ord("{"), ord("[")]], _MEANING[[ord("}"), ord("]")]], _MEANING[ord('"')] = 1, -1, 2


def _structure(text: bytes) -> tuple[IntArray, IntArray]:
    """Where brackets outside strings stand, and the depth after each, counted from 0 at the start of ``text``."""
    meaning = _MEANING[np.frombuffer(text, dtype=np.uint8)]
    places = np.flatnonzero(meaning)
    kinds = meaning[places]
    quotes = kinds == 2
    if b"\\" in text:
        quotes[quotes] = ~_escaped(text, places[quotes])
        kinds[(kinds == 2) & ~quotes] = 0
    outside = ~quotes & (kinds != 0) & (np.cumsum(quotes) % 2 == 0)
    places = places[outside]
    return places, np.cumsum(kinds[outside], dtype=np.int64)


def _escaped(text: bytes, quotes: IntArray) -> BoolArray:
    """Whether an odd number of backslashes stands before each quote."""
    array = np.frombuffer(text, dtype=np.uint8)
    other = np.where(array == ord("\\"), -1, np.arange(len(array)))
    last_other = np.maximum.accumulate(other)
    before = np.where(quotes > 0, last_other[quotes - 1], -1)
    return np.asarray((quotes - 1 - before) % 2 == 1)


def last_record_end(text: bytes) -> tuple[int, bool]:
    """Within an array: the end of its last complete object, and whether the array closes in ``text``.

    If it closes, the end is the place of its closing bracket.
    """
    places, depth = _structure(text)
    closing = np.flatnonzero(depth < 0)
    if len(closing):
        return int(places[closing[0]]), True
    ends = np.flatnonzero(depth == 0)
    return (int(places[ends[-1]]) + 1, False) if len(ends) else (0, False)


def value_end(text: bytes) -> int:
    """The end of the JSON value at the start of ``text``; 0 if it does not end there."""
    if text[:1] in (b"{", b"["):
        places, depth = _structure(text)
        ends = np.flatnonzero(depth <= 0)
        return int(places[ends[0]]) + 1 if len(ends) else 0
    if text[:1] == b'"':
        found = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL).match(text)
        return found.end() if found else 0
    bare = re.compile(rb"[^,}\s]+(?=[,}\s])").match(text)
    return bare.end() if bare else 0
