"""A document in the Hypergraph Interchange Format (HIF), in columns.

HIF is the community's JSON format for hypergraphs. A `Hypergraph` cannot store all of it: a `HifDocument` keeps
directions, attributes, metadata and duplicate records and writes them back. Records keep their order. Ids are numbered
jointly over the document, those of the `nodes` (`edges`) section first, then the rest (see `edhnn.data.ids`).

The rules of the standard: `incidences` is required; ids are strings or integers (``1`` and ``"1"`` differ); weights are
numbers; `direction` is `head` or `tail`; `attrs` and `metadata` are arbitrary objects; no other key is allowed.

A duplicate key at the top level of a document is an error. JSON does not define the meaning of a duplicate key within a
record, `attrs` or `metadata`. Here, as in most readers, the last one wins: ``{"edge": 1, "node": 1, "node": 2}`` is one
record, of node 2. Detecting such keys would need a second, slower decoder.
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
    """A HIF document in memory. `read_hif` returns one, and `write_hif` writes it without loss.

    Attributes:
        node_ids: The distinct node ids.
        edge_ids: The distinct hyperedge ids.
        incidences: The memberships.
        nodes: The `nodes` section, ``None`` if missing.
        edges: The `edges` section, ``None`` if missing.
        network_type: `undirected`, `directed`, `asc`, or ``None`` if missing.
        metadata: The metadata, an arbitrary object, ``None`` if missing.
    """

    node_ids: Ids
    edge_ids: Ids
    incidences: Records
    nodes: Records | None = None
    edges: Records | None = None
    network_type: NetworkType | None = None
    metadata: JsonObject | None = None

    def hypergraph(self) -> Hypergraph:
        """Return the undirected hypergraph with hyperedge and incidence weights (1 where missing).

        Raises:
            DataError: if a weight is negative or infinite. The message names the record.
        """
        assert self.incidences.node is not None and self.incidences.edge is not None
        incidence_weight = _checked("incidences", self.incidences.weight)
        edge_weight = None
        if self.edges is not None and self.edges.weight is not None:
            assert self.edges.edge is not None
            values = _checked("edges", self.edges.weight)
            assert values is not None
            edge_weight = np.full(len(self.edge_ids), -np.inf)
            present = ~np.isnan(self.edges.weight.values())
            np.maximum.at(edge_weight, self.edges.edge[present], values[present])
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
        """Return whether any incidence has the direction `head` or `tail`."""
        return self.incidences.direction is not None


@final
@dataclass(slots=True, eq=False)
class Records:
    """One section of a document, in columns.

    Attributes:
        node: Node number of each record; ``None`` in `edges`.
        edge: Hyperedge number of each record; ``None`` in `nodes`.
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
        """Node numbers in `nodes`, hyperedge numbers in `edges`."""
        return self.node if self.node is not None else self.edge

    def __len__(self) -> int:
        return 0 if self.index is None else len(self.index)


@final
class WeightColumn:
    """Optional numbers, one per record. The integer 1, the float 1.0 and a missing number stay different."""

    def __init__(self) -> None:
        self._values: list[FloatArray] = []
        self._is_integer: list[BoolArray] = []
        self._large_integers: dict[int, int] = {}  # floats cannot store them exactly
        self.length = 0

    def append(self, weights: list[Number | None]) -> None:
        """Append weights, ``None`` where a record has none."""
        for number, weight in enumerate(weights, start=self.length):
            if isinstance(weight, int) and abs(weight) > _EXACT:
                self._large_integers[number] = weight
        self._values.append(
            np.array([np.nan if weight is None else _as_float(weight) for weight in weights], dtype=np.float64)
        )
        self._is_integer.append(np.array([isinstance(weight, int) for weight in weights], dtype=np.bool_))
        self.length += len(weights)

    def values(self) -> FloatArray:
        """Return all weights as floats, NaN where missing."""
        self._values = [np.concatenate([np.zeros(0), *self._values])]
        return self._values[0]

    def numbers(self, start: int, stop: int) -> list[Number | None]:
        """Return the weights of the records from ``start`` to ``stop`` with their original types."""
        self._is_integer = [np.concatenate([np.zeros(0, dtype=np.bool_), *self._is_integer])]
        weights: list[Number | None] = []
        values, is_integer = self.values()[start:stop].tolist(), self._is_integer[0][start:stop].tolist()
        for number, value in enumerate(values):
            if value != value:
                weights.append(None)
            elif not is_integer[number]:
                weights.append(value)
            else:
                large = self._large_integers.get(start + number)
                weights.append(int(value) if large is None else large)
        return weights


def _as_float(weight: Number) -> float:
    """Return the nearest float, or infinity for an integer beyond all floats."""
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
            f"The weights of a hypergraph must be finite and 0 or more. Got {values[wrong[0]]}.",
            where=f"{section}[{wrong[0]}]",
            remedy="Correct the weight, or process the file as a HIF document only.",
        )
    return np.where(np.isnan(values), 1.0, values)
