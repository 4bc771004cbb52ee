"""The shared library of native kernels: where it is, whether it fits, which implementation is asked for.

Nothing here needs PyTorch, so that ``edhnn --version`` can answer without loading it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from edhnn.errors import UsageError, unknown_name

ABI = 4
"""Signatures and promises of the library; one left over from another version is not used."""

LIBRARY = Path(__file__).parent / "native" / ("kernels.dll" if sys.platform == "win32" else "kernels.so")
CHOICES = ("torch", "native")


def load() -> ctypes.CDLL | None:
    """Load the library; ``None`` where it was not built, cannot be loaded or belongs to another version."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError:
        return None
    return library if hasattr(library, "edhnn_kernels_abi") and library.edhnn_kernels_abi() == ABI else None


def chosen(implementation: str | None = None, *, built: bool) -> str:
    """Return the implementation to use, ``"native"`` or ``"torch"``.

    Args:
        implementation: The one that is asked for; ``None`` for what ``EDHNN_KERNELS`` says now.
        built: Whether there is a library that fits.

    Raises:
        UsageError: if the name is unknown, or native kernels are asked for and not built.
    """
    wanted = os.environ.get("EDHNN_KERNELS", "") if implementation is None else implementation
    if wanted and wanted not in CHOICES:
        raise unknown_name("value of EDHNN_KERNELS", wanted, CHOICES)
    if wanted == "native" and not built:
        raise UsageError(
            "EDHNN_KERNELS=native needs the native kernels, which are not built here. Install a C++17 compiler and "
            "install edhnn again (in a checkout: pip install -e .), or unset EDHNN_KERNELS to use the torch kernels."
        )
    return "native" if wanted != "torch" and built else "torch"
