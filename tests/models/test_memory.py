"""A training step of the family holds rows per node and per hyperedge, none per incidence."""

import subprocess
import sys

import pytest

NODES, INCIDENCES, WIDTH = 2_000, 600_000, 64

SCRIPT = f"""
import ctypes, gc
from pathlib import Path
import torch
from edhnn import Hypergraph
from edhnn.models.registry import make_model

draw = torch.Generator().manual_seed(0)
node, edge = (torch.randint({NODES}, ({INCIDENCES},), generator=draw) for _ in range(2))
hypergraph = Hypergraph(node, edge, {NODES}, {NODES})
x = torch.randn({NODES}, {WIDTH}, generator=draw)
name, options = "MODEL"
model = make_model(name, in_features={WIDTH}, num_classes=4, hidden={WIDTH}, num_iterations=3, **options)

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

def step():
    model(x, hypergraph).square().mean().backward()

step(), step()
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
step()
print(status("VmHWM") - before, hypergraph.num_incidences)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ed-hnn", {"phi_layers": 2, "rho_layers": 2, "update": "concat"}),
        ("ed-hnn", {"phi_layers": 0, "rho_layers": 1, "update": "restart", "norm": "none"}),
        ("ed-hnn-ii", {"phi_layers": 2, "rho_layers": 2}),
        ("invariant", {}),
    ],
)
def test_a_step_allocates_nothing_of_a_row_per_incidence(name, options):
    script = SCRIPT.replace('"MODEL"', repr((name, options)))
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    added, incidences = map(int, done.stdout.split())
    assert added < incidences * WIDTH * 4 / 2  # half of the smallest thing with a row per incidence
