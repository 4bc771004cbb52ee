"""`configure_runtime` sets variables that PyTorch, MKL and OpenMP read once, and keeps values that a user set."""

import os
import subprocess
import sys

import pytest

from edhnn.runtime import SETTINGS, configure_runtime, runtime_settings

NAMES = (*SETTINGS, "OMP_WAIT_POLICY")


@pytest.fixture(autouse=True)
def without_torch(monkeypatch):
    """Pretend that PyTorch is not imported and that none of the variables is set."""
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that monkeypatch restores what a test sets
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "torch", raising=False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, SETTINGS),
        ({"OMP_WAIT_POLICY": "active"}, {name: SETTINGS[name] for name in ("MKL_CBWR", "THP_MEM_ALLOC_ENABLE")}),
        (
            given := {"THP_MEM_ALLOC_ENABLE": "0", "MKL_CBWR": "COMPATIBLE", "GOMP_SPINCOUNT": "7"},
            given,
        ),
    ],
)
def test_missing_variables_are_set_and_given_ones_kept(given, expected, monkeypatch):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert configure_runtime() == runtime_settings() == expected
    assert {name: os.environ.get(name) for name in SETTINGS} == {name: expected.get(name) for name in SETTINGS}


def test_a_call_after_the_import_of_torch_warns(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.warns(RuntimeWarning, match="before PyTorch is imported"):
        configure_runtime()
    assert configure_runtime() == SETTINGS  # all variables are set now, so there is no second warning


def test_the_command_sets_the_variables_before_it_imports_torch():
    script = """
import os, sys
sys.argv = ["edhnn", "presets", "--json"]
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
