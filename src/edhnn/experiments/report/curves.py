"""The curves of a figure: a panel for each plot, a curve for each row; drawn by `plots` and by `pictures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from edhnn.experiments.report.view import View

COLOURS = ("#4477aa", "#ee6677", "#228833", "#b8860b", "#66aacc", "#aa3377", "#555555", "#dd7733")
"""Told apart by most eyes; the reference row has the strongest line as well."""

_OWN = dict(zip(("ED-HNN", "AllDeepSets", "AllSetTransformer", "UniGCNII", "Invariant", "HGNN"), COLOURS, strict=False))
"""A model that is in several figures has one colour in all of them."""

GREY = "#8a8f98"
_DASHES = ("dash", "dot", "dashdot")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A row in a panel.

    Attributes:
        label: The row.
        x: Places.
        mean: Means there.
        std: Sample standard deviations, 0 for a single split.
        hover: A sentence for each place.
        colour: Its colour.
        dash: ``solid``, or the dash of a floor.
        strong: Whether it is the reference row.
    """

    label: str
    x: Sequence[float]
    mean: Sequence[float]
    std: Sequence[float]
    hover: Sequence[str]
    colour: str
    dash: str
    strong: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A plot: its title, its ticks and its curves."""

    title: str
    ticks: Sequence[float]
    curves: Sequence[Curve]

    @property
    def logarithmic(self) -> bool:
        """Whether the places are spread over powers."""
        return min(self.ticks) > 0 and max(self.ticks) >= 4 * min(self.ticks)


def panels_of(view: View) -> list[Panel]:
    """The panels of an experiment that is shown as lines; none for a table."""
    if view.grid.experiment.show != "lines":
        return []
    titles = dict.fromkeys(column.panel for column in view.grid.experiment.column)
    return [panel for title in titles if (panel := _panel(view, title)).curves]


def value_label(view: View) -> str:
    """What the vertical axis is."""
    return "test accuracy, %" if view.kind == "accuracy" else "mean absolute error"


def _panel(view: View, title: str) -> Panel:
    columns = [column for column in view.grid.experiment.column if column.panel == title and column.x is not None]
    places = {column.label: float(column.x or 0.0) for column in sorted(columns, key=lambda one: one.x or 0.0)}
    curves, dashes = [], iter(_DASHES * 9)
    taken = {_OWN.get(line.label) for line in view.grid.lines}
    spare = iter([colour for colour in COLOURS if colour not in taken] * 9 + list(COLOURS) * 4)
    for line in view.grid.lines:
        own = GREY if line.kind == "floor" else _OWN.get(line.label) or next(spare)
        dash = next(dashes) if line.kind == "floor" else "solid"
        there = [(label, x) for label, x in places.items() if (line.label, label) in view.findings.summaries]
        if not there:
            continue
        found = [view.findings.summaries[line.label, label] for label, _ in there]
        curves.append(
            Curve(
                label=line.label,
                x=[x for _, x in there],
                mean=[one.mean for one in found],
                std=[one.std or 0.0 for one in found],
                hover=[
                    f"{one.count} split{'s' if one.count > 1 else ''}"
                    + ("" if one.low is None else f", 95 % interval {one.low:.4g} to {one.high:.4g}")
                    for one in found
                ],
                colour=own,
                dash=dash,
                strong=line.label == view.findings.reference,
            )
        )
    return Panel(title=title, ticks=list(places.values()), curves=curves)
