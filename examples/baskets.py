"""Write two small tables of a made-up shop: which item is in which basket, and what is known of the items.

    python examples/baskets.py [FOLDER]

Most items of a basket are of one kind. Price and weight hint at the kind. A third of the kinds is missing.
"""

import csv
import random
import sys
from pathlib import Path

KINDS = {"bakery": (2.0, 0.5), "dairy": (2.0, 1.0), "garden": (4.0, 1.0)}  # typical price and weight
ITEMS, BASKETS, SIZE = 300, 300, 6


def write_tables(folder: Path) -> None:
    draw = random.Random(7)  # noqa: S311 - a toy, not a secret
    kind_of = {f"item{number:03d}": draw.choice(list(KINDS)) for number in range(ITEMS)}
    items = {kind: [item for item in kind_of if kind_of[item] == kind] for kind in KINDS}
    with (folder / "baskets.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("item", "basket"))
        for basket in range(BASKETS):
            favourite = draw.choice(list(KINDS))
            kinds = [favourite if draw.random() < 0.8 else draw.choice(list(KINDS)) for _ in range(SIZE)]
            table.writerows(
                (item, f"basket{basket:03d}") for item in sorted({draw.choice(items[kind]) for kind in kinds})
            )
    with (folder / "baskets.nodes.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("id", "kind", "price", "weight"))
        for item, kind in kind_of.items():
            price, weight = (typical * draw.lognormvariate(0, 0.6) for typical in KINDS[kind])
            table.writerow((item, kind if draw.random() < 0.67 else "", f"{price:.2f}", f"{weight:.2f}"))


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    target.mkdir(parents=True, exist_ok=True)
    write_tables(target)
