"""The paper's numbers, as printed: a TOML file per table, ``[row]`` ``column = {mean, std}``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import final

import msgspec

from edhnn.errors import DataError, unknown_name


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
        """How far the number may be from what was rounded to it."""
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
        """The labels of the rows, in order."""
        return list(dict.fromkeys(row for row, _ in self.numbers))


NOTHING = Published(numbers={})


def published_names() -> list[str]:
    """The tables whose numbers come with the package."""
    files = resources.files("edhnn.experiments").joinpath("published").iterdir()
    return sorted(Path(file.name).stem for file in files if file.name.endswith(".toml"))


def read_published(name: str) -> Published:
    """The numbers of a table that come with the package; none for an empty name.

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
    """The numbers from TOML text.

    Raises:
        DataError: if it is something else; names the place.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"Published numbers must be TOML. Reading them said: {error}.", path=name) from error
    unit = content.pop("unit", "")
    if not isinstance(unit, str):
        raise DataError(f"The unit must be a text. Got {unit!r}.", path=name)
    numbers: dict[tuple[str, str], Number] = {}
    for row, columns in content.items():
        try:
            found = msgspec.convert(columns, dict[str, Number])
        except msgspec.ValidationError as error:
            raise DataError(
                f"A row must hold columns of {{ mean = ..., std = ... }}: {error}.", path=name, where=f"[{row}]"
            ) from error
        numbers |= {(row, column): number for column, number in found.items()}
    return Published(numbers=numbers, unit=unit)
