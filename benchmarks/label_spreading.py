"""Labels spread over a hypergraph, structure only: our potentials beside scikit-learn's LabelSpreading.

    EDHNN_DATA=... python benchmarks/label_spreading.py

A share of the nodes, drawn at random, is labelled; accuracy is measured on all others. Ours runs with its defaults.
Scikit-learn's LabelSpreading itself runs on the binary clique expansion without self-loops, handed over by a callable
kernel that returns the sparse affinity. ``default`` rows take the strength 1 and scikit-learn's alpha of 0.2; ``tuned``
rows take the best of a few values on a fifth of the labelled nodes, held out, and then fit again with all of them.
A node that no label reaches, isolated ones first, is predicted by everybody as the most frequent labelled class;
`unreached` is the share of such test nodes. Results go to benchmarks/results/label_spreading.json.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading

from edhnn import Hypergraph, HypergraphLabelSpreading, load_dataset
from edhnn.expansions import clique_expansion

DATASETS = ("cora", "citeseer", "house", "senate")
SHARES = (0.05, 0.5)
METHODS = ("ce", "tv", "lec", "sklearn")
DEFAULTS = {"ce": 1.0, "tv": 1.0, "lec": 1.0, "sklearn": 0.2}
CHOICES = {
    "ce": (0.1, 1.0, 10.0, 100.0),
    "tv": (0.1, 1.0, 10.0),
    "lec": (0.1, 1.0, 10.0),
    "sklearn": (0.05, 0.2, 0.5, 0.9),
}


def ours(hypergraph: Hypergraph, y: np.ndarray, potential: str, strength: float) -> tuple[np.ndarray, bool]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        model = HypergraphLabelSpreading(potential, strength=strength).fit(hypergraph, y)
    return model.transduction_, not said


def theirs(affinity: object, y: np.ndarray, alpha: float) -> tuple[np.ndarray, bool]:
    model = LabelSpreading(kernel=lambda *_: affinity, alpha=alpha, max_iter=1000)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(np.arange(len(y))[:, None], y)
    labelled = y[y >= 0]
    frequent = model.classes_[np.argmax([(labelled == kind).sum() for kind in model.classes_])]
    return np.where(model.label_distributions_.sum(axis=1) > 0, model.transduction_, frequent), not said


def unreached(hypergraph: Hypergraph, known: np.ndarray) -> np.ndarray:
    from scipy.sparse.csgraph import connected_components

    part = connected_components(clique_expansion(hypergraph, include_self=True), directed=False)[1]
    return ~np.isin(part, part[known])


def accuracies(name: str, draws: int) -> list[dict[str, object]]:
    dataset = load_dataset(name)
    hypergraph, truth = dataset.hypergraph, dataset.y.numpy()
    affinity = clique_expansion(hypergraph, include_self=False).astype(np.float64)

    def fitted(method: str, known: np.ndarray, value: float) -> tuple[np.ndarray, bool]:
        y = np.full(len(truth), -1)
        y[known] = truth[known]
        return theirs(affinity, y, value) if method == "sklearn" else ours(hypergraph, y, method, value)

    records = []
    for share in SHARES:
        for seed in range(draws):
            order = np.random.RandomState(seed).permutation(len(truth))
            known, test = np.split(order, [int(share * len(truth))])
            held, kept = np.split(known, [len(known) // 5])
            lost = float(unreached(hypergraph, known)[test].mean())
            for method in METHODS:
                begun = time.perf_counter()
                found, converged = fitted(method, known, DEFAULTS[method])
                seconds = time.perf_counter() - begun
                by_value = {v: (fitted(method, kept, v)[0][held] == truth[held]).mean() for v in CHOICES[method]}
                best = max(by_value, key=lambda value: by_value[value])
                tuned, tuned_converged = (found, converged) if best == DEFAULTS[method] else fitted(method, known, best)
                shared = {"dataset": name, "share": share, "seed": seed, "method": method, "unreached": lost}
                for setting, value, guess, fine in (
                    ("default", DEFAULTS[method], found, converged),
                    ("tuned", best, tuned, tuned_converged),
                ):
                    accuracy = float((guess == truth)[test].mean())
                    record = {"setting": setting, "value": value, "accuracy": accuracy, "converged": fine}
                    records.append({**shared, **record, "seconds": seconds})
    return records


def print_table(records: list[dict[str, object]]) -> list[dict[str, object]]:
    rows = []
    print(f"{'dataset':9} {'labels':>6} {'unreached':>9} {'setting':8}" + "".join(f"{m:>16}" for m in METHODS))
    for name in dict.fromkeys(record["dataset"] for record in records):
        for share in SHARES:
            for setting in ("default", "tuned"):
                here = [r for r in records if (r["dataset"], r["share"], r["setting"]) == (name, share, setting)]
                lost = np.mean([r["unreached"] for r in here])
                line = f"{name:9} {share:6.0%} {lost:9.1%} {setting:8}"
                for method in METHODS:
                    mine = [r for r in here if r["method"] == method]
                    accuracy = 100 * np.array([r["accuracy"] for r in mine])
                    mean, deviation = float(accuracy.mean()), float(accuracy.std(ddof=1)) if len(mine) > 1 else 0.0
                    missed = sum(not r["converged"] for r in mine)
                    line += f"{mean:8.2f} ± {deviation:4.2f}{'*' if missed else ' '}"
                    rows.append(
                        {
                            **{key: mine[0][key] for key in ("dataset", "share", "setting", "method")},
                            "accuracy_mean": mean,
                            "accuracy_std": deviation,
                            "not_converged": missed,
                            "median_seconds": float(np.median([r["seconds"] for r in mine])),
                        }
                    )
                print(line)
    print("* some fits met max_steps before the tolerance (1e-6, 1000 steps)")
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
