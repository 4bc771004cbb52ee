"""Types used across the package.

Dimensions: ``N`` nodes, ``E`` hyperedges, ``I`` incidences (v, e), ``D`` features. The suffix of a tensor's name gives
the meaning of its rows: none or ``_v`` nodes, ``_e`` hyperedges, ``_ev`` incidences.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
NodeOrEdgeId = str | int
"""An identifier as in the input. ``1`` and ``"1"`` are different ids."""
JsonObject = dict[str, Any]


@runtime_checkable
class ByteWriter(Protocol):
    """A destination for bytes: a file, a compressed file, a checksum."""

    def write(self, data: bytes, /) -> int:
        """Write all of ``data``."""
