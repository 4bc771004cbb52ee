"""What every test shares: the Hypothesis profile and the place of the real datasets."""

import os
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile("edhnn", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("edhnn")


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """Run as users do, without the shape checks of the test run, to meet our own messages for wrong shapes."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread: small tensors in parallel test processes only wait for one another, and times repeat better."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the nine real datasets; tests that need it are skipped, saying so, where it is absent."""
    folder = Path(os.environ.get("EDHNN_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / "cora" / "hyperedges.txt.gz").is_file():
        pytest.skip(f"the real datasets are not in '{folder}'; set EDHNN_DATA")
    return folder
