"""A HIF document: everything the Hypergraph Interchange Format holds, in columns.

HIF is the community's JSON format for hypergraphs. A `Hypergraph` cannot hold all of it: directions, attributes,
metadata and repeated records stay here and are written back. Records keep their order; ids are numbered
jointly over the document, those of the `nodes` (`edges`) section first, then the rest (see `edhnn.data.ids`).

The rules, written from the standard: `incidences` is required; ids are strings or integers (``1`` and ``"1"`` differ);
weights are numbers; `direction` is `head` or `tail`; `attrs` and `metadata` are free objects; no other key is allowed.

A key that stands twice at the top of a document is refused. Within a record, `attrs` or `metadata` JSON leaves open
what a repeated key means, and here, as in most readers, the last one counts: ``{"edge": 1, "node": 1, "node": 2}`` is
one record, of node 2. Finding them would take a second, slower decoder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, final

import numpy as np
import torch

from edhnn.data.ids import Ids
from edhnn.errors import DataError
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.typing import BoolArray, FloatArray, IndexArray, JsonObject

NetworkType = Literal["undirected", "directed", "asc"]
Number = int | float
DIRECTIONS = ("head", "tail")
_EXACT = 2**53


@final
@dataclass(slots=True, eq=False)
class HifDocument:
    """A HIF document in memory; `read_hif` makes it, `write_hif` writes it back without loss.

    Attributes:
        node_ids: The distinct node ids.
        edge_ids: The distinct hyperedge ids.
        incidences: The memberships.
        nodes: The `nodes` section, ``None`` if the document has none.
        edges: The `edges` section, ``None`` if the document has none.
        network_type: `undirected`, `directed`, `asc`, or ``None`` if not said.
        metadata: The free object, ``None`` if not there.
    """

    node_ids: Ids
    edge_ids: Ids
    incidences: Records
    nodes: Records | None = None
    edges: Records | None = None
    network_type: NetworkType | None = None
    metadata: JsonObject | None = None

    def hypergraph(self) -> Hypergraph:
        """The undirected hypergraph: memberships, hyperedge weights, incidence weights (1 where not given).

        Raises:
            DataError: if a weight is negative; the record is named.
        """
        assert self.incidences.node is not None and self.incidences.edge is not None
        incidence_weight = _checked("incidences", self.incidences.weight)
        edge_weight = None
        if self.edges is not None and self.edges.weight is not None:
            assert self.edges.edge is not None
            given = _checked("edges", self.edges.weight)
            assert given is not None
            edge_weight = np.full(len(self.edge_ids), -np.inf)
            known = ~np.isnan(self.edges.weight.values())
            np.maximum.at(edge_weight, self.edges.edge[known], given[known])
            edge_weight[np.isinf(edge_weight)] = 1.0
        return Hypergraph(
            torch.from_numpy(self.incidences.node),
            torch.from_numpy(self.incidences.edge),
            len(self.node_ids),
            len(self.edge_ids),
            edge_weight=None if edge_weight is None else torch.from_numpy(edge_weight),
            incidence_weight=None if incidence_weight is None else torch.from_numpy(incidence_weight),
        )

    def has_directions(self) -> bool:
        """Whether any incidence says `head` or `tail`."""
        return self.incidences.direction is not None


@final
@dataclass(slots=True, eq=False)
class Records:
    """One section of a document, in columns.

    Attributes:
        node: Node number of each record; absent in `edges`.
        edge: Hyperedge number of each record; absent in `nodes`.
        weight: Weights; ``None`` if no record has one.
        direction: 0 none, 1 head, 2 tail; ``None`` if no record has one.
        attrs: The `attrs` object of the records that have one.
    """

    node: IndexArray | None = None
    edge: IndexArray | None = None
    weight: WeightColumn | None = None
    direction: np.ndarray[tuple[int], np.dtype[np.int8]] | None = None
    attrs: dict[int, JsonObject] = field(default_factory=dict)

    @property
    def index(self) -> IndexArray | None:
        """What the records are about: node numbers in `nodes`, hyperedge numbers in `edges`."""
        return self.node if self.node is not None else self.edge

    def __len__(self) -> int:
        return 0 if self.index is None else len(self.index)


@final
class WeightColumn:
    """Optional numbers, one per record: 1 stays the integer 1, 1.0 the real 1.0, and absence stays absence."""

    def __init__(self) -> None:
        self._values: list[FloatArray] = []
        self._whole: list[BoolArray] = []
        self._beyond: dict[int, int] = {}
        self.length = 0

    def append(self, weights: list[Number | None]) -> None:
        """Add a chunk of weights, ``None`` where a record has none."""
        for place, weight in enumerate(weights):
            if isinstance(weight, int) and abs(weight) > _EXACT:
                self._beyond[self.length + place] = weight
        self._append(
            np.array([np.nan if weight is None else _as_float(weight) for weight in weights], dtype=np.float64),
            np.array([isinstance(weight, int) for weight in weights], dtype=np.bool_),
        )

    def append_absent(self, count: int) -> None:
        """Add records without a weight."""
        self._append(np.full(count, np.nan), np.zeros(count, dtype=np.bool_))

    def _append(self, values: FloatArray, whole: BoolArray) -> None:
        self._values.append(values)
        self._whole.append(whole)
        self.length += len(values)

    def values(self) -> FloatArray:
        """All weights as floats, NaN where absent."""
        self._values = [np.concatenate(self._values)] if self._values else [np.zeros(0)]
        return self._values[0]

    def numbers(self, start: int, stop: int) -> list[Number | None]:
        """The weights of some records as they were written."""
        self._whole = [np.concatenate(self._whole)] if self._whole else [np.zeros(0, dtype=np.bool_)]
        floats, whole = self.values()[start:stop].tolist(), self._whole[0][start:stop].tolist()
        return [
            None if value != value else self._whole_number(start + place, value) if is_whole else value
            for place, (value, is_whole) in enumerate(zip(floats, whole, strict=True))
        ]

    def _whole_number(self, place: int, value: float) -> int:
        return self._beyond[place] if place in self._beyond else int(value)


def _as_float(weight: Number) -> float:
    """The nearest float; infinite for an integer beyond all floats, whose exact value is kept beside it."""
    try:
        return float(weight)
    except OverflowError:
        return math.inf if weight > 0 else -math.inf


def _checked(section: str, weight: WeightColumn | None) -> FloatArray | None:
    if weight is None:
        return None
    values = weight.values()
    wrong = np.flatnonzero((values < 0) | np.isinf(values))
    if len(wrong):
        raise DataError(
            f"A hypergraph's weights must be finite and 0 or more. Got {values[wrong[0]]}.",
            where=f"{section}[{wrong[0]}]",
            remedy="Mend the weight, or keep the document as HIF.",
        )
    return np.where(np.isnan(values), 1.0, values)
