"""What every test shares: the Hypothesis profile and the place of the real datasets."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("edhnn", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("edhnn")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the nine real datasets; tests that need it are skipped, saying so, where it is absent."""
    folder = Path(os.environ.get("EDHNN_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / "cora" / "hyperedges.txt.gz").is_file():
        pytest.skip(f"the real datasets are not in '{folder}'; set EDHNN_DATA")
    return folder
