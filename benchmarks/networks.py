"""Compare a training step and an inference of ED-HNN with the textbook version's, and with the machine's limit.

    EDHNN_DATA=... python benchmarks/networks.py                       all, about 20 minutes
    EDHNN_DATA=... python benchmarks/networks.py --only senate house   some

Workloads are the datasets at the paper's sizes (Table 6; Congress and Walmart with one iteration, Walmart with width
128) and random hypergraphs of 10^4 to 10^7 incidences with one iteration of width 64. `textbook.py` has a row per
incidence and PyTorch's modules; "pyg" is the same with torch_geometric's `MessagePassing`; `torch` is ours with
EDHNN_KERNELS=torch. Times are the fastest of several, each implementation in separate processes, two rounds in turns.
Peak memory is the most that a step adds to its process, and for 10^7 the peak of the whole process. Ours runs with
large pages, which importing edhnn enables; the others run with PyTorch's defaults. `machine_limit.py` measures the
limit of the machine. Results go to benchmarks/results/networks.json and, as a picture, networks.png.
"""

import argparse
import ctypes
import gc
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from edhnn.runtime import configure_runtime

configure_runtime()  # before PyTorch is loaded: see docs/adr/0020

import numpy as np
import torch
from machine_limit import limit, seconds
from networks_picture import draw
from textbook import Textbook

from edhnn import Hypergraph, kernels, load_dataset
from edhnn.errors import EdhnnError
from edhnn.hypergraph.transforms import add_singletons
from edhnn.models.edhnn import EDHNN, EDHNNConfig

DROPOUT = {"dropout": 0.3, "input_dropout": 0.2}
TWO = {"phi_layers": 2, "rho_layers": 2, "update_layers": 2, "classifier_layers": 2}
ONE = {"phi_layers": 0, "rho_layers": 1, "update_layers": 1, "classifier_layers": 1}
WORKLOADS = {
    "cora": dict(num_iterations=1, hidden=256, classifier_hidden=256, restart=0.0, **ONE),
    "senate": dict(num_iterations=8, hidden=512, classifier_hidden=256, **TWO),
    "house": dict(num_iterations=8, hidden=256, classifier_hidden=128, **TWO),
    "congress": dict(num_iterations=1, hidden=156, classifier_hidden=128, **TWO),
    "walmart": dict(num_iterations=1, hidden=128, classifier_hidden=128, **TWO),
    **{f"1e{k}": dict(num_iterations=1, hidden=64, classifier_hidden=64, **TWO) for k in (4, 5, 6, 7)},
}
CLASSES, WIDTH = 10, 64  # of random hypergraphs
ALONE = ("1e7",)  # the others take 10 GB and more
PEERS = ("textbook", "pyg")


def random_hypergraph(incidences: int) -> Hypergraph:
    """Draw incidences uniformly, with a tenth as many nodes and hyperedges."""
    count, generator = incidences // 10, torch.Generator().manual_seed(0)
    node = torch.randint(count, (incidences,), generator=generator)
    edge = torch.randint(count, (incidences,), generator=generator)
    return Hypergraph(node, edge, count, count)


def load(name: str) -> tuple[Hypergraph, torch.Tensor, torch.Tensor, int]:
    """Return the hypergraph with singletons, features as stored, labels and the number of classes."""
    if name.startswith("1e"):
        hypergraph = random_hypergraph(int(float(name)))
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(hypergraph.num_nodes, WIDTH, generator=generator)
        return hypergraph, x, torch.randint(CLASSES, (hypergraph.num_nodes,), generator=generator), CLASSES
    dataset = load_dataset(name)
    assert dataset.x is not None
    assert dataset.y is not None
    return add_singletons(dataset.hypergraph), dataset.x, dataset.y, int(dataset.y.max()) + 1


def present(names: Iterable[str]) -> Iterator[str]:
    """Yield the names whose data is available; report the others."""
    for name in names:
        try:
            name.startswith("1e") or load_dataset(name)
        except EdhnnError as error:
            print(f"{name}: skipped. {error}", file=sys.stderr)
            continue
        yield name


def peer(who: str, ours: EDHNN) -> torch.nn.Module:
    if who == "textbook":
        return Textbook(ours)
    from textbook_pyg import MessagePassed

    return MessagePassed(ours)


class Case:
    """One workload by one implementation: a training step and an inference."""

    def __init__(self, name: str, who: str) -> None:
        self.who = who
        self.hypergraph, self.x, y, classes = load(name)
        config = EDHNNConfig(**WORKLOADS[name], **DROPOUT)
        ours = EDHNN(config, in_features=self.x.shape[1], num_classes=classes)
        self.model = peer(who, ours) if who in PEERS else ours
        if who in PEERS and self.x.layout == torch.sparse_csr:
            self.x = self.x.to_dense()
        self.x = self.x.float()
        self.train = torch.arange(0, len(y), 2)
        self.y = y[self.train]
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)

    def step(self) -> None:
        self.chosen()
        self.model.train()
        self.optimiser.zero_grad()
        out = self.model(self.x, self.hypergraph)
        torch.nn.functional.cross_entropy(out[self.train], self.y).backward()
        self.optimiser.step()

    def inference(self) -> torch.Tensor:
        self.chosen()
        self.model.eval()
        with torch.inference_mode():
            return self.model(self.x, self.hypergraph)

    def chosen(self) -> None:
        kernels.choose("torch" if self.who == "torch" else "native")


