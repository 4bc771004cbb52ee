"""What the panels of a picture share: headings, bins that grow, axes that turn logarithmic, plain numbers."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from edhnn.typing import FloatArray, IntArray

GREY = "#8a8f98"


def growing_bins(values: IntArray) -> FloatArray:
    """Edges of up to 32 bins that grow like powers, each around at least one positive integer."""
    edges: FloatArray = np.unique(np.geomspace(values[values > 0].min(), values.max() + 1, 32).round()) - 0.5
    return edges


def logarithmic_if_wide(panel: Axes, heights: IntArray) -> None:
    """Heights from one to more than a hundred times it go on a logarithmic axis."""
    if heights.max() > 100 * heights.min():
        panel.set_yscale("log")
        panel.set_ylim(bottom=0.7)
    else:
        panel.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    panel.yaxis.set_major_formatter(FuncFormatter(plain_number))


def head(panel: Axes, title: str, x_label: str, y_label: str, remark: str = "") -> None:
    """Title on the left, remark on the right, names of the axes."""
    panel.set_title(title, fontsize=11, loc="left")
    panel.set_title(remark, fontsize=9, loc="right", color=GREY)
    panel.set_xlabel(x_label, fontsize=9)
    panel.set_ylabel(y_label, fontsize=9)


def say(panel: Axes, title: str, words: str) -> None:
    """A panel without anything to draw."""
    head(panel, title, "", "")
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    panel.text(0.5, 0.5, words, transform=panel.transAxes, ha="center", va="center", color=GREY, fontsize=11)


def short(name: str, length: int) -> str:
    """A name fit to print, cut to `length` characters."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in name)
    return printable if len(printable) <= length else f"{printable[: length - 1]}…"


def plain_number(value: float, _: int | None) -> str:
    """A tick as people write numbers: no powers of ten."""
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"
