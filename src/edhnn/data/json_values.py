"""What JSON can hold: plain values and finite numbers. Asked first, as encoders make a null of infinity and NaN."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.errors import DataError
from edhnn.typing import JsonObject


def plain(value: Any) -> Any:
    """Arrays and their scalars as lists and numbers; for encoders, which ask about what they do not know."""
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not")


def need_finite_attributes(dataset: NodeDataset, holder: str) -> None:
    """A data error if an attribute holds an infinity or NaN, however deep in it.

    Args:
        dataset: The dataset.
        holder: The format, for the error.
    """
    for kind, ids, columns in (
        ("node", dataset.node_ids, dataset.node_attributes),
        ("hyperedge", dataset.edge_ids, dataset.edge_attributes),
    ):
        for name, column in columns.items():
            for place, value in enumerate(column):
                wrong = not_finite(value)
                if wrong is not None:
                    raise DataError(
                        f"{holder} holds finite numbers only. The {kind} attribute '{name}' has {wrong}.",
                        where=f"{kind} {ids[place]!r}",
                        remedy="Put None where nothing is known, or leave the attribute out.",
                    )


def not_finite(value: Any) -> float | None:
    """The first infinity or NaN in a value, its lists and its dictionaries; ``None`` if there is none."""
    if isinstance(value, np.ndarray | np.generic | Tensor):
        value = value.tolist()
    if isinstance(value, float):
        return None if math.isfinite(value) else value
    if isinstance(value, str | int | None):
        return None
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple | set) else ()
    return next((wrong for part in parts if (wrong := not_finite(part)) is not None), None)


def what_json_holds(found: Mapping[str, Any], above: str = "") -> tuple[JsonObject, list[str]]:
    """The entries that JSON holds, arrays as lists, and the names of the others, those of inner ones after a dot."""
    held: JsonObject = {}
    lost: list[str] = []
    for key, value in found.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping) and all(isinstance(inner, str) for inner in value):
            held[key], inside = what_json_holds(value, f"{name}.")
            lost += inside
            continue
        try:
            text = msgspec.json.encode(value, enc_hook=plain)
        except (TypeError, ValueError, RecursionError):
            lost.append(name)
            continue
        if not_finite(value) is None:
            held[key] = msgspec.json.decode(text)
        else:
            lost.append(name)
    return held, lost
