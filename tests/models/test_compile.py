"""torch.export and torch.compile treat our kernels as operators, without graph breaks."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_models_export_and_compile_without_graph_breaks():
    command = [sys.executable, "-W", "ignore", "-m", "tests.models.compiled"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_every_model_compiles_and_says_where_a_graph_breaks():
    command = [sys.executable, "-W", "ignore", "-m", "tests.models.compiled", "all"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
