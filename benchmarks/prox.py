"""Compare proximal operators of a whole hypergraph: a NumPy loop over hyperedges, torch kernels and native kernels.

    python benchmarks/prox.py                             all of it, about three minutes
    python benchmarks/prox.py --largest 1e6               without the largest random hypergraph

One sweep is one call: total variation, or the paper's cardinality cut (LEC), both to the power 2, on every hyperedge
and 16 columns in single precision. The first part uses Walmart if EDHNN_DATA is set, else a random hypergraph of its
size. The NumPy loop is timed on every 50th hyperedge and scaled. The second part times native sweeps over random
hypergraphs of growing size: the cost per incidence should not grow. Every run is repeated and the fastest counts. Times
are wall times; the second part also gives processor time (all threads), which a busy machine disturbs less. Results
go to benchmarks/results/prox.json.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from edhnn import kernels, load_dataset

COLUMNS, STEP, POWER, SAMPLE = 16, 0.5, 2, 50
WALMART = (69_906, 460_630)  # hyperedges, incidences


def random_edge_ptr(num_incidences: int) -> torch.Tensor:
    """Draw hyperedges of 2 to 25 members, small ones more often, 6.6 on average as in Walmart."""
    random = np.random.default_rng(0)
    size = np.minimum(2 + random.geometric(1 / 5.7, num_incidences // 6) - 1, 25)
    edge_ptr = np.concatenate([[0], np.cumsum(size)])
    return torch.from_numpy(edge_ptr[: np.searchsorted(edge_ptr, num_incidences, side="right")])


def walmart() -> tuple[str, torch.Tensor]:
    if os.environ.get("EDHNN_DATA"):
        return "walmart", load_dataset("walmart").hypergraph.edge_ptr
    return "random, of Walmart's size", random_edge_ptr(WALMART[1])


def paper_cut_weight(edge_ptr: torch.Tensor) -> torch.Tensor:
    """Return the y of the paper's experiments: +1/half for the upper half, -1/half for the lower, 0 in the middle."""
    size = edge_ptr.diff()
    k = size.repeat_interleave(size)
    rank = torch.arange(len(k)) - edge_ptr[:-1].repeat_interleave(size)
    half = k // 2
    sign = (rank < half).double() - (rank >= k - half).double()
    return sign / half.clamp(min=1)


def numpy_total_variation(a: np.ndarray, step: float) -> np.ndarray:
    """Solve one hyperedge, all columns at once, by Newton's method on the water levels."""
    above, below = -np.sort(-a, axis=0), np.sort(a, axis=0)
    count = np.arange(1, len(a) + 1)[:, None]
    means = np.cumsum(above, axis=0) / count, np.cumsum(below, axis=0) / count
    column, t = np.arange(a.shape[1]), np.zeros(a.shape[1])
    while True:
        top, bottom = (means[0] - t / count).argmax(axis=0), (means[1] + t / count).argmin(axis=0)
        gap = means[0][top, column] - means[1][bottom, column]
        root = gap / (0.5 / step + 1 / (top + 1) + 1 / (bottom + 1))
        if not (root > t).any():
            break
        t = np.maximum(t, root)
    return np.clip(a, (means[1] + t / count).min(axis=0), (means[0] - t / count).max(axis=0))


def numpy_cardinality(a: np.ndarray, step: float, y: np.ndarray) -> np.ndarray:
    """Solve one hyperedge, column by column, by Newton's method on pooled violators."""
    out = np.empty_like(a)
    for d in range(a.shape[1]):
        order = np.argsort(-a[:, d], kind="stable")
        s, tau = a[order, d], 0.0
        while True:
            bounds = pool(s - tau * y)
            sizes = np.diff(np.append(bounds, len(s)))
            sums, tilts = np.add.reduceat(s, bounds), np.add.reduceat(y, bounds)
            root = (tilts * sums / sizes).sum() / (0.5 / step + (tilts * tilts / sizes).sum())
            if abs(root - tau) <= 1e-14 * abs(root):
                break
            tau = root
        out[order, d] = np.repeat((sums - tau * tilts) / sizes, sizes)
    return out


def pool(x: np.ndarray) -> np.ndarray:
    """Return the first index of each block of the projection of x onto non-increasing sequences."""
    starts, sums, sizes = [], [], []
    for i, value in enumerate(x.tolist()):
        starts.append(i), sums.append(value), sizes.append(1)
        while len(sums) > 1 and sums[-2] * sizes[-1] < sums[-1] * sizes[-2]:
            starts.pop()
            sums[-2:], sizes[-2:] = [sums[-2] + sums[-1]], [sizes[-2] + sizes[-1]]
    return np.array(starts)


