"""Compare how long an idle thread spins before it sleeps: a training step of two threads, alone and beside other work.

    python benchmarks/waiting.py [--steps 12]

Needs Senate and Cora (EDHNN_DATA). Writes medians in milliseconds to benchmarks/results/waiting.json. `0` sleeps at
once, `none` is the default of the OpenMP library. The other work is a process of one thread per core.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

COUNTS = ("0", "1000", "10000", "100000", "none")
SIZES = {"senate": {"hidden": 512, "num_iterations": 8}, "cora": {"hidden": 256, "num_iterations": 1}}
RESULTS = Path(__file__).parent / "results" / "waiting.json"
BUSY = "import torch; torch.set_num_threads(1); x = torch.rand(512, 512)\nwhile True: x @ x"


def time_steps(name: str, steps: int) -> float:
    """Time the steps, in a separate process, because the library reads its settings only once."""
    if os.environ["GOMP_SPINCOUNT"] == "none":
        del os.environ["GOMP_SPINCOUNT"]
    import torch  # reads the setting; edhnn, imported later, has no effect on this process

    from edhnn import load_dataset
    from edhnn.models.registry import make_model

    torch.set_num_threads(2)
    dataset = load_dataset(name)
    assert dataset.x is not None
    assert dataset.y is not None
    model = make_model("ed-hnn", in_features=dataset.x.shape[1], num_classes=7, seed=0, **SIZES[name])
    optimiser = torch.optim.Adam(model.parameters())
    times = []
    for _ in range(steps + 2):
        start = time.perf_counter()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(dataset.x, dataset.hypergraph), dataset.y).backward()
        optimiser.step()
        times.append(1000 * (time.perf_counter() - start))
    return round(median(times[2:]), 1)


def measure(name: str, steps: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--time", name, "--steps", str(steps)]
    return {
        count: float(subprocess.check_output(command, env={**os.environ, "GOMP_SPINCOUNT": count})) for count in COUNTS
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--time", choices=SIZES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.time:
        print(time_steps(given.time, given.steps))
        return
    results = {}
    for name in SIZES:
        alone = measure(name, given.steps)
        busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
        try:
            results[name] = {"alone": alone, "beside_other_work": measure(name, given.steps)}
        finally:
            for process in busy:
                process.kill()
        print(name, results[name], flush=True)
    RESULTS.write_text(json.dumps({"threads": 2, "cores": os.cpu_count(), "cases": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
