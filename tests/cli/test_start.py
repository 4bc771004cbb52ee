"""What every command pays for: starting loads no library that only some commands need."""

import subprocess
import sys

HEAVY = (
    "matplotlib",
    "optuna",
    "pandas",
    "plotly",
    "scipy.stats",
    "sklearn",
    "torch_geometric",
    "torch.utils.tensorboard",
)


def test_starting_loads_nothing_that_only_some_commands_need():
    script = f"import sys, edhnn.cli.main; print(*(name for name in {HEAVY} if name in sys.modules))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert said.stdout.split() == []
