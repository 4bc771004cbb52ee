"""Draw the record of networks.py: seconds of a step by each implementation, and the machine's limit."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

LABELS = {
    "textbook": "textbook, a row per incidence",
    "pyg": "torch_geometric MessagePassing",
    "torch": "edhnn, torch kernels",
    "native": "edhnn",
}
COLOURS = {"textbook": "#b0b0b0", "pyg": "#7f7f7f", "torch": "#9ecae1", "native": "#08519c"}


def draw(workloads: dict, path: Path) -> None:
    """Draw two panels: the datasets as bars, and random hypergraphs as lines of seconds per incidence."""
    named = [name for name in workloads if not name.startswith("1e")]
    random = sorted((name for name in workloads if name.startswith("1e")), key=float)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained", width_ratios=(3, 2))
    for offset, who in enumerate(LABELS):
        shown = [(at, workloads[name][who]["step"]) for at, name in enumerate(named) if who in workloads[name]]
        left.bar([at + 0.2 * (offset - 1.5) for at, _ in shown], [s for _, s in shown], 0.2, color=COLOURS[who],
                 label=LABELS[who])  # fmt: skip
    for at, name in enumerate(named):
        least = workloads[name]["limit"]["step"]
        left.hlines(
            least, at - 0.42, at + 0.42, color="#d62728", lw=1.5, label="the machine's limit" if not at else None
        )
    left.set(yscale="log", ylabel="seconds of a training step", xticks=range(len(named)), xticklabels=named)
    left.legend(frameon=False, fontsize=8)
    for who in LABELS:
        shown = [(float(name), workloads[name][who]["step"] / float(name)) for name in random if who in workloads[name]]
        right.plot(*zip(*shown, strict=True), "o-", color=COLOURS[who], label=LABELS[who]) if shown else None
    if random:
        least = [workloads[name]["limit"]["step"] / float(name) for name in random]
        right.plot([float(name) for name in random], least, "--", color="#d62728", label="the machine's limit")
    right.set(xscale="log", yscale="log", xlabel="incidences", ylabel="seconds of a step per incidence")
    figure.savefig(path, dpi=130)
    plt.close(figure)
