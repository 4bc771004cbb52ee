"""Experiments as data: rows, columns, and what changes where they cross. Read from TOML; an unknown key is an error.

A row is a model with a preset, a column a dataset; each may set options, and so may a ``change`` for some rows and
columns, which must say why. ``depth`` and ``width`` among the options of a column mean the model's own name for them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec

from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.experiments.published import read_published

KindName = Literal["accuracy", "statistics", "timing", "diffusion"]
_NOT_WRITTEN = ("name", "text")
_PLAIN_NAME = re.compile(r"[\w.-]+")


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of a table, or a curve: a model and where its sizes come from.

    Attributes:
        label: What the page calls it.
        model: A name of the registry, or a floor's or ceiling's (`edhnn.experiments.bounds`).
        preset: Where its sizes come from.
        options: Options of the model that win over the preset's.
        train: Fields of the training configuration, likewise.
    """

    label: str
    model: str
    preset: Literal["paper", "official"] = "paper"
    options: dict[str, Any] = {}
    train: dict[str, Any] = {}


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of a table, or a place on the horizontal axis.

    Attributes:
        label: What the page calls it.
        dataset: A catalogue name; for diffusion ``gradient-tv`` and its kin.
        panel: Which plot of a figure it belongs to.
        x: Its place on the horizontal axis.
        options: Options of all models, or ``depth`` and ``width``.
        train: Fields of the training configuration.
    """

    label: str
    dataset: str
    panel: str = ""
    x: float | None = None
    options: dict[str, Any] = {}
    train: dict[str, Any] = {}


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other settings where some rows and columns cross; an empty list means all.

    Attributes:
        rows: Labels of rows.
        columns: Labels of columns.
        options: Options that win over all others.
        train: Fields of the training configuration that do.
        skip: Leave these cells out.
        why: The reason, for the page.
    """

    rows: list[str] = []
    columns: list[str] = []
    options: dict[str, Any] = {}
    train: dict[str, Any] = {}
    skip: bool = False
    why: str

    def applies(self, row: Row, column: Column) -> bool:
        """Whether it is about this cell."""
        return (not self.rows or row.label in self.rows) and (not self.columns or column.label in self.columns)


class Experiment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table or a figure.

    Attributes:
        title: What it shows.
        paper: The paper's name for it: ``Table 2``.
        kind: What its cells are.
        group: A name under which several are run together.
        show: ``table``, or ``lines``: a figure.
        axis: What the horizontal axis of a figure is.
        published: The file of the paper's numbers, if it prints them.
        splits: Splits, or seeds where there are no splits.
        train: Fields of the training configuration for all cells.
        notes: What a reader must know.
        row: The rows.
        column: The columns.
        change: The changes, in order.
        name: The file's name.
        text: The TOML itself.
    """

    title: str
    paper: str
    kind: KindName
    group: str = ""
    show: Literal["table", "lines"] = "table"
    axis: str = ""
    published: str = ""
    splits: int = 10
    train: dict[str, Any] = {}
    notes: list[str] = []
    row: list[Row]
    column: list[Column]
    change: list[Change] = []
    name: str = ""
    text: str = ""


@cache
def experiment_names() -> tuple[str, ...]:
    """The experiments that come with the package."""
    files = resources.files("edhnn.experiments").joinpath("specs").iterdir()
    return tuple(sorted(Path(file.name).stem for file in files if file.name.endswith(".toml")))


def choose_experiments(names: Iterable[str]) -> list[Experiment]:
    """The experiments of several names, each once.

    Raises:
        UsageError: if two of them have one name: their records would be mixed.
    """
    chosen: dict[str, Experiment] = {}
    for name in names:
        for found in find_experiments(name):
            if chosen.setdefault(found.name, found) != found:
                raise UsageError(f"Two experiments must not have one name. Got '{found.name}' twice; rename a file.")
    return list(chosen.values())


def find_experiments(name: str) -> list[Experiment]:
    """The experiment of that name, those of that group, or the one in that TOML file.

    Raises:
        UsageError: if there is none; the message lists what there is.
        DataError: if the file is not an experiment.
    """
    if name.endswith(".toml"):
        return [read_experiment(Path(name))]
    everything = [packaged_experiment(known) for known in experiment_names()]
    found = [experiment for experiment in everything if name and name in (experiment.name, experiment.group)]
    if not found:
        groups = sorted({experiment.group for experiment in everything} - {""} - set(experiment_names()))
        raise unknown_name("experiment", name, [*experiment_names(), *groups])
    return found


def packaged_experiment(name: str) -> Experiment:
    """An experiment that comes with the package."""
    text = resources.files("edhnn.experiments").joinpath("specs", f"{name}.toml").read_text("utf-8")
    return parse_experiment(text, name, None)


def read_experiment(path: Path) -> Experiment:
    """An experiment from a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"'{path}' cannot be read: {error}.") from error
    if not _PLAIN_NAME.fullmatch(path.stem):
        raise UsageError(
            f"The name of an experiment's file must be of letters, digits, '.', '-' and '_'. Got '{path.name}'."
        )
    return parse_experiment(text, path.stem, path)


def parse_experiment(text: str, name: str, path: Path | None) -> Experiment:
    """An experiment from TOML text."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"An experiment must be TOML. Reading it said: {error}.", path=path) from error
    check_keys(content, Experiment, f"experiment '{name}'")
    for key, kind in (("row", Row), ("column", Column), ("change", Change)):
        entries = content.get(key, [])
        for place, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict):
                check_keys(entry, kind, f"[[{key}]] number {place + 1} of experiment '{name}'")
    try:
        found = msgspec.convert({**content, "name": name, "text": text}, Experiment)
    except msgspec.ValidationError as error:
        raise DataError(f"The experiment '{name}' must hold what its fields are: {error}.", path=path) from error
    _check_labels(found)
    if found.splits < 1:
        raise UsageError(f"The experiment '{name}' must have at least 1 split. Got splits = {found.splits}.")
    if found.show == "lines":
        _check_lines(found)
    read_published(found.published)
    return found


def check_keys(content: dict[str, Any], kind: type[msgspec.Struct], where: str) -> None:
    """Refuse keys that a struct does not have, with a suggestion."""
    known = [name for name in kind.__struct_fields__ if kind is not Experiment or name not in _NOT_WRITTEN]
    for key in content:
        if key not in known:
            raise unknown_name(f"key in {where}", key, known)


def _check_lines(experiment: Experiment) -> None:
    if experiment.kind not in ("accuracy", "diffusion"):
        raise UsageError(
            f"An experiment that is shown as lines must be of the kind accuracy or diffusion. Got '{experiment.kind}' "
            f"in '{experiment.name}'."
        )
    for column in experiment.column:
        if column.x is None:
            raise UsageError(
                f"Every column of '{experiment.name}', which is shown as lines, must have an x. "
                f"The column '{column.label}' has none."
            )


def _check_labels(experiment: Experiment) -> None:
    known: dict[str, list[str]] = {
        "rows": [row.label for row in experiment.row],
        "columns": [column.label for column in experiment.column],
    }
    for what, labels in known.items():
        if not labels:
            raise UsageError(
                f"The experiment '{experiment.name}' must have {what}. It has none: add a [[{what[:-1]}]]."
            )
        if len(set(labels)) != len(labels):
            raise UsageError(f"The {what} of experiment '{experiment.name}' must be named differently. Got {labels}.")
        for change in experiment.change:
            for label in getattr(change, what):
                if label not in labels:
                    raise unknown_name(f"label in a [[change]] of experiment '{experiment.name}'", label, labels)
