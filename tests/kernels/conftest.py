"""One thread for the kernel tests: small tensors in parallel test processes only wait for one another."""

from collections.abc import Iterator

import pytest
import torch

from tests.kernels.instruction_sets import instruction_set as instruction_set


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
