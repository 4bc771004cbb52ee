"""A progress bar for work that turns out to take long."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_PATIENCE_SECONDS = 1.0


class DelayedBar:
    """A progress bar on standard error that stays away from short work, pipes and logs.

    Args:
        title: What is under way.
        total: Its size, in bytes if ``in_bytes`` and in steps otherwise.
        in_bytes: How to write amounts.
    """

    def __init__(self, title: str, total: int, *, in_bytes: bool = True) -> None:
        self._title, self._total, self._in_bytes = title, total, in_bytes
        self._begun = time.monotonic()
        self._wanted = sys.stderr.isatty()
        self._progress: Progress | None = None

    def show(self, done: int, note: str = "") -> None:
        """Move the bar; the first call after a second makes it appear. The note stands behind the title."""
        if not self._wanted or time.monotonic() - self._begun < _PATIENCE_SECONDS:
            return
        if self._progress is None:
            amount = DownloadColumn() if self._in_bytes else MofNCompleteColumn()
            columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.add_task(self._title, total=self._total)
            self._progress.start()
        self._progress.update(self._progress.task_ids[0], completed=done, description=f"{self._title}{note}")

    def close(self) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
