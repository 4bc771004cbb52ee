"""One thing the doctor found: how bad it is, what it is, where, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from edhnn.data.ids import Ids
from edhnn.typing import IntArray, NodeOrEdgeId

Severity = Literal["error", "warning", "note"]
"""``error``: training on it is wrong or fails. ``warning``: probably not what is meant. ``note``: good to know."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
EXAMPLES = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing the doctor found.

    Attributes:
        severity: How bad it is.
        code: A stable name for scripts: ``isolated-nodes``.
        message: What was found, with numbers and the first ids.
        remedy: What to do about it; ``None`` where nothing need be done.
        count: How many nodes, hyperedges, columns or entries it is about.
        examples: The first few of them by their original ids.
    """

    severity: Severity
    code: str
    message: str
    remedy: str | None = None
    count: int = 0
    examples: tuple[NodeOrEdgeId, ...] = ()


def first_ids(ids: Ids, places: IntArray) -> tuple[NodeOrEdgeId, ...]:
    """The original ids of the first few places."""
    return tuple(ids.take(places[:EXAMPLES]))


def counted(count: int, one: str, many: str) -> str:
    """A count with the words that go with it: ``1 node is`` or ``3 nodes are``."""
    return f"{count:,} {one if count == 1 else many}"


def percentage(part: int, whole: int) -> str:
    """A share for people; one that is not zero never looks like it."""
    return "less than 0.1%" if 0 < part < 0.001 * whole else f"{part / whole:.1%}"
