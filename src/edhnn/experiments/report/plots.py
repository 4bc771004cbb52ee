"""Figures as interactive plots, by plotly; its script goes into the page, so that the page needs no network."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

from edhnn.experiments.report.curves import Panel

_GRID, _INK = "#e6e8eb", "#22262b"


def plotly_available() -> bool:
    """Whether the optional library is installed."""
    return find_spec("plotly") is not None


def plotly_script() -> str:
    """The library's script, for a page that needs no network."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def plot_json(panel: Panel, axis: str, value: str) -> str:
    """A panel as JSON for the script.

    Args:
        panel: The panel.
        axis: What the horizontal axis is.
        value: What the vertical one is.

    Returns:
        JSON that can stand in a page: it has no ``<``.
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
            "dragmode": False,  # a finger on the plot scrolls the page
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#aab1ba", "activecolor": _INK},
            "legend": {"orientation": "h", "y": -0.2, "yanchor": "top", "font": {"size": 12}},
            "xaxis": _axis(axis) | _ticks(panel),
            "yaxis": _axis(value) | {"zeroline": False},
        },
    )
    return json.dumps(figure.to_plotly_json(), default=list).replace("<", "\\u003c")


def _axis(title: str) -> dict[str, Any]:
    return {"title": {"text": title, "standoff": 8}, "gridcolor": _GRID, "linecolor": _GRID, "automargin": True}


def _ticks(panel: Panel) -> dict[str, Any]:
    shown = {"tickvals": list(panel.ticks), "ticktext": [f"{tick:g}" for tick in panel.ticks]}
    return shown | {"type": "log" if panel.logarithmic else "linear"}
