"""Compare two processes of one thread with one process of two threads on several splits, in turns.

    python benchmarks/jobs.py [--repeats 3]

Needs Senate and Cora (EDHNN_DATA). Writes benchmarks/results/jobs.json. Times are of whole runs, including the start
of the processes. The best of the repeats counts, because other work on the machine can only add time.
"""

import argparse
import json
import platform
import tempfile
from pathlib import Path

from edhnn.runtime import configure_runtime

configure_runtime()  # before PyTorch is loaded: see docs/adr/0020

import torch

from edhnn import kernels, load_dataset, train
from edhnn.runs.plan import make_plan

CASES = {"senate": (4, 8), "cora": (4, 150)}  # splits, epochs
RESULTS = Path(__file__).parent / "results" / "jobs.json"


def seconds(name: str, jobs: int) -> float:
    splits, epochs = CASES[name]
    dataset = load_dataset(name)
    plan = make_plan(dataset, preset="paper", splits=splits, settings={"epochs": epochs})
    with tempfile.TemporaryDirectory() as folder:
        return train(dataset, plan, out=Path(folder) / "run", jobs=jobs).seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    results = {}
    for name, (splits, epochs) in CASES.items():
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repeats):
            for jobs in times:
                times[jobs].append(round(seconds(name, jobs), 2))
        results[name] = {
            "splits": splits,
            "epochs": epochs,
            "one_process_two_threads": times[1],
            "two_processes_one_thread": times[2],
            "ratio_of_best": round(min(times[1]) / min(times[2]), 2),
        }
        print(name, results[name], flush=True)
    facts = {"torch": torch.__version__, "threads": torch.get_num_threads(), "kernels": kernels.active()}
    RESULTS.write_text(json.dumps({**facts, "machine": platform.processor(), "cases": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
