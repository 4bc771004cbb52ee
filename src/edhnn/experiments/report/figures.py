"""Figures of an experiment: one panel per plot, one curve per row.

Matplotlib draws image files, which the page also shows where scripts do not run. Plotly draws interactive plots; its
script is part of the page, so the page needs no network.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, final

from matplotlib.figure import Figure

from edhnn.experiments.report.view import View
from edhnn.plotting.style import GREY, LINE_COLOURS

_COLOURS = dict(
    zip(("ED-HNN", "AllDeepSets", "AllSetTransformer", "UniGCNII", "Invariant", "HGNN"), LINE_COLOURS, strict=False)
)
"""Colours of models that occur in several figures."""
_DASHES = ("dash", "dot", "dashdot")
_GRID, _INK = "#e6e8eb", "#22262b"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A row in a panel.

    Attributes:
        label: The label of the row.
        x: Positions on the horizontal axis.
        mean: Means at the positions.
        std: Sample standard deviations, 0 for a single split.
        hover: The text shown at each position.
        colour: The colour.
        dash: ``solid``, or the dash of a floor.
        strong: Whether it is the reference row, which is drawn thicker.
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
        """Whether the horizontal axis is logarithmic."""
        return min(self.ticks) > 0 and max(self.ticks) >= 4 * min(self.ticks)


def panels_of(view: View) -> list[Panel]:
    """Return the panels of an experiment that is shown as lines; none for a table."""
    if view.grid.experiment.show != "lines":
        return []
    titles = dict.fromkeys(column.panel for column in view.grid.experiment.column)
    return [panel for title in titles if (panel := _panel(view, title)).curves]


def _panel(view: View, title: str) -> Panel:
    columns = [column for column in view.grid.experiment.column if column.panel == title and column.x is not None]
    positions = {column.label: float(column.x or 0.0) for column in sorted(columns, key=lambda one: one.x or 0.0)}
    curves, dashes = [], iter(_DASHES * 9)
    taken = {_COLOURS.get(line.label) for line in view.grid.lines}
    spare = iter([colour for colour in LINE_COLOURS if colour not in taken] * 9 + list(LINE_COLOURS) * 4)
    for line in view.grid.lines:
        colour = GREY if line.kind == "floor" else _COLOURS.get(line.label) or next(spare)
        dash = next(dashes) if line.kind == "floor" else "solid"
        points = [
            (x, summary)
            for label, x in positions.items()
            if (summary := view.findings.summaries.get((line.label, label))) is not None
        ]
        if not points:
            continue
        curves.append(
            Curve(
                label=line.label,
                x=[x for x, _ in points],
                mean=[one.mean for _, one in points],
                std=[one.std or 0.0 for _, one in points],
                hover=[
                    f"{one.count} split{'s' if one.count > 1 else ''}"
                    + ("" if one.low is None else f", 95 % interval {one.low:.4g} to {one.high:.4g}")
                    for _, one in points
                ],
                colour=colour,
                dash=dash,
                strong=line.label == view.findings.reference,
            )
        )
    return Panel(title=title, ticks=list(positions.values()), curves=curves)


_STYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


def picture(panels: Sequence[Panel], axis: str, value: str) -> Figure:
    """Draw all panels of an experiment side by side, with one legend.

    Args:
        panels: The panels, at least one.
        axis: The label of the horizontal axes.
        value: The label of the vertical axis.
    """
    figure = Figure(figsize=(1.5 + 4.0 * len(panels), 4.4), layout="constrained")
    handles = {}
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for curve in panel.curves:
            floor = curve.dash != "solid"
            handles[curve.label] = axes.errorbar(
                curve.x,
                curve.mean,
                yerr=None if floor else curve.std,
                fmt=("" if floor else "o") + _STYLES[curve.dash],
                color=curve.colour,
                linewidth=2.4 if curve.strong else 1.4,
                markersize=4,
                capsize=2,
                label=curve.label,
            )
        if panel.logarithmic:
            axes.set_xscale("log")
        axes.set_xticks(list(panel.ticks), [f"{tick:g}" for tick in panel.ticks])
        axes.set_xticks([], minor=True)
        axes.set(title=panel.title, xlabel=axis)
        axes.grid(color=_GRID, linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel(value)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=min(4, len(handles)), frameon=False
    )
    return figure


def plotly_available() -> bool:
    """Return whether plotly is installed."""
    return find_spec("plotly") is not None


def plotly_script() -> str:
    """Return the script of plotly."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def plot_json(panel: Panel, axis: str, value: str) -> str:
    """Return a panel as JSON for plotly's script.

    Args:
        panel: The panel.
        axis: The label of the horizontal axis.
        value: The label of the vertical axis.

    Returns:
        JSON without ``<``, so that it can be part of a page.
    """
    import plotly.graph_objects as go

    figure = go.Figure(
        data=[
            go.Scatter(
                name=curve.label,
                x=list(curve.x),
                y=list(curve.mean),
                customdata=list(curve.hover),
                error_y=None if curve.dash != "solid" else {"type": "data", "array": list(curve.std), "thickness": 1},
                mode="lines" if curve.dash != "solid" else "lines+markers",
                line={"color": curve.colour, "dash": curve.dash, "width": 3.5 if curve.strong else 2},
                hovertemplate="%{y:.4g}, %{customdata}",
            )
            for curve in panel.curves
        ],
        layout={
            "template": None,
            "title": {"text": panel.title, "x": 0.02, "font": {"size": 15}},
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": _INK},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 58, "r": 12, "t": 40 if panel.title else 12, "b": 46},
            "height": 420,
            "hovermode": "x unified",
            "dragmode": False,  # dragging on a touch screen scrolls the page
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#aab1ba", "activecolor": _INK},
            "legend": {"orientation": "h", "y": -0.2, "yanchor": "top", "font": {"size": 12}},
            "xaxis": {
                **_axis(axis),
                "tickvals": list(panel.ticks),
                "ticktext": [f"{tick:g}" for tick in panel.ticks],
                "type": "log" if panel.logarithmic else "linear",
            },
            "yaxis": _axis(value) | {"zeroline": False},
        },
    )
    return json.dumps(figure.to_plotly_json(), default=list).replace("<", "\\u003c")


def _axis(title: str) -> dict[str, Any]:
    return {"title": {"text": title, "standoff": 8}, "gridcolor": _GRID, "linecolor": _GRID, "automargin": True}
