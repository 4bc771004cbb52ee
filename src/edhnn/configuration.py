"""Configurations: frozen dataclasses whose fields are checked and converted by msgspec.

A field's annotation is its type: ``Annotated[int, Meta(ge=1)]`` (`Count`), a ``Literal``, ``bool``, a tuple. Values are
checked when a configuration is made, directly or from names and values of a file or a command line (`configure`).
Integers become floats, lists become tuples and NumPy scalars become Python numbers if the field's type requires it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from msgspec import Meta, inspect

from edhnn.errors import UsageError, unknown_name

Count = Annotated[int, Meta(ge=1)]
"""A whole number of at least 1."""
Depth = Annotated[int, Meta(ge=1, le=1000)]
"""A number of layers or iterations: at least 1, and at most 1000, so that a mistyped number does not run for days."""
Layers = Annotated[int, Meta(ge=0, le=1000)]
"""A number of layers that may be 0."""
Width = Annotated[int, Meta(ge=1, le=2**16)]
"""A number of columns of a layer: at least 1, and at most 65536, so that a mistyped number does not fill the memory."""
Natural = Annotated[int, Meta(ge=0)]
"""A whole number of at least 0."""
Fraction = Annotated[float, Meta(ge=0, le=1)]
"""A number in 0..1."""
Positive = Annotated[float, Meta(gt=0)]
"""A number of more than 0."""

Config = TypeVar("Config")
_FIELD_TYPES: WeakKeyDictionary[type[Any], dict[str, Any]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A frozen dataclass that checks and converts its fields when it is made.

    Example:
        >>> @dataclass(frozen=True, slots=True, kw_only=True)
        ... class Sizes(Configuration):
        ...     hidden: Count = 64
        ...     dropout: float = 0.5
        >>> Sizes(dropout=0)
        Sizes(hidden=64, dropout=0.0)
        >>> Sizes(hidden=0)
        Traceback (most recent call last):
        ...
        edhnn.errors.UsageError: 'hidden' must be at least 1. Got 0.
    """

    def __post_init__(self) -> None:
        for name, kind in _field_types(type(self)).items():
            object.__setattr__(self, name, _converted(name, kind, getattr(self, name)))
        self.check()

    def check(self) -> None:
        """Check values that depend on each other; a subclass overrides it."""


def configure(config: type[Config], values: Mapping[str, Any], *, what: str = "option") -> Config:
    """Make a configuration from values by name.

    Args:
        config: The dataclass.
        values: Values by field; the other fields keep their defaults.
        what: The word for a field in error messages.

    Raises:
        UsageError: if a field is unknown (the message lists the fields) or a value is invalid.
    """
    return config(**convert_values(config, values, what=what))


def convert_values(config: type[Any], values: Mapping[str, Any], *, what: str = "option") -> dict[str, Any]:
    """Check and convert values of some fields of a configuration; see `configure`."""
    known = _field_types(config)
    for name in values:
        if name not in known:
            raise unknown_name(what, name, known)
    return {name: _converted(name, known[name], value) for name, value in values.items()}


def _field_types(config: type[Any]) -> dict[str, Any]:
    """Find the annotation of every field, once per class."""
    if config not in _FIELD_TYPES:
        hints = get_type_hints(config, include_extras=True)
        _FIELD_TYPES[config] = {field.name: hints[field.name] for field in fields(config)}
    return _FIELD_TYPES[config]


def _converted(name: str, kind: Any, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"'{name}' must be a finite number. Got {value}.")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _invalid_value(name, kind, value) from error


_NAMES = {
    inspect.IntType: "int",
    inspect.FloatType: "float",
    inspect.BoolType: "bool",
    inspect.StrType: "str",
    inspect.LiteralType: "str",
    inspect.NoneType: "None",
    inspect.VarTupleType: "list",
}


def _invalid_value(name: str, kind: Any, value: Any) -> UsageError:
    """Make the error for a value that does not have the field's type or is out of its bounds."""
    if get_origin(kind) is Literal and isinstance(value, str):
        return unknown_name(name, value, get_args(kind))
    info = inspect.type_info(kind)
    types = info.types if isinstance(info, inspect.UnionType) else (info,)
    for option in types:
        whole, real = isinstance(option, inspect.IntType), isinstance(option, inspect.FloatType)
        if real and type(value) is int and abs(value) > sys.float_info.max:
            return UsageError(f"'{name}' must be a finite number. Got {math.inf if value > 0 else -math.inf}.")
        if (whole and type(value) is int) or (real and type(value) in (int, float)):
            return UsageError(f"'{name}' must {_bounds(option)}. Got {value!r}.")
    names = " or ".join(_NAMES.get(type(option), type(option).__name__) for option in types)
    return UsageError(f"'{name}' must be of type {names}. Got {value!r}.")


def _bounds(number: Any) -> str:
    if number.ge is not None and number.le is not None:
        return f"lie in {number.ge}..{number.le}"
    limits = {"at least": number.ge, "more than": number.gt, "at most": number.le, "less than": number.lt}
    return "be " + " and ".join(f"{word} {limit}" for word, limit in limits.items() if limit is not None)
