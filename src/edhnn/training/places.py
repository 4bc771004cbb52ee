"""Places for results, looked at before work is done for them."""

from __future__ import annotations

from pathlib import Path

from edhnn.errors import UsageError


def check_folder(path: Path) -> None:
    """Refuse a place where no folder can be made: it, or what would hold it, is a file.

    Raises:
        UsageError: and it names the file.
    """
    for place in (path, *path.parents):
        if place.exists() and not place.is_dir():
            purpose = "" if place == path else f", to hold '{path.relative_to(place)}'"
            raise UsageError(f"'{place}' must be a folder{purpose}. It is a file. Choose another place.")
