"""Files that a command will write, looked at before it begins to work."""

from __future__ import annotations

from pathlib import Path

from edhnn.data.table_names import table_name
from edhnn.data.writers import refuse_existing
from edhnn.errors import UsageError


def check_targets(*, table: Path | None = None, picture: Path | None = None, overwrite: bool) -> None:
    """Refuse targets that could not be written at the end. Their endings differ, so neither replaces the other.

    Raises:
        UsageError: if a name ends otherwise than it must, its folder is missing, it is a folder, or something is there
            that may not be replaced.
    """
    if table is not None:
        table_name(table)
    if picture is not None and picture.suffix.lower() != ".png":
        raise UsageError(f"A picture must end in .png. Got '{picture.name}'.")
    targets = [path for path in (table, picture) if path is not None]
    for path in targets:
        if path.is_dir():
            raise UsageError(f"'{path}' must be a file. It is a folder.")
        if not path.parent.is_dir():
            raise UsageError(f"The folder '{path.parent}' must exist before '{path.name}' is written into it.")
    refuse_existing(targets, overwrite=overwrite)
