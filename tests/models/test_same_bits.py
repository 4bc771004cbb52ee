"""No sum of a training step is left to a library's choice of threads.

Two tests of one promise. The first looks at what a step asks of PyTorch: no reduction over rows is among it, on any
processor. The others compare outputs and the gradient of every parameter bit by bit for one, two and three threads,
with each instruction set that this processor has, PyTorch's and our own. Matrix products are MKL's, held by MKL_CBWR
as the command sets it (docs/adr/0011).
"""

import itertools
import json
import os
import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from edhnn import contextual_sbm, make_model
from edhnn.hypergraph.transforms import add_singletons
from edhnn.models.registry import MODELS
from edhnn.runtime import SETTINGS
from tests.kernels.implementations import needs_native
from tests.kernels.instruction_sets import NAMES, available

SERIAL = 32768
"""PyTorch reduces so many entries in one thread: its GRAIN_SIZE."""

WIDTHS = (16, 32, 64, 100, 128, 256, 512)
VARIANTS = [
    ["ed-hnn", {"norm": "batch"}],
    ["ed-hnn", {"norm": "none", "aggregate": "sum"}],
    ["ed-hnn", {"activation": "prelu"}],
    ["ed-hnn", {"update": "concat"}],
    ["ed-hnn", {"rho_layers": 1}],
    ["ed-hnn", {"rho_layers": 3}],
    ["ed-hnn", {"weighted": True}],
    ["ed-hnn", {"sparse": True}],
    ["ed-hnn-ii", {"form": "main-text"}],
    ["ed-hnn-ii", {"weighted": True, "aggregate": "sum"}],
    ["invariant", {"sparse": True}],
    ["alldeepsets", {"sparse": True}],
]


def capabilities():
    """The instruction sets PyTorch can be told to use here, by the name in ATEN_CPU_CAPABILITY."""
    flags = torch.backends.cpu.get_cpu_capability().lower()
    return ("default", "avx2", "avx512")[: {"default": 1, "no avx": 1, "avx2": 2, "avx512": 3}.get(flags, 1)]


def compare(capability, level, cases):
    """What `same_bits` says of these cases, in a process with these instruction sets."""
    environment = {
        **os.environ,
        "ATEN_CPU_CAPABILITY": capability,
        "MKL_CBWR": SETTINGS["MKL_CBWR"],
        "OMP_WAIT_POLICY": "passive",
        "OMP_NUM_THREADS": "3",
    }
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.models.same_bits",
        str(NAMES.index(level)),
        json.dumps(cases),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    counts = f"{said['compared']} tensors, {len(said['differ'])} differ"
    sys.stdout.write(f"PyTorch {said['capability']}, our kernels {level}: {counts}\n")
    return said


@needs_native
@pytest.mark.parametrize("name", ["ed-hnn", "ed-hnn-ii"])
def test_gradients_have_the_same_bits_for_any_number_of_threads(name):
    best = capabilities()[-1], available()[-1]
    said = compare(*best, [[name, {"hidden": width, "classifier_hidden": width}] for width in (16, 256)])
    assert said["compared"] >= 100
    assert not said["differ"]


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize(("capability", "level"), list(itertools.product(capabilities(), available() or NAMES[:1])))
def test_every_model_has_the_same_bits_on_every_instruction_set(capability, level):
    cases = [
        [name, {"hidden": width, "classifier_hidden": width}] for name in ("ed-hnn", "ed-hnn-ii") for width in WIDTHS
    ]
    cases += [[name, {}] for name in MODELS] + VARIANTS
    said = compare(capability, level, cases)
    assert said["compared"] >= 1000
    assert not said["differ"]


class Reductions(TorchDispatchMode):
    """Remembers which of PyTorch's own sums run over rows, or over so many entries that threads may share them."""

    ALWAYS = (
        "native_batch_norm",
        "native_layer_norm",
        "layer_norm_backward",
        "batch_norm",
        "prelu",
        "mv",
        "addmv",
        "dot",
    )
    SOMETIMES = ("sum", "mean", "norm", "var", "prod", "linalg_vector_norm", "nansum")

    def __init__(self):
        super().__init__()
        self.found, self.ours = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        self.ours += name.startswith("edhnn::")
        if name in self.ALWAYS or name.startswith(("native_batch_norm", "native_layer_norm")):
            self.found.append(name)
        if name in self.SOMETIMES and args[0].numel() >= SERIAL:
            dims = args[1] if len(args) > 1 and isinstance(args[1], list) else None
            if not dims or 0 in dims:
                self.found.append(f"{name} of {list(args[0].shape)} over {dims}")
        return func(*args, **(kwargs or {}))


@needs_native
@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in MODELS] + [(name, options) for name, options in VARIANTS],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_a_step_leaves_no_sum_over_rows_to_pytorch(name, options):
    data = contextual_sbm(2, nodes_per_class=1500, num_hyperedges=800)
    options = {key: value for key, value in options.items() if key != "weighted"}
    x = data.x.to_sparse_csr() if options.pop("sparse", False) else data.x
    hypergraph = add_singletons(data.hypergraph) if MODELS[name].singletons else data.hypergraph
    model = make_model(name, in_features=data.num_features, num_classes=2, **options).train()
    with Reductions() as reductions:
        torch.nn.functional.cross_entropy(model(x, hypergraph), data.y).backward()
    assert reductions.ours
    assert not reductions.found
