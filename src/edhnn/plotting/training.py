"""Draw a run: learning curves, the confusion matrix, predicted against true values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from edhnn.plotting.style import BLUE, GREY, ORANGE, Picture, short
from edhnn.typing import IntArray, JsonObject

_MANY_CLASSES = 20
_DARK = 0.55


def learning_curve(splits: Sequence[Sequence[JsonObject]], metric: str, title: str) -> Figure:
    """Draw loss and metric over the epochs: a thin line per split, a dot at each selected epoch."""
    figure = Picture(figsize=(9, 3.6), layout="constrained")
    loss, quality = figure.subplots(1, 2)
    for records in splits:
        epochs = [record["epoch"] for record in records]
        loss.plot(epochs, [record["loss"] for record in records], color=GREY, linewidth=0.8)
        for part, colour in (("train", ORANGE), ("valid", BLUE)):
            values = [np.nan if record[part][metric] is None else record[part][metric] for record in records]
            quality.plot(epochs, values, color=colour, linewidth=0.8, alpha=0.7)
        best = records[-1]["best_epoch"]
        quality.plot([best], [records[best - 1]["valid"][metric]], "o", color=BLUE, markersize=4)
    loss.set(title="training loss", xlabel="epoch")
    quality.set(title=metric.replace("_", " "), xlabel="epoch")
    quality.plot([], [], color=ORANGE, label="train")
    quality.plot([], [], "o-", color=BLUE, markersize=4, label="validation; dot: selected")
    quality.legend(frameon=False, fontsize=8)
    for axes in (loss, quality):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=11, parse_math=False)
    return figure


def confusion_picture(counts: IntArray, names: Sequence[str], title: str) -> Figure:
    """Draw the test nodes of all splits by true and predicted class, coloured by their share of the true class."""
    size = min(3.0 + 0.45 * len(names), 12.0)
    figure = Picture(figsize=(size + 1, size), layout="constrained")
    axes = figure.subplots()
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    if len(names) <= _MANY_CLASSES:
        shown = [short(name, 14) for name in names]
        axes.set_xticks(range(len(names)), shown, rotation=45, ha="right", parse_math=False)
        axes.set_yticks(range(len(names)), shown, parse_math=False)
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if shares[row, column] > _DARK else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=colour, fontsize=8)
    axes.set(xlabel="predicted", ylabel="true")
    axes.set_title(title, parse_math=False)
    figure.colorbar(image, ax=axes, shrink=0.8, label="share of the true class")
    return figure


def error_picture(true: Sequence[float], predicted: Sequence[float], title: str) -> Figure:
    """Draw predicted against true values of test nodes, for regression."""
    figure = Picture(figsize=(4.5, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(true, predicted, ".", color=BLUE, markersize=3, alpha=0.5)
    ends = [min([*true, *predicted]), max([*true, *predicted])]
    axes.plot(ends, ends, color=GREY, linewidth=0.8)
    axes.set(xlabel="true", ylabel="predicted")
    axes.set_title(title, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
