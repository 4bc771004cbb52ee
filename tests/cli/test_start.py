"""Import cost: loading a verb imports no library that it may not need."""

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


def test_loading_the_verbs_imports_no_heavy_library():
    script = f"""
import sys
from edhnn.cli.main import VERBS, load_verb
for name in VERBS:
    load_verb(name)
print(*(name for name in {HEAVY} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert done.stdout.split() == []
