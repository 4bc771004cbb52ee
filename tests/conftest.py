"""What every test shares: the Hypothesis profiles and the place of the real datasets."""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jaxtyping
import pytest
from hypothesis import HealthCheck, settings

from edhnn.runtime import configure_runtime

settings.register_profile("everyday", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("everyday"))  # see `tests.strategies.examples`
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))


CHECKED = {"kernels", "nn", "hypergraph", "potentials", "diffusion", "models", "contract", "theory"}
"""Folders of tests that check the shapes of every call. The tests of what stands above them run as users do."""


@pytest.fixture(autouse=True)
def shape_checks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check shapes in the tests of the mathematics only, because every call of a training would pay for them."""
    room = request.path.relative_to(Path(__file__).parent).parts[0]
    jaxtyping.config.update("jaxtyping_disable", room not in CHECKED)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def without_shape_checks(shape_checks: None) -> None:
    """Run as users do, without the shape checks of the test run, to meet our own messages for wrong shapes."""
    jaxtyping.config.update("jaxtyping_disable", True)


def pytest_configure() -> None:
    """One thread for the commands that tests start; threads that wait sleep, as other test processes need the core."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if "torch" not in sys.modules:
        configure_runtime()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """One thread: threads of several test processes only wait for one another. A test that needs more sets them."""
    import torch  # not before the settings above are made

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the nine real datasets; tests that need it are skipped, with the reason, where it is absent."""
    folder = Path(os.environ.get("EDHNN_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / "cora" / "hyperedges.txt.gz").is_file():
        pytest.skip(f"the real datasets are not in '{folder}'; set EDHNN_DATA")
    return folder


@pytest.fixture(scope="session")
def tiny():
    from edhnn import contextual_sbm

    dataset = contextual_sbm(1, nodes_per_class=20, num_hyperedges=16, edge_size=5)
    return replace(dataset, name="tiny", x=dataset.x[:, :6].contiguous(), class_names=("blue", "red"))


@pytest.fixture(scope="session")
def split(tiny):
    from edhnn import random_splits

    return random_splits(tiny.hypergraph.num_nodes, 1)[0]


@pytest.fixture
def plan():
    from edhnn import Plan, TrainConfig

    return Plan(options={"hidden": 8, "classifier_hidden": 8}, train=TrainConfig(epochs=6), num_splits=2)


@pytest.fixture(autouse=True)
def own_models_leave_the_registry() -> Iterator[None]:
    """Remove the models that a test registers, so that no other test meets them."""
    from edhnn.models import registry

    before = set(registry._ENTRIES)
    yield
    for name in set(registry._ENTRIES) - before - set(registry._MODULES):
        del registry._ENTRIES[name]
