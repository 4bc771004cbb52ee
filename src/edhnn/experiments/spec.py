"""Experiments and the paper's numbers, read from TOML files.

An experiment has rows (a model with a preset) and columns (a dataset). Both may set options, and so may a ``change``
for some rows and columns, which must give a reason. In the options of a column, ``depth`` and ``width`` stand for the
corresponding options of each model. An unknown key is an error.

The paper's numbers are in one file per table: ``[row]`` ``column = {mean, std}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, final

import msgspec

from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.io.files import need_utf8, read_document
from edhnn.io.json_files import parse_toml


class Number(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A printed number: a mean and, where printed, a standard deviation.

    Attributes:
        mean: The mean.
        std: The standard deviation.
        digits: Digits after the decimal point.
        inference: The time of an inference, if ``mean`` is the time of training.
        inference_std: The standard deviation of ``inference``.
    """

    mean: float
    std: float | None = None
    digits: int = 3
    inference: float | None = None
    inference_std: float | None = None

    @property
    def rounding(self) -> float:
        """The largest possible rounding error of the number."""
        return 0.51 * 10.0**-self.digits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The printed numbers of a table.

    Attributes:
        numbers: The numbers by the labels of row and column.
        unit: The paper's unit if it differs from ours; such numbers cannot be subtracted from ours.
    """

    numbers: Mapping[tuple[str, str], Number]
    unit: str = ""

    def rows(self) -> list[str]:
        """List the labels of the rows, in order."""
        return list(dict.fromkeys(row for row, _ in self.numbers))


NO_NUMBERS = Published(numbers={})


def published_names() -> list[str]:
    """List the tables whose printed numbers are packaged."""
    return _toml_names("published")


def _toml_names(folder: str) -> list[str]:
    files = resources.files("edhnn.experiments").joinpath(folder).iterdir()
    return sorted(Path(file.name).stem for file in files if file.name.endswith(".toml"))


@cache
def read_published(name: str) -> Published:
    """Read the packaged numbers of a table; return `NO_NUMBERS` for an empty name.

    Raises:
        UsageError: if the name is unknown; the message lists the known ones.
    """
    if not name:
        return NO_NUMBERS
    if name not in published_names():
        raise unknown_name("published table", name, published_names())
    text = resources.files("edhnn.experiments").joinpath("published", f"{name}.toml").read_text("utf-8")
    return parse_published(text, f"{name}.toml")


def parse_published(text: str, name: str) -> Published:
    """Parse the numbers of a table from TOML text.

    Raises:
        DataError: if the text is invalid; the message names the row.
    """
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise DataError(f"The file is not valid TOML. Cause: {error}.", path=name) from error
    unit = content.pop("unit", "")
    if not isinstance(unit, str):
        raise DataError(f"`unit` must be a string. Got {unit!r}.", path=name)
    numbers: dict[tuple[str, str], Number] = {}
    for row, columns in content.items():
        try:
            printed = msgspec.convert(columns, dict[str, Number])
        except msgspec.ValidationError as error:
            raise DataError(
                f"A row must map columns to {{ mean = ..., std = ... }}. Cause: {error}.", path=name, where=f"[{row}]"
            ) from error
        numbers |= {(row, column): number for column, number in printed.items()}
    return Published(numbers=numbers, unit=unit)


_NOT_IN_FILES = ("name", "text")
_PLAIN_NAME = re.compile(r"[\w.-]+")
_GROUP = re.compile(r'^group = "(.+)"$', re.MULTILINE)


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of a table or a curve of a figure: a model and its settings.

    Attributes:
        label: The name in the report.
        model: A name of the model registry, or of a floor or ceiling (`edhnn.experiments.kinds.bounds`).
        preset: The preset of the model's sizes.
        options: Options of the model that override the preset's.
        train: Fields of the training configuration that override the preset's.
    """

    label: str
    model: str
    preset: Literal["paper", "official"] = "paper"
    options: dict[str, Any] = {}
    train: dict[str, Any] = {}


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of a table or a point on the horizontal axis of a figure.

    Attributes:
        label: The name in the report.
        dataset: A catalogue name; for diffusion ``gradient-tv`` or another of its datasets.
        panel: The plot of the figure that the point belongs to.
        x: The position on the horizontal axis.
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
    """Other settings for the cells of some rows and columns.

    Attributes:
        rows: Labels of rows; all if empty.
        columns: Labels of columns; all if empty.
        options: Options that override those of row and column.
        train: Fields of the training configuration that override those of row and column.
        skip: Whether to omit these cells.
        why: The reason, shown in the report.
    """

    rows: list[str] = []
    columns: list[str] = []
    options: dict[str, Any] = {}
    train: dict[str, Any] = {}
    skip: bool = False
    why: str

    def applies(self, row: Row, column: Column) -> bool:
        """Return whether the change applies to the cell of a row and a column."""
        return (not self.rows or row.label in self.rows) and (not self.columns or column.label in self.columns)


