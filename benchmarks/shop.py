"""Write the order lines of an invented shop, as untidy as a real export: ``python benchmarks/shop.py FOLDER``.

``orders.csv`` has one line per product of an order: 200,000 lines of 40,000 orders and 4,000 products, in UTF-8 with a
byte order mark, semicolons, decimal commas, points between thousands, blank lines, blank cells, and stock codes whose
leading zeros were lost in one of fifty lines. The department of a product is to be predicted: it is blank for three of
ten products. The shopper of an order mostly buys in two departments, so that orders tell more than features do.
``departments.csv`` has the true department of every product, for a judge.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

DEPARTMENTS = ("bakery", "dairy", "drinks", "garden", "household", "produce", "stationery", "toys")
_COLOURS = ("red", "blue", "green", "white", "black", "yellow", "silver", "none")
_NOUNS = ("box", "set", "pack", "bag", "jar", "kit", "roll", "tin", "bottle", "card")


def write_shop(folder: Path, *, lines: int = 200_000, products: int = 4_000, seed: int = 0) -> Path:
    """Write ``orders.csv`` and ``departments.csv`` into a folder and return the path of the first."""
    rng = np.random.default_rng(seed)
    orders = lines // 5
    department = rng.integers(0, len(DEPARTMENTS), products)
    popularity = rng.pareto(1.5, products) + 0.2
    members = [np.flatnonzero(department == d) for d in range(len(DEPARTMENTS))]
    shares = [popularity[m] / popularity[m].sum() for m in members]
    # Two departments per order, three of four lines from the first, a few lines from anywhere.
    main, second = rng.integers(0, len(DEPARTMENTS), orders), rng.integers(0, len(DEPARTMENTS), orders)
    order = np.sort(rng.integers(0, orders, lines))
    source = rng.random(lines)
    chosen = np.where(
        source < 0.6, main[order], np.where(source < 0.85, second[order], rng.integers(0, len(DEPARTMENTS), lines))
    )
    product = np.empty(lines, dtype=np.int64)
    for d in range(len(DEPARTMENTS)):
        here = chosen == d
        product[here] = rng.choice(members[d], int(here.sum()), p=shares[d])
    price = np.exp(rng.normal(1.0 + 0.25 * department, 1.2)).round(2)
    colour = np.where(rng.random(products) < 0.3, department % len(_COLOURS), rng.integers(0, len(_COLOURS), products))
    noun = np.where(rng.random(products) < 0.25, department, rng.integers(0, len(_NOUNS), products))
    known = rng.random(products) < 0.7
    code = [f"{number:06d}" for number in rng.permutation(900_000)[:products] + 1]
    lost, no_price, blank_line = rng.random(lines) < 0.02, rng.random(products) < 0.05, rng.random(lines) < 0.001
    quantity = rng.integers(1, 13, lines)
    day = np.datetime64("2026-01-05") + np.sort(rng.integers(0, 180, orders))[order].astype("timedelta64[D]")
    written = ["InvoiceNo;StockCode;Description;Quantity;UnitPrice;InvoiceDate;Colour;Department"]
    for i in range(lines):
        p = product[i]
        stock = code[p].lstrip("0") if lost[i] else code[p]
        cost = "" if no_price[p] else f"{price[p]:,.2f}".translate(str.maketrans(",.", ".,"))
        name = f"{_COLOURS[colour[p]]} {_NOUNS[noun[p]]} no {p}"
        label = DEPARTMENTS[department[p]] if known[p] else ""
        written.append(
            f"{536_000 + order[i]};{stock};{name};{quantity[i]};{cost};{day[i]};{_COLOURS[colour[p]]};{label}"
        )
        if blank_line[i]:
            written.append("")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "orders.csv"
    path.write_text("\n".join(written) + "\n", encoding="utf-8-sig")
    truth = [
        f"{c},{DEPARTMENTS[d]},{'known' if k else 'asked'}" for c, d, k in zip(code, department, known, strict=True)
    ]
    (folder / "departments.csv").write_text("\n".join(["StockCode,Department,status", *truth]) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the order lines of an invented shop.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--products", type=int, default=4_000)
    given = parser.parse_args()
    print(write_shop(given.folder, lines=given.lines, products=given.products))
