"""Ctrl-C and termination as a wish that is looked at between epochs, so that a run saves before it leaves."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import final


@final
class Wish:
    """Whether somebody wants the work to stop."""

    def __init__(self) -> None:
        self.stop = False

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.stop


@contextmanager
def listening() -> Iterator[Wish]:
    """Within the block the first Ctrl-C or termination becomes a wish; the second Ctrl-C stops at once.

    In a thread other than the main one, where signals do not arrive, the wish is never made.
    """
    wish = Wish()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return

    def heard(number: int, frame: FrameType | None) -> None:
        del frame
        if wish.stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        wish.stop = True

    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
