"""Figures as still pictures, by matplotlib: beside the page, and in it where nothing can be drawn."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from edhnn.experiments.report.curves import Panel

_STYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


def picture(panels: Sequence[Panel], axis: str, value: str) -> Figure:
    """All panels of an experiment side by side, under one legend.

    Args:
        panels: The panels, at least one.
        axis: What the horizontal axes are.
        value: What the vertical ones are.

    Returns:
        The figure.
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
        axes.grid(color="#e6e8eb", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel(value)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=min(4, len(handles)), frameon=False
    )
    return figure
