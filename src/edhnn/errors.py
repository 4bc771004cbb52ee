"""The errors that invalid input or a failing machine causes.

A message is one line: the problem, the value found, and the remedy. It can quote any file, so that `shown` escapes it.
A remedy names Python arguments as `` `label=` ``, which the command translates into its options. The command prints the
message and exits with the class's ``exit_code``: 2 for an invalid request, 1 for work that failed.

    EdhnnError
    ├── UsageError               an invalid option, name or path                           exit 2
    ├── DataError                an invalid file or value; names the file and the position exit 1
    │   └── LimitError           larger than the limits allow
    ├── MissingDependencyError   an optional library is not installed
    ├── MachineError             no memory, no space on the disk, a refused path
    ├── DownloadError            a failed download or a wrong checksum
    ├── DivergedError            the loss is no longer finite
    ├── StoppedError             a signal stopped the work, which was saved                exit 130
    └── WorkerError              a worker process failed
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

_LONG_WORD, _LONG_TEXT = 256, 4_000  # a file name has at most 255 bytes
_WORD = re.compile(rf"[^\s/\\]{{{_LONG_WORD},}}")


def shown(text: str) -> str:
    r"""Return one line that shows a text of unknown origin, such as a name in a file, safely on a terminal.

    Control characters, line breaks, characters that change the direction of writing, invisible ones and undecodable
    bytes become escapes as in Python (``\x1b``, ``\u202e``). Words that no file name can have, and very long texts,
    are shortened; an ellipsis and the length replace the middle.
    """
    if len(text) >= _LONG_WORD:
        text = _WORD.sub(lambda word: _shorten(word[0], 60, 20), text)
        text = text if len(text) <= _LONG_TEXT else _shorten(text, _LONG_TEXT - 1_000, 500)
    if text.isprintable():
        return text
    escaped = (letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return "".join(escaped)


def _shorten(text: str, start: int, end: int) -> str:
    return f"{text[:start]}… ({len(text):,} characters) …{text[-end:]}"


class EdhnnError(Exception):
    """Base of every error this package raises on purpose. Its message is shown by `shown`."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(shown(message))


class UsageError(EdhnnError, ValueError):
    """The request is invalid: an unknown name, an option that does not apply, a missing path."""

    exit_code = 2


class DataError(EdhnnError, ValueError):
    """A file or value breaks a rule.

    Args:
        problem: What must hold and what was given.
        path: The file, if any.
        where: The position in it: ``line 3``, ``incidences[4]``.
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
        position = ", ".join(str(part) for part in (path, where) if part is not None)
        text = f"{position}: {problem}" if position else problem
        super().__init__(f"{text} {remedy}" if remedy else text)


class LimitError(DataError):
    """The input is larger than the limits allow; the limits are options."""


class MissingDependencyError(EdhnnError, ImportError):
    """A required optional library is not installed."""

    def __init__(self, module: str, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs '{module}', which is not installed: pip install 'edhnn[{extra}]'.")


class DownloadError(EdhnnError):
    """A download failed, or its content differs from the recorded checksum."""


class MachineError(EdhnnError):
    """The operating system failed: no memory, no space on the disk, a refused path."""


@contextmanager
def machine_errors() -> Iterator[None]:
    """Raise errors of the operating system within the block as `MachineError`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, MemoryError, RuntimeError, ImportError) as error:
        message = _describe(error)
        if message is None:
            raise
        raise MachineError(message) from error


def _describe(error: OSError | MemoryError | RuntimeError | ImportError) -> str | None:
    """Describe an error of the operating system; return ``None`` for any other error."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        target = f" for '{error.filename}'" if error.filename else ""
        return f"No space left on the disk{target}. No partial file was written."
    if isinstance(error, OSError):
        return f"The operating system refused: {error}."
    if isinstance(error, ImportError):  # the loader's messages for a library that does not fit
        if not re.search(r"failed to map segment|cannot allocate memory", str(error), re.IGNORECASE):
            return None
        return f"Not enough memory to load a library ({error}). Raise the memory limit of the process (ulimit -v)."
    if "can't start new thread" in str(error):
        return "The operating system refused to start a thread. Raise the limit of processes (ulimit -u)."
    request = re.search(r"allocate memory: you tried to allocate (\d+) bytes", str(error))  # PyTorch's message
    if request is None and not isinstance(error, MemoryError):
        return None
    size = f" for {int(request[1]) / 1e9:.1f} GB" if request else ""
    return f"Not enough memory{size}. Use a smaller width (`hidden=64`), fewer `jobs=`, or less data."


def unknown_name(kind: str, given: str, choices: Iterable[str]) -> UsageError:
    """Return the error for a name that is not among ``choices``; it lists them and suggests the nearest."""
    known = list(choices)
    near = get_close_matches(given, known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return UsageError(f"The {kind} must be one of {', '.join(known)}. Got '{given}' instead.{hint}")


class DivergedError(EdhnnError):
    """The loss or the outputs are no longer finite.

    Args:
        epoch: The first epoch in which this was observed.
        where: The first value that is not finite.
        remedy: What to do.
        best_epoch: The epoch whose parameters the model holds now; 0 if it holds no finite ones.
    """

    def __init__(self, epoch: int, where: str, remedy: str, *, best_epoch: int = 0) -> None:
        self.epoch, self.where, self.best_epoch = epoch, where, best_epoch
        saved = f" The model holds the parameters of epoch {best_epoch}, the best before." if best_epoch else ""
        super().__init__(f"The loss must stay finite. At epoch {epoch} it is not: {where}. {remedy}{saved}")


class StoppedError(EdhnnError):
    """A signal stopped the work; everything needed to resume it was saved."""

    exit_code = 130


class WorkerError(EdhnnError):
    """A worker process failed; the message is its last output."""
