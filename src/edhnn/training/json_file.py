"""JSON files of a run: written whole or not at all, read with a clear word if damaged."""

from __future__ import annotations

import json
from pathlib import Path

from edhnn.data.atomic import atomic_file
from edhnn.errors import DataError
from edhnn.typing import JsonObject


def write_json(content: JsonObject, path: Path) -> None:
    """Write an object."""
    with atomic_file(path) as temporary:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def said(error: Exception) -> str:
    """What an error in reading said; of a key that is not there, that it is missing."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def read_json(path: Path) -> JsonObject:
    """Read an object.

    Raises:
        DataError: if the file is not JSON or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"The file must be JSON. Reading it said: {error}.", path=path) from error
    if not isinstance(content, dict):
        raise DataError(f"The file must hold a JSON object. Got {type(content).__name__}.", path=path)
    return content
