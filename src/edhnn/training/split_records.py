"""What a split has written down, read back: its result and its epochs, with a clear word if a file is damaged."""

from __future__ import annotations

import json

from edhnn.errors import DataError
from edhnn.training.json_file import read_json
from edhnn.training.run_folder import SplitFolder
from edhnn.typing import JsonObject

_RESULT = ("metric", "test", "valid", "best_epoch", "seconds", "num_parameters", "peak_memory")


def read_result(split: SplitFolder) -> JsonObject:
    """The numbers of a finished split.

    Raises:
        DataError: if the file is damaged.
    """
    facts = read_json(split.result)
    lacking = [name for name in _RESULT if name not in facts]
    lacking += [part for part in ("test", "valid") if not lacking and facts["metric"] not in facts[part]]
    if lacking:
        raise DataError(
            f"A split's result must hold {', '.join(_RESULT)}. It lacks '{lacking[0]}'.",
            path=split.result,
            remedy=split.remedy,
        )
    return facts


def read_metrics(split: SplitFolder, metric: str) -> list[JsonObject]:
    """The epochs of a split, each with the metric.

    Raises:
        DataError: if a line is damaged, or there is none.
    """
    records: list[JsonObject] = []
    for number, line in enumerate(split.metrics.read_bytes().splitlines(), 1):
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
