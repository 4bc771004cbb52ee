r"""Draw a solve on one page: the state at a few steps, the path of every node, and the fall of the certificate.

A small hypergraph is drawn in its bipartite form: nodes coloured by their state, a grey dot per hyperedge joined to its
members, placed so that distances on the page follow path lengths. For a larger one the sorted states are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path
from torch import Tensor

from edhnn.diffusion.solver import StepRecord
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.plotting.style import BLUE, GREY, ORANGE
from edhnn.typing import FloatArray

DRAWN, NAMED, PATHS = 300, 30, 200  # most nodes and hyperedges drawn, most nodes named, most paths
SNAPSHOTS, MAJORISATIONS = 4, 100


class Look(NamedTuple):
    """A step of a solver: its record and the state of one column."""

    record: StepRecord
    state: Float[Tensor, " N"]


def diffusion_picture(
    hypergraph: Hypergraph, looks: Sequence[Look], *, title: str, names: Sequence[str] | None = None
) -> Figure:
    """Draw a solve.

    Args:
        hypergraph: The hypergraph.
        looks: At least one look, in the order of their steps.
        title: What was solved.
        names: A name per node, written beside it if there are few.

    Returns:
        A figure outside of pyplot's global state.
    """
    figure = Figure(figsize=(13, 7.5), layout="constrained", facecolor="white")
    figure.suptitle(title, fontsize=12, fontweight="bold", parse_math=False)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[1.1, 1.0])[:, 0]
    chosen = [looks[place] for place in snapshot_places(len(looks))]
    panels: list[Axes] = list(above.subplots(1, len(chosen), squeeze=False).flat)
    states = np.stack([look.state.double().cpu().numpy() for look in looks])
    small = hypergraph.num_nodes > 0 and hypergraph.num_nodes + hypergraph.num_edges <= DRAWN
    if small:
        places, norm = _layout(hypergraph), _colours(states)
        for panel, look in zip(panels, chosen, strict=True):
            _draw_hypergraph(panel, hypergraph, places, look, norm, names)
        shown = panels[-1].collections[-1]
        above.colorbar(shown, ax=panels, shrink=0.8, label="state")
    else:
        for panel, look in zip(panels, chosen, strict=True):
            panel.plot(np.sort(look.state.double().cpu().numpy())[::-1], color=BLUE)
            panel.set(title=f"step {look.record.step}", xlabel="nodes, highest first")
    paths, curves = below.subplots(1, 2)
    _draw_paths(paths, [look.record.step for look in looks], states)
    _draw_certificate(curves, [look.record for look in looks])
    return figure


def snapshot_places(count: int) -> list[int]:
    """Choose at most four of ``count`` steps: the first, the last, and more of the early ones."""
    spaced = np.geomspace(1, count, min(SNAPSHOTS, count)) - 1
    return sorted({*spaced.round().astype(int).tolist(), count - 1})


def _layout(hypergraph: Hypergraph) -> FloatArray:
    """Place nodes, then hyperedges, by metric scaling of path lengths in the bipartite form."""
    nodes, total = hypergraph.num_nodes, hypergraph.num_nodes + hypergraph.num_edges
    ends = hypergraph.node_index.cpu().numpy(), nodes + hypergraph.edge_index.cpu().numpy()
    length = shortest_path(sp.coo_array((np.ones(len(ends[0])), ends), shape=(total, total)), directed=False)
    reached = np.isfinite(length)
    length[~reached] = 1.5 * length[reached].max() + 1.0  # components are placed apart
    places: FloatArray = np.random.default_rng(0).normal(size=(total, 2))
    for _ in range(MAJORISATIONS):  # Guttman's step: the stress never rises
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        pull = np.divide(length, apart, out=np.zeros_like(apart), where=apart > 0)
        places = (pull.sum(1, keepdims=True) * places - pull @ places) / total
    return places


def _colours(states: FloatArray) -> Normalize:
    finite = states[np.isfinite(states)]
    low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    if low < 0 < high:
        return TwoSlopeNorm(0.0, low, high)
    return Normalize(low, high if high > low else low + 1.0)


def _draw_hypergraph(
    panel: Axes, hypergraph: Hypergraph, places: FloatArray, look: Look, norm: Normalize, names: Sequence[str] | None
) -> None:
    nodes = hypergraph.num_nodes
    node, edge = hypergraph.node_index.cpu().numpy(), hypergraph.edge_index.cpu().numpy()
    ends = np.stack([places[node], places[nodes + edge]], axis=1)
    panel.add_collection(LineCollection(list(ends), colors=GREY, linewidths=0.8, alpha=0.6, zorder=1))
    panel.scatter(places[nodes:, 0], places[nodes:, 1], s=14, color=GREY, zorder=2)
    colour = look.state.double().cpu().numpy()
    x, y = places[:nodes].T
    panel.scatter(x, y, s=70, c=colour, cmap="coolwarm", norm=norm, edgecolors="black", zorder=3)
    if names is not None and nodes <= NAMED:
        for name, place in zip(names, places[:nodes], strict=True):
            panel.annotate(
                name, place, xytext=(4, 4), textcoords="offset points", fontsize=7, parse_math=False, zorder=4
            )
    panel.set_title(f"step {look.record.step}", fontsize=10)
    panel.set_axis_off()


def _draw_paths(panel: Axes, steps: Sequence[int], states: FloatArray) -> None:
    every = max(1, -(-states.shape[1] // PATHS))
    panel.plot(steps, states[:, ::every], color=BLUE, alpha=0.5, linewidth=1)
    panel.set_xscale("symlog", linthresh=10)
    panel.set(title="State of each node" + ("" if every == 1 else f" (every {every}th)"), xlabel="step")


def _draw_certificate(panel: Axes, records: Sequence[StepRecord]) -> None:
    steps = [record.step for record in records]
    for name, colour in (("gap", BLUE), ("residual", ORANGE)):
        values = np.array([getattr(record, name) for record in records], dtype=float)
        shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        if not np.isnan(shown).all():
            panel.plot(steps, shown, color=colour, label="duality gap" if name == "gap" else "optimality residual")
            panel.set_yscale("log")
            panel.legend(frameon=False)
    panel.set_xscale("symlog", linthresh=10)
    panel.set(title="Distance from the minimum", xlabel="step")
