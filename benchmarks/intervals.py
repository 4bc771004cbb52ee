"""Measure how often the 95 % interval of a run with folds contains the accuracy on other nodes of the same kind.

    python benchmarks/intervals.py [--draws 100]

A contextual SBM of 3,000 nodes is drawn again and again; a few nodes are labelled. Two classifiers that need no network
are scored as a run is: five folds, one answer per labelled node, Wilson's interval. The truth is the mean accuracy of
the folds' classifiers on all other nodes. The record is ``benchmarks/results/intervals.json``.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from edhnn import Split, contextual_sbm
from edhnn.data.splits import stratified_folds
from edhnn.runs.scores import score_run
from edhnn.training.floors import features_alone, neighbours_vote
from edhnn.training.objective import make_objective

RESULT = Path(__file__).parent / "results" / "intervals.json"


def covered(classifier: str, labelled: int, seed: int) -> tuple[bool, float]:
    """Return whether the interval contains the truth, and its width."""
    chance = np.random.default_rng([seed, labelled])
    full = contextual_sbm(1, nodes_per_class=1500, num_hyperedges=1500, edge_size=6, seed=seed, feature_seed=seed)
    assert full.x is not None
    assert full.y is not None
    nodes = torch.from_numpy(np.sort(chance.permutation(3000)[:labelled]))
    y = torch.full_like(full.y, -1)
    y[nodes] = full.y[nodes]
    data = replace(full, x=full.x[:, :5].contiguous(), y=y, class_names=(0, 1))
    others = (y < 0).nonzero()[:, 0]
    splits = stratified_folds(data).splits
    objectives = [make_objective(data, split.train) for split in splits]
    answers, truths = [], []
    for split, objective in zip(splits, objectives, strict=True):
        asked = Split(split.train, split.valid, torch.cat([split.test, others]))
        found = features_alone(data, asked, objective) if classifier == "features" else neighbours_vote(data, asked)
        table = torch.zeros(3000, 2, dtype=torch.float64)
        table[asked.test] = found
        answers.append(table)
        truths.append(float((table[others].argmax(dim=1) == full.y[others]).double().mean()))
    score = score_run(data, splits, objectives, answers, ("0", "1")).score
    assert score.low is not None
    assert score.high is not None
    return score.low <= 100 * np.mean(truths) <= score.high, score.high - score.low


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    draws = parser.parse_args().draws
    rows = []
    for classifier in ("features", "neighbours"):
        for labelled in (30, 100):
            found = [covered(classifier, labelled, seed) for seed in range(draws)]
            share = float(np.mean([hit for hit, _ in found]))
            width = float(np.mean([width for _, width in found]))
            rows.append({"classifier": classifier, "labelled": labelled, "coverage": share, "width": round(width, 1)})
            print(rows[-1], flush=True)
    RESULT.write_text(json.dumps({"draws": draws, "confidence": 0.95, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
