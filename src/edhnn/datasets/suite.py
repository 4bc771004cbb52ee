"""The suite: small hypergraphs on which the default settings are tuned and checked, none of them published with them.

Some are tables that ship inside installed packages, with hyperedges from categories, quantile bins or nearest rows. The
others are drawn: a zoo, a shop, bags of words, contextual SBMs, many classes, few labels, heavy tails, no features. The
settings of `edhnn.training.defaults` were tuned by validation scores on the half ``tune``. The half ``check`` shows
whether they are right elsewhere.

`suite.toml` records a hash of every dataset. Draws use `numpy.random.RandomState`, whose streams numpy guarantees. Bins
and distances are computed from ranks and integers, so they are the same on every machine.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from edhnn.data.dataset import NodeDataset, Provenance, sparse_features
from edhnn.data.fingerprints import dataset_sha256
from edhnn.data.splits import Split, random_splits
from edhnn.datasets.synthetic import contextual_sbm
from edhnn.errors import DataError, MissingDependencyError, unknown_name
from edhnn.hypergraph.hypergraph import Hypergraph
from edhnn.typing import FloatArray, IntArray

Draw = np.random.RandomState
_TEXT = npt.NDArray[np.str_]


class SuiteEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dataset of the suite.

    Attributes:
        description: A description of one line.
        half: ``tune`` if the default settings were tuned on it, else ``check``.
        sha256: Its hash (`dataset_sha256`).
        train: Share of training nodes in a split.
        valid: Share of validation nodes in a split.
    """

    description: str
    half: Literal["tune", "check"]
    sha256: str
    train: float = 0.5
    valid: float = 0.25


