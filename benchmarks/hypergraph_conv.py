"""Compare two hypergraph convolutions, our HCHA and torch_geometric's `HypergraphConv`, with the same weights.

    EDHNN_DATA=... python benchmarks/hypergraph_conv.py [--only cora walmart]

D^-1 H W B^-1 H^T x Theta + b twice with ELU between, width 64; a training step and an inference. Each runs in separate
processes, two rounds in turns, and the fastest counts. Peak memory is the most that a step adds to its process. Outputs
are compared in evaluation. Results go to benchmarks/results/hypergraph_conv.json.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from edhnn.runtime import configure_runtime

configure_runtime()  # before PyTorch is loaded: see docs/adr/0020

import torch
from machine_limit import seconds
from networks import added_by, load, machine, present
from torch import Tensor, nn
from torch_geometric.nn import HypergraphConv

from edhnn import Hypergraph
from edhnn.models.baselines.hgnn import HCHA, HCHAConfig

WORKLOADS = ("cora", "senate", "house", "congress", "walmart", "1e5", "1e6")
WIDTH, DROPOUT = 64, 0.5


class Peer(nn.Module):
    """The same network from PyG's layers, with our weights."""

    def __init__(self, model: HCHA) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for ours in model.convolutions:
            weight = ours.projection.weight
            layer = HypergraphConv(weight.shape[1], weight.shape[0])
            layer.lin.weight, layer.bias = weight, ours.bias
            self.layers.append(layer)

    def forward(self, x: Tensor, hypergraph: Hypergraph) -> Tensor:
        first, second = self.layers
        index = torch.stack([hypergraph.node_index, hypergraph.edge_index])
        h = torch.nn.functional.dropout(torch.nn.functional.elu(first(x, index)), DROPOUT, self.training)
        out: Tensor = second(h, index)
        return out


def measure(name: str, who: str) -> None:
    hypergraph, x, y, classes = load(name)
    ours = HCHA(HCHAConfig(hidden=WIDTH, dropout=DROPOUT), in_features=x.shape[1], num_classes=classes)
    dense = x.float().to_dense() if x.layout == torch.sparse_csr else x.float()
    model, features = (ours, x.float()) if who == "ours" else (Peer(ours), dense)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        model.train()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(features, hypergraph)[::2], y[::2]).backward()
        optimiser.step()

    def inference() -> Tensor:
        model.eval()
        with torch.inference_mode():
            return model(features, hypergraph)

    results = {}
    if who == "ours":
        with torch.inference_mode():
            theirs = Peer(ours).eval()(dense, hypergraph)
        results["apart"] = float((inference() - theirs).abs().max() / theirs.abs().max())
        del theirs
    step(), step()
    results["peak_bytes"] = added_by(step)
    for what, call in (("step", step), ("inference", inference)):
        runs: list[float] = []
        while len(runs) < 5 or (sum(runs) < 2 and len(runs) < 200):
            runs.append(seconds(call))
        results[what] = min(runs)
    print(json.dumps(results))


def alone(name: str, who: str) -> dict[str, float]:
    environment = {**os.environ, "THP_MEM_ALLOC_ENABLE": "1" if who == "ours" else "0"}
    command = [sys.executable, __file__, "--one", name, who]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "hypergraph_conv.json")
    arguments = parser.parse_args()
    if arguments.one:
        measure(*arguments.one)
        return
    record = {"machine": machine(), "width": WIDTH, "workloads": {}}
    print(f"{'workload':10} {'ours':>9} {'pyg':>9} {'step':>6} {'infer':>6} {'memory':>7} {'apart':>8}")
    for name in present(arguments.only):
        rounds = [(alone(name, "ours"), alone(name, "pyg")) for _ in range(2)]
        ours, pyg = ({key: min(run[side][key] for run in rounds) for key in rounds[0][side]} for side in (0, 1))
        record["workloads"][name] = {"ours": ours, "pyg": pyg}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")
        print(
            f"{name:10} {ours['step'] * 1e3:7.1f}ms {pyg['step'] * 1e3:7.1f}ms {pyg['step'] / ours['step']:5.1f}x "
            f"{pyg['inference'] / ours['inference']:5.1f}x {pyg['peak_bytes'] / ours['peak_bytes']:6.1f}x "
            f"{ours['apart']:8.0e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
