"""What notebooks show: a small table for an object, and a progress bar.

Names come from files, so every text is escaped for HTML, after `errors.shown` has escaped what cannot be seen.
"""

from __future__ import annotations

import html
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

from edhnn.errors import shown

_LONGEST = 160
_SECONDS_BETWEEN = 0.2


def table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return a compact HTML table with a title and two columns; texts of any origin are escaped."""
    left = "style='text-align:left'"
    body = "".join(f"<tr><th {left}>{_text(name)}</th><td {left}>{_text(value)}</td></tr>" for name, value in rows)
    style = "text-align:left;caption-side:top;font-weight:bold"
    return f"<table><caption style='{style}'>{_text(title)}</caption><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else shown(str(value))
    return html.escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def shows_bars() -> bool:
    """Return whether this is a notebook that may show progress bars (``TTY_COMPATIBLE=0`` asks for none)."""
    shell = _shell()
    return getattr(shell, "kernel", None) is not None and os.environ.get("TTY_COMPATIBLE") != "0"


def _shell() -> Any:
    """Return the running IPython shell, if there is one; IPython is never imported here."""
    library = sys.modules.get("IPython")
    return None if library is None else library.get_ipython()


class NotebookBar:
    """A progress bar below the cell that runs; it needs no widgets."""

    def __init__(self) -> None:
        from IPython.display import display

        self._updated = time.monotonic()
        self._handle: Any = display({"text/plain": ""}, raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def show(self, title: str, done: int, total: int) -> None:
        """Update the bar, at most five times a second."""
        if time.monotonic() - self._updated < _SECONDS_BETWEEN:
            return
        self._updated = time.monotonic()
        share = f"{100 * done / total:.0f} %" if total else ""
        bar = f"<progress max='{max(total, 1)}' value='{done}'></progress>"
        content = {"text/html": f"{_text(title)} {bar} {share}", "text/plain": f"{shown(title)} {share}"}
        self._handle.update(content, raw=True)

    def close(self) -> None:
        """Remove the bar."""
        self._handle.update({"text/html": "", "text/plain": ""}, raw=True)
