"""Classical diffusion: two seeds, four potentials, and a local cluster by a sweep.

python examples/diffuse.py
"""

import torch

from edhnn import ADMM, Hypergraph, diffuse, pagerank_problem, solve, sweep_cut


def main() -> set[int]:
    chain = Hypergraph.from_hyperedges([[0, 1, 2], [2, 3], [3, 4, 5]])
    seeds = torch.tensor([[1.0], [0.0], [0.0], [0.0], [0.0], [-1.0]], dtype=torch.float64)
    for potential in ("ce", "divergence", "tv", "lec"):
        solution = diffuse(chain, seeds, potential=potential, strength=0.5)
        states = " ".join(f"{value:6.3f}" for value in solution.value[:, 0].tolist())
        print(f"{potential:10} {states}   gap {solution.last.gap:.0e}")

    draw = torch.Generator().manual_seed(0)
    inside = [torch.randperm(30, generator=draw)[:5].tolist() for _ in range(50)]
    outside = [(30 + torch.randperm(120, generator=draw)[:5]).tolist() for _ in range(150)]
    across = [torch.randperm(150, generator=draw)[:5].tolist() for _ in range(5)]
    hypergraph = Hypergraph.from_hyperedges(inside + outside + across, num_nodes=150)
    start = torch.zeros(150, 1, dtype=torch.float64)
    start[:3] = 1 / 3
    problem = pagerank_problem(hypergraph, start, restart=0.05)
    scores = solve(problem, ADMM(step_size=0.5, adaptive=True, tolerance=1e-6)).value[:, 0]
    cut = sweep_cut(hypergraph, scores)
    members = set(cut.members.tolist())
    planted = len(members & set(range(30)))
    print(f"cluster of {len(members)} nodes, conductance {cut.conductance:.3f}, {planted} of 30 planted")
    return members


if __name__ == "__main__":
    main()
