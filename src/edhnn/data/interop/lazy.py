"""Optional libraries are imported when a bridge is crossed, not before."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from edhnn.errors import MissingDependencyError, UsageError

_EXTRA = "bridges"


def import_library(module: str, purpose: str) -> Any:
    """Import an optional library.

    Args:
        module: What to import; a submodule of the library is fine.
        purpose: Who asks, for the error: ``to_xgi``.

    Returns:
        The module.

    Raises:
        MissingDependencyError: if the library is not installed. A library that is installed but broken raises its
            own error.
    """
    library = module.partition(".")[0]
    try:
        with warnings.catch_warnings():  # HyperNetX 2.4 changes the filters of the whole process
            import_module(library)
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise MissingDependencyError(library, purpose, _EXTRA) from error


def wrong_type(function: str, wanted: str, got: object, hint: str = "") -> UsageError:
    """The error for an object a bridge does not take."""
    kind = type(got)
    return UsageError(f"'{function}' takes {wanted}. Got {kind.__module__}.{kind.__qualname__}.{hint}")
