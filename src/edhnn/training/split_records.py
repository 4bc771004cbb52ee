"""What a split has written down, read back: its result and its epochs, with a clear word if a file is damaged."""

from __future__ import annotations

import json

import msgspec

from edhnn.errors import DataError
from edhnn.training.json_file import read_json, said
from edhnn.training.run_folder import SplitFolder
from edhnn.typing import JsonObject


class _Result(msgspec.Struct):
    """What is read of a result."""

    metric: str
    test: dict[str, float | None]
    valid: dict[str, float | None]
    best_epoch: int
    seconds: float
    num_parameters: int
    peak_memory: int | None


def read_result(split: SplitFolder) -> JsonObject:
    """The numbers of a finished split.

    Raises:
        DataError: if the file is damaged.
    """
    try:
        facts = read_json(split.result)
        found = msgspec.convert(facts, _Result)
        found.test[found.metric], found.valid[found.metric]
    except (DataError, msgspec.ValidationError, KeyError) as error:
        words = error.problem if isinstance(error, DataError) else f"{said(error)}."
        raise DataError(
            f"The file must be the result of a split. {words}", path=split.result, remedy=split.remedy
        ) from error
    return facts


def read_metrics(split: SplitFolder, metric: str) -> list[JsonObject]:
    """The epochs of a split, each with the metric.

    Raises:
        DataError: if a line is damaged, or there is none.
    """
    records: list[JsonObject] = []
    lines = split.metrics.read_bytes().splitlines() if split.metrics.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            for part in ("train", "valid"):
                record[part][metric]
            whole = record["epoch"] == number and 1 <= record["best_epoch"] <= number and "loss" in record
        except (ValueError, TypeError, KeyError):
            whole = False
        if not whole:
            raise DataError(
                f"The line must be the record of epoch {number}. It is not.",
                path=split.metrics,
                where=f"line {number}",
                remedy=split.remedy,
            )
        records.append(record)
    if not records:
        raise DataError("There must be a line per epoch. There is none.", path=split.metrics, remedy=split.remedy)
    return records
