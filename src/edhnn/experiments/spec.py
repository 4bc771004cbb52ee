"""Experiments as data: rows, columns, changes where they cross, and the numbers that the paper prints.

An experiment is a TOML file; an unknown key is an error. A row is a model with a preset, a column a dataset. Each may
set options, and so may a ``change`` for some rows and columns, which must give its reason. ``depth`` and ``width``
among the options of a column stand for the model's own names of them.

The paper's numbers are a TOML file per table: ``[row]`` ``column = {mean, std}``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, final

import msgspec

from edhnn.errors import DataError, UsageError, unknown_name


class Number(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A printed number: a mean and, where printed, a standard deviation.

    Attributes:
        mean: The mean.
        std: Its standard deviation.
        digits: Digits after the point.
        inference: Beside a time of training, that of an inference.
        inference_std: Its standard deviation.
    """

    mean: float
    std: float | None = None
    digits: int = 3
    inference: float | None = None
    inference_std: float | None = None

    @property
    def rounding(self) -> float:
        """The largest distance of the number from what was rounded to it."""
        return 0.51 * 10.0**-self.digits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The numbers of a table.

    Attributes:
        numbers: By the labels of row and column.
        unit: The paper's unit where it is not ours; such numbers cannot be subtracted from ours.
    """

    numbers: Mapping[tuple[str, str], Number]
    unit: str = ""

    def rows(self) -> list[str]:
        """List the labels of the rows, in order."""
        return list(dict.fromkeys(row for row, _ in self.numbers))


NOTHING = Published(numbers={})


def published_names() -> list[str]:
    """List the tables whose numbers come with the package."""
    files = resources.files("edhnn.experiments").joinpath("published").iterdir()
    return sorted(Path(file.name).stem for file in files if file.name.endswith(".toml"))


@cache
def read_published(name: str) -> Published:
    """Read the numbers of a table that comes with the package; none for an empty name.

    Raises:
        UsageError: if there is no such table; the message lists what there is.
    """
    if not name:
        return NOTHING
    if name not in published_names():
        raise unknown_name("published table", name, published_names())
    text = resources.files("edhnn.experiments").joinpath("published", f"{name}.toml").read_text("utf-8")
    return parse_published(text, f"{name}.toml")


def parse_published(text: str, name: str) -> Published:
    """Parse the numbers from TOML text.

    Raises:
        DataError: if the text is something else; the message names the place.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"Published numbers must be TOML: {error}.", path=name) from error
    unit = content.pop("unit", "")
    if not isinstance(unit, str):
        raise DataError(f"The unit must be a text. Got {unit!r}.", path=name)
    numbers: dict[tuple[str, str], Number] = {}
    for row, columns in content.items():
        try:
            printed = msgspec.convert(columns, dict[str, Number])
        except msgspec.ValidationError as error:
            raise DataError(
                f"A row must hold columns of {{ mean = ..., std = ... }}: {error}.", path=name, where=f"[{row}]"
            ) from error
        numbers |= {(row, column): number for column, number in printed.items()}
    return Published(numbers=numbers, unit=unit)


_NOT_IN_FILES = ("name", "text")
_PLAIN_NAME = re.compile(r"[\w.-]+")
_GROUP = re.compile(r'^group = "(.+)"$', re.MULTILINE)


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of a table, or a curve: a model and where its sizes come from.

    Attributes:
        label: What the page calls it.
        model: A name of the registry, or a floor's or ceiling's (`edhnn.experiments.kinds.bounds`).
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
        dataset: A catalogue name; for diffusion ``gradient-tv`` or another of its datasets.
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
        """Return whether the change concerns this cell."""
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
    kind: str
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
    """List the experiments that come with the package."""
    files = resources.files("edhnn.experiments").joinpath("specs").iterdir()
    return tuple(sorted(Path(file.name).stem for file in files if file.name.endswith(".toml")))


