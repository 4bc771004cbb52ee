"""Draw a dataset on one page: hyperedge sizes, degrees, labels, and which classes share hyperedges.

The first two of four panels show hyperedge sizes and node degrees, on logarithmic axes where the spread is wide. The
other two show, for classes, the nodes per class and the class of a co-member given a node's class (the identity under
perfect homophily); for real-valued labels, their histogram and the components; without labels, degree against hyperedge
size and the components.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from edhnn.data.dataset import NodeDataset
from edhnn.doctor.checks import counted
from edhnn.doctor.summary import class_counts
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.hypergraph.statistics import class_mixing, component_sizes
from edhnn.plotting.style import (
    BLUE,
    GREY,
    ORANGE,
    PURPLE,
    TEAL,
    Picture,
    empty_panel,
    growing_bins,
    head,
    logarithmic_if_wide,
    plain_number,
    save_figure,
    short,
)
from edhnn.typing import FloatArray, IntArray

WIDE = 30  # the largest value for which each value has its own bar
LONG_TAIL = 8  # bins are logarithmic if the largest value is more than this many times the median
MANY_CLASSES, NUMBERED_CLASSES = 40, 12
NAME_LENGTH = 14


def draw(dataset: NodeDataset, path: Path | str | None = None) -> Figure:
    """Draw any dataset and return the figure, which a notebook shows.

    Args:
        dataset: The dataset.
        path: Where to save it as PNG too; a failure leaves no partial file.
    """
    figure = picture(dataset)
    if path is not None:
        save_figure(figure, Path(path), dpi=150)
    return figure


def picture(dataset: NodeDataset) -> Figure:
    """Draw a dataset as a matplotlib figure outside of pyplot's global state."""
    figure = Picture(
        figsize=(11, 8),
        layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15, hspace=0.05, wspace=0.04),
        facecolor="white",
    )
    hypergraph = dataset.hypergraph
    figure.suptitle(_title(dataset), fontsize=13, fontweight="bold", parse_math=False)
    panels: list[Axes] = list(figure.subplots(2, 2).flat)
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=9, color=GREY)
    sizes, degrees = hypergraph.edge_size.cpu().numpy(), hypergraph.degree.cpu().numpy()
    _draw_counts(panels[0], sizes, "Hyperedge sizes", "nodes in a hyperedge", "hyperedges", BLUE)
    _draw_counts(panels[1], degrees, "Node degrees", "hyperedges of a node", "nodes", TEAL)
    classes = class_counts(dataset) or []
    if dataset.task == "regression" and dataset.labelled.any():
        _draw_values(panels[2], dataset)
        _draw_components(panels[3], hypergraph)
    elif sum(classes):
        _draw_classes(panels[2], dataset, classes)
        if dataset.task == "classification" and dataset.y is not None:
            _draw_mixing(panels[3], dataset, class_mixing(hypergraph, dataset.y, len(classes)))
        else:
            _draw_components(panels[3], hypergraph)
    else:
        _draw_degree_and_size(panels[2], hypergraph)
        _draw_components(panels[3], hypergraph)
    return figure


def _title(dataset: NodeDataset) -> str:
    graph = dataset.hypergraph
    nodes, edges = counted(graph.num_nodes, "node", "nodes"), counted(graph.num_edges, "hyperedge", "hyperedges")
    memberships = counted(graph.num_incidences, "membership", "memberships")
    return f"{short(dataset.name, 60)}: {nodes}, {edges}, {memberships}"


