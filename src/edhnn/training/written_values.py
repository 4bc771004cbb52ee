"""Values as files and command lines write them, turned into what a frozen configuration declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from edhnn.errors import UsageError


def declared(config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with whole numbers made real, and lists made tuples, where the configuration's default is one.

    Args:
        config: A dataclass; its defaults say what each field is.
        values: Values by field.

    Returns:
        The values, ready for the dataclass.

    Raises:
        UsageError: if a value is of another kind than its field.
    """
    kinds = {field.name: type(field.default) for field in fields(config)}
    return {name: _as(kinds.get(name, type(None)), name, value) for name, value in values.items()}


def _as(kind: type, name: str, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is tuple and isinstance(value, list):
        return tuple(value)
    if kind in (int, float, bool, str) and type(value) is not kind:
        raise UsageError(f"'{name}' must be of type {kind.__name__}. Got {value!r}.")
    return value
