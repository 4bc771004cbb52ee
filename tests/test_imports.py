"""Import cost: one process goes from `import edhnn` to the networks and imports nothing before it is needed."""

import json
import os
import subprocess
import sys

from edhnn.runtime import SETTINGS

FIRST = ("torch", "numpy", "pyarrow", "sklearn", "matplotlib", "edhnn.hypergraph", "edhnn.models")
"""What neither `import edhnn` nor `edhnn --help` imports."""
VERBS = (
    "matplotlib",
    "optuna",
    "pandas",
    "plotly",
    "scipy.stats",
    "sklearn",
    "torch_geometric",
    "torch.utils.tensorboard",
)
"""What loading all verbs does not import."""
BRIDGES = ("torch_geometric", "xgi", "hypernetx", "networkx", "pandas", "polars")
"""What the bridges import only when they are called."""
SCRIPT = f"""
import json, os, sys
before, found = dict(os.environ), {{}}

def look(step, names):
    found[step] = sorted(set(names) & set(sys.modules))

import edhnn, edhnn.cli.main
for option in ("--version", "--help"):
    edhnn.cli.main.app([option], standalone_mode=False)
look("the command's help", {FIRST})
edhnn.EDHNN
look("a network", ("sklearn", "torch"))
for name in edhnn.cli.main.VERBS:
    edhnn.cli.main.load_verb(name)
look("all verbs", {VERBS})
import edhnn.interop
look("the bridges", {BRIDGES})
found["environment unchanged"] = dict(os.environ) == before  # scikit-learn, imported next, sets variables
edhnn.HypergraphLabelSpreading, edhnn.EDHNNClassifier
look("an estimator", ("sklearn", "torch"))
print(json.dumps(found), file=sys.stderr)
"""


def test_nothing_is_imported_before_it_is_needed():
    clean = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr) == {
        "the command's help": [],
        "a network": ["torch"],
        "all verbs": [],
        "the bridges": [],
        "an estimator": ["sklearn", "torch"],
        "environment unchanged": True,
    }
