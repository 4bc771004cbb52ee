"""Environment variables that PyTorch, MKL and OpenMP read once, when they are loaded."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Final

SETTINGS: Final = {
    "MKL_CBWR": "AUTO,STRICT",  # docs/adr/0011: a product has the same bits for any number of threads
    "THP_MEM_ALLOC_ENABLE": "1",  # docs/adr/0009: large tensors use large memory pages
    "GOMP_SPINCOUNT": "10000",  # docs/adr/0013: a waiting thread soon yields its core
}


def configure_runtime() -> dict[str, str]:
    """Set the environment variables that make training reproducible and fast; call it before importing PyTorch.

    ``MKL_CBWR`` makes matrix products independent of the number of threads, ``THP_MEM_ALLOC_ENABLE`` makes steps on
    large hypergraphs faster, ``GOMP_SPINCOUNT`` makes them faster on a busy machine. A variable that is already set is
    not changed, and ``GOMP_SPINCOUNT`` is not set if ``OMP_WAIT_POLICY`` is. The `edhnn` command calls this function;
    ``import edhnn`` does not. Processes started later inherit the variables.

    Returns:
        The variables and their values after the call.

    Warns:
        RuntimeWarning: if a variable is set after PyTorch was loaded, which reads it only once.
    """
    skipped = {"GOMP_SPINCOUNT"} if "OMP_WAIT_POLICY" in os.environ else set()
    missing = {name: value for name, value in SETTINGS.items() if name not in os.environ and name not in skipped}
    os.environ.update(missing)
    if missing and "torch" in sys.modules:
        warnings.warn(
            "Call configure_runtime() before PyTorch is imported. It is already imported, so that "
            f"{', '.join(missing)} may have no effect in this process.",
            RuntimeWarning,
            stacklevel=2,
        )
    return runtime_settings()


def runtime_settings() -> dict[str, str]:
    """Return the variables that are set, with their values."""
    return {name: os.environ[name] for name in SETTINGS if name in os.environ}
