"""Measure label spreading on generated contacts: the default settings before and after, and the choice of the scaling.

    python benchmarks/contacts.py --before OLDER_CHECKOUT/src
    python benchmarks/contacts.py --choose

People are in classes and meet in groups of 2 to 5; some are much more active than others. Accuracy is measured on
people without a label. The first command runs `HypergraphLabelSpreading(potential)` with its defaults on a primary
school of ten classes, with a tenth of each class labelled (``equal labels``) or a tenth of all people, so that
classes have unequal numbers of labels (``random labels``); with the sources of an older checkout and with these, in
turn. The second compares, for several strengths, no scaling, degree normalisation of the potential, and division by
the mean degree, on other places and seeds, with equal labels, and stops at a relative gap of 1e-2: it shows which
settings are robust to an early stop, not the accuracy of the minimum. Results go to benchmarks/results/contacts.json,
one key each.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from edhnn import Hypergraph, HypergraphLabelSpreading, diffuse
from edhnn.potentials import LovaszCardinality, TotalVariation

RESULTS = Path(__file__).parent / "results" / "contacts.json"
_WIDTHS = (("before", 17), ("after", 8))
POTENTIALS = ("ce", "tv", "lec", "divergence")
SIZES = (0.68, 0.26, 0.05, 0.01)  # shares of groups of 2, 3, 4 and 5 people
SCHOOL = {"classes": 10, "people": 240, "groups": 6000, "within": 0.75, "spread": 0.6}
SCHOOLS = {"equal labels": SCHOOL, "random labels": {**SCHOOL, "equal": False}}
OTHERS = {
    "mixed": {"classes": 10, "people": 240, "groups": 3000, "within": 0.6, "spread": 0.6},
    "sparse": {"classes": 10, "people": 300, "groups": 1500, "within": 0.8, "spread": 0.6},
    "office": {"classes": 5, "people": 100, "groups": 1500, "within": 0.5, "spread": 0.6},
    "equal": {"classes": 10, "people": 240, "groups": 3000, "within": 0.5, "spread": 0.1},
}


def contacts(seed: int, *, classes: int, people: int, groups: int, within: float, spread: float, equal: bool = True):
    """Draw groups: a first person by activity, then others of the class with probability ``within``, or strangers."""
    random = np.random.default_rng(seed)
    truth = np.arange(people) % classes
    activity = random.lognormal(0, spread, people)
    members = []
    for _ in range(groups):
        size = 2 + random.choice(4, p=SIZES)
        first = random.choice(people, p=activity / activity.sum())
        mates = truth == truth[first]
        inside = random.binomial(size - 1, within)
        parts = [np.array([first])]
        for count, weight in ((inside, activity * mates), (size - 1 - inside, activity * ~mates)):
            weight[first] = 0
            parts.append(random.choice(people, count, replace=False, p=weight / weight.sum()))
        members.append(np.concatenate(parts).tolist())
    known = np.zeros(people, dtype=bool)
    for label in range(classes):
        own = np.flatnonzero(truth == label)
        known[random.choice(own, max(1, len(own) // 10), replace=False)] = True
    if not equal:
        known[:] = False
        known[random.choice(people, people // 10, replace=False)] = True
    return Hypergraph.from_hyperedges(members, num_nodes=people), truth, known


def measure(school: str, seed: int, potential: str) -> dict[str, object]:
    hypergraph, truth, known = contacts(seed, **SCHOOLS[school])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = HypergraphLabelSpreading(potential).fit(hypergraph, np.where(known, truth, -1))
    seconds = time.perf_counter() - start
    accuracy = float((model.transduction_ == truth)[~known].mean())
    return {"accuracy": accuracy, "seconds": seconds, "steps": model.n_iter_, "gap": model.gap_}


def before_and_after(school: str, before: Path, seeds: int) -> list[dict[str, object]]:
    rows = []
    sources = {"before": before.resolve(), "after": Path(__file__).resolve().parents[1] / "src"}
    for seed, potential, when in product(range(seeds), POTENTIALS, sources):
        environment = {**os.environ, "PYTHONPATH": str(sources[when]), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--one", school, str(seed), potential]
        found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        rows.append({"potential": potential, "when": when, "seed": seed, **json.loads(found)})
        print(rows[-1], flush=True)
    print(f"{school:12}{'accuracy before':>17}{'after':>8}{'seconds before':>17}{'after':>8}")
    for potential in POTENTIALS:
        line = f"{potential:12}"
        for field, when, width in (*(("accuracy", *w) for w in _WIDTHS), *(("seconds", *w) for w in _WIDTHS)):
            key = (potential, when)
            chosen = [row[field] for row in rows if (row["potential"], row["when"]) == key]
            line += f"{np.mean(chosen):{width}.2f}"
        print(line)
    return rows


def choose() -> list[dict[str, object]]:
    normalised = {"tv": TotalVariation(degree_normalised=True), "lec": LovaszCardinality(degree_normalised=True)}
    rows = []
    for place, settings in OTHERS.items():
        for potential in POTENTIALS[1:]:
            for strength in (0.3, 1.0, 3.0, 10.0):
                for way in ("none", "degree", "normalised"):
                    if way == "normalised" and potential not in normalised:
                        continue
                    scores, seconds = [], 0.0
                    for seed in (100, 101):
                        hypergraph, truth, known = contacts(seed, **settings)
                        x = torch.from_numpy(np.eye(settings["classes"])[truth] * known[:, None])
                        start = time.perf_counter()
                        value = diffuse(
                            hypergraph, x, potential=normalised[potential] if way == "normalised" else potential,
                            strength=strength, scaling="none" if way == "normalised" else way, tolerance=1e-2,
                            max_steps=200, throw=False,
                        ).value  # fmt: skip
                        seconds += time.perf_counter() - start
                        scores.append(float((value.numpy().clip(min=0).argmax(axis=1) == truth)[~known].mean()))
                    rows.append(
                        {
                            "place": place,
                            "potential": potential,
                            "strength": strength,
                            "scaling": way,
                            "accuracy": float(np.mean(scores)),
                            "seconds": seconds,
                        }
                    )
                    print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="sources of an older checkout")
    parser.add_argument("--schools", nargs="*", default=list(SCHOOLS), choices=SCHOOLS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], int(arguments.one[1]), arguments.one[2])))
        return
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if arguments.choose:
        found["choose"] = choose()
    if arguments.before:
        for school in arguments.schools:
            found[school] = before_and_after(school, arguments.before, arguments.seeds)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
