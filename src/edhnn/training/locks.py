"""Locks that vanish with their holder, so that two processes never train in the same place."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, wait: float = 0.0) -> Iterator[bool]:
    """Hold a lock that the system gives back when its process ends, however it ends.

    Yields whether it was had within the time. Where the system has no such locks (Windows) it always is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        yield True
        return
    import fcntl

    with path.open("a") as stream:
        until = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    yield False
                    return
                time.sleep(0.05)
        yield True
