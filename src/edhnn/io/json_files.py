"""JSON files, JSON lines, TOML text, and checks for values that JSON cannot store.

JSON has no infinity and no NaN, and encoders write null for them. So callers search for them before they encode.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from torch import Tensor

from edhnn.data.dataset import NodeDataset
from edhnn.errors import DataError, UsageError
from edhnn.io.files import atomic_file, read_document
from edhnn.typing import JsonObject

_MAX_DEPTH: Final = 64
_MAX_BITS: Final = 1024
_LONG_KEY: Final = re.compile(r"""(?<![\w-])(?:["']?[\w-]+["']?[ \t]*\.[ \t]*){64}""")


def read_json(path: Path) -> JsonObject:
    """Read a JSON object.

    Raises:
        DataError: if the file cannot be read, is not JSON, contains another value, or is nested too deeply.
    """
    try:
        content = parse_json(read_document(path))
    except DataError:
        raise
    except UsageError as error:
        raise DataError(f"The file cannot be read. Cause: {error}", path=path) from error
    except ValueError as error:
        raise DataError(f"The file must be JSON. Cause: {describe_error(error)}.", path=path) from error
    if not isinstance(content, dict):
        raise DataError(f"The file must contain a JSON object. Got {type(content).__name__}.", path=path)
    return content


def parse_json(text: bytes | str) -> Any:
    """Parse JSON text.

    Raises:
        ValueError: if it is not JSON, or lists and objects are nested too deeply.
    """
    try:
        content = msgspec.json.decode(text)
    except RecursionError:
        raise _too_deep() from None
    _check_depth(content)
    return content


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text.

    Raises:
        ValueError: if it is not TOML, or lists and tables are nested too deeply.
    """
    if _LONG_KEY.search(text):  # the parser takes a time that is quadratic in the number of parts
        raise _too_deep()
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise _too_deep() from None
    _check_depth(content)
    return content


def _check_depth(content: Any) -> None:
    """Check the size of integers and, without recursion, how deeply lists and objects are nested."""
    level = [content] if isinstance(content, dict | list) else []
    for _ in range(_MAX_DEPTH):
        values = [value for outer in level for value in (outer.values() if isinstance(outer, dict) else outer)]
        if any(isinstance(value, int) and value.bit_length() > _MAX_BITS for value in values):
            raise ValueError(f"an integer must have at most {_MAX_BITS} bits")  # Python does not print longer ones
        level = [value for value in values if isinstance(value, dict | list)]
    if level:
        raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"lists and objects must be nested at most {_MAX_DEPTH} deep")


def write_json(content: JsonObject, path: Path) -> None:
    """Write a JSON object atomically."""
    with atomic_file(path) as temporary:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        # a path can hold bytes that are not UTF-8; their escapes are those of JSON
        temporary.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def json_line(content: JsonObject) -> str:
    """Return an object as one line of JSON; infinity and NaN become null."""
    return json.dumps(finite(content), allow_nan=False, ensure_ascii=False) + "\n"


def finite(content: Any) -> Any:
    """Return the same content with null for infinity and NaN."""
    if isinstance(content, dict):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def describe_error(error: Exception) -> str:
    """Return an error's message; for a `KeyError`, that the key is missing."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def plain(value: Any) -> Any:
    """Return an array or one of its scalars as a list or a number. Encoders call this for unknown types."""
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return value.tolist()
    raise TypeError(f"values of type {type(value).__name__} are not supported")


def split_json(content: Mapping[str, Any], above: str = "") -> tuple[JsonObject, list[str]]:
    """Return the entries that JSON can store, arrays as lists, and the names of the others (``outer.inner``)."""
    storable: JsonObject = {}
    others: list[str] = []
    for key, value in content.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping) and all(isinstance(inner, str) for inner in value):
            storable[key], inside = split_json(value, f"{name}.")
            others += inside
            continue
        try:
            text = msgspec.json.encode(value, enc_hook=plain)
        except (TypeError, ValueError, RecursionError):
            others.append(name)
            continue
        if _first_not_finite(value) is None:
            storable[key] = msgspec.json.decode(text)
        else:
            others.append(name)
    return storable, others


def dropped_details(dataset: NodeDataset) -> list[str]:
    """Name the details of a dataset's provenance that JSON cannot store, and so neither HIF nor a dataset folder."""
    return [f"the detail '{name}' of its provenance" for name in split_json(dataset.provenance.details)[1]]


def need_finite_attributes(dataset: NodeDataset, holder: str) -> None:
    """Raise a `DataError` if an attribute contains infinity or NaN, at any depth.

    Args:
        dataset: The dataset.
        holder: The format, for the message.
    """
    for kind, ids, columns in (
        ("node", dataset.node_ids, dataset.node_attributes),
        ("hyperedge", dataset.edge_ids, dataset.edge_attributes),
    ):
        for name, column in columns.items():
            for index, value in enumerate(column):
                wrong = _first_not_finite(value)
                if wrong is not None:
                    raise DataError(
                        f"{holder} can store finite numbers only. The {kind} attribute '{name}' contains {wrong}.",
                        where=f"{kind} {ids[index]!r}",
                        remedy="Use None for a missing value, or leave the attribute out.",
                    )


def _first_not_finite(value: Any) -> float | None:
    """Return the first infinity or NaN in a value, its lists and dictionaries; ``None`` if all are finite."""
    if isinstance(value, np.ndarray | np.generic | Tensor):
        value = value.tolist()
    if isinstance(value, float):
        return None if math.isfinite(value) else value
    if isinstance(value, str | int | None):
        return None
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple | set) else ()
    return next((wrong for part in parts if (wrong := _first_not_finite(part)) is not None), None)
