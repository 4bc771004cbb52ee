"""Compare label spreading over a hypergraph, by structure only: our potentials and scikit-learn's LabelSpreading.

    EDHNN_DATA=... python benchmarks/label_spreading.py

A random share of the nodes is labelled, and accuracy is measured on all other nodes. Our estimator runs with its
defaults when this was recorded (strength 1, not scaled by the degree; ``ce`` with the Laplacian normalisation;
tolerance 1e-6, at most 1000 steps). Scikit-learn's
LabelSpreading runs with its default alpha of 0.2 on the binary clique expansion without self-loops, which a callable
kernel returns as a sparse affinity. Nothing is tuned. For a node that no label reaches, isolated nodes included, every
method predicts the most frequent labelled class, ``prior``. `unreached` is the share of such test nodes, and the column
``prior`` is the accuracy of that class for all nodes. Results go to benchmarks/results/label_spreading.json.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading

from edhnn import Hypergraph, HypergraphLabelSpreading, load_dataset
from edhnn.hypergraph.expansions import clique_expansion

DATASETS = ("cora", "citeseer", "house", "senate")
SHARES = (0.05, 0.5)
METHODS = ("prior", "ce", "tv", "lec", "sklearn")


def ours(hypergraph: Hypergraph, y: np.ndarray, potential: str) -> tuple[np.ndarray, bool]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = HypergraphLabelSpreading(potential, scaling="none").fit(hypergraph, y)
    return model.transduction_, not caught


def theirs(affinity: object, y: np.ndarray) -> tuple[np.ndarray, bool]:
    model = LabelSpreading(kernel=lambda *_: affinity, max_iter=1000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(np.arange(len(y))[:, None], y)
    reached = model.label_distributions_.sum(axis=1) > 0
    return np.where(reached, model.transduction_, frequent(y)), not caught


def frequent(y: np.ndarray) -> int:
    return int(np.bincount(y[y >= 0]).argmax())


def unreached(hypergraph: Hypergraph, known: np.ndarray) -> np.ndarray:
    part = connected_components(clique_expansion(hypergraph, include_self=True), directed=False)[1]
    return ~np.isin(part, part[known])


def accuracies(name: str, draws: int) -> list[dict[str, object]]:
    dataset = load_dataset(name)
    hypergraph, truth = dataset.hypergraph, dataset.y.numpy()
    affinity = clique_expansion(hypergraph, include_self=False).astype(np.float64)
    records = []
    for share in SHARES:
        for seed in range(draws):
            order = np.random.RandomState(seed).permutation(len(truth))
            known, test = np.split(order, [int(share * len(truth))])
            y = np.full(len(truth), -1)
            y[known] = truth[known]
            lost = float(unreached(hypergraph, known)[test].mean())
            for method in METHODS:
                start = time.perf_counter()
                if method == "prior":
                    predicted, converged = np.full(len(truth), frequent(y)), True
                else:
                    predicted, converged = theirs(affinity, y) if method == "sklearn" else ours(hypergraph, y, method)
                seconds = time.perf_counter() - start
                records.append(
                    {
                        "dataset": name,
                        "share": share,
                        "seed": seed,
                        "method": method,
                        "accuracy": float((predicted == truth)[test].mean()),
                        "unreached": lost,
                        "converged": converged,
                        "seconds": seconds,
                    }
                )
    return records


def print_table(records: list[dict[str, object]]) -> list[dict[str, object]]:
    rows = []
    print(f"{'dataset':9} {'labels':>6} {'unreached':>9}" + "".join(f"{method:>16}" for method in METHODS))
    for name in dict.fromkeys(record["dataset"] for record in records):
        for share in SHARES:
            group = [r for r in records if (r["dataset"], r["share"]) == (name, share)]
            line = f"{name:9} {share:6.0%} {np.mean([r['unreached'] for r in group]):9.1%}"
            for method in METHODS:
                chosen = [r for r in group if r["method"] == method]
                accuracy = 100 * np.array([r["accuracy"] for r in chosen])
                mean, deviation = float(accuracy.mean()), float(accuracy.std(ddof=1)) if len(chosen) > 1 else 0.0
                missed = sum(not r["converged"] for r in chosen)
                line += f"{mean:8.2f} ± {deviation:4.2f}{'*' if missed else ' '}"
                rows.append(
                    {
                        "dataset": name,
                        "share": share,
                        "method": method,
                        "accuracy_mean": mean,
                        "accuracy_std": deviation,
                        "not_converged": missed,
                        "median_seconds": float(np.median([r["seconds"] for r in chosen])),
                    }
                )
            print(line)
    print("* some fits reached the largest number of steps before the tolerance")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "label_spreading.json")
    arguments = parser.parse_args()
    records = [record for name in arguments.datasets for record in accuracies(name, arguments.draws)]
    rows = print_table(records)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    document = {"draws": arguments.draws, "scikit-learn": sklearn.__version__, "rows": rows, "records": records}
    arguments.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
