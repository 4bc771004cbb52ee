"""A training step of the ED-HNN family holds rows per node and per hyperedge, but no row per incidence."""

import json
import subprocess
import sys

import pytest

NODES, INCIDENCES, WIDTH = 2_000, 600_000, 64
CASES = [
    ("ed-hnn", {"phi_layers": 2, "rho_layers": 2, "update": "concat"}),
    ("ed-hnn", {"phi_layers": 0, "rho_layers": 1, "update": "restart", "norm": "none"}),
    ("ed-hnn-ii", {"phi_layers": 2, "rho_layers": 2}),
    ("invariant", {}),
]

SCRIPT = f"""
import ctypes, gc, json, sys
from pathlib import Path
import torch
from edhnn import Hypergraph
from edhnn.models.registry import make_model

draw = torch.Generator().manual_seed(0)
node, edge = (torch.randint({NODES}, ({INCIDENCES},), generator=draw) for _ in range(2))
hypergraph = Hypergraph(node, edge, {NODES}, {NODES})
x = torch.randn({NODES}, {WIDTH}, generator=draw)

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

def added_bytes(name, options):
    model = make_model(name, in_features={WIDTH}, num_classes=4, hidden={WIDTH}, num_iterations=3, **options)

    def step():
        model(x, hypergraph).square().mean().backward()

    step(), step()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    step()
    return status("VmHWM") - before

print(json.dumps([hypergraph.num_incidences, *(added_bytes(*case) for case in json.loads(sys.argv[1]))]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_training_step_allocates_no_tensor_with_a_row_per_incidence():
    command = [sys.executable, "-c", SCRIPT, json.dumps(CASES)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    incidences, *added = json.loads(done.stdout)
    smallest = incidences * WIDTH * 4  # bytes of the smallest tensor with a row per incidence
    assert len(added) == len(CASES)
    for (name, options), size in zip(CASES, added, strict=True):
        assert size < smallest / 2, (name, options)