@cache
def packaged_text(name: str) -> str:
    """Read the TOML of an experiment that comes with the package."""
    return resources.files("edhnn.experiments").joinpath("specs", f"{name}.toml").read_text("utf-8")


def packaged_group(name: str) -> str:
    """Find the group of an experiment that comes with the package, without parsing the file."""
    match = _GROUP.search(packaged_text(name))
    return match[1] if match else ""


def choose_experiments(names: Iterable[str]) -> list[Experiment]:
    """Find the experiments of several names, each once.

    Raises:
        UsageError: if two of them have one name: their records would be mixed.
    """
    chosen: dict[str, Experiment] = {}
    for name in names:
        for experiment in find_experiments(name):
            if chosen.setdefault(experiment.name, experiment) != experiment:
                raise UsageError(
                    f"Two experiments must not have one name. Got '{experiment.name}' twice; rename a file."
                )
    return list(chosen.values())


def find_experiments(name: str) -> list[Experiment]:
    """Find the experiment of that name, those of that group, or the one in that TOML file; parse no others.

    Raises:
        UsageError: if there is none; the message lists the known names.
        DataError: if the file is not an experiment.
    """
    if name.endswith(".toml"):
        return [read_experiment(Path(name))]
    groups = {known: packaged_group(known) for known in experiment_names()}
    matching = [known for known, group in groups.items() if name and name in (known, group)]
    if not matching:
        raise unknown_name("experiment", name, [*groups, *sorted(set(groups.values()) - {""} - set(groups))])
    return [packaged_experiment(known) for known in matching]


def packaged_experiment(name: str) -> Experiment:
    """Parse an experiment that comes with the package."""
    return parse_experiment(packaged_text(name), name, None)


def read_experiment(path: Path) -> Experiment:
    """Read an experiment from a file."""
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
    """Parse an experiment from TOML text and check it."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"An experiment must be TOML: {error}.", path=path) from error
    _check_keys(content, name)
    try:
        experiment = msgspec.convert({**content, "name": name, "text": text}, Experiment)
    except msgspec.ValidationError as error:
        raise DataError(f"The experiment '{name}' must hold what its fields are: {error}.", path=path) from error
    _check_labels(experiment)
    if experiment.splits < 1:
        raise UsageError(f"The experiment '{name}' must have at least 1 split. Got splits = {experiment.splits}.")
    _check_kind(experiment)
    if experiment.published and experiment.published not in published_names():
        raise unknown_name("published table", experiment.published, published_names())
    return experiment


def _check_keys(content: dict[str, Any], name: str) -> None:
    """Refuse unknown keys with a suggestion, which msgspec does not give."""
    places: list[tuple[Any, type[msgspec.Struct], str]] = [(content, Experiment, f"experiment '{name}'")]
    for key, struct in (("row", Row), ("column", Column), ("change", Change)):
        entries = content.get(key, [])
        for number, entry in enumerate(entries if isinstance(entries, list) else [], start=1):
            places.append((entry, struct, f"[[{key}]] number {number} of experiment '{name}'"))
    for entry, fields_of, where in places:
        known = [
            field for field in fields_of.__struct_fields__ if fields_of is not Experiment or field not in _NOT_IN_FILES
        ]
        for key in entry if isinstance(entry, dict) else ():
            if key not in known:
                raise unknown_name(f"key in {where}", key, known)


def _check_kind(experiment: Experiment) -> None:
    from edhnn.experiments.kinds import KINDS  # kinds need rows and columns from this module

    if experiment.kind not in KINDS:
        raise unknown_name(f"kind of the experiment '{experiment.name}'", experiment.kind, KINDS)
    if experiment.show != "lines":
        return
    if not KINDS[experiment.kind].axis:
        drawn = " or ".join(name for name, kind in KINDS.items() if kind.axis)
        raise UsageError(
            f"An experiment that is shown as lines must be of the kind {drawn}. Got '{experiment.kind}' "
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
