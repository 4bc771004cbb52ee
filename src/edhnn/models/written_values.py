"""Values as files and command lines write them, turned into what a frozen configuration declares."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from edhnn.errors import UsageError


def declared(config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with whole numbers made real, and lists made tuples, where the configuration's default is one.

    NumPy's scalars become Python's, so that they can be written down.

    Args:
        config: A dataclass; its defaults say what each field is.
        values: Values by field.

    Returns:
        The values, ready for the dataclass.

    Raises:
        UsageError: if a value is of another kind than its field, or not finite.
    """
    kinds = {field.name: type(field.default) for field in fields(config)}
    return {name: _as(kinds.get(name, type(None)), name, plain(value)) for name, value in values.items()}


def plain(value: Any) -> Any:
    """A NumPy scalar as Python's; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _as(kind: type, name: str, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) <= sys.float_info.max else math.inf
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"'{name}' must be a finite number. Got {value}.")
    if kind is tuple and isinstance(value, list):
        return tuple(value)
    if kind in (int, float, bool, str) and type(value) is not kind:
        raise UsageError(f"'{name}' must be of type {kind.__name__}. Got {value!r}.")
    return value
