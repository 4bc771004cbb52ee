"""The records of a HIF section: their JSON form, and the columns they become."""

from __future__ import annotations

from typing import Any, Literal, final

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from edhnn.data.hif import Records, WeightColumn
from edhnn.data.ids import IdColumn
from edhnn.typing import IndexArray, JsonObject


class _Incidence(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    edge: int | str
    node: int | str
    weight: int | float | UnsetType = UNSET
    direction: Literal["head", "tail"] | UnsetType = UNSET
    attrs: dict[str, Any] | UnsetType = UNSET


class _Node(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    node: int | str
    weight: int | float | UnsetType = UNSET
    attrs: dict[str, Any] | UnsetType = UNSET


class _Edge(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    edge: int | str
    weight: int | float | UnsetType = UNSET
    attrs: dict[str, Any] | UnsetType = UNSET


DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "incidences": msgspec.json.Decoder(list[_Incidence]),
    "nodes": msgspec.json.Decoder(list[_Node]),
    "edges": msgspec.json.Decoder(list[_Edge]),
}
_DIRECTION_CODE = {UNSET: 0, "head": 1, "tail": 2}


@final
class Section:
    """A section under way: its columns so far."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0
        self.nodes, self.edges = IdColumn(), IdColumn()
        self.weight: WeightColumn | None = None
        self.directions: list[np.ndarray[tuple[int], np.dtype[np.int8]]] = []
        self.attrs: dict[int, JsonObject] = {}

    def append(self, records: list[Any], text: bytes) -> None:
        """Add decoded records; ``text`` tells at a glance which optional keys cannot be among them."""
        escaped = b"\\" in text
        if self.name != "edges":
            self.nodes.append([record.node for record in records])
        if self.name != "nodes":
            self.edges.append([record.edge for record in records])
        if escaped or b'"weight"' in text:
            self._append_weights([None if record.weight is UNSET else record.weight for record in records])
        elif self.weight is not None:
            self.weight.append_absent(len(records))
        codes = np.zeros(len(records), dtype=np.int8)
        if self.name == "incidences" and (escaped or b'"direction"' in text):
            codes[:] = [_DIRECTION_CODE[record.direction] for record in records]
        self.directions.append(codes)
        if escaped or b'"attrs"' in text:
            found = ((place, record.attrs) for place, record in enumerate(records, self.count))
            self.attrs.update((place, attrs) for place, attrs in found if attrs is not UNSET)
        self.count += len(records)

    def _append_weights(self, weights: list[int | float | None]) -> None:
        if self.weight is None:
            if all(weight is None for weight in weights):
                return
            self.weight = WeightColumn()
            self.weight.append_absent(self.count)
        self.weight.append(weights)

    def records(self, node: IndexArray | None, edge: IndexArray | None) -> Records:
        """The section's columns, its ids numbered."""
        direction = np.concatenate(self.directions) if self.directions else None
        if direction is not None and not direction.any():
            direction = None
        return Records(node, edge, self.weight, direction, self.attrs)
