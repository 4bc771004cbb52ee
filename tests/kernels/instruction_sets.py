"""Run a test natively on every instruction set this machine has."""

import pytest

from edhnn.kernels import native_backend

NAMES = ("portable", "avx2", "avx512")


def available():
    library = native_backend.LOADED
    return () if library is None else NAMES[: library.edhnn_instruction_set(-1) + 1]


@pytest.fixture(params=NAMES)
def instruction_set(request):
    """The native kernels use this instruction set while the test runs."""
    library = native_backend.LOADED
    if request.param not in available():
        pytest.skip(f"no {request.param} here, or the native kernels are not built")
    before = library.edhnn_instruction_set(-1)
    library.edhnn_instruction_set(NAMES.index(request.param))
    yield request.param
    library.edhnn_instruction_set(before)
