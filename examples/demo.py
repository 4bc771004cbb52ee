"""ED-HNN and a perceptron on the embedded contextual SBM, beside three floors without a network.

    python examples/demo.py [FOLDER]

Two short runs, a table, and a report of each in the folder. Half of a node's class is in its features; the other
half is in the hyperedges, which only ED-HNN sees.
"""

import shutil
import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import edhnn

SPLITS, EPOCHS, WIDTH = 2, 100, 64


def main(folder: Path) -> None:
    dataset = edhnn.load_dataset("csbm-4")
    table = Table(box=SIMPLE_HEAD, title=f"{dataset.name}, {SPLITS} splits, {EPOCHS} epochs", title_justify="left")
    for heading in ("model", "test accuracy", "parameters", "seconds", "report"):
        table.add_column(heading, justify="left" if heading in ("model", "report") else "right")
    for model, options in (
        ("ed-hnn", {"hidden": WIDTH, "classifier_hidden": WIDTH}),
        ("mlp", {"hidden": WIDTH, "layers": 2}),
    ):
        shutil.rmtree(folder / model, ignore_errors=True)
        plan = edhnn.make_plan(dataset, model, splits=SPLITS, settings={**options, "epochs": EPOCHS})
        found = edhnn.train(dataset, plan, out=folder / model)
        accuracy = f"{found.test_mean:.2f} ± {found.test_std:.2f} %"
        report = f"{found.run}/report.html"
        table.add_row(model, accuracy, f"{found.num_parameters:,}", f"{found.seconds:.1f}", report)
    for floor in found.floors:
        table.add_row(f"floor: {floor.name}", f"{floor.value:.2f} %")
    Console().print(table)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
    target.mkdir(parents=True, exist_ok=True)
    edhnn.configure_runtime()  # before PyTorch is loaded, which a name of edhnn does when it is first used
    main(target)
