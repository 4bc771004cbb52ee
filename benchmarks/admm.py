"""ADMM on Walmart to a relative duality gap of 1e-6, compared with the same steps by a NumPy loop over hyperedges.

    EDHNN_DATA=... python benchmarks/admm.py              about five minutes

One column: 1 for a node in a hundred, drawn at random, 0 for the others; total variation and the paper's cardinality
cut, both to the power 2, strength 1, double precision. The NumPy loop runs a full step of Equations 3 and 4 on the
state our solver has halfway, hyperedge by hyperedge, on every 20th hyperedge; the time of all its steps is that, scaled
to all hyperedges and to the number of steps our solver took (both take the same steps). Its proximal points are
compared with ours. Results go to benchmarks/results/admm.json.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import torch
from prox import numpy_cardinality, numpy_total_variation, paper_cut_weight

from edhnn import Hypergraph, kernels, load_dataset
from edhnn.diffusion.admm import ADMM, AdmmState
from edhnn.diffusion.diffusion import make_potential
from edhnn.diffusion.problem import DiffusionProblem
from edhnn.diffusion.solver import solve

TOLERANCE, SHARE, SAMPLE = 1e-6, 0.01, 20


def seeds(hypergraph: Hypergraph) -> torch.Tensor:
    draws = torch.rand(hypergraph.num_nodes, 1, generator=torch.Generator().manual_seed(0))
    return (draws < SHARE).double()


def numpy_step(
    name: str, hypergraph: Hypergraph, x: np.ndarray, state: AdmmState, cut_weight: np.ndarray
) -> tuple[float, float]:
    """Return the seconds of one step by a loop over hyperedges, and its largest difference from ours."""
    edge_ptr, node = hypergraph.edge_ptr.numpy(), hypergraph.node_index.numpy()
    h, q, eta = state.h.numpy(), state.q_ev.numpy().copy(), state.step_size
    potential = make_potential(name)
    ours = potential.prox(2 * state.h[hypergraph.node_index] - state.q_ev, hypergraph, step_size=eta).numpy()  # type: ignore[attr-defined]
    total, difference = np.zeros_like(x), 0.0
    chosen = range(0, hypergraph.num_edges, SAMPLE)
    start, share, checking = time.perf_counter(), 0, 0.0
    for e in chosen:
        rows = slice(edge_ptr[e], edge_ptr[e + 1])
        members = node[rows]
        a = 2 * h[members] - q[rows]
        p = numpy_total_variation(a, eta) if name == "tv" else numpy_cardinality(a, eta, cut_weight[rows])
        q[rows] += p - h[members]
        total[members] += q[rows]
        share += len(members)
        before_check = time.perf_counter()
        difference = max(difference, float(np.abs(p - ours[rows]).max(initial=0.0)))
        checking += time.perf_counter() - before_check
    seconds = (time.perf_counter() - start - checking) * hypergraph.num_incidences / share
    return seconds, difference


def compare(name: str, hypergraph: Hypergraph) -> dict[str, float | str]:
    x = seeds(hypergraph)
    problem = DiffusionProblem(hypergraph=hypergraph, x=x, hyperedge_potential=make_potential(name))
    solver = ADMM(adaptive=True, tolerance=TOLERANCE)
    start = time.perf_counter()
    solution = solve(problem, solver)
    seconds = time.perf_counter() - start
    state = solver.init(problem)
    for _ in range(solution.steps // 2):
        state = solver.step(problem, state)
    cut_weight = paper_cut_weight(hypergraph.edge_ptr).numpy()
    each, difference = numpy_step(name, hypergraph, x.numpy(), state, cut_weight)
    return {
        "steps": solution.steps,
        "objective": solution.last.objective,
        "gap": solution.last.gap,
        "relative_gap": solution.last.gap / solution.last.objective,
        "seconds": seconds,
        "seconds_per_step": seconds / solution.steps,
        "numpy_loop_seconds_per_step": each,
        "numpy_loop_seconds": each * solution.steps,
        "over_numpy": each * solution.steps / seconds,
        "largest_difference_to_numpy": difference,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "admm.json")
    arguments = parser.parse_args()
    hypergraph = load_dataset("walmart").hypergraph
    results = {name: compare(name, hypergraph) for name in ("tv", "lec")}
    record = {
        "data": "walmart",
        "columns": 1,
        "power": 2,
        "tolerance": TOLERANCE,
        "kernels": kernels.active(),
        "numpy_loop": f"one step on every {SAMPLE}th hyperedge, scaled to all hyperedges and steps",
        "potentials": results,
        "machine": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "system": platform.system(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    for name, one in results.items():
        print(
            f"{name}: {one['steps']} steps to a relative gap of {one['relative_gap']:.1e} in {one['seconds']:.1f} s; "
            f"NumPy loop {one['numpy_loop_seconds']:,.0f} s ({one['over_numpy']:.0f}x)"
        )


if __name__ == "__main__":
    main()
