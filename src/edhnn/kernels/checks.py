"""What a kernel demands of its arguments. Native code trusts pointers, so nothing reaches it unchecked."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.kernels.links import Links


def check_segments(values: Tensor, edge_ptr: Tensor) -> None:
    """Values are a floating-point table, and ``edge_ptr`` cuts its rows into segments.

    Raises:
        DataError: saying what must hold and what was given.
    """
    if values.dim() != 2 or not values.is_floating_point():
        raise DataError(f"'values' must be a table of real numbers. Got {values.dtype}, shape {tuple(values.shape)}.")
    if edge_ptr.dim() != 1 or len(edge_ptr) == 0 or _not_integer(edge_ptr):
        raise DataError(
            f"'edge_ptr' must be a vector of at least one integer. Got {edge_ptr.dtype}, shape {tuple(edge_ptr.shape)}."
        )
    _check_device("edge_ptr", edge_ptr, values)
    first, last = int(edge_ptr[0]), int(edge_ptr[-1])
    if first != 0 or last != len(values) or bool((edge_ptr[1:] < edge_ptr[:-1]).any()):
        raise DataError(
            f"'edge_ptr' must rise from 0 to the number of rows, {len(values)}, without falling. "
            f"Got {first} to {last}{'' if (first, last) != (0, len(values)) else ', falling in between'}."
        )


def check_table(name: str, table: Tensor, rows: int) -> None:
    """A table of real numbers with so many rows."""
    if table.dim() != 2 or not table.is_floating_point() or table.shape[0] != rows:
        given = f"{table.dtype}, shape {list(table.shape)}"
        raise DataError(f"'{name}' must be a table of real numbers with {rows} rows. Got {given}.")


def check_links(links: Links, values: Tensor) -> None:
    """Links on the device of the values they join."""
    _check_device("links", links.row_ptr, values)


def check_name(kind: str, name: str, known: Iterable[str]) -> None:
    """One of the known names."""
    if name not in known:
        raise unknown_name(kind, name, tuple(known))


def check_companion(
    name: str, companion: Tensor, values: Tensor, *shapes: tuple[int, ...], same_dtype: bool = False
) -> None:
    """A tensor of real numbers beside ``values``: on its device, of one of ``shapes``, and of its type if asked."""
    if same_dtype and companion.dtype != values.dtype:
        device = values.device.type
        mixed = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
        raise DataError(
            f"'{name}' must be of the type of 'values', {values.dtype}. Got {companion.dtype}.",
            remedy="Leave torch.autocast out; a whole model in one type, as by model.bfloat16(), runs."
            if mixed
            else None,
        )
    if not companion.is_floating_point() or tuple(companion.shape) not in shapes:
        wanted = " or ".join(str(list(shape)) for shape in shapes)
        given = f"{companion.dtype}, shape {list(companion.shape)}"
        raise DataError(f"'{name}' must be real numbers of shape {wanted}. Got {given}.")
    _check_device(name, companion, values)


def check_step(step: Tensor, values: Tensor, num_edges: int) -> None:
    """One step per hyperedge, none negative; NaN is let through and spoils its own segment only."""
    check_companion("step", step, values, (num_edges,))
    if bool((step < 0).any()):
        raise DataError(f"Every 'step' must be 0 or more. Got {float(step.min())}.")


def check_weight(weight: Tensor, values: Tensor, *shapes: tuple[int, ...]) -> None:
    """Positive weights; NaN is let through and spoils its own segment only."""
    check_companion("weight", weight, values, *shapes)
    if bool((weight <= 0).any()):
        raise DataError(f"Every 'weight' must be positive. Got {float(weight.min())}.")


def check_power(power: int, function: str) -> None:
    """Closed forms exist for powers 1 and 2."""
    if power not in (1, 2):
        raise UsageError(f"The 'power' parameter of {function} must be 1 or 2. Got {power} instead.")


def _not_integer(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex() or str(tensor.dtype) == "torch.bool"


def _check_device(name: str, tensor: Tensor, values: Tensor) -> None:
    if tensor.device != values.device:
        raise DataError(f"'{name}' must be on the device of 'values', {values.device}. Got {tensor.device}.")
