"""Which implementation serves a call, and what a kernel demands of its arguments.

``native`` serves where it is built and fits the call, ``torch`` everywhere else. ``EDHNN_KERNELS=torch`` or ``native``,
read at the first call, forces one; so does `choose` later on. ``native`` then means that it must be there: a call that
it cannot serve (a gradient of a kernel that has none natively, another device or dtype) still goes to torch.

Native code trusts pointers, so nothing reaches it unchecked. What depends on a structure alone is checked once per
`Links` or per tensor of segment bounds; shapes, types and devices are compared at every call.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.autograd import forward_ad

from edhnn.errors import DataError, UsageError, unknown_name
from edhnn.kernels import native_backend
from edhnn.kernels.library import chosen
from edhnn.kernels.links import Links

_active: str | None = None


def native_available() -> bool:
    """Return whether the native kernels are built and fit this version of the package."""
    return native_backend.BUILT


def active() -> str:
    """Return the implementation in use: ``"native"`` or ``"torch"``.

    Raises:
        UsageError: if ``EDHNN_KERNELS`` names neither, or asks for native kernels that are not built.
    """
    if _active is None:
        choose(None)
    assert _active is not None
    return _active


def choose(implementation: str | None) -> str | None:
    """Use an implementation from now on.

    Args:
        implementation: ``native`` or ``torch``; ``None`` for what ``EDHNN_KERNELS`` says now.

    Returns:
        The implementation used until now; ``None`` if none has been yet.

    Raises:
        UsageError: if the name is unknown, or native kernels are asked for and not built.
    """
    global _active
    before, _active = _active, None
    _active = chosen(implementation, built=native_available())
    return before


def use_native(values: Tensor, *others: Tensor | None, has_gradient: bool = True) -> bool:
    """Return whether this call is served natively: built, wanted, CPU, and float32 or float64.

    Args:
        values: The kernel's main argument.
        others: Its other tensors.
        has_gradient: Whether the kernel has a native gradient. Without one a call that wants a gradient goes to torch,
            as forward-mode derivatives always do.
    """
    if active() == "torch" or values.device.type != "cpu" or values.dtype not in native_backend.SUFFIX:
        return False
    if has_gradient and forward_ad._current_level < 0:
        return True
    tensors = [values, *(other for other in others if other is not None)]
    if not has_gradient and torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return False
    return all(forward_ad.unpack_dual(tensor).tangent is None for tensor in tensors)  # type: ignore[no-untyped-call]


def check_segments(values: Tensor, edge_ptr: Tensor, *, again_in_operator: bool = False) -> None:
    """Check that values are a floating-point table, and that ``edge_ptr`` cuts its rows into segments.

    The bounds are read once per tensor and change in place: not again for the next table of as many rows. Memory that
    is shared with NumPy may change unnoticed; do not change it. On the meta device there are no bounds to read.

    Args:
        values: The table.
        edge_ptr: Where segments begin, and where the last one ends.
        again_in_operator: Whether an operator checks the bounds when it runs, so that a trace, where they have no
            values, may leave them out.

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
    if edge_ptr.is_meta or (again_in_operator and torch.compiler.is_compiling()):
        return
    if torch.compiler.is_compiling() or edge_ptr.is_inference():
        _check_bounds(edge_ptr, len(values))
        return
    stamp = len(values), edge_ptr._version
    if vars(edge_ptr).get("_edhnn_bounds") != stamp:
        _check_bounds(edge_ptr, len(values))
        vars(edge_ptr)["_edhnn_bounds"] = stamp


def _check_bounds(edge_ptr: Tensor, rows: int) -> None:
    first, last = int(edge_ptr[0]), int(edge_ptr[-1])
    if first != 0 or last != rows or bool((edge_ptr[1:] < edge_ptr[:-1]).any()):
        raise DataError(
            f"'edge_ptr' must rise from 0 to the number of rows, {rows}, without falling. "
            f"Got {first} to {last}{'' if (first, last) != (0, rows) else ', falling in between'}."
        )


def check_table(name: str, table: Tensor, rows: int) -> None:
    """Check for a table of real numbers with so many rows."""
    if table.dim() != 2 or not table.is_floating_point() or table.shape[0] != rows:
        given = f"{table.dtype}, shape {list(table.shape)}"
        raise DataError(f"'{name}' must be a table of real numbers with {rows} rows. Got {given}.")


def check_links(links: Links, values: Tensor) -> None:
    """Check that links are on the device of the values they join."""
    _check_device("links", links.row_ptr, values)


def check_name(kind: str, name: str, known: Iterable[str]) -> None:
    """Check for one of the known names."""
    if name not in known:
        raise unknown_name(kind, name, tuple(known))


def check_companion(
    name: str, companion: Tensor, values: Tensor, *shapes: tuple[int, ...], same_dtype: bool = False
) -> None:
    """Check a tensor of real numbers beside ``values``: its device, one of ``shapes``, and its type if asked."""
    if companion.dtype == values.dtype and companion.shape in shapes and companion.device == values.device:
        return
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
    """Check for a step per hyperedge, none negative; NaN is let through and spoils its own segment only."""
    check_companion("step", step, values, (num_edges,))
    if bool((step < 0).any()):
        raise DataError(f"Every 'step' must be 0 or more. Got {float(step.min())}.")


def check_weight(weight: Tensor, values: Tensor, *shapes: tuple[int, ...]) -> None:
    """Check for positive weights; NaN is let through and spoils its own segment only."""
    check_companion("weight", weight, values, *shapes)
    if bool((weight <= 0).any()):
        raise DataError(f"Every 'weight' must be positive. Got {float(weight.min())}.")


def check_power(power: int, function: str) -> None:
    """Check for power 1 or 2: closed forms exist for these."""
    if power not in (1, 2):
        raise UsageError(f"The 'power' parameter of {function} must be 1 or 2. Got {power} instead.")


def _not_integer(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool


def _check_device(name: str, tensor: Tensor, values: Tensor) -> None:
    if tensor.device != values.device:
        raise DataError(f"'{name}' must be on the device of 'values', {values.device}. Got {tensor.device}.")
