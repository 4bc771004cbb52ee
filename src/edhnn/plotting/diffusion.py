r"""Draw a solve on one page: the state at a few steps, the path of every node, and the certificate over the steps.

A small hypergraph is drawn in its bipartite form: nodes coloured by their state, and a grey dot per hyperedge joined to
its members, placed so that distances on the page follow path lengths. For a larger one the sorted states are drawn.
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
from edhnn.plotting.style import BLUE, GREY, ORANGE, Picture, short
from edhnn.typing import FloatArray

DRAWN, NAMED, PATHS = 300, 30, 200  # the most nodes and hyperedges drawn, nodes with names, and paths
SNAPSHOTS, MAJORISATIONS = 4, 100


class Look(NamedTuple):
    """A check of a solver: its record and the state of one column."""

    record: StepRecord
    state: Float[Tensor, " N"]


def diffusion_picture(
    hypergraph: Hypergraph, looks: Sequence[Look], *, title: str, names: Sequence[str] | None = None
) -> Figure:
    """Draw a solve.

    Args:
        hypergraph: The hypergraph.
        looks: At least one check, in the order of their steps.
        title: The title of the page.
        names: A name per node, drawn beside it in a hypergraph of at most 30 nodes.

    Returns:
        A figure outside of pyplot's global state.
    """
    figure = Picture(figsize=(13, 7.5), layout="constrained", facecolor="white")
    figure.suptitle(title, fontsize=12, fontweight="bold", parse_math=False)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[1.1, 1.0])[:, 0]
    chosen = [looks[number] for number in snapshot_numbers(len(looks))]
    panels: list[Axes] = list(above.subplots(1, len(chosen), squeeze=False).flat)
    states = np.stack([look.state.double().cpu().numpy() for look in looks])
    if hypergraph.num_nodes > 0 and hypergraph.num_nodes + hypergraph.num_edges <= DRAWN:
        points, norm = _layout(hypergraph), _colours(states)
        for panel, look in zip(panels, chosen, strict=True):
            _draw_hypergraph(panel, hypergraph, points, look, norm, names)
        above.colorbar(panels[-1].collections[-1], ax=panels, shrink=0.8, label="state")
    else:
        for panel, look in zip(panels, chosen, strict=True):
            panel.plot(np.sort(look.state.double().cpu().numpy())[::-1], color=BLUE)
            panel.set(title=f"step {look.record.step}", xlabel="nodes, highest first")
    paths, curves = below.subplots(1, 2)
    _draw_paths(paths, [look.record.step for look in looks], states)
    _draw_certificate(curves, [look.record for look in looks])
    return figure


def snapshot_numbers(count: int) -> list[int]:
    """Choose at most four of ``count`` checks: the first, the last, and two between, nearer to the first."""
    spaced = np.geomspace(1, count, min(SNAPSHOTS, count)) - 1
    return sorted({*spaced.round().astype(int).tolist(), count - 1})


def _layout(hypergraph: Hypergraph) -> FloatArray:
    """Return a point per node, then per hyperedge, by metric scaling of path lengths in the bipartite form."""
    nodes, total = hypergraph.num_nodes, hypergraph.num_nodes + hypergraph.num_edges
    ends = hypergraph.node_index.cpu().numpy(), nodes + hypergraph.edge_index.cpu().numpy()
    length = shortest_path(sp.coo_array((np.ones(len(ends[0])), ends), shape=(total, total)), directed=False)
    reached = np.isfinite(length)
    length[~reached] = 1.5 * length[reached].max() + 1.0  # separates the components
    points: FloatArray = np.random.default_rng(0).normal(size=(total, 2))
    for _ in range(MAJORISATIONS):  # Guttman's step, which never raises the stress
        distance = np.linalg.norm(points[:, None] - points[None], axis=2)
        pull = np.divide(length, distance, out=np.zeros_like(distance), where=distance > 0)
        points = (pull.sum(1, keepdims=True) * points - pull @ points) / total
    return points


def _colours(states: FloatArray) -> Normalize:
    finite = states[np.isfinite(states)]
    low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    if low < 0 < high:
        return TwoSlopeNorm(0.0, low, high)
    return Normalize(low, high if high > low else low + 1.0)


def _draw_hypergraph(
    panel: Axes, hypergraph: Hypergraph, points: FloatArray, look: Look, norm: Normalize, names: Sequence[str] | None
) -> None:
    nodes = hypergraph.num_nodes
    node, edge = hypergraph.node_index.cpu().numpy(), hypergraph.edge_index.cpu().numpy()
    ends = np.stack([points[node], points[nodes + edge]], axis=1)
    panel.add_collection(LineCollection(list(ends), colors=GREY, linewidths=0.8, alpha=0.6, zorder=1))
    panel.scatter(points[nodes:, 0], points[nodes:, 1], s=14, color=GREY, zorder=2)
    colour = look.state.double().cpu().numpy()
    x, y = points[:nodes].T
    panel.scatter(x, y, s=70, c=colour, cmap="coolwarm", norm=norm, edgecolors="black", zorder=3)
    if names is not None and nodes <= NAMED:
        for name, point in zip(names, points[:nodes], strict=True):
            panel.annotate(
                short(name, 20),
                point,
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=7,
                parse_math=False,
                zorder=4,
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
    curves = (
        ("duality gap", [record.gap for record in records], BLUE),
        ("optimality residual", [record.residual for record in records], ORANGE),
    )
    for label, curve, colour in curves:
        values = np.array(curve, dtype=float)
        shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        if not np.isnan(shown).all():
            panel.plot(steps, shown, color=colour, label=label)
            panel.set_yscale("log")
            panel.legend(frameon=False)
    panel.set_xscale("symlog", linthresh=10)
    panel.set(title="Distance from the minimum", xlabel="step")
