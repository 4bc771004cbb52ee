"""Membership pairs checked, sorted and counted: what a `Hypergraph` asks of the tensors it is given."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from edhnn.errors import DataError


def node_numbers(members: list[list[Any]]) -> npt.NDArray[np.int64]:
    """The members of all hyperedges in a row; anything but a 64-bit integer is refused, not rounded."""
    flat = [v for hyperedge in members for v in hyperedge]
    with suppress(ValueError):  # members that are lists of several lengths
        numbers = np.array(flat)
        whole = numbers.dtype.kind == "i" and not {bool, np.bool_} & set(map(type, flat))
        if numbers.ndim == 1 and (whole or not flat):
            return numbers.astype(np.int64, copy=False)
    for edge, v in ((edge, v) for edge, hyperedge in enumerate(members) for v in hyperedge):
        if isinstance(v, bool) or not isinstance(v, int | np.integer) or not -(2**63) <= v < 2**63:
            raise DataError(
                f"Every member of a hyperedge must be the number of a node, a 64-bit integer. Got {v!r}.",
                where=f"hyperedge {edge}",
                remedy="Number the nodes from 0 and give their names as node_ids=edhnn.Ids([...]) to a NodeDataset, or "
                "read a table of names with edhnn.read_dataset.",
            )
    return np.array([int(v) for v in flat], dtype=np.int64)  # unsigned integers


def checked_index(name: str, index: Tensor) -> Tensor:
    """The index, if it is a vector of integers."""
    if index.is_floating_point() or index.is_complex() or index.dtype == torch.bool or index.dim() != 1:
        shape = tuple(index.shape)
        raise DataError(f"'{name}' must be a vector of integers. Got {index.dtype} of shape {shape}.")
    return index.detach()


def check_range(kind: str, index: Tensor, count: int) -> None:
    """Refuse a negative count, and a number outside it; the first such place is named."""
    if count < 0:
        raise DataError(f"The number of {kind}s must be 0 or more. Got {count}.")
    if len(index) and not (int(index.min()) >= 0 and int(index.max()) < count):
        place = int(((index < 0) | (index >= count)).nonzero()[0, 0])
        raise DataError(
            f"Every {kind} number must lie in 0..{count - 1}, as there are {count} {kind}s. "
            f"Got {int(index[place])} at incidence {place}.",
            remedy=f"Raise the number of {kind}s, or renumber from 0.",
        )


def checked_weight(name: str, weight: Tensor | None, length: int) -> Tensor | None:
    """A copy of the weights, if there are any, all finite and none negative."""
    if weight is None:
        return None
    if not weight.is_floating_point() or weight.shape != (length,):
        raise DataError(
            f"'{name}' must be {length} floating-point numbers. Got {weight.dtype}, shape {tuple(weight.shape)}."
        )
    wrong = ~(torch.isfinite(weight) & (weight >= 0))
    if wrong.any():
        place = int(wrong.nonzero()[0, 0])
        raise DataError(f"Every '{name}' must be finite and 0 or more. Got {weight[place].item()} at {place}.")
    return weight.detach().clone()


def sorted_and_merged(key: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Keys in ascending order, each once; of the weights of equal keys the largest."""
    if bool((key[1:] > key[:-1]).all()):
        return key, weight
    key, order = torch.sort(key, stable=True)
    weight = None if weight is None else weight[order]
    del order
    first = torch.ones_like(key, dtype=torch.bool)
    torch.ne(key[1:], key[:-1], out=first[1:])
    if bool(first.all()):
        return key, weight
    if weight is not None:
        group = first.cumsum(0) - 1
        weight = weight.new_zeros(int(group[-1]) + 1).scatter_reduce(0, group, weight, "amax")
    return key[first], weight


def group_bounds(index: Tensor, count: int) -> Tensor:
    """Where each group would start in the sorted index, and where the last one would end."""
    bounds = index.new_zeros(count + 1)
    torch.cumsum(torch.bincount(index, minlength=count), 0, out=bounds[1:])
    return bounds