class Experiment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table or a figure.

    Attributes:
        title: The title in the report.
        paper: The name in the paper (``Table 2``), or ``none``.
        kind: The kind of the cells, a key of `KINDS`.
        group: A name under which several experiments are run together.
        show: ``table``, or ``lines`` for a figure.
        axis: The label of the horizontal axis of a figure.
        published: The name of the file with the paper's numbers, if the paper prints them.
        splits: Number of splits, or of seeds where the data have no splits.
        train: Fields of the training configuration for all cells.
        notes: Sentences shown in the report.
        row: The rows.
        column: The columns.
        change: The changes; later ones override earlier ones.
        name: The name of the file without its suffix.
        text: The content of the file.
    """

    title: str
    paper: str
    kind: str
    group: str = ""
    show: Literal["table", "lines"] = "table"
    axis: str = ""
    published: str = ""
    splits: Annotated[int, msgspec.Meta(le=10_000)] = 10
    train: dict[str, Any] = {}
    notes: list[str] = []
    row: list[Row]
    column: list[Column]
    change: list[Change] = []
    name: str = ""
    text: str = ""


@cache
def experiment_names() -> tuple[str, ...]:
    """List the names of the packaged experiments."""
    return tuple(_toml_names("specs"))


@cache
def packaged_text(name: str) -> str:
    """Read the TOML text of a packaged experiment."""
    return resources.files("edhnn.experiments").joinpath("specs", f"{name}.toml").read_text("utf-8")


def packaged_group(name: str) -> str:
    """Return the group of a packaged experiment without parsing the whole file."""
    match = _GROUP.search(packaged_text(name))
    return match[1] if match else ""


def choose_experiments(names: Iterable[str]) -> list[Experiment]:
    """Find the experiments of several names, without duplicates.

    Raises:
        UsageError: if two different experiments have the same name, because their records would be mixed.
    """
    chosen: dict[str, Experiment] = {}
    for name in names:
        for experiment in find_experiments(name):
            if chosen.setdefault(experiment.name, experiment) != experiment:
                raise UsageError(
                    f"Experiment names must be unique. '{experiment.name}' occurs twice. Rename one of the files."
                )
    return list(chosen.values())


def find_experiments(name: str) -> list[Experiment]:
    """Find the packaged experiment of a name, those of a group, or the experiment in a TOML file.

    Raises:
        UsageError: if the name is unknown; the message lists the known ones.
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
    """Parse a packaged experiment."""
    return parse_experiment(packaged_text(name), name, None)


def read_experiment(path: Path) -> Experiment:
    """Read an experiment from a file."""
    text = need_utf8(read_document(path), "An experiment", path)
    if not _PLAIN_NAME.fullmatch(path.stem):
        raise UsageError(
            f"The name of an experiment file may contain only letters, digits, '.', '-' and '_'. Got '{path.name}'."
        )
    return parse_experiment(text, path.stem, path)


def parse_experiment(text: str, name: str, path: Path | None) -> Experiment:
    """Parse an experiment from TOML text and check it."""
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise DataError(f"The experiment '{name}' is not valid TOML. Cause: {error}.", path=path) from error
    _check_keys(content, name)
    try:
        experiment = msgspec.convert({**content, "name": name, "text": text}, Experiment)
    except msgspec.ValidationError as error:
        raise DataError(f"The experiment '{name}' is invalid. Cause: {error}.", path=path) from error
    _check_labels(experiment)
    if experiment.splits < 1:
        raise UsageError(f"The experiment '{name}' must have at least 1 split. Got splits = {experiment.splits}.")
    _check_kind(experiment)
    read_published(experiment.published)  # raises an error if the name is unknown
    return experiment


def _check_keys(content: dict[str, Any], name: str) -> None:
    """Raise an error for unknown keys, with a suggestion, which msgspec does not give."""
    tables: list[tuple[Any, type[msgspec.Struct], str]] = [(content, Experiment, f"experiment '{name}'")]
    for key, entry_type in (("row", Row), ("column", Column), ("change", Change)):
        entries = content.get(key, [])
        for number, entry in enumerate(entries if isinstance(entries, list) else [], start=1):
            tables.append((entry, entry_type, f"[[{key}]] number {number} of experiment '{name}'"))
    for entry, struct, where in tables:
        known = [field for field in struct.__struct_fields__ if field not in _NOT_IN_FILES]
        for key in entry if isinstance(entry, dict) else ():
            if key not in known:
                raise unknown_name(f"key in {where}", key, known)


def _check_kind(experiment: Experiment) -> None:
    from edhnn.experiments.kinds import KINDS  # here, because kinds import this module

    if experiment.kind not in KINDS:
        raise unknown_name(f"kind of the experiment '{experiment.name}'", experiment.kind, KINDS)
    if experiment.show != "lines":
        return
    if not KINDS[experiment.kind].axis:
        drawn = " or ".join(name for name, kind in KINDS.items() if kind.axis)
        raise UsageError(
            f"The kind of an experiment with show = \"lines\" must be {drawn}. Got '{experiment.kind}' "
            f"in '{experiment.name}'."
        )
    for column in experiment.column:
        if column.x is None:
            raise UsageError(
                f"Every column of an experiment with show = \"lines\" must have an x. The column '{column.label}' of "
                f"'{experiment.name}' has none."
            )


def _check_labels(experiment: Experiment) -> None:
    known: dict[str, list[str]] = {
        "rows": [row.label for row in experiment.row],
        "columns": [column.label for column in experiment.column],
    }
    for what, labels in known.items():
        if not labels:
            raise UsageError(
                f"The experiment '{experiment.name}' must have {what}. It has none. Add a [[{what[:-1]}]]."
            )
        if len(set(labels)) != len(labels):
            raise UsageError(f"The labels of {what} must be unique. Got {labels} in experiment '{experiment.name}'.")
        for change in experiment.change:
            for label in getattr(change, what):
                if label not in labels:
                    raise unknown_name(f"label in a [[change]] of experiment '{experiment.name}'", label, labels)
