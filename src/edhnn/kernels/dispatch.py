"""Which implementation runs: ``native`` where it is built and fits the call, ``torch`` everywhere else.

``EDHNN_KERNELS=torch`` or ``native`` forces one. ``native`` then means that it must be there; a call it cannot serve (a
gradient of a kernel that has none natively, another device or dtype) is still answered by torch.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor
from torch.autograd import forward_ad

from edhnn.errors import UsageError, unknown_name
from edhnn.kernels import native_kernels

CHOICES = ("torch", "native")
_BUILT = native_kernels.load() is not None  # a tracer need not look inside


def native_available() -> bool:
    """Whether the native kernels are built and fit this version of the package."""
    return _BUILT if torch.compiler.is_compiling() else native_kernels.load() is not None


def active() -> str:
    """The implementation in use: ``"native"`` or ``"torch"``.

    Raises:
        UsageError: if ``EDHNN_KERNELS`` names neither, or asks for native kernels that are not built.
    """
    wanted = os.environ.get("EDHNN_KERNELS", "")
    if wanted and wanted not in CHOICES:
        raise unknown_name("value of EDHNN_KERNELS", wanted, CHOICES)
    if wanted == "native" and not native_available():
        raise UsageError(
            "EDHNN_KERNELS=native needs the native kernels, which are not built here. Install a C++17 compiler and "
            "install edhnn again (in a checkout: pip install -e .), or unset EDHNN_KERNELS to use the torch kernels."
        )
    return "native" if wanted != "torch" and native_available() else "torch"


def goes_native(values: Tensor, *others: Tensor | None) -> bool:
    """Whether this call is served natively: built, wanted, CPU, float32 or float64, and no derivative asked for."""
    tensors = [values, *(other for other in others if other is not None)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return False
    return trains_natively(values, *tensors)


def trains_natively(values: Tensor, *others: Tensor | None) -> bool:
    """The same for kernels with a native gradient: only forward-mode derivatives are left to torch."""
    if active() == "torch" or values.device.type != "cpu" or values.dtype not in native_kernels.SUFFIX:
        return False
    tensors = [values, *(other for other in others if other is not None)]
    return all(forward_ad.unpack_dual(tensor).tangent is None for tensor in tensors)  # type: ignore[no-untyped-call]
