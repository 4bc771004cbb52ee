"""The picture of a solve: drawn for every kind of hypergraph, with the right curves."""

import io

import pytest
import torch

from edhnn import Hypergraph, diffuse
from edhnn.diffusion.solver import StepRecord
from edhnn.plotting.diffusion import Look, diffusion_picture, snapshot_numbers


def checks_of(hypergraph, **options):
    looks = []
    x = torch.linspace(-1, 1, hypergraph.num_nodes, dtype=torch.float64)[:, None]
    diffuse(hypergraph, x, watch=lambda record, state: looks.append(Look(record, state[:, 0])), **options)
    return looks


def test_snapshots_include_the_first_and_the_last_check():
    assert snapshot_numbers(1) == [0]
    assert snapshot_numbers(2) == [0, 1]
    for count in range(3, 200):
        numbers = snapshot_numbers(count)
        assert numbers[0] == 0
        assert numbers[-1] == count - 1
        assert len(numbers) <= 4


@pytest.mark.parametrize(
    "hyperedges, num_nodes",
    [([[0, 1, 2], [2, 3], []], 6), ([], 1), ([[0], [0]], 1), ([list(range(k, k + 3)) for k in range(400)], 402)],
    ids=["small", "one node", "singletons", "large"],
)
def test_a_solve_is_drawn(hyperedges, num_nodes):
    hypergraph = Hypergraph.from_hyperedges(hyperedges, num_nodes=num_nodes)
    looks = checks_of(hypergraph)
    names = [f"$node_{v}" for v in range(num_nodes)]
    figure = diffusion_picture(hypergraph, looks, title="$a_title", names=names)
    figure.savefig(io.BytesIO(), format="png")
    titles = {axes.get_title() for axes in figure.get_axes()}
    assert {"step 0", f"step {looks[-1].record.step}"} <= titles
    curves = next(axes for axes in figure.get_axes() if axes.get_title() == "Distance from the minimum")
    gaps = [look.record.gap for look in looks if 0 < look.record.gap < float("inf")]
    if gaps:
        drawn = curves.get_lines()[0].get_ydata()
        assert [value for value in drawn if value == value] == gaps


def test_diverged_states_are_drawn():
    hypergraph = Hypergraph.from_hyperedges([[0, 1]])
    record = StepRecord(step=0, objective=float("nan"), gap=float("inf"), residual=float("nan"), seconds=0.0)
    looks = [Look(record, torch.tensor([float("nan"), float("inf")]))]
    diffusion_picture(hypergraph, looks, title="diverged").savefig(io.BytesIO(), format="png")
