"""Guess from their names which columns of an incidence table are the node, the hyperedge and the weight.

A name is split into words, ``StockCode`` into stock and code, and words such as code, no and id are removed. What
remains has a place on one line, from what groups others (an order, a committee) to what is grouped (a product, an
author). Of two columns the one further along is the node: a user is the node beside a group, and the hyperedge beside a
movie. The guess is certain only if the places of the two do not overlap, and no third column has a place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

_Place = tuple[float, float]
_HYPEREDGE: Final[_Place] = (-9, -9)
_CONTAINER: Final[_Place] = (0, 0)
_GROUP: Final[_Place] = (0, 0.1)
_CONSUMER: Final[_Place] = (1, 1)
_WORK: Final[_Place] = (2, 2)
_MAKER: Final[_Place] = (3, 3)
_PERSON: Final[_Place] = (1, 3)
_THING: Final[_Place] = (2, 3)
_TOPIC: Final[_Place] = (0, 3)
_UNKNOWN: Final[_Place] = (0.5, 3)
_NODE: Final[_Place] = (9, 9)

_WORDS: Final[dict[_Place, str]] = {
    _NODE: "node vertex vertices v",
    _HYPEREDGE: "hyperedge edge e he",
    _CONTAINER: (
        "order invoice transaction txn tx basket cart receipt bill purchase session visit committee subcommittee paper "
        "publication trip hypergraph rollcall shipment delivery ticket prescription query playlist recipe thread email"
    ),
    _GROUP: (
        "sale group event meeting team squad club company firm organisation organization org institution board project "
        "complex pathway module cluster community course lecture room conversation chat mail message post question "
        "quiz party chamber coalition circle channel subreddit forum bundle reaction panel trial study experiment case "
        "incident crime encounter admission set family net crew department school hospital document doc contract "
        "patent class collaboration gang"
    ),
    _CONSUMER: (
        "user customer client buyer shopper visitor viewer reader reviewer rater subscriber patient guest consumer "
        "account cust listener subject household"
    ),
    _WORK: "movie film book song track show series game video article album app page url website title anime",
    _MAKER: (
        "author coauthor writer actor actress artist director musician composer scientist researcher inventor player "
        "athlete student pupil employee worker legislator senator representative politician deputy attendee "
        "participant passenger speaker developer contributor teacher suspect official lawyer"
    ),
    _PERSON: "person people member individual human friend sender recipient",
    _THING: (
        "product item sku stock asin isbn upc ean gtin material part component ingredient gene protein drug medication "
        "compound chemical metabolite symptom disease diagnosis phenotype mutation species animal plant taxon skill "
        "merchandise goods good article"
    ),
    _TOPIC: "tag keyword genre category topic word term token interest hobby",
}
_PLACES: Final[dict[str, _Place]] = {word: place for place, words in _WORDS.items() for word in words.split()}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ID_WORDS: Final = _words("id ids no nr num number code key uuid guid pk idx index ref identifier sk")
_NAME_WORDS: Final = _words("name names label title description desc")
_OTHER_WORDS: Final = _words("the of unique original internal external parent anonymous")
_NEVER_IDS: Final = _words(
    "price amount qty quantity date time datetime timestamp ts rating score value year month day count total cost "
    "description comment review text city country region state zip postcode colour color size age gender sex email "
    "url currency discount tax status kind type label class category target y x lat lon latitude longitude"
)
_WEIGHTS: Final = ("weight", "w", "weights")
_PARTS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_A-Za-z]+")


class ColumnGuess(NamedTuple):
    """A guess of the columns of an incidence table.

    Attributes:
        node: The node column; ``None`` if nothing indicates it.
        edge: The hyperedge column, likewise.
        weight: The weight column, if there is one.
        certain: Whether the names decide which is the node and which the hyperedge.
    """

    node: str | None
    edge: str | None
    weight: str | None
    certain: bool


class _Column(NamedTuple):
    """A column with its place, and how much its name looks like that of an id."""

    name: str
    place: _Place | None
    likeness: int

    @property
    def bounds(self) -> _Place:
        return self.place or _UNKNOWN


def guess_columns(
    columns: Sequence[str],
    *,
    node: str | None = None,
    edge: str | None = None,
    weight: str | None = None,
    node_ids: str | None = None,
) -> ColumnGuess:
    """Guess the columns of an incidence table from their names.

    Args:
        columns: The names.
        node: The node column, if it is known.
        edge: The hyperedge column, if it is known.
        weight: The weight column, if it is known.
        node_ids: The name of the id column in the table of nodes; a column of that name is the node.

    Example:
        >>> from edhnn.io import guess_columns
        >>> guess_columns(["InvoiceNo", "StockCode", "Quantity"])
        ColumnGuess(node='StockCode', edge='InvoiceNo', weight=None, certain=True)
    """
    free = [name for name in columns if name not in (node, edge, weight)]
    if weight is None:
        weight = next((name for word in _WEIGHTS for name in free if name.lower() == word), None)
        free = [name for name in free if name != weight]
    if node is not None and edge is not None:
        return ColumnGuess(node, edge, weight, certain=True)
    found = [_examine(name, node_ids) for name in free]
    if node is not None or edge is not None:
        other = _other(found, is_node=edge is not None)
        certain = len(free) == 1 or (other is not None and other.place is not None)
        name = None if other is None else other.name
        return ColumnGuess(node or name, edge or name, weight, certain)
    found = _without_bare_groups(found)
    pair = _pair(found)
    if pair is None:
        return ColumnGuess(None, None, weight, certain=False)
    first, second = pair
    known = _distinct_things(column for column in found if column.place is not None)
    certain = known <= 2 and (first.bounds[0] > second.bounds[1])
    if first.place is _NODE and second.place is _HYPEREDGE:
        certain = True
    return ColumnGuess(first.name, second.name, weight, certain)


def may_hold_ids(name: str) -> bool:
    """Return whether a name can be that of a column of ids: not a price, not a date."""
    return name.strip() != "" and not _NEVER_IDS.intersection(_split(name)[-1:])


def _without_bare_groups(found: list[_Column]) -> list[_Column]:
    """Leave out ``Department`` beside ``InvoiceNo`` and ``StockCode``: more likely a property than an id."""
    if sum(column.place is not None and column.likeness > 0 for column in found) < 2:
        return found
    return [column for column in found if column.place not in (_GROUP, _TOPIC) or column.likeness > 0]


def _other(found: list[_Column], *, is_node: bool) -> _Column | None:
    """Return the column that is most likely the node, or the hyperedge, when the other one is known."""
    usable = [column for column in found if may_hold_ids(column.name)] or found
    known = [column for column in usable if column.place is not None] or [
        column for column in usable if column.likeness > 0
    ]
    side = max if is_node else min
    return side(known or usable, key=_middle, default=None) if known or len(usable) == 1 else None


def _pair(found: list[_Column]) -> tuple[_Column, _Column] | None:
    """Return the node and the hyperedge; ``None`` if too many columns are possible and no name is known."""
    usable = [column for column in found if column.place is not None or may_hold_ids(column.name)]
    usable = usable if len(usable) >= 2 else found
    known = [column for column in usable if column.place is not None]
    if len(known) < 2:
        like = [column for column in usable if column.place is not None or column.likeness > 0]
        known = like if len(like) >= 2 else usable
        if len(known) > 2 and all(column.place is None for column in known):
            return None
        if len(known) > 2:  # one name is known: the next possible column is the other
            one = next(column for column in known if column.place is not None)
            known = [one, next(column for column in known if column is not one)]
            known.sort(key=found.index)
    if len(known) < 2:
        return None
    node = max(known, key=lambda column: (_middle(column), column.likeness, -len(_split(column.name))))
    rest = [column for column in known if column is not node]
    if node.place is not None:  # a product's name beside its number is no hyperedge
        rest = [column for column in rest if column.place != node.place] or rest
    edge = min(rest, key=lambda column: (_middle(column), -column.likeness))
    return node, edge


def _distinct_things(columns: Iterable[_Column]) -> int:
    """Count the things that columns name; the number and the name of a product are one."""
    return len({(column.place, _thing(column.name)) for column in columns})


def _middle(column: _Column) -> float:
    return sum(column.bounds) / 2


def _examine(name: str, node_ids: str | None) -> _Column:
    words = _split(name)
    likeness = 1 if words and words[-1] in _ID_WORDS else -1 if len(words) > 1 and words[-1] in _NAME_WORDS else 0
    if node_ids is not None and name == node_ids and name.lower() not in _ID_WORDS:
        return _Column(name, _NODE, 1)
    thing = _thing(name)
    place = _PLACES.get(thing) if thing else None
    if place is None and thing:
        for ending in ("id", "no", "nr", "num", "number", "code", "key", "name"):
            base = _singular(thing.removesuffix(ending))
            if thing.endswith(ending) and base in _PLACES:  # userid, stockcode
                return _Column(name, _PLACES[base], -1 if ending == "name" else 1)
    return _Column(name, place, likeness)


def _thing(name: str) -> str:
    """Return the word for what a column holds: stock of ``StockCode``, member of ``committee_members``."""
    words = [_singular(word) for word in _split(name)]
    while len(words) > 1 and (words[-1] in _ID_WORDS or words[-1] in _NAME_WORDS or words[-1] in _OTHER_WORDS):
        words.pop()
    return words[-1] if words else ""


def _split(name: str) -> list[str]:
    return [word.lower() for word in _PARTS.findall(name)]


def _singular(word: str) -> str:
    if word in _PLACES or word in _ID_WORDS:
        return word
    for ending, other in (("ies", "y"), ("xes", "x"), ("s", "")):
        if word.endswith(ending) and word.removesuffix(ending) + other in _PLACES:
            return word.removesuffix(ending) + other
    return word