@cache
def suite() -> dict[str, SuiteEntry]:
    """Return all datasets of the suite, by name."""
    text = resources.files("edhnn.datasets").joinpath("suite.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, SuiteEntry])


def load_suite_dataset(name: str) -> NodeDataset:
    """Make a dataset of the suite.

    Args:
        name: Its name; `suite` lists them.

    Raises:
        UsageError: if the name is unknown.
        MissingDependencyError: if the package that ships the table is not installed.
        DataError: if the hash differs from the recorded one.

    Example:
        >>> from edhnn.datasets.suite import load_suite_dataset
        >>> load_suite_dataset("suite-iris")
        NodeDataset('suite-iris', nodes=150, hyperedges=20, features=4, classes=3)
    """
    if name not in suite():
        raise unknown_name("dataset of the suite", name, suite())
    made = _MAKERS[name.removeprefix("suite-")]()
    dataset = replace(made, name=name, provenance=Provenance(name, "synthetic", details={"generator": name}))
    found = dataset_sha256(dataset)
    if found != suite()[name].sha256:
        raise DataError(
            f"'{name}' must have the recorded sha256 {suite()[name].sha256}. Got {found}.",
            remedy="A random stream or a table in a package has changed, so that results are not comparable. Install "
            "the versions in constraints.txt.",
        )
    return dataset


def suite_splits(dataset: NodeDataset, count: int) -> list[Split]:
    """Draw splits of a dataset of the suite, with the shares of its entry; more splits do not change the first."""
    entry = suite()[dataset.name]
    return random_splits(dataset.hypergraph.num_nodes, count, train=entry.train, valid=entry.valid)


def _dataset(
    members: Sequence[IntArray] | IntArray, x: FloatArray | Tensor | None, y: npt.ArrayLike, *, regression: bool = False
) -> NodeDataset:
    """Make a dataset from the members of each hyperedge, features and labels."""
    labels = torch.from_numpy(np.array(y, dtype=np.float64 if regression else np.int64))
    return NodeDataset(
        name="suite",
        hypergraph=Hypergraph.from_hyperedges([part.tolist() for part in members], num_nodes=len(labels)),
        x=torch.from_numpy(x.astype(np.float32)) if isinstance(x, np.ndarray) else x,
        y=labels,
        task="regression" if regression else "classification",
    )


def _bins(column: FloatArray, count: int) -> list[IntArray]:
    """Divide the rows into bins of nearly equal size by the rank of a value; equal values stay together."""
    _, ranks = np.unique(column, return_inverse=True)
    first = np.concatenate([[0], np.cumsum(np.bincount(ranks))])[ranks]  # how many values are smaller
    numbers = first * count // len(column)
    return [np.flatnonzero(numbers == number) for number in np.unique(numbers)]


def _groups(column: _TEXT | IntArray) -> list[IntArray]:
    """List the rows of each value, of values with at least two rows."""
    groups = (np.flatnonzero(column == value) for value in np.unique(column))
    return [group for group in groups if len(group) > 1]


def _nearest(x: FloatArray, count: int) -> list[IntArray]:
    """List each row with its nearest rows, by standardised columns rounded to thousandths."""
    spread = x.std(axis=0)
    grid = np.rint(1000 * (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1)).astype(np.int64)
    squares = (grid**2).sum(axis=1)
    distance = squares[:, None] + squares[None, :] - 2 * grid @ grid.T
    np.fill_diagonal(distance, -1)
    return list(np.argsort(distance, axis=1, kind="stable")[:, : count + 1])


def _bunch(name: str) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Return features and labels of a table of scikit-learn."""
    from sklearn import datasets  # slow to import, and only needed here

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.asarray(x, dtype=np.float64), np.asarray(y)


def _iris() -> NodeDataset:
    x, y = _bunch("iris")
    return _dataset([part for column in x.T for part in _bins(column, 5)], x, y)


def _wine() -> NodeDataset:
    x, y = _bunch("wine")
    return _dataset([part for column in x.T for part in _bins(column, 5)], x, y)


def _cancer() -> NodeDataset:
    x, y = _bunch("breast_cancer")
    return _dataset(_nearest(x, 5), x, y)


def _digits() -> NodeDataset:
    x, y = _bunch("digits")
    return _dataset(_nearest(x[:600], 8), x[:600], y[:600])


def _diabetes() -> NodeDataset:
    x, y = _bunch("diabetes")
    return _dataset([part for column in x.T for part in _bins(column, 6)], x, y, regression=True)


def _package_file(package: str, *path: str) -> str:
    try:
        return resources.files(package).joinpath(*path).read_text("utf-8")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(package, "This dataset of the suite", "dev") from error


def _numbers(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> FloatArray:
    """Return columns as numbers; a missing value becomes the column's mean."""
    table = np.array([[np.nan if row[n] in (None, "NA") else float(row[n]) for n in names] for row in rows])
    return np.where(np.isnan(table), np.nanmean(table, axis=0), table)


def _car_rows() -> tuple[list[dict[str, Any]], list[IntArray]]:
    """Return 406 cars, and a hyperedge per brand, year and number of cylinders."""
    rows = json.loads(_package_file("vega_datasets", "_data", "cars.json"))
    brands = np.array([row["Name"].split()[0] for row in rows])
    years, cylinders = (np.array([str(row[name]) for row in rows]) for name in ("Year", "Cylinders"))
    return rows, [*_groups(brands), *_groups(years), *_groups(cylinders)]


def _cars() -> NodeDataset:
    rows, members = _car_rows()
    x = _numbers(rows, ("Miles_per_Gallon", "Displacement", "Horsepower", "Weight_in_lbs", "Acceleration"))
    return _dataset(members, x, np.unique([row["Origin"] for row in rows], return_inverse=True)[1])


def _mileage() -> NodeDataset:
    rows, members = _car_rows()
    x = _numbers(rows, ("Displacement", "Horsepower", "Weight_in_lbs", "Acceleration"))
    y = [np.nan if row["Miles_per_Gallon"] is None else row["Miles_per_Gallon"] for row in rows]
    return _dataset(members, x, y, regression=True)


def _penguins() -> NodeDataset:
    rows = list(csv.DictReader(_package_file("palmerpenguins", "data", "penguins.csv").splitlines()))
    x = _numbers(rows, ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"))
    groups = [part for name in ("island", "sex", "year") for part in _groups(np.array([row[name] for row in rows]))]
    members = groups + [part for column in x.T for part in _bins(column, 4)]
    return _dataset(members, x[:, 1:], np.unique([row["species"] for row in rows], return_inverse=True)[1])


_ANIMALS = (41, 20, 5, 13, 4, 8, 10)


def _animals() -> NodeDataset:
    """Draw 101 animals of seven unequal classes with 16 yes-or-no attributes; a hyperedge per attribute and answer."""
    draw = Draw(1)
    y = np.repeat(np.arange(7), _ANIMALS)
    usual = draw.randint(2, size=(7, 16))
    x = np.where(draw.random_sample((101, 16)) < 0.12, 1 - usual[y], usual[y])
    members = [np.flatnonzero(column == answer) for column in x.T for answer in (0, 1)]
    return _dataset([part for part in members if len(part) > 1], x.astype(np.float64), y)


def _mixed_groups(
    draw: Draw, y: IntArray, count: int, sizes: tuple[int, int], purity: float, popularity: FloatArray | None = None
) -> list[IntArray]:
    """Draw hyperedges; each member is of the hyperedge's class with probability ``purity``, else of any class."""
    weights = np.ones(len(y)) if popularity is None else popularity
    within = [np.where(y == value, weights, 0) for value in range(y.max() + 1)]
    members = []
    for _ in range(count):
        home, size = draw.randint(len(within)), draw.randint(sizes[0], sizes[1] + 1)
        own = draw.binomial(size, purity)
        chosen = [
            draw.choice(len(y), number, p=part / part.sum())
            for number, part in ((own, within[home]), (size - own, weights))
        ]
        members.append(np.unique(np.concatenate(chosen)))
    return [part for part in members if len(part) > 1]


def _shop() -> NodeDataset:
    """Draw 600 products of six kinds; price, weight and two other numbers say little, baskets say much."""
    draw = Draw(2)
    y = draw.randint(6, size=600)
    popularity = 1 / (1 + draw.permutation(600)) ** 0.7
    price = np.exp(draw.normal(0.25 * (y % 3), 1.0)) * 10
    stock = draw.poisson(50 + 400 * popularity).astype(np.float64)
    x = np.stack([price, np.exp(draw.normal(0.2 * (y // 3), 0.8)), stock, draw.random_sample(600)], axis=1)
    return _dataset(_mixed_groups(draw, y, 1000, (2, 8), 0.8, popularity), x, y)


def _bag_of_words(draw: Draw, y: IntArray, words: int, length: int, focus: float) -> Tensor:
    """Draw sparse counts; a word is of its document's class with probability ``focus``, else any."""
    common = 1 / np.arange(1, words + 1) ** 0.8
    common = draw.permutation(common / common.sum())
    classes = int(y.max()) + 1
    topics = draw.dirichlet(np.full(words, 0.05), size=classes)
    rows = np.stack(
        [draw.multinomial(draw.randint(length // 2, 2 * length), _mix(topics[k], common, focus)) for k in y]
    )
    return sparse_features(sp.csr_array(np.minimum(rows, 1).astype(np.float32)))


def _mix(first: FloatArray, second: FloatArray, share: float) -> FloatArray:
    mixed = share * first + (1 - share) * second
    shares: FloatArray = mixed / mixed.sum() * (1 - 1e-9)  # multinomial draws need a sum of at most 1
    return shares


def _words() -> NodeDataset:
    draw = Draw(3)
    y = draw.randint(7, size=800)
    return _dataset(_mixed_groups(draw, y, 500, (2, 6), 0.85), _bag_of_words(draw, y, 1000, 18, 0.3), y)


def _tags() -> NodeDataset:
    draw = Draw(4)
    y = draw.randint(20, size=1200)
    return _dataset(_mixed_groups(draw, y, 900, (2, 6), 0.7), _bag_of_words(draw, y, 600, 15, 0.3), y)


def _noise() -> NodeDataset:
    return contextual_sbm(2, nodes_per_class=400, num_hyperedges=160, seed=11, feature_seed=11)


def _mixture() -> NodeDataset:
    return contextual_sbm(4, nodes_per_class=500, num_hyperedges=400, seed=12, feature_seed=12)


def _gaussian(draw: Draw, y: IntArray, width: int, distance: float) -> FloatArray:
    centres = draw.normal(0, distance, (int(y.max()) + 1, width))
    return np.asarray(draw.normal(centres[y], 1.0))


def _many() -> NodeDataset:
    draw = Draw(5)
    y = draw.randint(30, size=1200)
    return _dataset(_mixed_groups(draw, y, 900, (2, 8), 0.7), _gaussian(draw, y, 32, 0.4), y)


def _crowds() -> NodeDataset:
    draw = Draw(6)
    y = draw.randint(4, size=1000)
    popularity = 1 / (1 + draw.permutation(1000)) ** 1.2
    return _dataset(_mixed_groups(draw, y, 800, (2, 30), 0.6, popularity), _gaussian(draw, y, 10, 0.4), y)


def _few() -> NodeDataset:
    draw = Draw(7)
    y = draw.randint(5, size=1000)
    return _dataset(_mixed_groups(draw, y, 800, (2, 6), 0.8), _gaussian(draw, y, 16, 0.4), y)


def _communities() -> NodeDataset:
    draw = Draw(8)
    y = draw.randint(4, size=600)
    return _dataset(_mixed_groups(draw, y, 450, (3, 8), 0.75), None, y)


def _clubs() -> NodeDataset:
    draw = Draw(9)
    y = draw.randint(10, size=900)
    return _dataset(_mixed_groups(draw, y, 1000, (2, 8), 0.7, 1 / (1 + draw.permutation(900)) ** 0.5), None, y)


def _roles() -> NodeDataset:
    """Draw 600 nodes in three roles: members of many pairs, of few large groups, and of some groups of three."""
    draw = Draw(10)
    y = draw.randint(3, size=600)
    parts = [np.flatnonzero(y == role) for role in range(3)]
    members = []
    for role, (count, size) in enumerate(((600, 2), (40, 12), (150, 3))):
        for _ in range(count):
            pool = parts[role] if draw.random_sample() < 0.85 else np.arange(600)
            members.append(draw.choice(pool, size, replace=False))
    return _dataset(members, None, y)


def _traffic() -> NodeDataset:
    """Draw 700 stops on 60 lines; the value of a stop is the sum of a smooth part and the levels of its lines."""
    draw = Draw(13)
    places = draw.random_sample((700, 2))
    order = np.argsort(places[:, 0], kind="stable")
    members = [order[start : start + draw.randint(5, 25)] for start in range(0, 690, 23)]
    members += [draw.choice(700, draw.randint(4, 12), replace=False) for _ in range(30)]
    level = draw.normal(0, 1, len(members))
    total = np.zeros(700)
    for part, height in zip(members, level, strict=True):
        total[part] += height
    y = 3 * np.rint(100 * places[:, 1]) / 100 + total + draw.normal(0, 0.3, 700)
    x = np.concatenate([places, draw.normal(0, 1, (700, 4))], axis=1)
    return _dataset(members, x, y, regression=True)


_MAKERS: dict[str, Callable[[], NodeDataset]] = {
    "iris": _iris,
    "cancer": _cancer,
    "cars": _cars,
    "mileage": _mileage,
    "animals": _animals,
    "shop": _shop,
    "words": _words,
    "noise": _noise,
    "many": _many,
    "communities": _communities,
    "wine": _wine,
    "digits": _digits,
    "penguins": _penguins,
    "diabetes": _diabetes,
    "tags": _tags,
    "mixture": _mixture,
    "crowds": _crowds,
    "few": _few,
    "clubs": _clubs,
    "roles": _roles,
    "traffic": _traffic,
}