def _draw_counts(panel: Axes, values: IntArray, title: str, x_label: str, y_label: str, colour: str) -> None:
    """Draw a histogram of counts: one bar per value, bins for a wide range, growing bins for a long tail."""
    if not len(values):
        empty_panel(panel, title, f"no {y_label}")
        return
    summary = f"mean {values.mean():.2f}, largest {values.max():,}"
    if values.max() <= WIDE:
        edges = np.arange(values.max() + 2) - 0.5
        panel.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, steps=[1, 2, 5, 10]))
    elif values.max() <= LONG_TAIL * np.median(values):
        edges = np.arange(0, values.max() + 2, -(-values.max() // WIDE)) - 0.5
        edges = np.append(edges, 2 * edges[-1] - edges[-2])
    else:
        edges = growing_bins(values)
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter(FuncFormatter(plain_number))
        zeros = int((values == 0).sum())
        summary += f", {zeros:,} of 0 not drawn" if zeros else ""
    heights, _ = np.histogram(values, edges)
    panel.bar(edges[:-1], heights, width=np.diff(edges), align="edge", color=colour, edgecolor="white", lw=0.6)
    logarithmic_if_wide(panel, heights[heights > 0])
    panel.axvline(max(float(values.mean()), float(edges[0])), color="#333333", lw=1, ls=(0, (4, 3)))
    head(panel, title, x_label, y_label, summary)


def _draw_classes(panel: Axes, dataset: NodeDataset, counts: list[int]) -> None:
    missing = int((~dataset.labelled).sum())
    head(panel, "Nodes per class", "", "nodes", f"{missing:,} unlabelled" if missing else "")
    if len(counts) > MANY_CLASSES:
        ordered = np.sort(np.array(counts))[::-1]
        panel.fill_between(np.arange(1, len(ordered) + 1), ordered, step="mid", color=ORANGE)
        panel.set_xlabel("classes, from the largest", fontsize=9)
    else:
        panel.bar(np.arange(len(counts)), counts, width=0.8, color=ORANGE)
        _name_ticks(panel, dataset, len(counts))
    if len(counts) <= NUMBERED_CLASSES:
        for x, count in enumerate(counts):
            panel.text(x, count, f"{count:,}", ha="center", va="bottom", fontsize=8)
    panel.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    panel.yaxis.set_major_formatter(FuncFormatter(plain_number))


def _draw_mixing(panel: Axes, dataset: NodeDataset, mixing: FloatArray) -> None:
    title = "Class of a co-member, given a node's class"
    if np.isnan(mixing).all():
        empty_panel(panel, title, "no two labelled nodes share a hyperedge")
        return
    head(panel, title, "class of the co-member", "class of the node")
    panel.spines[:].set_visible(False)
    image = panel.imshow(mixing, vmin=0, vmax=1, cmap="YlGnBu", aspect="auto")
    colours = panel.figure.colorbar(image, ax=panel, fraction=0.046, pad=0.02)
    colours.outline.set_visible(False)
    colours.ax.tick_params(labelsize=8)
    if len(mixing) > MANY_CLASSES:
        return
    _name_ticks(panel, dataset, len(mixing), both=True)
    if len(mixing) <= NUMBERED_CLASSES:
        for (row, column), share in np.ndenumerate(mixing):
            text = "–" if np.isnan(share) else f"{share:.2f}"
            panel.text(
                column, row, text, ha="center", va="center", fontsize=8, color="white" if share > 0.55 else "#333333"
            )


def _draw_values(panel: Axes, dataset: NodeDataset) -> None:
    assert dataset.y is not None
    values = dataset.y.reshape(-1).cpu().double().numpy()
    finite = values[np.isfinite(values)]
    if not len(finite):
        empty_panel(panel, "Labels", "no finite label")
        return
    missing = len(values) - len(finite)
    head(panel, "Labels", "value", "nodes", f"{missing:,} unknown or infinite" if missing else "")
    panel.hist(finite, bins=min(40, max(len(np.unique(finite)), 1)), color=ORANGE, edgecolor="white", lw=0.4)


def _draw_components(panel: Axes, hypergraph: Hypergraph) -> None:
    title, sizes = "Components, by size", component_sizes(hypergraph)
    if not len(sizes):
        empty_panel(panel, title, "no nodes")
        return
    rank = np.arange(1, len(sizes) + 1)
    if len(sizes) <= WIDE:
        panel.bar(rank, sizes, width=0.85, color=PURPLE)
        panel.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, steps=[1, 2, 5, 10]))
        panel.set_xlim(0.4, max(len(sizes), 4) + 0.6)
    else:
        panel.step(rank, sizes, where="mid", color=PURPLE, lw=1.6)
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter(FuncFormatter(plain_number))
    logarithmic_if_wide(panel, sizes)
    head(panel, title, "component", "nodes", f"{len(sizes):,} in all, largest {sizes[0]:,}")


def _draw_degree_and_size(panel: Axes, hypergraph: Hypergraph) -> None:
    """Draw the density of nodes over their degree and the mean size of their hyperedges."""
    title = "Nodes by degree and hyperedge size"
    degree, total = hypergraph.degree.cpu(), torch.zeros(hypergraph.num_nodes, dtype=torch.int64)
    total.index_add_(0, hypergraph.node_index.cpu(), hypergraph.edge_size.cpu()[hypergraph.edge_index.cpu()])
    connected = degree > 0
    if not bool(connected.any()):
        empty_panel(panel, title, "no node is in a hyperedge")
        return
    head(panel, title, "hyperedges of a node", "mean size of its hyperedges")
    x, y = degree[connected].numpy(), (total[connected] / degree[connected]).numpy()
    bins = (growing_bins(x), np.geomspace(y.min() / 1.05, y.max() * 1.05, 32))
    density, _, _ = np.histogram2d(x, y, bins)
    image = panel.pcolormesh(
        *bins, np.where(density > 0, density, np.nan).T, cmap="YlGnBu", norm=LogNorm(0.5, max(density.max(), 10))
    )
    panel.figure.colorbar(image, ax=panel, fraction=0.046, pad=0.02, label="nodes", format=FuncFormatter(plain_number))
    panel.set_xscale("log")
    panel.set_yscale("log")
    for axis, values in ((panel.xaxis, x), (panel.yaxis, y)):
        axis.set_major_formatter(FuncFormatter(plain_number))
        axis.set_minor_formatter(FuncFormatter(plain_number) if values.max() < 10 * values.min() else NullFormatter())


def _name_ticks(panel: Axes, dataset: NodeDataset, count: int, *, both: bool = False) -> None:
    names: Sequence[object] = dataset.class_names if dataset.class_names is not None else range(count)
    shown = [short(str(name), NAME_LENGTH) for name in names]
    crowded = sum(map(len, shown)) > 40
    panel.set_xticks(
        range(count), shown, rotation=40 if crowded else 0, ha="right" if crowded else "center", parse_math=False
    )
    if both:
        panel.set_yticks(range(count), shown, parse_math=False)
