"""`configure_runtime` sets what PyTorch, MKL and OpenMP read once; what a user set before stays."""

import os
import subprocess
import sys

import pytest

from edhnn.runtime import SETTINGS, configure_runtime, runtime_settings

NAMES = (*SETTINGS, "OMP_WAIT_POLICY")


@pytest.fixture(autouse=True)
def without_torch(monkeypatch):
    """Make this process look as before PyTorch was imported, with none of the variables set."""
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that what a test sets is undone
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "torch", raising=False)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, SETTINGS),
        ({"OMP_WAIT_POLICY": "active"}, {name: SETTINGS[name] for name in ("MKL_CBWR", "THP_MEM_ALLOC_ENABLE")}),
        (
            given := {"THP_MEM_ALLOC_ENABLE": "0", "MKL_CBWR": "COMPATIBLE", "GOMP_SPINCOUNT": "7"},
            given,
        ),
    ],
)
def test_what_is_set_and_what_is_left(given, found, monkeypatch):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert configure_runtime() == runtime_settings() == found
    assert {name: os.environ.get(name) for name in SETTINGS} == {name: found.get(name) for name in SETTINGS}


def test_too_late_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.warns(RuntimeWarning, match="before PyTorch is imported"):
        configure_runtime()
    assert configure_runtime() == SETTINGS  # nothing is left to set, so nothing is too late


def test_the_command_sets_them_before_it_loads_torch():
    script = """
import os, sys
sys.argv = ["edhnn", "models", "--json"]
from edhnn.cli.main import main
try:
    main()
except SystemExit as left:
    assert not left.code
assert "torch" in sys.modules
from edhnn.runtime import runtime_settings
print(runtime_settings(), file=sys.stderr)
"""
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    done = subprocess.run([sys.executable, "-c", script], env=clean, capture_output=True, text=True)
    assert done.stderr.strip() == str(SETTINGS)
