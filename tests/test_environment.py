"""Settings of the libraries below us, made by importing edhnn; what a user set before stays."""

import os
import subprocess
import sys

import pytest

NAMES = ("THP_MEM_ALLOC_ENABLE", "MKL_CBWR", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
SCRIPT = f"import edhnn, os; print([os.environ.get(name) for name in {NAMES}])"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ["1", "AUTO,STRICT", "10000", None]),
        ({"OMP_WAIT_POLICY": "active"}, ["1", "AUTO,STRICT", None, "active"]),
        (
            {"THP_MEM_ALLOC_ENABLE": "0", "MKL_CBWR": "COMPATIBLE", "GOMP_SPINCOUNT": "7"},
            ["0", "COMPATIBLE", "7", None],
        ),
    ],
)
def test_what_is_set_and_what_is_left(given, found):
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    said = subprocess.run([sys.executable, "-c", SCRIPT], env=clean | given, capture_output=True, check=True, text=True)
    assert said.stdout.strip() == str(found)