def fastest(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return wall and processor seconds, each the minimum of all repeats."""
    runs = []
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        call()
        runs.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return min(wall for wall, _ in runs), min(processor for _, processor in runs)


def with_kernels(which: str, call: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    def run() -> torch.Tensor:
        kernels.choose(which)
        return call()

    return run


def sweeps(edge_ptr: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, dict[str, Callable[[], torch.Tensor]]]:
    """Return values, cut weights and the two sweeps over them."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(int(edge_ptr[-1]), COLUMNS, generator=generator)
    step, cut_weight = torch.full((len(edge_ptr) - 1,), STEP), paper_cut_weight(edge_ptr)
    return (
        values,
        cut_weight,
        {
            "total variation": lambda: kernels.prox_total_variation(values, edge_ptr, step, POWER),
            "cardinality": lambda: kernels.prox_cardinality(values, edge_ptr, step, POWER, cut_weight),
        },
    )


def compare(edge_ptr: torch.Tensor, repeats: int) -> dict[str, dict[str, float]]:
    """Return the seconds of one sweep by each implementation, and the largest differences of their results."""
    values, cut_weight, calls = sweeps(edge_ptr)
    table, y, bounds = values.double().numpy(), cut_weight.numpy(), edge_ptr.tolist()
    chosen = range(0, len(bounds) - 1, SAMPLE)
    share = sum(bounds[e + 1] - bounds[e] for e in chosen) / bounds[-1]
    loops = {
        "total variation": lambda e: numpy_total_variation(table[bounds[e] : bounds[e + 1]], STEP),
        "cardinality": lambda e: numpy_cardinality(
            table[bounds[e] : bounds[e + 1]], STEP, y[bounds[e] : bounds[e + 1]]
        ),
    }
    results = {}
    for name, call in calls.items():
        native, twin = with_kernels("native", call), with_kernels("torch", call)
        answer = native().double().numpy()
        difference = max(
            float(np.abs(loops[name](e) - answer[bounds[e] : bounds[e + 1]]).max(initial=0.0)) for e in chosen
        )
        seconds = dict.fromkeys(("numpy_loop", "torch", "native"), float("inf"))
        for _ in range(repeats):  # in turns, so that a busy moment of the machine affects all three
            numpy_loop = fastest(lambda name=name: [loops[name](e) for e in chosen], 1)[0] / share
            for who, took in (
                ("numpy_loop", numpy_loop),
                ("torch", fastest(twin, 1)[0]),
                ("native", fastest(native, 5)[0]),
            ):
                seconds[who] = min(seconds[who], took)
        results[name] = {
            **{f"{who}_seconds": value for who, value in seconds.items()},
            "native_over_numpy": seconds["numpy_loop"] / seconds["native"],
            "native_over_torch": seconds["torch"] / seconds["native"],
            "largest_difference_to_numpy": difference,
            "largest_difference_to_torch": float((native() - twin()).abs().max()),
        }
    return results


def scaling(largest: int, repeats: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return nanoseconds per incidence (of 16 columns) of a native sweep, by sweep, clock and number of incidences."""
    results: dict[str, dict[str, dict[str, float]]] = {}
    for incidences in (n for n in (10**5, 10**6, 10**7) if n <= largest):
        edge_ptr = random_edge_ptr(incidences)
        for name, call in sweeps(edge_ptr)[2].items():
            times = fastest(with_kernels("native", call), 1 + repeats * max(1, 10**6 // incidences))
            for clock, seconds in zip(("wall", "processor"), times, strict=True):
                costs = results.setdefault(name, {}).setdefault(clock, {})
                costs[str(incidences)] = 1e9 * seconds / int(edge_ptr[-1])
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=float, default=1e7, help="incidences of the largest random hypergraph")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "prox.json")
    arguments = parser.parse_args()
    if not kernels.native_available():
        parser.error("the native kernels are not built; install edhnn on a machine with a C++17 compiler")
    data, edge_ptr = walmart()
    record = {
        "data": data,
        "hyperedges": len(edge_ptr) - 1,
        "incidences": int(edge_ptr[-1]),
        "columns": COLUMNS,
        "dtype": "float32",
        "power": POWER,
        "numpy_loop": f"timed on every {SAMPLE}th hyperedge in double precision, scaled to all",
        "sweeps": compare(edge_ptr, arguments.repeats),
        "nanoseconds_per_incidence": scaling(int(arguments.largest), arguments.repeats),
        "machine": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "system": platform.system(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
    }
    record["largest_over_smallest_cost"] = {
        name: {clock: max(cost.values()) / min(cost.values()) for clock, cost in clocks.items()}
        for name, clocks in record["nanoseconds_per_incidence"].items()
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")

    print(f"{data}: {record['hyperedges']} hyperedges, {record['incidences']} incidences, {COLUMNS} columns, float32")
    print(f"{'sweep':16} {'NumPy loop':>11} {'torch':>8} {'native':>8} {'native/NumPy':>13} {'native/torch':>13}")
    for name, results in record["sweeps"].items():
        times = (
            f"{results['numpy_loop_seconds']:10.2f}s {results['torch_seconds']:7.2f}s {results['native_seconds']:7.3f}s"
        )
        print(f"{name:16} {times} {results['native_over_numpy']:12.0f}x {results['native_over_torch']:12.1f}x")
    for name, clocks in record["nanoseconds_per_incidence"].items():
        for clock, cost in clocks.items():
            shown = ", ".join(f"{float(size):.0e}: {value:.0f}" for size, value in cost.items())
            ratio = record["largest_over_smallest_cost"][name][clock]
            print(f"{name}: {clock} ns per incidence {shown}; largest over smallest {ratio:.2f}")


if __name__ == "__main__":
    main()
