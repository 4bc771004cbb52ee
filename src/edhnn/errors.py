"""Everything that can go wrong because of input, in one small tree.

A message says what must hold, what was given, and what to do. The command line prints it and leaves with the
class's ``exit_code``: 2 when the request itself was wrong, 1 when the work could not be done.

    EdhnnError
    ├── UsageError               an option, name or path that cannot be meant            exit 2
    ├── DataError                a file or value breaks a rule; names file and place     exit 1
    │   └── LimitError           larger than the limits allow
    ├── MissingDependencyError   an optional library is not installed
    ├── MachineError             memory or room on the disk ran out
    └── DownloadError            the network or a checksum said no
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path


class EdhnnError(Exception):
    """Base of every error this package raises on purpose."""

    exit_code = 1


class UsageError(EdhnnError, ValueError):
    """The request cannot be meant: an unknown name, an option that does not apply, a missing path."""

    exit_code = 2


class DataError(EdhnnError, ValueError):
    """A file or value breaks a rule.

    Args:
        problem: What must hold and what was given.
        path: The file, when there is one.
        where: The place in it: ``line 3``, ``incidences[4]``.
        remedy: What to do about it.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: Path | str | None = None,
        where: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem, self.path, self.where, self.remedy = problem, path, where, remedy
        place = ", ".join(str(part) for part in (path, where) if part is not None)
        text = f"{place}: {problem}" if place else problem
        super().__init__(f"{text} {remedy}" if remedy else text)


class LimitError(DataError):
    """The input is larger than the limits allow; the limits are options."""


class MissingDependencyError(EdhnnError, ImportError):
    """An optional library is needed for this and is not installed."""

    def __init__(self, module: str, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs '{module}', which is not installed: pip install 'edhnn[{extra}]'.")


class DownloadError(EdhnnError):
    """A download failed, or what arrived is not what was pinned."""


class MachineError(EdhnnError):
    """The machine could not: no memory, no room on the disk, a path it refuses."""


@contextmanager
def machine_errors() -> Iterator[None]:
    """Within the block, what the machine refuses becomes a `MachineError`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, MemoryError, RuntimeError) as error:
        words = _in_words(error)
        if words is None:
            raise
        raise MachineError(words) from error


def _in_words(error: OSError | MemoryError | RuntimeError) -> str | None:
    """What the machine refused; ``None`` for an error that is not the machine's."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        place = f" of '{error.filename}'" if error.filename else ""
        return f"There must be room on the disk{place}. It is full; nothing was left half-written."
    if isinstance(error, OSError):
        return f"The machine said no: {error}."
    asked = re.search(r"allocate memory: you tried to allocate (\d+) bytes", str(error))  # torch's own words
    if asked is None and not isinstance(error, MemoryError):
        return None
    much = f" {int(asked[1]) / 1e9:.1f} GB were asked for at once." if asked else ""
    return f"There must be enough memory.{much} Use a smaller width (--set hidden=64), fewer --jobs, or less data."


def unknown_name(kind: str, given: str, choices: Iterable[str]) -> UsageError:
    """The error for a name that is not among ``choices``: lists them and suggests the nearest."""
    known = list(choices)
    near = get_close_matches(given, known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return UsageError(f"The {kind} must be one of {', '.join(known)}. Got '{given}' instead.{hint}")


class DivergedError(EdhnnError):
    """The loss or the outputs stopped being finite.

    Args:
        epoch: The epoch it was noticed in.
        where: The first place found.
        remedy: What to do.
        best_epoch: The epoch whose parameters the model holds now; 0 if it holds none that are good.
    """

    def __init__(self, epoch: int, where: str, remedy: str, *, best_epoch: int = 0) -> None:
        self.epoch, self.where, self.best_epoch = epoch, where, best_epoch
        kept = f" The model of epoch {best_epoch}, the best until then, is kept." if best_epoch else ""
        super().__init__(f"The loss must stay finite. At epoch {epoch} it is not: {where}. {remedy}{kept}")


class StoppedError(EdhnnError):
    """Training was asked to stop, and has saved what is needed to go on."""

    exit_code = 130


class WorkerError(EdhnnError):
    """A worker process failed; the message is its last words."""
