"""Ids that are one thing, written in several ways: ``007`` and ``7``, ``12`` and ``12.0``, ``Milk`` and ``milk ``.

A kind of difference is a function that writes an id without it. Two ids that are then equal differ by this kind only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Literal, NamedTuple

Kind = Literal["spaces", "decimals", "zeros", "case"]
_DECIMALS = re.compile(r"([0-9]+)[.,]0+")


class Group(NamedTuple):
    """Ids that differ only by the given kinds.

    Attributes:
        kept: The spelling to keep.
        others: The other spellings.
        doubtful: Whether two of them have leading zeros, so that it is unknown which of them lost some.
    """

    kept: str
    others: tuple[str, ...]
    doubtful: bool = False


def _without_decimals(name: str) -> str:
    match = _DECIMALS.fullmatch(name)
    return match[1] if match else name


def _without_zeros(name: str) -> str:
    return (name.lstrip("0") or "0") if name.isascii() and name.isdigit() else name


KINDS: dict[Kind, Callable[[str], str]] = {
    "spaces": str.strip,
    "decimals": _without_decimals,
    "zeros": _without_zeros,
    "case": str.casefold,
}
"""Each kind with the function that removes it, in the order in which they are applied."""
DIFFERENCES: dict[Kind, str] = {
    "spaces": "spaces around it",
    "decimals": "decimals of zero",
    "zeros": "leading zeros",
    "case": "upper and lower case",
}


def spelling_groups(counts: Mapping[str, int], kinds: Collection[Kind]) -> list[Group]:
    """Return the groups of ids that differ only by the given kinds, in the order of their first members.

    The most frequent spelling is kept. If two are equally frequent, the one with more leading zeros is kept, because
    zeros are lost and not gained, then the first. Spaces and decimals of zero are never kept.

    Args:
        counts: How often each spelling occurs.
        kinds: The kinds of differences to look for.
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        alike[_key(name, kinds)].append(name)
    groups = []
    for names in alike.values():
        if len(names) > 1:
            groups += _groups(names, counts, kinds)
    return groups


def _groups(names: list[str], counts: Mapping[str, int], kinds: Collection[Kind]) -> list[Group]:
    tidy = [kind for kind in kinds if kind in ("spaces", "decimals")]
    frequency: dict[str, int] = defaultdict(int)
    for name in names:
        frequency[_key(name, tidy)] += counts[name]
    padded = [name for name in frequency if _without_zeros(name) != name]
    if "zeros" in kinds and len(padded) > 1:
        rest = spelling_groups({name: counts[name] for name in names}, [kind for kind in kinds if kind != "zeros"])
        return [*rest, Group(names[0], tuple(names[1:]), doubtful=True)]
    kept = max(frequency, key=lambda name: (frequency[name], name[:1] == "0", len(name) if name[:1] == "0" else 0))
    return [Group(kept, tuple(name for name in names if name != kept))]


def _key(name: str, kinds: Collection[Kind]) -> str:
    for kind, simplify in KINDS.items():
        if kind in kinds:
            name = simplify(name)
    return name
