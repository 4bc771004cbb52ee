"""Compare a training step of ED-HNN before and after a change, and the textbook version's, in one run.

    EDHNN_DATA=... python benchmarks/steps.py --before OLD_CHECKOUT/src      about 6 minutes
    EDHNN_DATA=... python benchmarks/steps.py --only tiny csbm-4             without an old version to compare with

Each runs in a separate process. They take turns, several steps at a time, so that a disturbance of the machine affects
all of them. Ours run with the settings of `edhnn.configure_runtime`, the textbook version (`textbook.py`) with
PyTorch's defaults. The optimiser is the same.

`tiny` is 100 nodes, 500 incidences, width 64, two iterations; `csbm-4` the contextual SBM of alpha 4 at width 64; the
datasets are at the sizes of `networks.py`. Results go to benchmarks/results/steps.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
TWO = {"phi_layers": 2, "rho_layers": 2, "update_layers": 2, "classifier_layers": 2}
ONE = {"phi_layers": 0, "rho_layers": 1, "update_layers": 1, "classifier_layers": 1}
WORKLOADS = {
    "tiny": dict(num_iterations=2, hidden=64, classifier_hidden=64, **TWO),
    "csbm-4": dict(num_iterations=2, hidden=64, classifier_hidden=64, **TWO),
    "cora": dict(num_iterations=1, hidden=256, classifier_hidden=256, restart=0.0, **ONE),
    "senate": dict(num_iterations=8, hidden=512, classifier_hidden=256, **TWO),
    "house": dict(num_iterations=8, hidden=256, classifier_hidden=128, **TWO),
    "walmart": dict(num_iterations=1, hidden=128, classifier_hidden=128, **TWO),
}
DROPOUT = {"dropout": 0.3, "input_dropout": 0.2}
SETTINGS = {"THP_MEM_ALLOC_ENABLE": "1", "MKL_CBWR": "AUTO,STRICT", "GOMP_SPINCOUNT": "10000"}


def serve(name: str, who: str) -> None:
    """Run the number of steps in each line of the input and print their seconds; works with every version of edhnn."""
    import torch

    from edhnn import EDHNN, EDHNNConfig, Hypergraph, add_singletons, contextual_sbm, load_dataset

    if name == "tiny":
        generator = torch.Generator().manual_seed(0)
        node, edge = (torch.randint(count, (500,), generator=generator) for count in (100, 50))
        hypergraph = Hypergraph(node, edge, 100, 50)
        x, y = torch.randn(100, 64, generator=generator), torch.randint(4, (100,), generator=generator)
    else:
        dataset = contextual_sbm(4) if name == "csbm-4" else load_dataset(name)
        hypergraph, x, y = add_singletons(dataset.hypergraph), dataset.x, dataset.y
    config = EDHNNConfig(**WORKLOADS[name], **DROPOUT)
    model = EDHNN(config, in_features=x.shape[1], num_classes=int(y.max()) + 1)
    if who == "textbook":
        from textbook import Textbook

        model, x = Textbook(model), x.to_dense() if x.layout == torch.sparse_csr else x
    x, train = x.float(), torch.arange(0, len(y), 2)
    known = y[train]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step() -> float:
        start = time.perf_counter()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x, hypergraph)[train], known).backward()
        optimiser.step()
        return time.perf_counter() - start

    model.train()
    step()
    for line in sys.stdin:
        print(json.dumps([step() for _ in range(int(line))]), flush=True)


class Worker:
    """One version, in a separate process."""

    def __init__(self, name: str, who: str, source: Path | None) -> None:
        environment = {**os.environ, **({} if who == "textbook" else SETTINGS)}
        if source is not None:
            environment["PYTHONPATH"] = str(source)
        command = [sys.executable, "-W", "ignore", __file__, "--serve", name, who]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)
        self.seconds: list[float] = []

    def run(self, steps: int) -> list[float]:
        """Run a number of steps; return their seconds."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def measure(name: str, sources: dict[str, Path | None], budget: float) -> dict[str, dict[str, float]]:
    """Measure the fastest and the median step of each version, in turns."""
    workers = {who: Worker(name, who, source) for who, source in sources.items()}
    sizes = {who: max(1, min(20, int(0.3 / min(worker.run(2))))) for who, worker in workers.items()}
    end = time.perf_counter() + budget
    while time.perf_counter() < end or min(len(worker.seconds) for worker in workers.values()) < 3:
        for who, worker in workers.items():
            worker.seconds += worker.run(sizes[who])
    for worker in workers.values():
        worker.close()
    return {
        who: {"fastest": min(worker.seconds), "median": statistics.median(worker.seconds)}
        for who, worker in workers.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--before", type=Path, help="the folder 'src' of an older checkout with its native kernels built"
    )
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--budget", type=float, default=45.0, help="seconds of each workload")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "steps.json")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(*arguments.serve)
        return
    after = HERE.parent / "src"
    sources = {"after": after, "textbook": after}
    if arguments.before:
        sources = {"before": arguments.before.resolve(), **sources}
    record = {}
    print("milliseconds of a step, fastest (median)")
    for name in arguments.only:
        measured = record[name] = measure(name, sources, arguments.budget)
        shown = [f"{who} {1e3 * t['fastest']:8.2f} ({1e3 * t['median']:8.2f})" for who, t in measured.items()]
        ratios = [
            f"{who} / after {t['fastest'] / measured['after']['fastest']:5.2f}"
            for who, t in measured.items()
            if who != "after"
        ]
        print(f"{name:8} " + "  ".join(shown + ratios), flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
