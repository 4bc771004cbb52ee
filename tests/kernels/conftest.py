"""One thread for the kernel tests: small tensors in parallel test processes only wait for one another."""

import pytest

from tests.kernels.instruction_sets import instruction_set as instruction_set


@pytest.fixture(autouse=True)
def always_one_thread(one_thread: None) -> None:
    """For all tests of this folder."""
