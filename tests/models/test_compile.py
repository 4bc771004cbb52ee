"""torch.export and torch.compile see our kernels as operators, without a break in the graph."""

import subprocess
import sys
from pathlib import Path


def test_models_are_exported_and_compiled_whole():
    command = [sys.executable, "-W", "ignore", "-m", "tests.models.compiled"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
