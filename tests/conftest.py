"""What every test shares: the Hypothesis profile and the place of the real datasets."""

import os
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("edhnn", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("edhnn")


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """Run as users do, without the shape checks of the test run, to meet our own messages for wrong shapes."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def pytest_configure() -> None:
    """One thread for the commands that tests start; threads that wait sleep, as other test processes need the core."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """One thread: threads of several test processes only wait for one another. A test that wants more says so."""
    import torch  # not before the settings above are made

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the nine real datasets; tests that need it are skipped, saying so, where it is absent."""
    folder = Path(os.environ.get("EDHNN_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / "cora" / "hyperedges.txt.gz").is_file():
        pytest.skip(f"the real datasets are not in '{folder}'; set EDHNN_DATA")
    return folder
