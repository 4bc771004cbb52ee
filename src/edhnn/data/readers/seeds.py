"""Seeds for diffusion: a table with a node and a value column; nodes not named have the value 0."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from edhnn.data.column_values import as_list, numbers_in
from edhnn.data.dataset import NodeDataset
from edhnn.data.files import Limits
from edhnn.data.readers.arrow_tables import place_of_row, read_columns, read_header
from edhnn.data.table_names import table_name
from edhnn.errors import DataError


def read_seeds(path: Path, dataset: NodeDataset, limits: Limits) -> Float[Tensor, " N"]:
    """Read seed values.

    Args:
        path: A CSV, TSV or Parquet table with the columns `node` and `value`.
        dataset: The dataset whose nodes are named.
        limits: Size limits.

    Returns:
        A value per node, float64.

    Raises:
        DataError: if a node is unknown or named twice, or a value is not a finite number.
    """
    kind = table_name(path).kind
    header = read_header(path, kind, limits)
    if not {"node", "value"} <= set(header.columns):
        raise DataError(f"Seeds must have the columns 'node' and 'value'. Got {', '.join(header.columns)}.", path=path)
    table = read_columns(path, kind, header, limits, columns=["node", "value"], text_columns=["node"])
    values = numbers_in(table["value"])
    if values is None:  # text among the numbers: each row for itself, so that the wrong one is named
        values = np.array([_number(value) for value in as_list(table["value"])], dtype=np.float64)
    x = np.zeros(dataset.hypergraph.num_nodes)
    seen: dict[int, int] = {}
    for row, name in enumerate(as_list(table["node"])):
        place = _position(name, dataset)
        if place is None or place in seen:
            what = "Each node must be named once" if place in seen else "Every seed must be a node of the hypergraph"
            raise DataError(f"{what}. Got {name!r}.", path=path, where=place_of_row(path, row, limits))
        if not np.isfinite(values[row]):
            raise DataError("Every value must be a finite number.", path=path, where=place_of_row(path, row, limits))
        seen[place] = row
        x[place] = values[row]
    return torch.from_numpy(x)


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def _position(name: object, dataset: NodeDataset) -> int | None:
    """The node of this id; text that spells an integer may mean the integer."""
    if not isinstance(name, str | int) or isinstance(name, bool):
        return None
    found = dataset.node_ids.position(name)
    digits = name.lstrip("-") if isinstance(name, str) else ""
    if found is None and isinstance(name, str) and digits.isascii() and digits.isdigit() and len(digits) < 20:
        found = dataset.node_ids.position(int(name)) if str(int(name)) == name else None
    return found
