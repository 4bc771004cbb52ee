"""What a kind of job must do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from edhnn.errors import UsageError
from edhnn.experiments.spec import Column, Row
from edhnn.typing import JsonObject


def refuse_settings(who: str, given: Mapping[str, Any]) -> None:
    """Refuse settings of something that has none: they would be ignored."""
    if given:
        raise UsageError(f"{who} has no settings. Got: {', '.join(sorted(given))}.")


@runtime_checkable
class Kind(Protocol):
    """A kind of job."""

    def resolve(
        self, row: Row, column: Column, options: dict[str, Any], train: dict[str, Any]
    ) -> tuple[JsonObject, str] | None:
        """The settings of a cell and their source; ``None`` where there is no such cell.

        Settings have ``dataset`` and ``model``; all that decides the numbers is in them.
        """
        ...

    def most_splits(self, settings: JsonObject) -> int:
        """The most splits that make sense."""
        ...

    def perform(self, settings: JsonObject, split: int, work: Path, should_stop: Callable[[], bool]) -> JsonObject:
        """Do the job and return its numbers: ``value`` in the experiment's unit, and more.

        Args:
            settings: The settings.
            split: The split.
            work: A folder for what is needed to go on after a kill; removed when the job is done.
            should_stop: Asked now and then; if so, raises `StoppedError`.
        """
        ...
