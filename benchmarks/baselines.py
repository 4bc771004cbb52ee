"""Seconds per epoch and per inference of every model of the registry: the paper's efficiency columns on this machine.

    EDHNN_DATA=... python benchmarks/baselines.py [--datasets cora house] [--models hgnn hcha] [--epochs 10]

Sizes are those of the preset ``paper``. An epoch
is forward, backward and a step of Adam on all nodes, as in training, without the evaluation; inference is one forward
pass without gradients. Structure (clique graph, HyperGCN's graph, HyperND's diffusion, HyperSAGE's first means) is made
once and its time stands apart as ``preparation``: the first inference less the median. The median of the epochs is
reported, with their quartiles. Results go to benchmarks/results/baselines.json; a run replaces the rows it measured.
"""

import argparse
import json
import platform
import resource
import time
from pathlib import Path
from statistics import median, quantiles

import torch
from torch.nn.functional import cross_entropy

from edhnn import default_splits, kernels, load_dataset, with_label_features
from edhnn.models.registry import MODELS, make_model
from edhnn.training.presets import find_preset
from edhnn.transforms import add_singletons

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "baselines.json"


def measure(name: str, dataset_name: str, epochs: int, budget: float) -> dict[str, object]:
    dataset = with_features(dataset_name)
    hypergraph = add_singletons(dataset.hypergraph) if MODELS[name].singletons else dataset.hypergraph
    x, y, train = dataset.x, dataset.y, default_splits(dataset)[0].train
    options = find_preset(dataset, name, "paper").options
    model = make_model(name, in_features=x.shape[1], num_classes=int(y.max()) + 1, **options)
    model.eval()
    inferences = [timed(lambda: infer(model, x, hypergraph)) for _ in range(4)]
    model.train()
    optimiser, spent = torch.optim.Adam(model.parameters(), lr=1e-3), []
    while len(spent) < 3 or (len(spent) < epochs and sum(spent) < budget):
        spent.append(timed(lambda: step(model, optimiser, x, y, hypergraph, train)))
    return {
        "dataset": dataset_name,
        "model": name,
        "options": options,
        "parameters": model.num_parameters(),
        "epochs": len(spent) - 1,
        "seconds_per_epoch": median(spent[1:]),
        "quartiles": quantiles(spent[1:], n=4)[::2] if len(spent) > 3 else sorted(spent[1:]),
        "seconds_per_inference": median(inferences[1:]),
        "preparation": max(inferences[0] - median(inferences[1:]), 0.0),
        "peak_gib_of_process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def with_features(name: str):
    dataset = load_dataset(name)
    return dataset if dataset.x is not None else with_label_features(dataset)


def timed(work) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


@torch.no_grad()
def infer(model, x, hypergraph) -> None:
    model(x, hypergraph)


def step(model, optimiser, x, y, hypergraph, train) -> None:
    optimiser.zero_grad()
    cross_entropy(model(x, hypergraph)[train], y[train]).backward()
    optimiser.step()


def save(row: dict[str, object]) -> None:
    known = json.loads(RESULTS.read_text())["rows"] if RESULTS.is_file() else []
    kept = [old for old in known if (old["dataset"], old["model"]) != (row["dataset"], row["model"])]
    machine = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "kernels": kernels.active(),
    }
    RESULTS.write_text(json.dumps({"machine": machine, "rows": [*kept, row]}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["cora", "house", "congress", "walmart"])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of epochs per model, after the third")
    told = parser.parse_args()
    for dataset in told.datasets:
        for model in told.models:
            row = measure(model, dataset, told.epochs + 1, told.budget)
            save(row)
            print(
                f"{dataset:9} {model:21} {row['parameters']:>9,} parameters  "
                f"epoch {1e3 * row['seconds_per_epoch']:9.1f} ms  "
                f"inference {1e3 * row['seconds_per_inference']:8.1f} ms  "
                f"preparation {1e3 * row['preparation']:8.1f} ms  peak {row['peak_gib_of_process']:.2f} GiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
