"""Compare a whole `edhnn train`, ten splits of 500 epochs, with the textbook model in the same loop.

    EDHNN_DATA=... python benchmarks/training.py [--datasets senate cora] [--preset paper]

Both models train in `edhnn.fit`: a step, an evaluation and the metrics of every epoch. The seconds of an epoch are the
slope between two short runs (so that the work done once does not count), in one process with all cores. A whole
training takes 5,000 times that. The benchmark also measures, in the same way, ten splits shared by two processes of one
thread, as `edhnn train` does. Results go to benchmarks/results/training.json.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from edhnn.runtime import configure_runtime

configure_runtime()  # before PyTorch is loaded: see docs/adr/0020

import torch
from networks import machine
from textbook import Textbook
from torch import Tensor, nn

from edhnn import fit, load_dataset, train
from edhnn.hypergraph import Hypergraph
from edhnn.runs.plan import choose_splits, make_plan
from edhnn.training.objective import make_objective

RUN = 10 * 500


class Dense(nn.Module):
    """The textbook model with its features converted to dense."""

    def __init__(self, model: Textbook) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, hypergraph: Hypergraph) -> Tensor:
        out: Tensor = self.model(x.to_dense() if x.layout == torch.sparse_csr else x, hypergraph)
        return out


def epoch_seconds(name: str, preset: str, who: str, few: int, many: int) -> float:
    dataset = load_dataset(name)
    plan = make_plan(dataset, preset=preset)
    split = choose_splits(dataset, 1)[0]

    def spent(epochs: int) -> float:
        model: nn.Module = plan.make_model(dataset, make_objective(dataset, split.train), 0)
        if who == "textbook":
            model = Dense(Textbook(model))
        return fit(model, dataset, split, replace(plan.train, epochs=epochs)).seconds

    spent(1)
    return (spent(many) - spent(few)) / (many - few)


def shared_seconds(name: str, preset: str, few: int, many: int) -> float:
    dataset = load_dataset(name)

    def spent(epochs: int) -> float:
        plan = make_plan(dataset, preset=preset, settings={"epochs": epochs})
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            train(dataset, plan, out=Path(folder) / "run", jobs=2)
            return time.perf_counter() - start

    return (spent(many) - spent(few)) / (many - few)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["senate", "cora"])
    parser.add_argument("--preset", default="paper")
    arguments = parser.parse_args()
    record = {"machine": machine(), "preset": arguments.preset, "runs": {}}
    out = Path(__file__).parent / "results" / "training.json"
    for name in arguments.datasets:
        ours = epoch_seconds(name, arguments.preset, "ours", 2, 12)
        book = epoch_seconds(name, arguments.preset, "textbook", 1, 4)
        both = shared_seconds(name, arguments.preset, 2, 8)
        record["runs"][name] = {"ours": ours, "textbook": book, "ten_splits_two_processes": both}
        print(
            f"{name:8} an epoch {ours * 1e3:.0f} ms, textbook {book * 1e3:.0f} ms, {book / ours:.1f}x; ten splits of "
            f"500 epochs: {RUN * ours / 60:.1f} min one after another, {500 * both / 60:.1f} min by two processes, "
            f"textbook {RUN * book / 60:.0f} min: {RUN * book / (500 * both):.1f}x",
            flush=True,
        )
        out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
