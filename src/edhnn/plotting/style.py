"""Helpers of all pictures: palette, headings of panels, logarithmic axes, and saving to a file."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from edhnn.errors import shown
from edhnn.io.files import atomic_file
from edhnn.typing import FloatArray, IntArray

BLUE, TEAL, ORANGE, PURPLE, GREY = "#3b6fb6", "#2a9d8f", "#e08e45", "#7a5ea8", "#8a8f98"
LINE_COLOURS = ("#4477aa", "#ee6677", "#228833", "#b8860b", "#66aacc", "#aa3377", "#555555", "#dd7733")
"""Colours for up to eight curves in one plot, distinguishable with colour-blindness."""


class Picture(Figure):
    """A figure outside of pyplot's global state that a notebook shows by itself."""

    def _repr_png_(self) -> bytes:
        """Return the picture as PNG."""
        return _png(self, 100)


def save_figure(figure: Figure, path: Path, *, dpi: int = 120) -> None:
    """Write a PNG, with the same bytes for the same figure; a failure leaves no partial file."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(_png(figure, dpi))


def _png(figure: Figure, dpi: int) -> bytes:
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing")  # names in scripts missing from the font
        figure.savefig(content, format="png", dpi=dpi, metadata={"Software": None})
    return content.getvalue()


def growing_bins(values: IntArray) -> FloatArray:
    """Return the edges of up to 32 bins that grow like powers, each around at least one positive integer."""
    edges: FloatArray = np.unique(np.geomspace(values[values > 0].min(), values.max() + 1, 32).round()) - 0.5
    return edges


def logarithmic_if_wide(panel: Axes, heights: IntArray) -> None:
    """Make the vertical axis logarithmic if the heights differ by a factor above a hundred."""
    if heights.max() > 100 * heights.min():
        panel.set_yscale("log")
        panel.set_ylim(bottom=0.7)
    else:
        panel.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    panel.yaxis.set_major_formatter(FuncFormatter(plain_number))


def head(panel: Axes, title: str, x_label: str, y_label: str, remark: str = "") -> None:
    """Set the title on the left, a remark on the right, and the names of the axes."""
    panel.set_title(title, fontsize=11, loc="left")
    panel.set_title(remark, fontsize=9, loc="right", color=GREY)
    panel.set_xlabel(x_label, fontsize=9)
    panel.set_ylabel(y_label, fontsize=9)


def empty_panel(panel: Axes, title: str, reason: str) -> None:
    """Draw an empty panel with the reason why it is empty."""
    head(panel, title, "", "")
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    panel.text(0.5, 0.5, reason, transform=panel.transAxes, ha="center", va="center", color=GREY, fontsize=11)


def short(name: str, length: int) -> str:
    """Return a printable name of at most ``length`` characters."""
    printable = shown(name)
    return printable if len(printable) <= length else f"{printable[: length - 1]}…"


def plain_number(value: float, _: int | None) -> str:
    """Format a tick without powers of ten."""
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"
