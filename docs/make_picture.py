"""Draw the picture of the README: what is known of a made-up shop, and what ED-HNN predicts for the rest.

    python docs/make_picture.py

Trains ED-HNN and a perceptron once on small data made here, then draws items, baskets and kinds. Every number in the
picture comes from that training. Writes docs/picture.png.
"""

import random
from pathlib import Path

import edhnn

edhnn.configure_runtime()  # before PyTorch is loaded

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

KINDS, COLOURS = ("bakery", "dairy", "garden"), ("#2a6f97", "#e07a1f", "#4f9d5d")
UNKNOWN = "#d9dde1"
ITEMS, BASKETS, SIZE = 72, 48, 4


def make_shop() -> tuple[edhnn.NodeDataset, np.ndarray]:
    """Draw items with a kind, a price and a weight, and baskets of mostly one kind."""
    draw = random.Random(3)  # noqa: S311
    kind = np.array([item % 3 for item in range(ITEMS)])
    baskets = []
    for _ in range(BASKETS):
        favourite = draw.randrange(3)
        chosen = [favourite if draw.random() < 0.9 else draw.randrange(3) for _ in range(SIZE)]
        baskets.append(sorted({draw.choice(np.flatnonzero(kind == each).tolist()) for each in chosen}))
    typical = np.array([(2.0, 0.5), (2.0, 1.0), (4.0, 1.0)])
    x = np.log(typical[kind]) + np.array([[draw.gauss(0, 0.5), draw.gauss(0, 0.5)] for _ in range(ITEMS)])
    hypergraph = edhnn.Hypergraph.from_hyperedges(baskets, num_nodes=ITEMS)
    dataset = edhnn.NodeDataset(
        name="shop",
        hypergraph=hypergraph,
        x=torch.tensor(x, dtype=torch.float32),
        y=torch.tensor(kind),
        class_names=KINDS,
        task="classification",
    )
    return dataset, kind


def layout(hypergraph: edhnn.Hypergraph, steps: int = 400) -> np.ndarray:
    """Place the items: springs along memberships, repulsion between all."""
    generator = np.random.default_rng(1)
    nodes = hypergraph.num_nodes
    place = generator.normal(size=(nodes, 2))
    members = hypergraph.to_scipy().toarray() > 0
    for step in range(steps):
        difference = place[:, None] - place[None]
        distance = np.maximum(np.linalg.norm(difference, axis=2), 0.05)
        push = (difference / distance[..., None] ** 3).sum(axis=1) * 0.02
        centre = (members.T @ place) / np.maximum(members.sum(axis=0), 1)[:, None]
        pull = sum((centre[e] - place) * members[:, [e]] for e in range(members.shape[1])) * 0.12
        place += np.clip(push + pull - 0.02 * place, -0.2, 0.2) * (1 - step / steps)
    return place - place.mean(axis=0)


def blob(points: np.ndarray, radius: float) -> np.ndarray:
    """Return the convex hull of discs around points."""
    from scipy.spatial import ConvexHull

    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ring = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    around = (points[:, None] + ring[None]).reshape(-1, 2)
    return around[ConvexHull(around).vertices]


def predicted(model: str, dataset: edhnn.NodeDataset, split: edhnn.Split, **options: object) -> np.ndarray:
    """Train a model and predict the kind of every item."""
    network = edhnn.make_model(model, in_features=2, num_classes=3, seed=0, **options)
    config = edhnn.TrainConfig(epochs=150, learning_rate=0.005, feature_scaling="standard")
    return edhnn.fit(network, dataset, split, config).outputs.argmax(1).numpy()


def main() -> None:
    """Train, draw, write."""
    dataset, kind = make_shop()
    split = edhnn.random_splits(ITEMS, 1, train=0.25, valid=0.1)[0]
    known = np.zeros(ITEMS, dtype=bool)
    known[torch.cat([split.train, split.valid]).numpy()] = True
    network = predicted("ed-hnn", dataset, split, hidden=32, classifier_hidden=32, dropout=0.2, input_dropout=0.0)
    perceptron = predicted("mlp", dataset, split, layers=2, hidden=32, dropout=0.2)
    rest = int((~known).sum())
    right = {name: int((answer == kind)[~known].sum()) for name, answer in (("ed-hnn", network), ("mlp", perceptron))}

    place = layout(dataset.hypergraph)
    figure = Figure(figsize=(9.6, 4.3), layout="constrained", facecolor="white")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel in panels:
        for e in range(dataset.hypergraph.num_edges):
            begin, end = dataset.hypergraph.edge_ptr[e], dataset.hypergraph.edge_ptr[e + 1]
            members = place[dataset.hypergraph.node_index[begin:end].numpy()]
            panel.add_patch(
                Polygon(blob(members, 0.07), closed=True, facecolor="#8899aa", alpha=0.10, edgecolor="none")
            )
        panel.set_axis_off()
        panel.set_aspect("equal")
    shown = np.where(known, kind, -1)
    colour = [COLOURS[each] if each >= 0 else UNKNOWN for each in shown]
    panels[0].scatter(*place.T, c=colour, s=46, edgecolors="#55606a", linewidths=0.6, zorder=3)
    panels[0].set_title(f"Given: {BASKETS} baskets, the kind of {int(known.sum())} of {ITEMS} items", fontsize=11)
    panels[1].scatter(
        *place.T,
        c=[COLOURS[each] for each in np.where(known, kind, network)],
        s=46,
        edgecolors="#55606a",
        linewidths=0.6,
        zorder=3,
    )
    wrong = ~known & (network != kind)
    panels[1].scatter(*place[wrong].T, marker="x", c="black", s=34, linewidths=1.4, zorder=4)
    panels[1].set_title(
        f"Predicted: ED-HNN {right['ed-hnn']} of {rest} right, features alone {right['mlp']}", fontsize=11
    )
    handles = [
        panels[0].scatter([], [], c=each, s=46, edgecolors="#55606a", linewidths=0.6) for each in (*COLOURS, UNKNOWN)
    ]
    cross = panels[0].scatter([], [], marker="x", c="black", s=34)
    figure.legend(
        [*handles, cross], [*KINDS, "unknown", "wrong"], loc="outside lower center", ncols=5, frameon=False, fontsize=10
    )
    figure.savefig(Path(__file__).with_name("picture.png"), dpi=110)


if __name__ == "__main__":
    main()