def times(name: str, budget: float) -> dict[str, dict[str, float]]:
    """Return the fastest step and inference of each implementation, in separate processes, in turns."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(2):
        for who in ("native", "torch", *PEERS):
            if who != "native" and name in ALONE:
                continue
            results = json.loads(alone("--time", name, who, str(budget / 2)))
            old = best.setdefault(who, results)
            best[who] = {what: min(old[what], value) for what, value in results.items()}
    return best


def measure_times(name: str, who: str, budget: float) -> None:
    case = Case(name, who)
    results = {}
    if who == "native" and name not in ALONE and name != "congress":
        book = Case(name, "textbook")
        book.model = Textbook(case.model)
        ours, expected = case.inference(), book.inference()
        results["apart"] = float((ours - expected).abs().max() / expected.abs().max())
        del book, expected
    case.step()
    for what, call in (("step", case.step), ("inference", case.inference)):
        runs: list[float] = []
        while len(runs) < 3 or (sum(runs) < budget / 2 and len(runs) < 200):
            runs.append(seconds(call))
        results[what] = min(runs)
    print(json.dumps(results))


def alone(what: str, name: str, who: str, *rest: str) -> str:
    pages = {"THP_MEM_ALLOC_ENABLE": "0" if who in PEERS else "1"}  # importing edhnn sets 1, PyTorch's default is 0
    command, environment = [sys.executable, __file__, what, name, who, *rest], {**os.environ, **pages}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.splitlines()[-1]


def peak(name: str, who: str) -> float:
    """Return the most bytes that a step adds to its process, which is a separate one."""
    return float(alone("--peak", name, who))


def measure_peak(name: str, who: str) -> None:
    case = Case(name, who)
    if name in ALONE:  # there is no other implementation to compare with, so the peak of the process
        case.step()
        print(status("VmHWM"))
        return
    for _ in range(2):  # afterwards everything that is made once (links, Adam's state) exists
        case.step()
    print(added_by(case.step))


def added_by(step: Callable[[], object]) -> int:
    """Return the most bytes that a call adds to this process."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # return freed memory to the system, so that it counts again
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    step()
    return status("VmHWM") - before


def status(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def machine() -> dict[str, object]:
    return {
        "python": platform.python_version(), "torch": torch.__version__, "system": platform.system(),
        "cores": os.cpu_count(), "threads": torch.get_num_threads(), "kernels": kernels.active(),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of timing for each workload")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--time", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "networks.json")
    arguments = parser.parse_args()
    if arguments.peak:
        measure_peak(*arguments.peak)
        return
    if arguments.time:
        name, who, budget = arguments.time
        measure_times(name, who, float(budget))
        return
    record = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"workloads": {}}
    record["machine"] = machine()
    heads = (
        ("step", 9),
        ("torch", 7),
        ("textbook", 9),
        ("ratio", 6),
        ("pyg", 6),
        ("memory", 7),
        ("infer", 6),
        ("limit", 6),
    )
    print(f"{'workload':10} " + " ".join(f"{title:>{width}}" for title, width in heads))
    for name in present(arguments.only):
        results: dict[str, object] = {"settings": {**WORKLOADS[name], **DROPOUT}, **times(name, arguments.budget)}
        if not arguments.no_memory:
            results["peak_bytes"] = {
                who: peak(name, who) for who in ("native", *PEERS) if who == "native" or name not in ALONE
            }
        hypergraph, x, _, classes = load(name)
        results["limit"] = limit(hypergraph, x, classes, WORKLOADS[name])
        record["workloads"][name] = results
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")
        print(row(name, results), flush=True)
    draw(record["workloads"], arguments.out.with_suffix(".png"))


def row(name: str, results: dict) -> str:
    ours, book = results["native"], results.get("textbook")
    memory = results.get("peak_bytes", {})
    shares = [
        f"{ours['step'] * 1e3:7.1f}ms",
        f"{results['torch']['step'] / ours['step']:6.1f}x" if "torch" in results else "      -",
        f"{book['step'] * 1e3:7.0f}ms" if book else "        -",
        f"{book['step'] / ours['step']:5.1f}x" if book else "     -",
        f"{results['pyg']['step'] / ours['step']:5.1f}x" if "pyg" in results else "     -",
        f"{memory['textbook'] / memory['native']:6.1f}x"
        if "textbook" in memory
        else f"{memory.get('native', np.nan) / 2**30:4.1f}GiB",
        f"{book['inference'] / ours['inference']:5.1f}x" if book else "     -",
        f"{ours['step'] / results['limit']['step']:5.2f}x",
    ]
    return f"{name:10} " + " ".join(shares)


if __name__ == "__main__":
    main()
